"""Random numbers inside compiled code: the generator of ``reference``, under the same names.

Every example has its own stream: its draws depend on the seed and on its position in the batch, and not on how the
batch is divided among threads. A stream's state is one number to which GOLDEN is added.
"""

from __future__ import annotations

import numpy as np

from bayesneg.kernels.numba.compiling import kernel
from bayesneg.kernels.reference import draws as reference_draws

GOLDEN = np.uint64(reference_draws.GOLDEN)
FIRST, SECOND = (np.uint64(factor) for factor in reference_draws.FACTORS)
LOW = np.uint64(2**32 - 1)


@kernel
def mixed(z: np.uint64) -> np.uint64:
    z = (z ^ (z >> np.uint64(30))) * FIRST
    z = (z ^ (z >> np.uint64(27))) * SECOND
    return z ^ (z >> np.uint64(31))


@kernel
def stream_of(seed: np.uint64, example: int) -> np.uint64:
    """The state before the first number of an example's stream."""
    return mixed(seed + np.uint64(example) * GOLDEN)


@kernel
def below(number: np.uint64, n: int) -> int:
    """floor(number · n / 2⁶⁴) for n up to 2³¹, in halves that fit 64 bits."""
    count = np.uint64(n)
    low = ((number & LOW) * count) >> np.uint64(32)
    return int(np.int64(((number >> np.uint64(32)) * count + low) >> np.uint64(32)))


@kernel
def unit(number: np.uint64) -> float:
    return np.float64(number >> np.uint64(11)) * 2.0**-53
