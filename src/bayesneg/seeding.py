"""One seed, many named streams.

Every use of randomness asks for its own stream by name, so that adding a draw in one place never moves the draws of
another, and an epoch's stream can be made again without replaying the epochs before it (which is what lets a
resumed run end in the same bytes as an uninterrupted one).
"""

from __future__ import annotations

import zlib

import numpy as np

from bayesneg.errors import InputError


def stream(seed: int, name: str, *counters: int) -> np.random.Generator:
    """The random stream called ``name`` of ``seed``; ``counters`` (an epoch, say) give independent sub-streams.

    >>> round(stream(0, "sampler", 3).random(), 6) == round(stream(0, "sampler", 3).random(), 6)
    True
    >>> stream(0, "init").random() == stream(0, "order").random()
    False
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InputError(f"seed must be a whole number of at least 0, got {seed!r}")
    key = (zlib.crc32(name.encode()), *counters)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy=int(seed), spawn_key=key)))


def seed_from(rng: np.random.Generator) -> int:
    """64 random bits, from which compiled code makes its own streams."""
    return int(rng.integers(2**64, dtype=np.uint64))
