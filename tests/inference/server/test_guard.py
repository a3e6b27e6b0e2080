"""Keys, hosts and origins: whom the server answers."""

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from beamless.inference.server.guard import KEY_PROTOCOL

from .conftest import CLIENT, TRANSCRIPTIONS, serving

KEY = "sésame-open"


@pytest.fixture(scope="module")
def locked(offer):
    with serving(offer, api_key=KEY, origins=("https://friend.example",)) as running:
        yield running


def get(server, path="/v1/models", **headers):
    encoded = {name: value.encode("utf-8") for name, value in headers.items()}
    return CLIENT.get(server.url + path, headers=encoded)


@pytest.mark.parametrize(
    "given",
    ["", "Bearer", "Bearer wrong", f"Bearer {KEY}x", f"Bearer {KEY[:-1]}", KEY,
     f"Basic {KEY}", "Bearer \x80\xff"],
)  # fmt: skip
def test_a_wrong_key_is_refused(locked, given):
    headers = {"Authorization": given} if given else {}
    answer = get(locked, **headers)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "invalid_api_key"
    assert KEY not in answer.text


def test_a_refused_upload_is_not_taken_in(locked, clip_bytes):
    answer = locked.post(file=clip_bytes * 50)
    assert answer.status_code == 401
    assert not locked.left()


def test_the_right_key_opens(locked, clip_bytes):
    answer = CLIENT.post(
        locked.url + TRANSCRIPTIONS,
        data={"model": "tiny.en"},
        files={"file": clip_bytes},
        headers={"Authorization": f"Bearer {KEY}".encode()},
    )
    assert answer.status_code == 200


def test_health_and_the_page_need_no_key_but_figures_do(locked):
    assert get(locked, "/health").status_code == get(locked, "/").status_code == 200
    assert get(locked, "/metrics").status_code == get(locked, "/openapi.json").status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "a b", "[::1", "ÿ"]
)
def test_another_name_for_this_machine_is_refused(server, host):
    assert get(server, Host=host).status_code in (400, 403)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:8000"])
def test_this_machines_own_names_are_answered(server, host):
    assert get(server, Host=host).status_code == 200


def test_a_page_elsewhere_neither_uses_the_server_nor_reads_it(server, clip_bytes):
    for origin in ("https://evil.example", "null", "http://localhost:1", "http://[::1"):
        answer = CLIENT.post(
            server.url + TRANSCRIPTIONS,
            data={"model": "tiny.en"},
            files={"file": clip_bytes},
            headers={"Origin": origin},
        )
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers
    assert get(server).headers["cross-origin-resource-policy"] == "same-origin"


def test_the_servers_own_page_uses_it(server):
    assert get(server, Origin=server.url).status_code == 200


def test_an_origin_that_was_allowed_may_read(locked):
    headers = {"Origin": "https://friend.example", "Authorization": f"Bearer {KEY}"}
    answer = get(locked, **headers)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "https://friend.example"


def test_a_websocket_of_a_page_elsewhere_is_refused(server):
    address = server.url.replace("http", "ws") + "/stt/tiny.en"
    with pytest.raises(InvalidStatus), connect(address, origin="https://evil.example"):
        pass


def test_a_websocket_shows_its_key_as_a_protocol(offer):
    with serving(offer, api_key="open-sesame") as locked:
        address = locked.url.replace("http", "ws") + "/stt/tiny.en"
        with pytest.raises(InvalidStatus), connect(address):
            pass
        with connect(address, subprotocols=["realtime", KEY_PROTOCOL + "open-sesame"]) as socket:
            assert socket.subprotocol == "realtime"
