"""Small audio files and corpora, made of tones, and a small server."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

RATE = 16_000


def tone(seconds=0.2, pitch=440.0, loudness=0.3, rate=RATE):
    times = np.arange(round(seconds * rate)) / rate
    return (loudness * np.sin(2 * np.pi * pitch * times)).astype(np.float32)


def store(path: Path, samples=None, rate=RATE, **options) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, tone() if samples is None else samples, rate, **options)
    return path


def write_corpus(folder: Path, rows: list[dict], audio: bool = True) -> Path:
    """Write ``rows`` as ``metadata.jsonl`` and a tone for each file that they name."""
    lines = []
    for number, row in enumerate(rows):
        full = {"id": f"u{number}", "file_name": f"audio/u{number}.flac", "text": "hello"} | row
        if audio:
            store(folder / full["file_name"], tone(full.get("duration", 0.2)))
        lines.append(json.dumps(full, ensure_ascii=False) + "\n")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metadata.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


def rows_of(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "metadata.jsonl").open(encoding="utf-8")]


def marker_of(folder: Path) -> dict:
    return json.loads((folder / "_COMPLETE").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def corpora():
    """The functions above, for test modules."""
    return SimpleNamespace(
        tone=tone, store=store, write=write_corpus, rows_of=rows_of, marker_of=marker_of
    )


@contextmanager
def serve(*answers):
    """Serve the answers one after another, the last one for ever; yield address and requests.

    An answer is a status, the content and maybe a Content-Length that is not its own.
    """
    waiting, requests = list(answers), []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append((self.path, body, self.headers.get("Authorization")))
            answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            status, content, length = (*answer, None)[:3]
            self.send_response(status)
            self.send_header("Content-Length", str(length or len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{running.server_port}/v1", requests
    finally:
        running.shutdown()
        running.server_close()


@pytest.fixture
def server():
    """A small HTTP server on this machine, with the answers that it is given."""
    return serve
