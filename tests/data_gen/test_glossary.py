"""Names and terms: what is read, the sentences around them, and finding them again."""

import pytest

from beamless.data_gen.glossary import general_sentences, holds, read_terms, sentences_around
from beamless.inference.errors import BeamlessError


def written(tmp_path, text):
    path = tmp_path / "words.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_blank_lines_repetitions_and_a_byte_order_mark_are_no_terms(tmp_path):
    path = written(tmp_path, "\ufeffReineke\r\n\r\n  Zorro \nReineke\n")
    assert read_terms(path) == ["Reineke", "Zorro"]


@pytest.mark.parametrize("text", ["\n \n", "...\n", "a" * 61 + "\n"])
def test_what_is_no_term_is_refused_in_one_line(tmp_path, text):
    with pytest.raises(BeamlessError, match=r"names? or terms?"):
        read_terms(written(tmp_path, text))


def test_no_carrier_both_teaches_and_judges():
    learnt, judged = sentences_around(["Zorro"], [], 30, seed=1)
    assert not {line.text for line in learnt} & {line.text for line in judged}
    assert all("Zorro" in line.text for line in [*learnt, *judged])


def test_own_sentences_are_learnt_and_do_not_judge():
    learnt, judged = sentences_around(["Zorro"], ["My own sentence."], 3, seed=1)
    assert "My own sentence." in {line.text for line in learnt}
    assert "My own sentence." not in {line.text for line in judged}


def test_the_same_seed_gives_the_same_sentences():
    assert sentences_around(["a b"], [], 5, seed=3) == sentences_around(["a b"], [], 5, seed=3)


def test_a_term_is_found_whatever_its_casing_and_not_inside_another_word():
    assert holds("We asked reineke, fox.", "Reineke")
    assert not holds("The foxes left.", "Fox")


def test_general_sentences_hold_no_term():
    terms = ["Friday", "the kitchen"]
    lines = general_sentences(terms, 300, seed=0)
    assert len({line.text for line in lines}) == len({line.id for line in lines}) == 300
    assert not [line for line in lines for term in terms if holds(line.text, term)]
    assert any(holds(line.text, "Friday") for line in general_sentences([], 300, seed=0))
    assert lines == general_sentences(terms, 300, seed=0)
