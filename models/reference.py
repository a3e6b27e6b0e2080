"""The reference that the parity gate compares with: transformers' Whisper, of the same arrays.

torch and transformers are imported here only inside functions; production never comes here.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from beamless.inference.errors import BeamlessError
from beamless.models.whisper import Checkpoint

Model = Any
"""transformers' ``WhisperForConditionalGeneration``, whose module is not imported here."""

Encoded = Any
"""transformers' encoder output of one window."""


def reference_model(checkpoint: Checkpoint) -> Model:
    """Return transformers' Whisper with a checkpoint's arrays, in float32.

    Raises:
        BeamlessError: torch or transformers is not installed, or the arrays are not all there.
    """
    try:
        import torch
        from transformers import WhisperConfig, WhisperForConditionalGeneration
    except ImportError:
        raise BeamlessError(
            'the reference needs torch and transformers; run: pip install "beamless[train]"'
        ) from None
    arrays, sizes = checkpoint.arrays, checkpoint.sizes
    config = WhisperConfig(
        vocab_size=sizes.vocabulary,
        num_mel_bins=sizes.mels,
        d_model=sizes.width,
        encoder_layers=sizes.encoder_layers,
        decoder_layers=sizes.decoder_layers,
        encoder_attention_heads=sizes.heads,
        decoder_attention_heads=sizes.heads,
        encoder_ffn_dim=len(arrays["model.encoder.layers.0.fc1.weight"]),
        decoder_ffn_dim=len(arrays["model.decoder.layers.0.fc1.weight"]),
        max_source_positions=sizes.audio_positions,
        max_target_positions=sizes.text_positions,
        pad_token_id=None,
    )
    model = WhisperForConditionalGeneration(config).eval()
    state = {name: torch.from_numpy(array.astype(np.float32)) for name, array in arrays.items()}
    state["proj_out.weight"] = state["model.decoder.embed_tokens.weight"]
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise BeamlessError(f"{checkpoint.name} is not a whole Whisper ({reason})") from None
    return model


def reference_encode(model: Model, log_mel: np.ndarray) -> Encoded:
    """Encode a window, log_mel [1, M, F] float32."""
    import torch

    with torch.no_grad():
        return model.model.encoder(torch.from_numpy(log_mel))


def reference_decode(
    model: Model,
    encoded: Encoded,
    checkpoint: Checkpoint,
    prompt: Sequence[int],
    end: int,
    capacity: int,
    beam_size: int = 1,
) -> tuple[int, ...]:
    """Decode a window with transformers' own ``generate``: greedy, or the best of its beam.

    It is the generic ``generate``, since Whisper's own adds prompts and fallbacks of its own.
    Prompt and text together hold ``capacity`` tokens; both suppress lists are the checkpoint's.

    Returns:
        The tokens after the prompt, without the end token.
    """
    import torch
    from transformers import GenerationConfig, GenerationMixin

    options = GenerationConfig(
        max_length=capacity,
        num_beams=beam_size,
        do_sample=False,
        length_penalty=1.0,
        eos_token_id=end,
        pad_token_id=end,
        decoder_start_token_id=prompt[0],
        suppress_tokens=list(checkpoint.suppress_tokens) or None,
        begin_suppress_tokens=list(checkpoint.begin_suppress_tokens) or None,
    )
    with torch.no_grad():
        sequences = GenerationMixin.generate(
            model,
            encoder_outputs=encoded,
            decoder_input_ids=torch.tensor([list(prompt)]),
            generation_config=options,
        )
    tokens = sequences[0, len(prompt) :].tolist()
    return tuple(tokens[: tokens.index(end)] if end in tokens else tokens)


def reference_logits(model: Model, encoded: Encoded, tokens: Sequence[int]) -> np.ndarray:
    """Return the logits [T, V] that follow each of ``tokens`` [T], prompt included."""
    import torch

    with torch.no_grad():
        ids = torch.tensor([list(tokens)])
        output = model(encoder_outputs=encoded, decoder_input_ids=ids, use_cache=False)
    logits: np.ndarray = output.logits[0].numpy()
    return logits
