"""Texts by a language model: nothing paid for is lost, whatever the endpoint does."""

import json
import re
from pathlib import Path

import pytest

from beamless.data_gen import llm
from beamless.data_gen.endpoint import Endpoint
from beamless.data_gen.llm_recipe import Prompt, read_llm_recipe
from beamless.data_gen.texts import texts
from beamless.inference.errors import BeamlessError


def chat(content, tokens=100):
    said = content if isinstance(content, str) else json.dumps(content)
    answer = {"choices": [{"message": {"content": said}}], "usage": {"total_tokens": tokens}}
    return 200, json.dumps(answer).encode()


WORDS = re.findall(
    r"\w+",
    "apple river candle thunder pillow garden whistle marble lantern feather copper meadow "
    "basket hammer violin pepper saddle window ladder blanket",
)


def sentences(first, number):
    """Sentences unlike one another."""
    return [
        " ".join(WORDS[(n * 7 + k * k) % 20] + "s" * (n % 3) for k in range(6))
        for n in range(first, first + number)
    ]


def recipe_for(tmp_path, address, **entries):
    entries = {"model": "m", "count": 4, "retries": 1, "wait": 0.01, "batch": 2} | entries
    prompts = entries.pop("prompts", "[{topic: cooking, register: casual, words: [2, 9]}]")
    lines = [f"{name}: {value}" for name, value in entries.items()]
    path = tmp_path / "recipe.yaml"
    path.write_text(
        "\n".join([f"endpoint: {address}", *lines, f"prompts: {prompts}"]), encoding="utf-8"
    )
    return str(path)


def stored(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_line_keeps_where_it_comes_from(server, tmp_path):
    out = tmp_path / "out.jsonl"
    with server(chat(sentences(0, 2)), chat(sentences(2, 2))) as (address, _):
        texts(recipe_for(tmp_path, address), out)
    rows = stored(out)
    assert [row["text"] for row in rows] == sentences(0, 4)
    assert [row["request"] for row in rows] == [0, 0, 1, 1]
    for row in rows:
        assert (row["kind"], row["source"], row["topic"], row["register"]) == (
            ("llm", "llm/m", "cooking", "casual")
        )
    assert not list(tmp_path.glob("*.journal"))


def test_the_request_says_what_is_wanted(server, tmp_path):
    prompts = "[{topic: ski trips, register: formal, words: [3, 8], disfluencies: [fillers]}]"
    with server(chat(sentences(0, 4))) as (address, requests):
        texts(recipe_for(tmp_path, address, prompts=prompts), tmp_path / "out.jsonl")
    path, body, _ = requests[0]
    said = body["messages"][0]["content"]
    assert path == "/v1/chat/completions"
    assert body["model"] == "m"
    for part in ("ski trips", "formal", "3 to 8 words", "um, uh", "JSON array"):
        assert part in said


@pytest.mark.parametrize(
    "around",
    ["{}", "```json\n{}\n```", "Here you are:\n{}\nEnjoy!"],
)
def test_an_array_is_found_whatever_stands_around_it(server, tmp_path, around):
    said = around.replace("{}", json.dumps(sentences(0, 4)))
    with server(chat(said)) as (address, _):
        texts(recipe_for(tmp_path, address), tmp_path / "out.jsonl")
    assert len(stored(tmp_path / "out.jsonl")) == 4


def test_duplicates_and_lengths_are_counted_out(server, tmp_path, capsys):
    one, two = sentences(0, 2)
    batch = [
        one,
        one.upper(),
        one + "s",
        "short",
        " ".join(["long"] * 20),
        two,
        "",
        *sentences(2, 2),
    ]
    with server(chat(batch)) as (address, _):
        texts(recipe_for(tmp_path, address), tmp_path / "out.jsonl")
    assert [row["text"] for row in stored(tmp_path / "out.jsonl")] == sentences(0, 4)
    out = capsys.readouterr().out
    for reason in ("1 a duplicate", "1 nearly a duplicate", "2 outside the wanted length"):
        assert reason in out


@pytest.mark.parametrize(
    "answer",
    [
        (200, b"{broken"),
        (200, b"[]"),
        (200, b'{"choices": []}'),
        chat("I cannot do that."),
        chat('["half a', 5),
        chat([1, 2]),
    ],
)
def test_broken_json_is_asked_for_again_and_then_is_one_clear_line(server, tmp_path, answer):
    out = tmp_path / "out.jsonl"
    said = r"gave no list of texts in 2 tries"
    with server(answer) as (address, requests), pytest.raises(BeamlessError, match=said) as raised:
        texts(recipe_for(tmp_path, address), out)
    assert len(requests) == 2
    assert "\n" not in str(raised.value)
    assert not out.exists()


def test_one_broken_answer_costs_one_more_request(server, tmp_path):
    with server((200, b"{broken"), chat(sentences(0, 4))) as (address, requests):
        texts(recipe_for(tmp_path, address), tmp_path / "out.jsonl")
    assert len(requests) == 2
    assert requests[0][1]["seed"] != requests[1][1]["seed"]


def test_what_a_dying_endpoint_gave_is_kept_and_used(server, tmp_path, monkeypatch):
    out = tmp_path / "out.jsonl"
    first, dead = chat(sentences(0, 2)), (500, b"dead")
    with server(first, dead) as (address, _):
        recipe = recipe_for(tmp_path, address)
        with pytest.raises(BeamlessError, match="1 answers are kept, run it again to go on"):
            texts(recipe, out)
    assert not out.exists()
    with server(chat(sentences(2, 2))) as (other, requests):
        # The same recipe; the server has come up on another port.
        post = Endpoint.post
        moved = Endpoint(other, retries=0)
        monkeypatch.setattr(Endpoint, "post", lambda _, *request: post(moved, *request))
        texts(recipe, out)
    assert len(requests) == 1
    assert [row["text"] for row in stored(out)] == sentences(0, 4)


def test_a_journal_with_half_a_line_is_taken_up(server, tmp_path):
    out = tmp_path / "out.jsonl"
    with server(chat(sentences(0, 2)), (500, b""), chat(sentences(2, 2))) as (address, requests):
        recipe = recipe_for(tmp_path, address, retries=0)
        with pytest.raises(BeamlessError, match="answers are kept"):
            texts(recipe, out)
        with (tmp_path / "out.jsonl.journal").open("ab") as journal:
            journal.write(b'{"request": 1, "prom')
        texts(recipe, out)
    assert len(requests) == 3
    assert [row["text"] for row in stored(out)] == sentences(0, 4)


def test_a_journal_of_another_recipe_is_never_mixed_in(server, tmp_path):
    out = tmp_path / "out.jsonl"
    with server(chat(sentences(0, 2)), (500, b"")) as (address, _):
        with pytest.raises(BeamlessError, match="answers are kept"):
            texts(recipe_for(tmp_path, address, retries=0), out)
        with pytest.raises(BeamlessError, match="belongs to another recipe"):
            texts(recipe_for(tmp_path, address, retries=0, count=9), out)


def test_the_budget_ends_the_run_with_what_there_is(server, tmp_path, capsys):
    answers = [chat(sentences(2 * n, 2), tokens=400) for n in range(10)]
    with server(*answers) as (address, requests):
        texts(recipe_for(tmp_path, address, count=20, budget=1000), tmp_path / "out.jsonl")
    assert len(requests) == 3
    assert len(stored(tmp_path / "out.jsonl")) == 6
    assert "only 6 of 20 texts" in capsys.readouterr().err


def test_a_model_that_repeats_itself_ends_the_run(server, tmp_path):
    with server(chat(sentences(0, 2))) as (address, requests):
        texts(recipe_for(tmp_path, address, count=20), tmp_path / "out.jsonl")
    assert len(requests) == 1 + llm.FRUITLESS
    assert len(stored(tmp_path / "out.jsonl")) == 2


def test_prompts_are_asked_in_their_shares(server, tmp_path):
    prompts = "[{topic: rare, share: 1}, {topic: often, share: 4}]"
    answers = [chat([f"{' '.join(WORDS[n % 20 : n % 20 + 5])} {'x' * n}"]) for n in range(60)]
    with server(*answers) as (address, requests):
        recipe = recipe_for(tmp_path, address, count=60, batch=1, prompts=prompts, budget=4000)
        texts(recipe, tmp_path / "out.jsonl")
    often = sum("often" in body["messages"][0]["content"] for _, body, _ in requests)
    assert 0.6 < often / len(requests) < 0.95


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({"prompts": "[]"}, "'prompts' must be a list of at least one prompt"),
        ({"prompts": "[{topic: a, tone: b}]"}, "Option 'tone' is not accepted"),
        ({"prompts": "[{topic: a, words: [9, 3]}]"}, "must be .fewest, most."),
        ({"prompts": "[{topic: a, share: 0}]"}, "a share of 0"),
        ({"prompts": "[{topic: a, disfluencies: [shouts]}]"}, "Got value: shouts"),
        ({"count": "many"}, "Got value: many"),
        ({"count": 0}, "count must be 1 or more"),
        ({"speed": 3}, "Option 'speed' is not accepted"),
    ],
)
def test_a_wrong_recipe_is_one_clear_line(tmp_path, entries, said):
    path = recipe_for(tmp_path, "http://127.0.0.1:9/v1", **entries)
    with pytest.raises(BeamlessError, match=said) as raised:
        read_llm_recipe(path)
    assert "\n" not in str(raised.value)


def test_disfluencies_are_asked_for_by_name():
    said = Prompt("a", disfluencies=("restarts", "corrections")).request(3)
    assert "breaks off and begins again" in said
    assert "no, sorry, on Tuesday" in said


def test_the_recipe_that_is_shipped_is_read():
    recipe = read_llm_recipe(Path(llm.__file__).with_name("llm.yaml"))
    assert recipe.count == 2000
    assert any(prompt.disfluencies for prompt in recipe.prompts)
