"""Texts from files, data sets and the grammar: clean, spoken, distinct, and traced back."""

import json
import subprocess
import sys
from collections import Counter

import pytest

from beamless.data_gen import sieve as sieving
from beamless.data_gen.grammar import Grammar, load_grammar
from beamless.data_gen.sieve import Sieve
from beamless.data_gen.spoken import spoken_form
from beamless.data_gen.synth import synth
from beamless.data_gen.texts import texts
from beamless.inference.errors import BeamlessError


def stored(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def gathered(tmp_path, name, content, **options):
    source = tmp_path / name
    source.write_bytes(content if isinstance(content, bytes) else content.encode())
    out = tmp_path / "out.jsonl"
    texts(str(source), out, **options)
    return stored(out)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", b"\xef\xbb\xbfI paid $5.\r\n\r\n  \r\n...\r\nFine.\r\n"),
        ("a.csv", 'id,text\n1,I paid $5.\n2,\n3,...\n4,"Fine."\n'),
        ("a.tsv", "id\ttext\n1\tI paid $5.\n\n3\t...\n4\tFine.\n"),
        ("a.jsonl", '{"text": "I paid $5."}\n\n{"text": null}\n{"text": "Fine."}\n'),
    ],
)
def test_every_kind_of_file_gives_written_and_spoken_form(tmp_path, name, content):
    rows = gathered(tmp_path, name, content)
    assert [(row["text"], row["spoken"]) for row in rows] == [
        ("I paid $5.", "I paid five dollars."),
        ("Fine.", "Fine."),
    ]
    assert {row["source"] for row in rows} == {name}


def test_a_count_beside_that_of_a_models_recipe_is_refused(tmp_path):
    with pytest.raises(BeamlessError, match="has a count of its own"):
        gathered(tmp_path, "llm.yaml", "endpoint: http://127.0.0.1:1/v1\ncount: 9\n", count=2)


def test_a_text_is_traced_to_its_line(tmp_path):
    rows = gathered(tmp_path, "a.txt", "one\n\nthree\n")
    assert [row["line"] for row in rows] == [1, 3]


def test_a_column_may_have_another_name(tmp_path):
    rows = gathered(tmp_path, "a.csv", "sentence,n\nHello.,1\n", column="sentence")
    assert rows[0]["text"] == "Hello."


def test_what_is_left_out_is_counted_by_reason(tmp_path, capsys):
    gathered(tmp_path, "a.txt", "Hello!\nhello\n99/99/99\n\U0001f600\nC++\nWorld\n")
    out = capsys.readouterr().out
    assert "2 texts: file 2 (100%)" in out
    assert (
        "left out 4: 1 a duplicate, 1 digits that no rule reads, 1 nothing to say, "
        "1 signs that no rule reads" in out
    )


def test_count_takes_the_first_so_many(tmp_path):
    rows = gathered(tmp_path, "a.txt", "one\none\ntwo\nthree\n", count=2)
    assert [row["text"] for row in rows] == ["one", "two"]


def test_a_count_too_large_to_count_to_takes_all_of_a_file(tmp_path):
    content = "One two.\nThree four.\n"
    assert len(gathered(tmp_path, "a.txt", content, count=10**20)) == 2


def test_a_grammar_is_not_asked_for_more_than_any_has(tmp_path):
    with pytest.raises(BeamlessError, match="at most 1,000,000 sentences"):
        texts("grammar", tmp_path / "out.jsonl", count=10**20)


@pytest.mark.parametrize("streamed", [True, False])
def test_a_data_set_is_read(tmp_path, streamed):
    datasets = pytest.importorskip("datasets", reason="the extra 'train' is not installed")
    data = datasets.Dataset.from_dict({"n": [1, 2, 3], "words": ["At 8:00.", "...", "Yes."]})
    if streamed:
        (tmp_path / "set").mkdir()
        data.to_parquet(str(tmp_path / "set" / "train-00000-of-00001.parquet"))
    else:
        data.save_to_disk(str(tmp_path / "set"))
    out = tmp_path / "out.jsonl"
    texts(f"hf:{tmp_path / 'set'}", out, column="words")
    assert [(row["text"], row["spoken"], row["line"]) for row in stored(out)] == [
        ("At 8:00.", "At eight o'clock.", 1),
        ("Yes.", "Yes.", 3),
    ]
    with pytest.raises(BeamlessError, match="there is no column 'text', but 'n', 'words'"):
        texts(f"hf:{tmp_path / 'set'}", tmp_path / "other.jsonl")


def test_a_missing_data_set_is_one_clear_line(tmp_path):
    pytest.importorskip("datasets", reason="the extra 'train' is not installed")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BeamlessError, match="cannot be opened") as raised:
        texts(f"hf:{tmp_path / 'empty'}", tmp_path / "out.jsonl")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("none.txt", "there is no text file"),
        ("poem", "'poem' is no source of texts"),
        ("none.yaml", "there is no recipe"),
        ("hf:", "a data set needs a name"),
    ],
)
def test_a_source_that_is_not_there_is_one_clear_line(tmp_path, monkeypatch, source, said):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BeamlessError, match=said):
        texts(source, tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


def test_an_output_that_exists_is_never_overwritten(tmp_path):
    (tmp_path / "out.jsonl").write_text("mine", encoding="utf-8")
    with pytest.raises(BeamlessError, match="exists"):
        texts("grammar", tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_text(encoding="utf-8") == "mine"


def test_a_file_without_a_text_writes_nothing(tmp_path):
    with pytest.raises(BeamlessError, match="no text is left"):
        gathered(tmp_path, "a.txt", "...\n")
    assert not (tmp_path / "out.jsonl").exists()


def test_a_file_in_another_encoding_is_one_clear_line(tmp_path):
    with pytest.raises(BeamlessError, match="is not UTF-8"):
        gathered(tmp_path, "a.txt", "caf\xe9".encode("latin-1"))


@pytest.fixture(scope="module")
def grammar():
    return load_grammar()


def test_the_grammar_has_thousands_of_distinct_sentences_in_stated_shares(grammar):
    rows = list(grammar.sentences(6000, seed=1))
    assert len({row["text"] for row in rows}) == 6000
    counts = Counter(row["kind"] for row in rows)
    assert counts == {kind: round(6000 * share) for kind, share in grammar.shares.items()}
    assert set(counts) >= {"requests", "dictation", "numbers", "dates", "money", "names"}


def test_every_sentence_of_the_grammar_can_be_said(grammar):
    reasons = {row["text"]: spoken_form(row["text"]).reason for row in grammar.sentences(3000, 2)}
    assert {text: reason for text, reason in reasons.items() if reason} == {}


def test_no_slot_or_choice_is_left_in_a_sentence(grammar):
    found = [row["text"] for row in grammar.sentences(3000, 3) if set(row["text"]) & set("{}|")]
    assert found == []


def test_the_same_seed_gives_the_same_sentences(grammar):
    one, again, other = (list(grammar.sentences(50, seed)) for seed in (4, 4, 5))
    assert one == again
    assert one != other


def test_a_spelling_is_that_of_the_word_before_it():
    grammar = Grammar({"spell": ["{name}, {spelled}"]}, {"name": ["Ann", "Bo"]}, {"spell": 1})
    assert {row["text"] for row in grammar.sentences(2, 0)} == {"Ann, A-N-N", "Bo, B-O"}


def test_counts_add_up_whatever_the_shares():
    grammar = Grammar({kind: ["x"] for kind in "abc"}, {}, {"a": 1, "b": 1, "c": 1})
    assert [sum(grammar.counts(n).values()) for n in (1, 2, 100, 101)] == [1, 2, 100, 101]


def test_a_grammar_that_is_used_up_says_so():
    grammar = Grammar({"few": ["a (b|c)"]}, {}, {"few": 1})
    with pytest.raises(BeamlessError, match="too few distinct sentences of kind 'few'"):
        list(grammar.sentences(3, 0))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("lists: {}", "'patterns' must hold lists"),
        ("patterns: {a: []}", "'patterns' must hold lists"),
        ("patterns: {a: ['{what}']}", "{what} in '{what}' is named nowhere"),
        ("patterns: {a: [x]}\nshares: {b: 1}", "'shares' must name each kind"),
        ("patterns: {a: [x]}\nshares: {a: -1}", "a number above 0"),
    ],
)
def test_a_wrong_grammar_is_one_clear_line(tmp_path, content, said):
    (tmp_path / "my.yaml").write_text(content, encoding="utf-8")
    with pytest.raises(BeamlessError, match=said.replace("{", r"\{")):
        load_grammar(tmp_path / "my.yaml")


def test_a_grammar_of_ones_own_is_a_source(tmp_path):
    rows = gathered(
        tmp_path, "my.yaml", "patterns: {hi: ['hello {n}']}\nlists: {n: [a, b]}", count=2
    )
    assert sorted(row["text"] for row in rows) == ["Hello a", "Hello b"]


def test_near_duplicates_are_refused_where_asked():
    kept = Sieve(near=True)
    lines = [
        "Turn on the kitchen light, please.",
        "turn on the kitchen lights please",
        "Good night.",
    ]
    assert [kept.take({"text": line}) is not None for line in lines] == [True, False, True]
    assert kept.refused == {sieving.NEAR_DUPLICATE: 1}
    assert all(Sieve().take({"text": line}) for line in lines)


def test_the_grammar_goes_to_synth_as_a_user_would_run_it(tmp_path):
    out, corpus = tmp_path / "texts.jsonl", tmp_path / "corpus"
    made = subprocess.run(
        [sys.executable, "-m", "beamless", "texts", "grammar", str(out), "--count", "4"],
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    )
    assert "4 texts" in made.stdout
    synth(out, corpus)
    rows = stored(corpus / "metadata.jsonl")
    assert [row["text"] for row in rows] == [row["text"] for row in stored(out)]
    assert all(row["text_source"] == "grammar" and row["kind"] for row in rows)
