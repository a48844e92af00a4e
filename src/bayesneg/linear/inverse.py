"""The inverse of a large positive definite matrix in the place of the matrix itself, by LAPACK or on a GPU."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

BLOCK = 1024  # rows that are mirrored at once


def inverted(matrix: np.ndarray, *, gpu: bool = False) -> np.ndarray | None:
    """The inverse, row by row; ``matrix``, column by column, is overwritten. None if it is not positive definite."""
    half = _by_torch(matrix) if gpu else _by_lapack(matrix)
    if half is not None:
        _mirror(half)
    return half


def sees_gpu() -> bool:
    if find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def _by_lapack(matrix: np.ndarray) -> np.ndarray | None:
    """Its upper triangle."""
    from scipy.linalg import lapack

    functions: Any = lapack.get_lapack_funcs(("potrf", "potri"), (matrix,))
    factorise, invert = functions
    factor, failed = factorise(matrix, lower=True, overwrite_a=True)
    return None if failed else np.asarray(invert(factor, lower=True, overwrite_c=True)[0]).T


def _by_torch(matrix: np.ndarray) -> np.ndarray | None:
    """All of it; by LAPACK after all where the GPU has too little room."""
    import torch

    tensor = torch.from_numpy(matrix.T)  # it is symmetric
    try:
        factor, failed = torch.linalg.cholesky_ex(tensor.to("cuda"))
        if int(failed):
            return None
        tensor.copy_(torch.cholesky_inverse(factor))
    except torch.OutOfMemoryError:
        return _by_lapack(matrix)
    return matrix.T


def _mirror(matrix: np.ndarray) -> None:
    """Write the upper triangle into the lower one, in blocks: a whole copy may not fit."""
    for start in range(0, len(matrix), BLOCK):
        stop = start + BLOCK
        upper = np.triu(matrix[start:stop, start:stop])
        matrix[start:stop, start:stop] = upper + np.triu(upper, 1).T
        matrix[stop:, start:stop] = matrix[start:stop, stop:].T
