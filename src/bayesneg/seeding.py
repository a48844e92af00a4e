"""One seed, many named streams.

Each use of randomness has a stream by name, so that a new draw in one place changes no draw elsewhere. The stream of an
epoch does not depend on earlier epochs, so that a resumed run ends in the same bytes as an uninterrupted one.
"""

from __future__ import annotations

import zlib

import numpy as np

from bayesneg.errors import InputError


def stream(seed: int, name: str, *counters: int) -> np.random.Generator:
    """The random stream ``name`` of ``seed``; ``counters`` (such as the epoch) give independent sub-streams.

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
    """64 random bits that seed the streams of compiled code."""
    return int(rng.integers(2**64, dtype=np.uint64))
