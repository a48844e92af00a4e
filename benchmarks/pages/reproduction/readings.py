"""Where a row does not reproduce: which other reading of the paper was measured, and how near it comes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from bayesneg.report.names import counted
from bayesneg.reproduction.studies import NEAR, Line, PaperStudy

ENOUGH: Final = 3  # seeds of a reading that counts

Readings = Mapping[tuple[str, str, str], list[Line]]  # published row, dataset and model → the readings measured of it


def readings_of(studies: Iterable[PaperStudy]) -> Readings:
    """The rows of the studies of readings, by the published row that they belong to."""
    found: dict[tuple[str, str, str], list[Line]] = {}
    for study in studies:
        for line in study.lines:
            found.setdefault((line.beside, study.dataset, study.model), []).append(line)
    return found


@dataclass(frozen=True)
class Explanation:
    """A row, and the one reading of it that comes nearest to what is printed."""

    line: Line
    readings: list[Line]

    @property
    def best(self) -> Line | None:
        """The reading with the most numbers near the paper, of those with seeds enough, if more than the row itself."""
        sound = [line for line in self.readings if len(line.runs) >= ENOUGH]
        best = max(sound, key=lambda line: line.n_near, default=None)
        return best if best is not None and best.n_near > self.line.n_near else None

    @property
    def n_explained(self) -> int:
        """How many numbers more than the row itself this one reading has within 0.01."""
        return 0 if self.best is None else self.best.n_near - self.line.n_near

    @property
    def sentence(self) -> str:
        """The readings measured and what they gave; empty where the row reproduces."""
        others = [f"{line.label} {line.n_near} of {len(line.compared)}{_few(line)}" for line in self.readings]
        if self.line.n_near == len(self.line.compared):
            return ""
        if not others:
            return "No other reading was measured."
        text = f"Readings measured, numbers within {NEAR:g}: {'; '.join(others)}."
        return f"{text} With {self.best.label}, {_are(self.n_explained)} within {NEAR:g}." if self.best else text


def explanation(line: Line, study: PaperStudy, known: Readings) -> Explanation:
    """The readings of a row that differ from the row itself."""
    readings = known.get((line.beside, study.dataset, study.model), [])
    return Explanation(line, [other for other in readings if _settings(other) != _settings(line)])


def _are(n: int) -> str:
    return f"{n} more {'is' if n == 1 else 'are'}"


def _few(line: Line) -> str:
    return "" if len(line.runs) >= ENOUGH else f" ({counted(len(line.runs), 'seed')}, not counted)"


def _settings(line: Line) -> list[object]:
    """Model and sampler as the runs recorded them."""
    return [line.runs[0].spec[part] for part in ("model", "sampler")]
