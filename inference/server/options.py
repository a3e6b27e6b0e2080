"""What a server may be told: where it listens, whom it answers, and how much it takes."""

from dataclasses import dataclass

from beamless.inference.errors import BeamlessError

NO_KEY = "none"
MOST = 1_000_000_000
"""The largest limit: bytes and samples that are reckoned from it are still numbers."""


@dataclass(frozen=True)
class ServerOptions:
    """Limits and names of a server.

    Attributes:
        host: the address to listen at; 127.0.0.1 is reached from this machine alone.
        port: the port to listen at.
        api_key: what clients must send as ``Authorization: Bearer KEY``; BEAMLESS_API_KEY in the
            environment says the same and stays out of the list of processes. Whoever may reach
            this server may use it where it is none.
        hostnames: names that this server may be called by, beside localhost, addresses and this
            machine's own name: a web page elsewhere cannot take another one.
        origins: web pages elsewhere that may use it, such as https://example.org.
        workers: recordings that are decoded at the same time.
        max_queue: recordings that may wait for that; beyond it the answer is 429.
        max_live: live streams at the same time.
        max_upload_mb: megabytes of a request; beyond it the answer is 413.
        max_minutes: of a recording or a live stream; beyond it the answer is 413.
        max_idle: seconds that a client may send nothing within a request.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    api_key: str = NO_KEY
    hostnames: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    workers: int = 2
    max_queue: int = 16
    max_live: int = 4
    max_upload_mb: float = 1000.0
    max_minutes: float = 360.0
    max_idle: float = 30.0

    def __post_init__(self) -> None:
        for name in ("hostnames", "origins"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not self.host.strip():
            raise BeamlessError("host is empty; 127.0.0.1 is this machine alone, 0.0.0.0 anybody")
        if not self.api_key.strip():
            raise BeamlessError("the API key is empty; give one, or 'none' to do without")
        for name in ("workers", "max_upload_mb", "max_minutes", "max_idle"):
            if not 0 < getattr(self, name) <= MOST:
                raise BeamlessError(
                    f"{name} is {getattr(self, name)}; give a number above 0 and up to {MOST:,}"
                )
        for name in ("port", "max_queue", "max_live"):
            if getattr(self, name) < 0:
                raise BeamlessError(f"{name} is {getattr(self, name)}; give 0 or more")

    @property
    def is_locked(self) -> bool:
        """Whether clients must send a key."""
        return self.api_key != NO_KEY

    @property
    def max_bytes(self) -> int:
        """Bytes of a request."""
        return round(self.max_upload_mb * 1_000_000)

    @property
    def max_seconds(self) -> float:
        """Seconds of a recording."""
        return self.max_minutes * 60
