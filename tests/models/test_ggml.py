"""The file for whisper.cpp holds the same model: it loads, and says what we say."""

import struct

import pytest

from beamless.models.ggml import byte_alphabet, ggml_name, token_bytes, write_ggml


def test_whisper_cpp_hears_what_was_said(tiny, speech, tmp_path):
    model = pytest.importorskip("pywhispercpp.model")
    write_ggml(tiny, tmp_path / "tiny.bin")
    loaded = model.Model(str(tmp_path / "tiny.bin"), print_progress=False)
    said = "".join(segment.text for segment in loaded.transcribe(speech, language="en"))
    assert said.strip() == "The quick brown fox jumps over the lazy dog."


def test_the_header_holds_the_models_own_sizes(base, tmp_path):
    write_ggml(base, tmp_path / "base.bin")
    numbers = struct.unpack("<12i", (tmp_path / "base.bin").read_bytes()[:48])
    assert numbers == (0x67676D6C, 51865, 1500, 512, 8, 6, 448, 512, 8, 6, 80, 1)


def test_the_alphabet_has_every_byte_once():
    assert sorted(byte_alphabet().values()) == list(range(256))


def test_tokens_are_the_bytes_of_their_texts(tiny):
    tokens = list(token_bytes(tiny))
    assert (len(tokens), tokens[383], tokens[198]) == (50256, b" The", b"\n")


def test_names_are_openais():
    assert ggml_name("model.encoder.layers.3.self_attn.k_proj.weight") == (
        "encoder.blocks.3.attn.key.weight"
    )
    assert ggml_name("model.decoder.layers.0.encoder_attn_layer_norm.bias") == (
        "decoder.blocks.0.cross_attn_ln.bias"
    )
    assert ggml_name("model.decoder.layer_norm.weight") == "decoder.ln.weight"
    assert ggml_name("model.encoder.layer_norm.weight") == "encoder.ln_post.weight"
