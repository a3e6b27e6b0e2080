"""The page to try it, in a real browser: where none is installed these tests are skipped."""

import json
import os
import re
import shutil
import time
from pathlib import Path

import pytest
from conftest import SENTENCE

from beamless.inference.server.models import Offer, listeners_of

from .conftest import serving

playwright = pytest.importorskip("playwright.sync_api")

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "msedge", "chrome")
PHONE = {"width": 375, "height": 667}
PATIENCE = 120_000  # ms


def browser_path() -> str | None:
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@pytest.fixture(scope="module")
def browser(clip):
    """A browser whose microphone hears the clip."""
    path = browser_path()
    if path is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed")
    arguments = [
        "--use-fake-ui-for-media-stream",
        "--use-fake-device-for-media-stream",
        f"--use-file-for-fake-audio-capture={clip}",
        "--autoplay-policy=no-user-gesture-required",
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        arguments.append("--no-sandbox")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=arguments)
        yield started
        started.close()


@pytest.fixture(scope="module")
def three(tiny_bundle):
    """A server with the three methods."""
    methods = ("greedy", "corrected", "beam5")
    with serving(Offer(listeners_of({"tiny.en": tiny_bundle}, methods), {})) as running:
        yield running


@pytest.fixture
def page(browser, three):
    """The page, which may neither complain nor ask anybody else for anything."""
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    found, asked, complaints = context.new_page(), [], []
    found.set_default_timeout(PATIENCE)
    found.on("request", lambda request: asked.append(request.url))
    found.on("console", lambda m: m.type in ("error", "warning") and complaints.append(m.text))
    found.on("pageerror", lambda error: complaints.append(str(error)))
    found.goto(three.url)
    yield found
    assert all(url.startswith((three.url, "data:", "blob:")) for url in asked), asked
    assert complaints == []
    context.close()
    assert not three.left()


def done(page):
    playwright.expect(page.locator("#status")).to_have_text("Done.", timeout=PATIENCE)


def said(page, method) -> str:
    return page.locator(f"article[data-method={method}] .words").inner_text()


def letters(text):
    return re.sub(r"[^a-z]", "", text.lower())


def test_a_file_gives_three_columns_side_by_side(page, clip, tmp_path):
    page.set_input_files("#file", clip)
    done(page)
    cards = page.locator("article")
    assert [card.get_attribute("data-method") for card in cards.all()] == [
        "greedy", "corrected", "beam5",
    ]  # fmt: skip
    for method in ("greedy", "corrected", "beam5"):
        assert letters(said(page, method)) == letters(SENTENCE)
    tops = {round(card.bounding_box()["y"]) for card in cards.all()}
    assert len(tops) == 1
    if folder := os.environ.get("BEAMLESS_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / "wide.png", full_page=True)


def test_a_file_given_before_the_models_are_known_waits_for_them(browser, three, clip):
    context = browser.new_context()
    page = context.new_page()
    page.route("**/v1/models", lambda route: (time.sleep(1), route.continue_()))
    page.goto(three.url)
    page.set_input_files("#file", clip)
    done(page)
    assert letters(said(page, "greedy")) == letters(SENTENCE)
    context.close()


def test_all_can_be_done_by_keyboard(page, clip):
    choosers = []

    def found(chooser):
        choosers.append(chooser)

    page.on("filechooser", found)
    page.keyboard.press("Tab")
    playwright.expect(page.locator("#choose")).to_be_focused()
    for _ in range(20):  # a browser drops the keys of a page that it has not painted yet
        page.keyboard.press("Enter")
        page.wait_for_timeout(500)
        if choosers:
            break
    choosers[0].set_files(clip)
    done(page)
    words = page.locator("article[data-method=greedy] .word")
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('word')"):
            break
    playwright.expect(words.nth(0)).to_be_focused()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    playwright.expect(words.nth(4)).to_be_focused()
    page.keyboard.press("Enter")
    start = float(words.nth(4).get_attribute("data-start"))
    page.wait_for_function("!document.getElementById('audio').paused")
    assert start > 0.5
    at = page.evaluate("document.getElementById('audio').currentTime")
    assert start <= at  # how far it has played by now is the machine's affair
    page.keyboard.press("Home")
    playwright.expect(words.nth(0)).to_be_focused()


def test_downloads_are_what_the_server_would_give(page, three, clip):
    page.set_input_files("#file", clip)
    done(page)
    content = clip.read_bytes()
    for kind in ("srt", "vtt", "json"):
        with page.expect_download() as download:
            page.click(f"article[data-method=beam5] .downloads button:text-is('{kind}')")
        assert download.value.suggested_filename == f"fox.beam5.{kind}"
        text = Path(download.value.path()).read_text(encoding="utf-8")
        if kind == "json":
            assert letters(json.loads(text)["text"]) == letters(SENTENCE)
        else:
            served = three.post(file=content, method="beam5", response_format=kind).text
            shape = re.compile(r"\d\d:\d\d:\d\d[,.]\d{3} --> \d\d:\d\d:\d\d[,.]\d{3}")
            assert shape.sub("T", text).strip() == shape.sub("T", served).strip()
            assert shape.search(text)


def test_the_microphone_is_recorded(page):
    page.click("#record")
    page.wait_for_timeout(4000)
    page.click("#record")
    done(page)
    assert "fox" in said(page, "greedy").lower()


def test_a_dropped_file_is_taken(page, clip):
    content = list(clip.read_bytes())
    page.evaluate(
        """content => {
            const data = new DataTransfer();
            data.items.add(new File([new Uint8Array(content)], "dropped.wav"));
            document.dispatchEvent(new DragEvent("drop", {dataTransfer: data, cancelable: true}));
        }""",
        content,
    )
    done(page)
    assert page.inner_text("#what") == "dropped.wav"


def test_what_is_no_recording_is_said(browser, three, tmp_path):
    (tmp_path / "a.wav").write_bytes(b"%PDF-1.7" + bytes(100))
    page = browser.new_page()
    page.goto(three.url)
    page.set_input_files("#file", tmp_path / "a.wav")
    playwright.expect(page.locator("#error")).to_contain_text("not an audio file", timeout=PATIENCE)
    page.close()


def test_differing_and_doubtful_words_are_marked_and_text_is_never_markup(page):
    page.evaluate(
        """() => {
            const words = (text, p) => text.split(" ").map((word, at) =>
                ({word, start: at, end: at + 1, probability: p}));
            columns = ["greedy", "beam5"].map(makeColumn);
            $("columns").replaceChildren(...columns.map((column) => column.card));
            columns[0].words = words("the quick <b>brown</b> socks", 0.9);
            columns[1].words = words("The quick, <b>brown</b> fox", 0.9);
            columns[1].words[0].probability = 0.3;
            for (const column of columns) column.result = {};
            showAll();
        }"""
    )
    marked = page.locator(".words .differs").all_inner_texts()
    assert marked == ["socks", "fox"]
    assert page.locator(".words .doubt").all_inner_texts() == ["The"]
    assert "doubtful: 30 %" in page.locator(".words .doubt").get_attribute("aria-label")
    assert page.locator(".words b").count() == 0


def test_it_fits_a_phone(browser, three, clip):
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(three.url)
    page.set_input_files("#file", clip)
    done(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    for button in page.locator("button:visible").all():
        assert button.bounding_box()["height"] >= 44
    lefts = {round(card.bounding_box()["x"]) for card in page.locator("article").all()}
    assert len(lefts) == 1  # one below the other
    page.locator("article[data-method=greedy] .word").nth(3).tap()
    page.wait_for_function("!document.getElementById('audio').paused")
    if folder := os.environ.get("BEAMLESS_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / "phone.png", full_page=True)
    context.close()


def test_a_server_with_a_key_is_asked_with_it(browser, offer, clip):
    with serving(offer, api_key="sesame") as locked:
        page = browser.new_page()
        page.goto(locked.url)
        playwright.expect(page.locator("#status")).to_contain_text("key")
        page.fill("#key", "sesame")
        page.press("#key", "Tab")
        playwright.expect(page.locator("#model option")).to_have_count(1)
        page.set_input_files("#file", clip)
        done(page)
        page.close()
