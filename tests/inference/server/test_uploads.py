"""Bodies that are huge, slow, broken off or not what they say: no 500, and nothing is left."""

import socket
import threading
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from beamless.inference.server.options import ServerOptions

from .conftest import CLIENT, TRANSCRIPTIONS, serving

FORM = "multipart/form-data; boundary=edge"


def with_tag(sound: bytes, size: int) -> bytes:
    """Put an ID3 tag of ``size`` bytes, such as a cover, before an mp3."""
    digits = bytes((size >> shift) & 127 for shift in (21, 14, 7, 0))
    return b"ID3\x04\x00\x00" + digits + bytes(size) + sound


def part(name, content=b"", more=b""):
    return b'--edge\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n' % (
        name,
        more,
        content,
    )


def post(server, body, kind=FORM):
    headers = {"Content-Type": kind.encode("latin-1")}
    return CLIENT.post(server.url + TRANSCRIPTIONS, content=body, headers=headers)


def raw(server, head: str) -> socket.socket:
    """Open a connection and begin a request by hand."""
    address = server.url.removeprefix("http://").split(":")
    connection = socket.create_connection((address[0], int(address[1])), timeout=20)
    lines = [f"POST {TRANSCRIPTIONS} HTTP/1.1", f"Host: {':'.join(address)}", head, "", ""]
    connection.sendall("\r\n".join(lines).encode())
    return connection


@pytest.fixture(scope="module")
def mp3(speech, tmp_path_factory):
    import soundfile

    path = tmp_path_factory.mktemp("mp3") / "a.mp3"
    soundfile.write(path, speech, 16000, format="MP3")
    return path.read_bytes()


@pytest.fixture(scope="module")
def small(offer):
    """A server that takes 2 MB, and waits for half a second."""
    with serving(offer, max_upload_mb=2, max_idle=0.5) as running:
        yield running
        assert not running.left()


def test_an_mp3_of_17_megabytes_is_heard(server, mp3):
    assert "fox" in server.text(with_tag(mp3, 17_000_000))


def resident(name="VmHWM") -> int:
    lines = open("/proc/self/status", encoding="utf-8").read().splitlines()  # noqa: PTH123, SIM115
    return int(next(line for line in lines if line.startswith(name)).split()[1]) * 1024


@pytest.mark.skipif("not __import__('pathlib').Path('/proc/self/status').exists()")
def test_gigabytes_in_chunks_stop_at_the_limit_in_flat_memory(small):
    sent = 0

    def zeros():
        nonlocal sent
        yield part(b"model", b"tiny.en") + b'--edge\r\nContent-Disposition: form-data; name="file"'
        yield b'; filename="a.wav"\r\n\r\n'
        while sent < 20_000_000_000:
            sent += 65_536
            yield bytes(65_536)

    before = resident("VmRSS")
    answer = post(small, zeros())
    assert answer.status_code == 413
    assert "2 MB" in answer.json()["error"]["message"]
    assert sent < 20_000_000_000
    assert resident("VmRSS") - before < 50_000_000


def test_a_length_beyond_the_limit_is_refused_before_the_body(small):
    connection = raw(small, "Content-Type: audio/wav\r\nContent-Length: 2000000000")
    assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_a_client_that_breaks_off_leaves_nothing(server):
    connection = raw(server, f"Content-Type: {FORM}\r\nContent-Length: 9000000")
    connection.sendall(part(b"file", bytes(5_000_000))[:-2])
    for _ in range(200):
        if list(server.state.folder.iterdir()):
            break
        time.sleep(0.01)
    else:
        pytest.fail("the upload did not begin")
    connection.close()
    assert not server.left()


def test_a_client_that_sends_nothing_more_gets_408(small):
    connection = raw(small, f"Content-Type: {FORM}\r\nContent-Length: 1000")
    connection.sendall(b"--edge\r\n")
    assert connection.recv(4096).startswith(b"HTTP/1.1 408 ")


def test_a_slow_client_does_not_hold_others_up(server, clip_bytes):
    connection = raw(server, f"Content-Type: {FORM}\r\nContent-Length: {len(clip_bytes) + 500}")
    body = part(b"model", b"tiny.en") + part(b"file", clip_bytes)
    stop = threading.Event()

    def trickle():
        for byte in body:
            if stop.wait(0.05):
                break
            connection.sendall(bytes([byte]))

    thread = threading.Thread(target=trickle)
    thread.start()
    try:
        assert "fox" in server.text(clip_bytes)
    finally:
        stop.set()
        thread.join()
        connection.close()


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", FORM),
        (b"nonsense", FORM),
        (b"--edge--\r\n", FORM),
        (part(b"model", b"tiny.en") + b"--edge--\r\n", FORM),
        (part(b"file", b"RIFF"), FORM),
        (part(b"file") + part(b"file") + b"--edge--\r\n", FORM),
        (part(b"x" * 10) * 100 + b"--edge--\r\n", FORM),
        (part(b"prompt", b"x" * 100_000) + b"--edge--\r\n", FORM),
        (part(b"prompt", b"\xff\xfe") + b"--edge--\r\n", FORM),
        (part(b"\xff\xfe", b"x") + b"--edge--\r\n", FORM),
        (part(b"file", b"x", b"; filename*=UTF-8''%ff") + b"--edge--\r\n", FORM),
        (b"x", "multipart/form-data"),
        (b"x", "multipart/form-data; boundary=" + "x" * 500),
        (b"x", "application/json"),
        (b"model=tiny.en", "application/x-www-form-urlencoded"),
        (b"\x00\x01", "\x7f/\xff"),
    ],
)
def test_forms_that_cannot_be_read_give_a_400(server, body, kind):
    answer = post(server, body, kind)
    assert 400 <= answer.status_code < 500
    assert answer.json()["error"]["message"]


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.binary(max_size=400), st.integers(0, 400), st.binary(max_size=8))
def test_no_body_whatsoever_gives_a_500(server, noise, at, other):
    good = part(b"model", b"tiny.en") + part(b"file", b"RIFF" + noise) + b"--edge--\r\n"
    assert post(server, good[:at] + other + good[at:]).status_code < 500


@pytest.mark.parametrize(
    "path",
    [
        "/stt/..%2f..%2fetc%2fpasswd",
        "/stt/%00",
        "/stt/" + "x" * 5000,
        "/tts/..%5c..%5cwindows",
        "/v1/models/..%2f..%2fetc",
        "/..%2f..%2fetc/passwd",
        "/static/page.html",
    ],
)
def test_paths_lead_nowhere(server, path):
    for method in ("GET", "POST"):
        answer = CLIENT.request(
            method, server.url + path, content=b"x" if method == "POST" else b""
        )
        assert answer.status_code in (404, 405)
        assert "root:" not in answer.text


def test_a_method_that_a_path_does_not_know_is_said_as_an_error_of_openais(server):
    answer = CLIENT.get(server.url + TRANSCRIPTIONS)
    assert answer.status_code == 405
    assert answer.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("name", ["workers", "max_upload_mb", "max_minutes", "max_idle"])
def test_limits_of_nothing_are_refused(name):
    from beamless.inference.errors import BeamlessError

    with pytest.raises(BeamlessError, match=name):
        ServerOptions(**{name: 0})


@pytest.mark.parametrize("name", ["max_upload_mb", "max_minutes", "max_idle"])
def test_limits_beyond_all_numbers_are_refused(name):
    from beamless.inference.errors import BeamlessError

    with pytest.raises(BeamlessError, match=f"{name} is 1e.305; give a number above 0 and up to"):
        ServerOptions(**{name: 1e305})


@pytest.mark.parametrize("host", ["", " "])
def test_an_empty_host_is_not_taken_for_every_address(host):
    from beamless.inference.errors import BeamlessError

    with pytest.raises(BeamlessError, match="host is empty"):
        ServerOptions(host=host)
