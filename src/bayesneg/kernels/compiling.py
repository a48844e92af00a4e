"""How kernels are compiled.

Only entry points are kept on disk, and numba's cache looks at one file only; an entry point therefore closes over
``DIGEST``, so that a change in any kernel file compiles it anew.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from numba import njit

SOURCES = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
DIGEST = int.from_bytes(hashlib.sha256(SOURCES).digest()[:6], "big")

kernel = njit(nogil=True, error_model="numpy")
entry_point = njit(nogil=True, error_model="numpy", cache=True)
# sums may be reordered into vector lanes; infinities and NaN keep their meaning
reordering_kernel = njit(nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
# for what runs once per drawn number, where a call with a dozen arrays would cost more than the work
inlined_kernel = njit(nogil=True, error_model="numpy", forceinline=True)
