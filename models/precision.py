"""What a bundle that is built for a model's name computes in: exactly, or as fast as words allow.

``exact`` decodes token for token as the reference does; traces and reports are made with it unless
asked.
``fast`` stores the decoder's matrices as int8, of which a step reads a quarter of the bytes, and
lets the encoder compute in what the device chooses by itself: bfloat16 on a CPU with units for it,
float16 on a GPU or an NPU, else float32. The decoder computes in float32 in both: in bfloat16 it
gives other tokens.
"""

from collections.abc import Mapping
from typing import Literal

Profile = Literal["exact", "fast"]

EXACT: Mapping[str, str] = {"encoder": "f32", "decoder": "f32", "weights": "f16"}
FAST: Mapping[str, str] = {"encoder": "default", "decoder": "f32", "weights": "int8"}
PROFILES: Mapping[str, Mapping[str, str]] = {"exact": EXACT, "fast": FAST}
