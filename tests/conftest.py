"""What every test may ask for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def real_data() -> Path:
    """The folder of real datasets, which are never part of the repository."""
    folder = os.environ.get("BAYESNEG_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("BAYESNEG_DATA names no folder of real datasets")
    return Path(folder)
