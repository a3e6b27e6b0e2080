"""Bad input: one clear line, exit code 2, no traceback, nothing lost."""

import json
import subprocess
import sys

import numpy as np
import pytest
import soundfile as sf

from beamless.command_line import run
from beamless.inference.errors import BeamlessError
from beamless.inference.lock import locked


def fails(*arguments: object) -> str:
    """Run a command line in this process, expect it to refuse, and return its one line."""
    with pytest.raises(BeamlessError) as caught:
        run([str(argument) for argument in arguments])
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_refusal_is_one_line_with_code_2_and_no_traceback(tmp_path):
    missing = tmp_path / "no such.wav"
    command = [sys.executable, "-m", "beamless", "transcribe", str(missing)]
    done = subprocess.run(command, check=False, capture_output=True, encoding="utf-8")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert str(missing) in done.stderr.strip().splitlines()[-1]
    assert done.stdout == ""


def test_an_unknown_command_is_named():
    assert "'trascribe'" in fails("trascribe", "a.wav")


def test_an_unknown_option_is_named():
    assert "--speed" in fails("transcribe", "a.wav", "--speed", 2)


def test_a_missing_argument_is_named():
    assert "corpus" in fails("collect")


def test_an_option_that_must_be_given_is_named_as_one(tmp_path):
    told = "the following arguments are required:"
    asked = "see 'beamless adapt --help'"
    assert fails("adapt", "tiny.en", tmp_path / "out") == f"{told} --words; {asked}"
    assert fails("adapt") == f"{told} model, out, --words; {asked}"


def test_an_option_that_must_be_given_may_stand_in_a_config_and_before_the_rest(tmp_path):
    words, out = tmp_path / "nowhere.txt", tmp_path / "out"
    (tmp_path / "options.yaml").write_text(f"words: '{words}'\n", encoding="utf-8")
    told = f"there is no text file {words}"
    assert fails("adapt", "tiny.en", out, "--config", tmp_path / "options.yaml") == told
    assert fails("adapt", "--words", words, "tiny.en", out) == told
    again = ("--config", tmp_path / "options.yaml", "--words", tmp_path / "other.txt")
    assert fails("adapt", "tiny.en", out, *again) == f"there is no text file {again[-1]}"


def test_a_stage_whose_extra_is_not_installed_names_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch", None)
    told = fails("train", tmp_path / "traces", tmp_path / "corrector")
    assert told == 'train needs torch; run: pip install "beamless[train]"'


def test_a_model_of_no_kind_lists_the_short_names(tmp_path):
    assert "tiny.en" in fails("export", "no-such-model", tmp_path / "bundle")


def test_a_folder_that_holds_no_model(tmp_path):
    assert "config.json" in fails("export", tmp_path, tmp_path / "bundle")


def test_an_output_folder_that_exists_is_left_alone(tmp_path):
    (tmp_path / "bundle").mkdir()
    assert "exists" in fails("export", "tiny.en", tmp_path / "bundle")


def test_a_file_that_is_not_audio(tmp_path, tiny_bundle):
    path = tmp_path / "talk.wav"
    path.write_text("not audio", encoding="utf-8")
    assert "talk.wav" in fails("transcribe", path, "--model", tiny_bundle.folder)


def test_a_sample_that_is_not_a_number_is_placed(tmp_path, tiny_bundle):
    samples = np.zeros(16000, np.float32)
    samples[8000] = np.nan
    sf.write(tmp_path / "nan.wav", samples, 16000, subtype="FLOAT")
    message = fails("transcribe", tmp_path / "nan.wav", "--model", tiny_bundle.folder)
    assert "0.5" in message or "8000" in message


def test_audio_without_samples_is_an_empty_transcript(tmp_path, tiny_bundle, capsys):
    sf.write(tmp_path / "empty.wav", np.zeros(0, np.float32), 16000)
    assert run(["transcribe", str(tmp_path / "empty.wav"), "--model", str(tiny_bundle.folder)]) == 0
    assert capsys.readouterr().out.strip() == ""


def test_a_method_of_no_kind_lists_the_methods(tmp_path, tiny_bundle, clip):
    message = fails("transcribe", clip, "--model", tiny_bundle.folder, "--method", "beam11")
    assert "beam1 to beam10" in message


def test_corrected_without_a_corrector(tmp_path, tiny, clip):
    from beamless.models.bundle import write_bundle

    write_bundle(tiny, tmp_path / "plain")
    message = fails("transcribe", clip, "--model", tmp_path / "plain", "--method", "corrected")
    assert "no corrector" in message


def test_a_device_that_is_absent(tiny_bundle, clip):
    message = fails("transcribe", clip, "--model", tiny_bundle.folder, "--device", "TPU")
    assert "'TPU'" in message


def test_collecting_before_the_gate_is_refused(tmp_path, tiny, clip):
    from beamless.models.bundle import write_bundle

    write_bundle(tiny, tmp_path / "unchecked")
    (tmp_path / "corpus/audio").mkdir(parents=True)
    (tmp_path / "corpus/audio/fox.wav").write_bytes(clip.read_bytes())
    line = {"id": "fox", "file_name": "audio/fox.wav", "text": "the quick brown fox"}
    (tmp_path / "corpus/metadata.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    model = ("--model", tmp_path / "unchecked")
    assert "beamless check" in fails("collect", tmp_path / "corpus", tmp_path / "out", *model)
    assert not (tmp_path / "out").exists()


def test_a_corpus_line_without_audio_is_numbered(tmp_path, tiny_bundle):
    line = {"id": "gone", "file_name": "audio/gone.wav", "text": "gone"}
    (tmp_path / "metadata.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    assert "line 1" in fails("evaluate", tiny_bundle.folder, tmp_path)


def test_a_decoder_that_failed_the_gate_is_not_reported_on(tmp_path, tiny, clip):
    from beamless.inference.bundle import load_bundle
    from beamless.models.bundle import write_bundle
    from beamless.models.parity_record import write_parity

    write_bundle(tiny, tmp_path / "failed")
    write_parity(load_bundle(tmp_path / "failed"), {"passed": False})
    (tmp_path / "audio").mkdir()
    (tmp_path / "audio/fox.wav").write_bytes(clip.read_bytes())
    line = {"id": "fox", "file_name": "audio/fox.wav", "text": "the quick brown fox"}
    (tmp_path / "metadata.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    assert "does not decode as the reference" in fails("evaluate", tmp_path / "failed", tmp_path)


def test_traces_that_are_not_there(tmp_path):
    assert "recipe.json" in fails("train", tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_target_of_no_kind_lists_the_targets(tmp_path):
    assert "reference" in fails("collect", tmp_path, tmp_path / "out", "--targets", "wish")


@pytest.mark.parametrize("option", ["--units", "--epochs", "--batch-size", "--history"])
def test_a_number_that_must_be_above_zero_is_named_before_any_work(tmp_path, option):
    assert option in fails("train", tmp_path / "traces", tmp_path / "out", option, 0)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--dropout", -1),
        ("--dropout", 1),
        ("--learning-rate", 1e30),
        ("--weight-decay", -1),
        ("--kl-weight", -1),
        ("--cross-entropy-weight", -1),
        ("--seed", -1),
        ("--seed", 1 << 64),
    ],
)
def test_a_number_out_of_range_is_named_before_any_work(tmp_path, option, value):
    message = fails("train", tmp_path / "traces", tmp_path / "out", option, value)
    assert message.startswith(f"{option} must be from 0 to")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("dev: {a: 1}", "has a table where values belong"),
        ("", "holds no options"),
        ("- 1", "holds no options"),
        ("gate: 3", "a switch is true or false, not '3'"),
        ("dropout: .nan", "--dropout must be from 0 to 0.9, not nan"),
    ],
)
def test_a_config_of_another_form_is_said_in_one_line(tmp_path, content, said):
    (tmp_path / "options.yaml").write_text(content + "\n", encoding="utf-8")
    options = ("--config", tmp_path / "options.yaml")
    assert said in fails("train", *options, tmp_path / "traces", tmp_path / "out")


@pytest.mark.parametrize("option", ["--batch-size", "--units", "--epochs"])
def test_a_number_too_large_to_be_meant_is_named(tmp_path, option):
    message = fails("train", tmp_path / "traces", tmp_path / "out", option, 10**20)
    assert message.startswith(f"{option} must be from 1 to")


def test_a_length_penalty_that_no_number_bears(tmp_path):
    options = ("--targets", "beam", "--length-penalty", "1e300")
    assert "--length-penalty" in fails("collect", tmp_path, tmp_path / "out", *options)


def test_a_teacher_that_no_target_asks(tmp_path):
    options = ("--targets", "beam", "--teacher", tmp_path / "nowhere")
    assert "has no part in" in fails("collect", tmp_path, tmp_path / "out", *options)


def test_two_corpora_of_one_name_are_not_taken_for_one(tmp_path, clip, tiny_bundle):
    corpora = []
    for place in ("a", "b"):
        (tmp_path / place / "said").mkdir(parents=True)
        corpora.append(corpus_of(clip, tmp_path / place / "said" / "dev"))
    said = fails("evaluate", tiny_bundle.folder, *corpora, "--methods", "greedy")
    assert said == f"two corpora are called said/dev: {corpora[0]} and {corpora[1]}"


def test_a_language_that_is_refused_leaves_no_report_in_the_way(tmp_path, clip, tiny_bundle):
    corpus, out = corpus_of(clip, tmp_path / "corpus"), tmp_path / "report"
    asked = ("evaluate", tiny_bundle.folder, corpus, "--methods", "greedy", "--out", out)
    assert "multilingual" in fails(*asked, "--language", "de")
    assert not out.exists()


def test_two_evaluations_do_not_write_into_one_folder(tmp_path, clip, tiny_bundle):
    corpus, out = corpus_of(clip, tmp_path / "corpus"), tmp_path / "report"
    with locked(out):
        asked = ("evaluate", tiny_bundle.folder, corpus, "--methods", "greedy", "--out", out)
        assert "another run is writing" in fails(*asked)


def test_rows_of_a_stopped_evaluation_that_are_damaged_are_named(tmp_path, clip, tiny_bundle):
    corpus, out = corpus_of(clip, tmp_path / "corpus"), tmp_path / "report"
    asked = ("evaluate", tiny_bundle.folder, corpus, "--methods", "greedy", "--out", out)
    assert run([str(argument) for argument in asked]) == 0
    (out / "report.json").unlink()
    for damaged in (b"{\n", b'[{"id": 1}]\n', b"\xff\n"):
        (out / "rows.partial.jsonl").write_bytes(damaged)
        assert "rows.partial.jsonl is damaged, or another Beamless wrote it" in fails(*asked)


def test_a_shard_of_no_utterances(tmp_path):
    assert "--shard-size" in fails("collect", tmp_path, tmp_path / "out", "--shard-size", 0)


def test_a_limit_that_leaves_nothing(tmp_path, clip, tiny_bundle):
    (tmp_path / "audio").mkdir()
    (tmp_path / "audio/fox.wav").write_bytes(clip.read_bytes())
    line = {"id": "fox", "file_name": "audio/fox.wav", "text": "the quick brown fox"}
    (tmp_path / "metadata.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    assert "--limit" in fails("evaluate", tiny_bundle.folder, tmp_path, "--limit", -1)


def test_an_output_folder_under_a_file_is_refused_before_decoding(tmp_path, clip, tiny_bundle):
    (tmp_path / "file").write_text("", encoding="utf-8")
    out = ("--out", tmp_path / "file" / "x")
    message = fails("transcribe", clip, "--model", tiny_bundle.folder, *out)
    assert "file" in message


def test_an_empty_name_is_not_taken_for_this_folder(clip, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert fails("transcribe", "") == "the name of a recording is empty; name a file"
    assert fails("transcribe", clip, "--out", "").startswith("the name given as --out is empty")
    assert not any(tmp_path.iterdir())


def test_a_config_that_is_not_utf_8(tmp_path, clip):
    (tmp_path / "options.yaml").write_bytes(b"model: caf\xe9\n")
    assert "UTF-8" in fails("transcribe", clip, "--config", tmp_path / "options.yaml")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--tokens-a-second", "nan"), "--tokens-a-second cannot be 'nan'"),
        (("--eos_boost=much",), "--eos-boost cannot be 'much'"),
        (("--temperatures", "0", "hot"), "--temperatures cannot be 'hot'"),
        (("--format", "docx"), "--format cannot be 'docx'; it is one of 'txt', 'srt'"),
    ],
)
def test_an_option_of_another_kind_is_said_without_types_of_python(arguments, said):
    message = fails("transcribe", "a.wav", *arguments)
    assert message.startswith(said)
    assert not any(noise in message for noise in ("class", "typing", "Parser key", "Union"))


@pytest.mark.parametrize("line", ["model: null", "temperatures: null", "vad: null"])
def test_an_option_without_a_value_in_a_file_is_named(tmp_path, clip, line):
    (tmp_path / "options.yaml").write_text(line + "\n", encoding="utf-8")
    message = fails("transcribe", clip, "--config", tmp_path / "options.yaml")
    assert message.startswith(line.partition(":")[0])


def test_options_in_a_folder_and_options_nested_without_end_are_refused(tmp_path, clip):
    assert fails("transcribe", clip, "--config", tmp_path).endswith("is no file")
    (tmp_path / "options.yaml").write_text("a: &a [*a]\n", encoding="utf-8")
    assert "--config" in fails("transcribe", clip, "--config", tmp_path / "options.yaml")


def test_a_method_that_is_none_leaves_no_folder_behind(tmp_path, clip, tiny_bundle):
    corpus = corpus_of(clip, tmp_path / "corpus")
    bundle, out = tiny_bundle.folder, tmp_path / "report"
    assert "'gredy'" in fails("evaluate", bundle, corpus, "--out", out, "--methods", "gredy")
    assert "beam0" in fails("curve", bundle, out, corpus, "--beams", 0)
    assert not out.exists()


def test_a_missing_package_is_told_before_a_folder_is_made(tmp_path, clip, monkeypatch):
    corpus = corpus_of(clip, tmp_path / "corpus")
    (tmp_path / "loud.yaml").write_text("steps: [gain]\n", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "audiomentations", None)
    out = tmp_path / "louder"
    assert "beamless[augment]" in fails(
        "import", "corpus", corpus, out, "--augment", tmp_path / "loud.yaml"
    )
    assert not out.exists()


@pytest.mark.parametrize("damage", [(20, 0x99), (34, 0)], ids=["unknown codec", "no bits"])
def test_a_wav_of_no_known_kind_is_refused_in_one_line(tmp_path, clip, damage):
    place, byte = damage
    sound = bytearray(clip.read_bytes())
    sound[place : place + 2] = bytes((byte, byte))
    (tmp_path / "odd.wav").write_bytes(sound)
    assert "odd.wav" in fails("transcribe", tmp_path / "odd.wav")


def test_closed_standard_output_is_told_before_anything_is_decoded(clip, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert "standard output is closed" in fails("transcribe", clip)


def corpus_of(clip, corpus):
    corpus.mkdir()
    (corpus / "fox.wav").write_bytes(clip.read_bytes())
    line = {"id": "fox", "file_name": "fox.wav", "text": "the quick brown fox"}
    (corpus / "metadata.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    return corpus


@pytest.mark.parametrize("which", ["corpus", "dev"])
def test_rounds_looks_at_all_corpora_before_it_collects(tmp_path, clip, which):
    corpus, missing = corpus_of(clip, tmp_path / "corpus"), tmp_path / "missing"
    read, dev = (missing, corpus) if which == "corpus" else (corpus, missing)
    message = fails("rounds", read, tmp_path / "out", "--dev", dev, "--model", "no-such-model")
    assert message == f"there is no corpus folder {missing}"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("value", ["!!int x", "!!float x", "!!bool x", "!!timestamp x", "9" * 5000])
@pytest.mark.parametrize("joined", [True, False])
def test_a_config_with_a_value_that_yaml_cannot_read_is_one_line(tmp_path, clip, value, joined):
    file = tmp_path / "options.yaml"
    file.write_text(f"beam: {value}\n", encoding="utf-8")
    option = [f"--config={file}"] if joined else ["--config", file]
    assert f"{file} is not YAML (" in fails("transcribe", clip, *option)


@pytest.mark.parametrize("name", ["files", "temperatures"])
@pytest.mark.parametrize("value", [3, True, "a.wav"])
def test_one_value_in_a_config_where_a_list_belongs_names_the_option(tmp_path, clip, name, value):
    (tmp_path / "options.yaml").write_text(f"{name}: {value}\n", encoding="utf-8")
    message = fails("transcribe", clip, "--config", tmp_path / "options.yaml")
    assert message.startswith(f"{name} takes a list")
    assert message.endswith(f"'{name}: [{value}]'")


def test_what_the_command_line_gives_is_not_given_again_in_a_config(tmp_path, clip):
    (tmp_path / "options.yaml").write_text("files: [other.wav]\n", encoding="utf-8")
    option = ("--config", tmp_path / "options.yaml")
    assert fails("transcribe", clip, *option).startswith("files stands in the file")
    assert "other.wav" in fails("transcribe", *option)


@pytest.mark.parametrize("command", ["texts", "synth"])
def test_a_number_of_hundreds_of_digits_is_one_line(tmp_path, command):
    (tmp_path / "lines.txt").write_text("One two.\n", encoding="utf-8")
    option = {"texts": "--count", "synth": "--limit"}[command]
    message = fails(command, tmp_path / "lines.txt", tmp_path / "out.jsonl", option, 10**400)
    assert message == f"{option} must be at most 1e+30"


def test_a_rate_of_hundreds_of_digits_is_one_line(tmp_path):
    assert "at most" in fails("train", tmp_path, tmp_path / "out", "--learning-rate", 10**400)
