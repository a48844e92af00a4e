"""A database for the tests of shared studies."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.scale import postgres
from commands import bayesneg as bayesneg


@pytest.fixture
def bayesneg_here(bayesneg, tmp_path, monkeypatch):
    """Commands in an empty working folder."""
    monkeypatch.chdir(tmp_path)
    return bayesneg


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Server]:
    """A PostgreSQL server; skipped, with the reason, where there can be none."""
    if reason := postgres.missing():
        pytest.skip(reason)
    with postgres.running() as found:
        yield found
