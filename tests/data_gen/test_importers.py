"""Importing: each layout as it is published, and what manifests get wrong."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from beamless.data_gen.corpora import read_corpus, split_of
from beamless.data_gen.importers import LAYOUTS, Source, import_corpus, read_layout
from beamless.inference.errors import BeamlessError


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def taken(layout, source, tmp_path, **options):
    """Import and return the utterances by id."""
    import_corpus(layout, str(source), tmp_path / "out", **options)
    return {utterance.id: utterance for utterance in read_corpus(tmp_path / "out")}


@pytest.fixture
def ljspeech(tmp_path, corpora):
    folder = tmp_path / "LJSpeech-1.1"
    for number in (1, 2, 3):
        corpora.store(folder / "wavs" / f"LJ001-000{number}.wav", corpora.tone(rate=22_050), 22_050)
    lines = ['LJ001-0001|"Printing" in 1455|"Printing" in fourteen fifty-five', "LJ001-0002|b|b"]
    put(folder / "metadata.csv", "\n".join([*lines, "LJ001-0003|c|c", ""]))
    return folder


def test_ljspeech_gives_the_spoken_text_and_keeps_the_written_one(ljspeech, tmp_path):
    found = taken("ljspeech", ljspeech, tmp_path)
    first = found["LJ001-0001"]
    assert first.text == '"Printing" in fourteen fifty-five'
    assert first.extra == {"written": '"Printing" in 1455'}
    assert (first.speaker, first.source, first.license) == ("lj", "ljspeech", "public domain")
    assert list(found) == ["LJ001-0001", "LJ001-0002", "LJ001-0003"]
    assert found["LJ001-0002"].extra == {}


def test_librispeech_keeps_readers_and_their_gender(tmp_path, corpora):
    root = tmp_path / "LibriSpeech"
    chapter = root / "dev-clean" / "84" / "121123"
    for number in (0, 1):
        corpora.store(chapter / f"84-121123-000{number}.flac")
    put(chapter / "84-121123.trans.txt", "84-121123-0000 GO DO\n84-121123-0001 BUT\n")
    put(root / "SPEAKERS.TXT", ";ID |SEX| SUBSET |MINUTES| NAME\n84   | F | dev-clean | 8 | X\n")
    found = taken("librispeech", root, tmp_path, subset="dev-clean")
    assert [u.text for u in found.values()] == ["GO DO", "BUT"]
    assert {u.speaker for u in found.values()} == {"librispeech-84"}
    assert found["84-121123-0000"].extra == {"gender": "f"}
    assert found["84-121123-0000"].license == "CC-BY-4.0"


def test_vctk_takes_one_microphone_and_counts_missing_texts(tmp_path, corpora):
    root = tmp_path / "VCTK"
    for name in ("p225_001_mic1", "p225_001_mic2", "p225_002_mic1"):
        corpora.store(root / "wav48_silence_trimmed" / "p225" / f"{name}.flac")
    put(root / "txt" / "p225" / "p225_001.txt", "Please call Stella.\n")
    put(
        root / "speaker-info.txt",
        "ID  AGE  GENDER  ACCENTS  REGION\np225  23  F  English  Surrey\n",
    )
    found = taken("vctk", root, tmp_path)
    assert list(found) == ["p225_001"]
    assert found["p225_001"].text == "Please call Stella."
    assert found["p225_001"].extra == {"age": "23", "gender": "F", "accent": "English"}
    assert corpora.marker_of(tmp_path / "out")["refused"] == {"no transcript": 1}


def test_common_voice_reads_a_table_with_quotes_and_mp3_clips(tmp_path, corpora):
    root = tmp_path / "cv"
    corpora.store(root / "clips" / "one.mp3")
    corpora.store(root / "clips" / "two.mp3")
    heading = "client_id\tpath\tsentence\tup_votes\tage\tgender\taccents"
    rows = ['a1\tone.mp3\tHe said "no.\t2\tteens\tmale\t', "b2\ttwo.mp3\tYes\t2\t\t\tWelsh"]
    put(root / "train.tsv", "\n".join([heading, *rows]))
    found = taken("common-voice", root, tmp_path, subset="train")
    assert found["one"].text == 'He said "no.'
    assert found["one"].speaker == "a1"
    assert found["one"].extra == {"age": "teens", "gender": "male"}
    assert found["two"].extra == {"accent": "Welsh"}


def test_tedlium_cuts_talks_at_their_times_and_tidies_the_text(tmp_path, corpora):
    root = tmp_path / "TEDLIUM"
    talk = np.concatenate([corpora.tone(1.0, pitch) for pitch in (300, 600, 900)])
    corpora.store(root / "sph" / "AlGore.sph", talk, format="NIST")
    lines = [
        "AlGore 1 AlGore 0.00 1.00 <o,f0,male> it 's {NOISE} fine(2)",
        "AlGore 1 AlGore 1.00 2.00 <o,f0,male> a <unk> word",
        "AlGore 1 inter_segment_gap 2.00 2.20 <o,f0,> ignore_time_segment_in_scoring",
        "AlGore 1 AlGore 2.00 3.00 <o,f0,male> and three",
        "AlGore 1 AlGore 2.50 4.00 <o,f0,male> beyond the end",
    ]
    put(root / "stm" / "AlGore.stm", "\n".join(lines))
    found = taken("tedlium", root, tmp_path)
    assert [u.text for u in found.values()] == ["it's fine", "and three"]
    assert found["AlGore-0000200-0000300"].speaker == "tedlium-AlGore"
    samples, _ = soundfile.read(found["AlGore-0000200-0000300"].audio)
    assert np.argmax(np.abs(np.fft.rfft(samples))) == pytest.approx(900, abs=2)
    assert corpora.marker_of(tmp_path / "out")["refused"] == {
        "a word that is not written down": 1,
        "audio that ends before its text does": 1,
        "no transcript": 1,
    }


@pytest.fixture
def kaldi(tmp_path, corpora):
    """speechocean762's own shape: paths in wav.scp are relative to the folder above."""
    root = tmp_path / "speechocean762"
    for number in (11, 12):
        corpora.store(root / "WAVE" / "SPEAKER0001" / f"0000100{number}.WAV", format="WAV")
    ids = ("000010011", "000010012")
    audio = [f"{id}\tWAVE/SPEAKER0001/0000100{id[-2:]}.WAV" for id in ids]
    put(root / "train" / "wav.scp", "\n".join(audio))
    put(root / "train" / "text", "000010011\tWE CALL IT BEAR\n000010012\n")
    put(root / "train" / "utt2spk", "000010011\t0001\n000010012\t0001\n")
    put(root / "train" / "spk2age", "0001\t6\n")
    return root


def test_kaldi_reads_speechocean_with_its_root_named(kaldi, tmp_path, corpora):
    found = taken("kaldi", kaldi / "train", tmp_path, audio_root=kaldi, license="free")
    assert list(found) == ["000010011"]
    first = found["000010011"]
    assert (first.text, first.speaker, first.license) == ("WE CALL IT BEAR", "0001", "free")
    assert first.extra == {"age": "6"}
    assert corpora.marker_of(tmp_path / "out")["refused"] == {"no transcript": 1}


def test_kaldi_segments_cut_recordings(tmp_path, corpora):
    folder = tmp_path / "data"
    corpora.store(folder / "rec.wav", corpora.tone(2.0))
    put(folder / "wav.scp", "rec rec.wav")
    put(folder / "segments", "u1 rec 0.0 0.5\nu2 rec 0.5 2.0")
    put(folder / "text", "u1 one\nu2 two words")
    found = taken("kaldi", folder, tmp_path)
    assert [u.duration for u in found.values()] == [0.5, 1.5]
    assert found["u2"].text == "two words"


def test_a_command_in_wav_scp_is_refused_and_never_run(tmp_path):
    mark = tmp_path / "was-run"
    put(tmp_path / "data" / "wav.scp", f"a touch {mark} |")
    put(tmp_path / "data" / "text", "a hello")
    with pytest.raises(BeamlessError, match=r"wav\.scp, line 1: a command, not a file"):
        taken("kaldi", tmp_path / "data", tmp_path)
    assert not mark.exists()


def test_nemo_manifests_with_and_without_offsets(tmp_path, corpora):
    corpora.store(tmp_path / "data" / "wav" / "a.wav", corpora.tone(2.0))
    corpora.store(tmp_path / "data" / "wav" / "b.wav", corpora.tone(0.5))
    rows = [
        {"audio_filepath": "wav/a.wav", "offset": 0.5, "duration": 1.0, "text": "one"},
        {"audio_filepath": "wav/b.wav", "duration": 0.5, "text": "two", "lang": "en", "id": "B"},
    ]
    manifest = put(tmp_path / "data" / "m.json", "\n".join(map(json.dumps, rows)))
    found = taken("nemo", manifest, tmp_path)
    assert list(found) == ["wav/a-00000500", "B"]
    assert [u.duration for u in found.values()] == [1.0, 0.5]
    assert found["B"].extra == {"lang": "en"}


def lhotse_recording(path, name="rec", channels=(0,)):
    source = {"type": "file", "channels": list(channels), "source": str(path)}
    return {"id": name, "sources": [source], "sampling_rate": 16000}


def test_lhotse_recordings_and_supervisions_gzipped(tmp_path, corpora):
    folder = tmp_path / "data"
    talk = np.stack([corpora.tone(2.0, 300), corpora.tone(2.0, 900)], axis=1)
    path = corpora.store(folder / "rec.wav", talk)
    supervision = {"id": "s1", "recording_id": "rec", "start": 0.5, "duration": 1.0, "channel": 1}
    supervision |= {"text": "hello", "speaker": "ann", "language": "en"}
    for kind, row in (
        ("recordings", lhotse_recording(path, channels=(0, 1))),
        ("supervisions", supervision),
    ):
        with gzip.open(folder / f"{kind}_dev.jsonl.gz", "wt", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    found = taken("lhotse", folder, tmp_path, subset="dev")
    samples, _ = soundfile.read(found["s1"].audio)
    assert (found["s1"].speaker, found["s1"].duration) == ("ann", 1.0)
    assert np.argmax(np.abs(np.fft.rfft(samples))) == pytest.approx(900, abs=2)


def test_lhotse_cuts_count_from_the_start_of_the_cut(tmp_path, corpora):
    path = corpora.store(tmp_path / "data" / "rec.wav", corpora.tone(3.0))
    supervision = {"id": "s1", "start": 0.25, "duration": 0.5, "text": "hello"}
    cut = {"id": "c", "start": 1.0, "duration": 2.0, "supervisions": [supervision]}
    cut["recording"] = lhotse_recording(path)
    cuts = put(tmp_path / "data" / "cuts.jsonl", json.dumps(cut))
    [recording] = read_layout("lhotse", Source(str(cuts)))
    assert (recording.start, recording.end) == (1.25, 1.75)
    assert taken("lhotse", cuts, tmp_path)["s1"].duration == 0.5


@pytest.mark.parametrize(("layout", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_tables_with_columns_of_any_name(tmp_path, corpora, layout, delimiter):
    corpora.store(tmp_path / "data" / "x" / "a.wav")
    rows = [["path", "sentence", "who", "text"], ["x/a.wav", '"Hi, you"', "ann", "other"]]
    lines = "\r\n".join(delimiter.join(row) for row in rows)
    table = put(tmp_path / "data" / "table", "\ufeff" + lines + "\r\n")
    found = taken(layout, table, tmp_path, columns="audio=path,text=sentence,speaker=who")
    assert found["x/a"].text == "Hi, you"
    assert found["x/a"].speaker == "ann"
    assert found["x/a"].extra == {"source_text": "other"}


def test_jsonl_with_times_and_unknown_fields(tmp_path, corpora):
    corpora.store(tmp_path / "data" / "a.wav", corpora.tone(2.0))
    row = {
        "id": "u",
        "audio": "a.wav",
        "text": "hi",
        "start": 0.5,
        "end": 1.0,
        "rate": 3,
        "mood": 1,
    }
    table = put(tmp_path / "data" / "t.jsonl", json.dumps(row))
    found = taken("jsonl", table, tmp_path)
    assert found["u"].duration == 0.5
    assert found["u"].extra == {"source_rate": 3, "mood": 1}


def test_hugging_face_datasets_from_disk_and_from_parquet_need_no_torchcodec(tmp_path, corpora):
    datasets = pytest.importorskip("datasets", reason="the extra train is not installed")
    contents = [corpora.store(tmp_path / f"{n}.{n}").read_bytes() for n in ("flac", "wav", "mp3")]
    rows = {
        "audio": [{"bytes": content, "path": None} for content in contents],
        "sentence": ["one", "two", "three"],
        "speaker": ["a", "b", "c"],
    }
    feature = {"bytes": datasets.Value("binary"), "path": datasets.Value("string")}
    text = datasets.Value("string")
    features = {"audio": feature, "sentence": text, "speaker": text}
    made = datasets.Dataset.from_dict(rows, features=datasets.Features(features))
    made.save_to_disk(str(tmp_path / "disk"))
    made.to_parquet(str(tmp_path / "parquet" / "train-0.parquet"))
    for place in ("disk", "parquet"):
        out = tmp_path / f"out-{place}"
        import_corpus("hf", str(tmp_path / place), out, columns="text=sentence")
        found = read_corpus(out)
        assert [(u.id, u.text, u.speaker) for u in found] == [
            ("00000000", "one", "a"),
            ("00000001", "two", "b"),
            ("00000002", "three", "c"),
        ]
        assert all(u.duration == pytest.approx(0.2, abs=0.1) for u in found)


def test_a_corpus_imports_to_itself(tmp_path, corpora):
    more = {"speaker": "ann", "source": "s", "license": "l", "voice": "v", "age": 6}
    corpora.write(tmp_path / "in", [more | {"augment": {"gain": {"db": 1.0}}}])
    [before] = read_corpus(tmp_path / "in")
    after = taken("corpus", tmp_path / "in", tmp_path)["u0"]
    for name in ("text", "speaker", "source", "license", "voice", "augment", "extra"):
        assert getattr(after, name) == getattr(before, name)


# What can be wrong


def test_an_unknown_layout_lists_those_there_are(tmp_path):
    with pytest.raises(BeamlessError, match="there is no layout 'nope'; there are ljspeech, "):
        import_corpus("nope", "x", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("layout", sorted(set(LAYOUTS) - {"hf"}))
def test_a_source_that_is_missing_or_of_another_layout_says_so(tmp_path, layout):
    (tmp_path / "empty").mkdir()
    for place in ("none", "empty"):
        with pytest.raises(BeamlessError) as fault:
            import_corpus(layout, str(tmp_path / place), tmp_path / "out")
        assert place in str(fault.value)
        assert "\n" not in str(fault.value)
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("layout", "name", "content", "said"),
    [
        ("csv", "t.csv", "audio,text\na.wav\n", "line 2: 1 columns, but the heading has 2"),
        ("csv", "t.csv", "path,text\na.wav,x\n", "there is no column 'audio' for the audio"),
        ("csv", "t.csv", "audio,text\n../../a.wav,x\n", "line 2: '../../a.wav' is not inside"),
        ("csv", "t.csv", "audio,text,start\na.wav,x,soon\n", "'soon' is not a time"),
        ("csv", "t.csv", "audio,text\n", "holds no recordings"),
        ("jsonl", "t.jsonl", '{"audio": "a.wav", "text"', "line 1: not JSON"),
        ("jsonl", "t.jsonl", '{"audio": "a.wav", "text": "x", "id": "1"}\n' * 2, "'1' stands"),
        ("nemo", "t.json", '{"audio_filepath": "/etc/hosts", "text": "x"}', "is not inside"),
        ("nemo", "t.json", '{"audio_filepath": 3, "text": "x"}', "has the wrong type"),
        ("nemo", "t.json", '{"audio_filepath": "a.wav"}', "the field 'text' is missing"),
        ("lhotse", "c.jsonl.gz", "not gzip", "cannot be read"),
        ("lhotse", "c.jsonl", '{"id": "c"}', "the field 'recording' is missing"),
    ],
)
def test_a_manifest_that_is_wrong_is_refused_before_anything_is_written(
    tmp_path, corpora, layout, name, content, said
):
    corpora.store(tmp_path / "data" / "a.wav")
    manifest = put(tmp_path / "data" / name, content)
    with pytest.raises(BeamlessError) as fault:
        import_corpus(layout, str(manifest), tmp_path / "out")
    assert said in str(fault.value)
    assert not (tmp_path / "out").exists()


def test_columns_that_do_not_exist_are_refused(tmp_path):
    with pytest.raises(BeamlessError, match="--columns takes audio, text"):
        import_corpus("csv", "x", tmp_path / "out", columns="sound=path")


def test_recordings_that_cannot_be_used_are_counted_and_the_others_taken(tmp_path, corpora):
    data = tmp_path / "data"
    corpora.store(data / "good.wav")
    put(data / "text.wav", "this is no audio")
    corpora.store(data / "early.wav", corpora.tone(1.0))
    content = (data / "early.wav").read_bytes()
    (data / "early.wav").write_bytes(content[: len(content) // 2])
    corpora.store(data / "long.wav", np.zeros(31 * 16_000, np.float32))
    corpora.store(data / "empty.wav", np.zeros(0, np.float32))
    corpora.store(data / "nan.wav", np.array([0.0, np.nan], np.float32), subtype="FLOAT")
    names = ["good", "text", "early", "long", "empty", "nan", "none"]
    table = put(data / "t.csv", "audio,text\n" + "".join(f"{name}.wav,x\n" for name in names))
    assert list(taken("csv", table, tmp_path)) == ["good"]
    assert corpora.marker_of(tmp_path / "out")["refused"] == {
        "audio that cannot be read": 2,
        "audio that is damaged or cut short": 1,
        "audio that is missing": 1,
        "longer than 30 s": 1,
        "no samples": 1,
    }


def test_nothing_usable_is_an_error(tmp_path):
    table = put(tmp_path / "t.csv", "audio,text\nnone.wav,x\n")
    with pytest.raises(BeamlessError, match=r"no recording of .* could be used"):
        import_corpus("csv", str(table), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_split_of_nothing_leaves_no_side_finished(tmp_path):
    table = put(tmp_path / "t.csv", "audio,text,speaker\nnone.wav,x,p1\n")
    with pytest.raises(BeamlessError, match=r"no recording of .* could be used: 1 "):
        import_corpus("csv", str(table), tmp_path / "out", split="speaker")
    assert list((tmp_path / "out").iterdir()) == []


def test_b46_a_missing_decoder_stops_at_once_and_names_what_to_install(
    tmp_path, corpora, monkeypatch
):
    data = tmp_path / "data"
    for name in ("a.wav", "b.flac", "c.mp3"):
        corpora.store(data / name)
    (data / "d.m4a").write_bytes(b"\0\0\0\x20ftypM4A " + bytes(64))
    table = put(data / "t.csv", "audio,text\na.wav,x\nb.flac,x\nc.mp3,x\n")
    assert len(taken("csv", table, tmp_path)) == 3
    monkeypatch.setitem(sys.modules, "av", None)
    put(data / "t.csv", "audio,text\nd.m4a,x\na.wav,x\n")
    with pytest.raises(BeamlessError, match=r"needs PyAV .* pip install"):
        import_corpus("csv", str(table), tmp_path / "other")


def test_b46_a_torchcodec_that_cannot_be_loaded_is_not_in_the_way(tmp_path, corpora):
    datasets = pytest.importorskip("datasets", reason="the extra train is not installed")
    broken = tmp_path / "broken"
    about = "Metadata-Version: 2.1\nName: torchcodec\nVersion: 0.9.0\n"
    put(broken / "torchcodec" / "__init__.py", "raise RuntimeError('libavutil.so is missing')\n")
    put(broken / "torchcodec-0.9.0.dist-info" / "METADATA", about)
    corpora.store(tmp_path / "a.wav")
    content = (tmp_path / "a.wav").read_bytes()
    rows = {"audio": [{"bytes": content, "path": None}], "text": ["one"]}
    feature = {"bytes": datasets.Value("binary"), "path": datasets.Value("string")}
    features = datasets.Features({"audio": feature, "text": datasets.Value("string")})
    made = datasets.Dataset.from_dict(rows, features=features)
    made = made.cast_column("audio", datasets.Audio())
    made.to_parquet(str(tmp_path / "data" / "train-0.parquet"))
    command = ["import", "hf", str(tmp_path / "data"), str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-m", "beamless", *command],
        check=False,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(broken)},
    )
    assert done.returncode == 0, done.stderr
    assert [u.text for u in read_corpus(tmp_path / "out")] == ["one"]


# Splits


def people(tmp_path, corpora, rows):
    data = tmp_path / "data"
    corpora.store(data / "a.wav")
    lines = [json.dumps({"audio": "a.wav", "id": f"u{n}", **row}) for n, row in enumerate(rows)]
    return put(data / "t.jsonl", "\n".join(lines))


def sides(out):
    found = {}
    for side in ("train", "dev", "test"):
        if (out / side / "metadata.jsonl").read_text(encoding="utf-8"):
            found[side] = read_corpus(out / side)
    return found


def test_a_split_by_speaker_keeps_each_speaker_on_one_side(tmp_path, corpora):
    rows = [{"text": f"text {n}", "speaker": f"speaker {n % 20}"} for n in range(60)]
    import_corpus("jsonl", str(people(tmp_path, corpora, rows)), tmp_path / "out", split="speaker")
    found = sides(tmp_path / "out")
    assert sum(map(len, found.values())) == 60
    assert all(split_of(u.speaker) == side for side in found for u in found[side])
    assert set(found) == {"train", "dev", "test"}


def test_a_split_by_both_leaves_out_what_would_stand_on_two_sides(tmp_path, corpora):
    rows = [{"text": f"text {n // 9}", "speaker": f"speaker {n % 9}"} for n in range(81)]
    import_corpus("jsonl", str(people(tmp_path, corpora, rows)), tmp_path / "out", split="both")
    found = sides(tmp_path / "out")
    for name in ("text", "speaker"):
        values = [{getattr(u, name) for u in utterances} for utterances in found.values()]
        assert sum(map(len, values)) == len(set.union(*values))
    left_out = corpora.marker_of(tmp_path / "out" / "train")["refused"]
    assert left_out == {
        "speaker and sentence on different sides of the split": 81 - sum(map(len, found.values()))
    }


def test_a_split_by_speaker_without_speakers_is_an_error(tmp_path, corpora):
    table = people(tmp_path, corpora, [{"text": "hello"}])
    with pytest.raises(BeamlessError, match="has no speaker; split by text"):
        import_corpus("jsonl", str(table), tmp_path / "out", split="speaker")


# Runs


def test_a_limit_too_large_to_count_to_takes_everything(ljspeech, tmp_path):
    assert len(taken("ljspeech", ljspeech, tmp_path, limit=10**20)) == 3


def test_a_limit_takes_the_first(ljspeech, tmp_path):
    assert list(taken("ljspeech", ljspeech, tmp_path, limit=2)) == ["LJ001-0001", "LJ001-0002"]


def test_a_second_run_reads_no_audio_again(ljspeech, tmp_path):
    first = taken("ljspeech", ljspeech, tmp_path)
    for path in (ljspeech / "wavs").iterdir():
        path.unlink()
    assert taken("ljspeech", ljspeech, tmp_path) == first


def test_the_command_prints_the_summary_on_standard_output_and_errors_end_with_2(
    ljspeech, tmp_path
):
    def beamless(*arguments):
        command = [sys.executable, "-m", "beamless", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, encoding="utf-8", check=False)

    done = beamless("import", "ljspeech", ljspeech, tmp_path / "out")
    assert done.returncode == 0
    assert done.stdout == f"{tmp_path / 'out'}: 3 utterances, 0.00 h\n"
    again = beamless("import", "csv", tmp_path / "none.csv", tmp_path / "other")
    assert again.returncode == 2
    assert again.stdout == ""
    last = again.stderr.splitlines()[-1]
    assert last == f"beamless: there is no file {tmp_path / 'none.csv'}"


def test_importing_does_not_load_torch():
    code = "import sys, beamless.data_gen.importers; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
