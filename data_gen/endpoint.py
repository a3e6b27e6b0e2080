"""HTTP endpoints that speak the OpenAI interface: one JSON request, retried with back-off."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from beamless.inference.errors import BeamlessError

RETRIED = {408, 409, 425, 429, 500, 502, 503, 504}


@dataclass(frozen=True)
class Endpoint:
    """Where requests go; the key is read from an environment variable, never from a file.

    ``url`` ends before the method's name, as in ``http://127.0.0.1:8080/v1``. A request that
    fails is sent again ``retries`` times, after ``wait`` seconds, then twice that, and so on.
    """

    url: str
    key_name: str = "OPENAI_API_KEY"
    timeout: float = 120.0
    retries: int = 4
    wait: float = 1.0

    def __post_init__(self) -> None:
        """Check the address."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise BeamlessError(f"{self.url!r} is no address; give one as http://127.0.0.1:8080/v1")

    def post(self, method: str, body: Mapping[str, Any]) -> bytes:
        """Send ``body`` as JSON and return the answer.

        Raises:
            BeamlessError: it refuses the request, or gives no whole answer after every retry.
        """
        address = f"{self.url.rstrip('/')}/{method}"
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get(self.key_name):
            headers["Authorization"] = f"Bearer {key}"
        request = Request(address, json.dumps(body).encode(), headers)
        reason = ""
        for attempt in range(self.retries + 1):
            if attempt:
                time.sleep(self.wait * 2 ** (attempt - 1))
            try:
                with urlopen(request, timeout=self.timeout) as answer:
                    return bytes(answer.read())
            except HTTPError as error:
                reason = f"status {error.code}: {_message(error)}"
                if error.code not in RETRIED:
                    raise BeamlessError(f"{address} refused the request ({reason})") from None
            except URLError as error:
                reason = str(error.reason)
            except (HTTPException, OSError) as error:
                reason = str(error) or type(error).__name__
        tries = self.retries + 1
        raise BeamlessError(f"{address} gave no answer in {tries} tries (last: {reason})")


def _message(error: HTTPError) -> str:
    """Return what the server says is wrong, on one line."""
    try:
        said = error.read(2000).decode("utf-8", "replace")
        found = json.loads(said)
        detail = found.get("error", found) if isinstance(found, dict) else found
        said = str(detail.get("message", detail) if isinstance(detail, dict) else detail)
    except (ValueError, OSError, HTTPException):
        pass
    return " ".join(said.split())[:200] if said else error.reason
