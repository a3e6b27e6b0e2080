"""What is kept of each step of greedy."""

import os
import subprocess
import sys

import pytest

KEPT = """
import hashlib
import numpy as np
from beamless.data_gen.targets import describe_steps

rng = np.random.default_rng(0)
hidden = rng.normal(0, 5, (11, 384)).astype(np.float32)
embedding = rng.normal(0, 0.05, (51864, 384)).astype(np.float32)
seen = describe_steps(hidden, embedding, np.arange(3), np.arange(5), 8)
print(hashlib.sha256(b"".join(array.tobytes() for array in seen.values())).hexdigest())
"""


def kept_with(threads: int) -> str:
    """Return a hash of what is kept where numpy multiplies with so many threads."""
    variables = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(variables, str(threads))}
    command = [sys.executable, "-c", KEPT]
    return subprocess.run(command, env=environment, check=True, capture_output=True).stdout.decode()


@pytest.mark.parametrize("threads", [2, 3])
def test_what_is_kept_of_a_step_is_the_same_however_many_threads_multiply(threads):
    """Workers of Ray have one, processes have all: in float32 some CPUs' sums then differ."""
    assert kept_with(threads) == kept_with(1)
