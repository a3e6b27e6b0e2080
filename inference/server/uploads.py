"""Request bodies as they come in: fields to memory, the recording to a file that is gone after.

The file has a name of the server's own in a folder of the server's own; what the client calls it
is never a path here.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect, Request

from beamless.inference.server.errors import ApiError
from beamless.inference.server.options import ServerOptions

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

MOST_FIELDS = 64
LONGEST_FIELD = 65_536  # bytes
RECORDING = "file"  # OpenAI's name of the field


@dataclass
class Upload:
    """What a request brought.

    Attributes:
        path: where the recording is, until ``delete``.
        fields: the others by name; a name may come several times.
    """

    path: Path
    fields: dict[str, list[str]] = field(default_factory=dict)
    size: int = 0

    def delete(self) -> None:
        """Take the recording off the disk."""
        self.path.unlink(missing_ok=True)


async def receive(request: Request, folder: Path, limits: ServerOptions) -> Upload:
    """Take a request's body in: a form with the field ``file``, or the recording alone.

    Nothing is left on the disk where it fails.

    Raises:
        ApiError: too long, too slow, cut off or no form.
        ClientDisconnect: the client broke off.
    """
    upload = Upload(folder / secrets.token_hex(16))
    kind, parameters = parse_options_header(request.headers.get("content-type"))
    try:
        with upload.path.open("xb") as file:
            if kind.startswith(b"multipart/"):
                await _receive_form(request, parameters.get(b"boundary"), upload, file, limits)
            else:
                async for chunk in body(request, limits):
                    upload.size += file.write(chunk)
        for name, value in request.query_params.multi_items():
            upload.fields.setdefault(name, []).append(value)
        request.state.body_read = True
        return upload
    except BaseException:
        upload.delete()
        raise


async def body(request: Request, limits: ServerOptions) -> AsyncIterator[bytes]:
    """Yield a request's body, as long as it keeps within the limits.

    Raises:
        ApiError: 413, it is too long; 408, the client sends nothing.
        ClientDisconnect: the client broke off.
    """
    most = limits.max_bytes
    too_long = ApiError(413, f"a request holds {limits.max_upload_mb:g} MB at most here")
    stated = request.headers.get("content-length", "")
    if stated.isdecimal() and int(stated) > most:
        raise too_long
    read, more = 0, True
    while more:
        try:
            message = await asyncio.wait_for(request.receive(), limits.max_idle)
        except TimeoutError:
            raise ApiError(408, f"nothing was sent for {limits.max_idle:g} s") from None
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk, more = message.get("body", b""), message.get("more_body", False)
        read += len(chunk)
        if read > most:
            raise too_long
        yield chunk


async def _receive_form(
    request: Request,
    boundary: bytes | None,
    upload: Upload,
    file: BinaryIO,
    limits: ServerOptions,
) -> None:
    if not boundary:
        raise ApiError(400, "the form's Content-Type names no boundary")
    form = Form(upload, file)
    try:
        parser = MultipartParser(boundary, form.callbacks())
        async for chunk in body(request, limits):
            parser.write(chunk)
        parser.finalize()
    except (FormParserError, UnicodeDecodeError) as error:
        raise ApiError(400, f"the form cannot be read: {error}") from None
    if not form.ended:
        raise ApiError(400, "the form was cut off: its last boundary is missing")
    if not form.found:
        raise ApiError(400, f"the form has no field {RECORDING!r} with a recording", param="file")


class Form:
    """Takes a form's parts apart, as the parser finds them."""

    def __init__(self, upload: Upload, file: BinaryIO) -> None:
        self._upload, self._file = upload, file
        self._header = self._value = b""
        self._disposition = b""
        self._name = ""
        self._text = bytearray()
        self._parts = 0
        self.found = self.ended = False

    def callbacks(self) -> "MultipartCallbacks":
        """Return what the parser calls."""
        return {
            "on_part_begin": self._begin,
            "on_header_begin": self._begin_header,
            "on_header_field": self._add_to_header,
            "on_header_value": self._add_to_value,
            "on_header_end": self._end_header,
            "on_headers_finished": self._name_part,
            "on_part_data": self._add,
            "on_part_end": self._end,
            "on_end": self._end_form,
        }

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > MOST_FIELDS:
            raise ApiError(400, f"the form has over {MOST_FIELDS} fields")
        self._disposition, self._name, self._text = b"", "", bytearray()

    def _begin_header(self) -> None:
        self._header = self._value = b""

    def _add_to_header(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _add_to_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]
        if len(self._value) > LONGEST_FIELD:
            raise ApiError(400, "a header of the form is too long")

    def _end_header(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = self._value

    def _name_part(self) -> None:
        _, parameters = parse_options_header(self._disposition)
        self._name = parameters.get(b"name", b"").decode("utf-8")
        if self._name == RECORDING:
            if self.found:
                raise ApiError(400, "the form has two recordings; send one a request")
            self.found = True

    def _add(self, data: bytes, start: int, end: int) -> None:
        if self._name == RECORDING:
            self._upload.size += self._file.write(data[start:end])
            return
        self._text += data[start:end]
        if len(self._text) > LONGEST_FIELD:
            raise ApiError(400, f"the form's field {self._name[:40]!r} is too long")

    def _end(self) -> None:
        if self._name and self._name != RECORDING:
            self._upload.fields.setdefault(self._name, []).append(self._text.decode("utf-8"))

    def _end_form(self) -> None:
        self.ended = True
