"""From the final comparison to a recommendation: the simplest setting that nothing is shown to beat.

The favourite is chosen on validation data alone, among everything that was measured. Test labels are then used once, to
decide whether it is better than plain RNS and the baselines. Where no difference is shown, the simpler one is
recommended. The text is one sentence, and a second one only where runs were still improving at their last epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final

from bayesneg.evaluation.metric_names import metric_name
from bayesneg.evaluation.statistics import Estimate, PairedDifference
from bayesneg.runs.pairing import paired
from bayesneg.runs.record import RunRecord
from bayesneg.runs.tuning_result import Advice, Evidence
from bayesneg.runs.verdict import Groups, grouped, standing, still_rising

CLOSE: Final = 0.05  # relative difference up to which two scores count as equally good


def advise(
    records: Sequence[RunRecord], simpler: Collection[str], described: Mapping[str, str] | None = None
) -> Advice:
    """The recommendation that follows from the records.

    Args:
        records: Runs of the final comparison.
        simpler: Labels of plain RNS and of the baselines.
        described: Label → what it is, with loss, sampler and model; the label where there is none.

    Returns:
        The recommendation with the numbers behind it.
    """
    groups = grouped(records)
    key = _judged_by(records[0])
    validation = {label: fmean(_chosen(run, f"validation_{key}") for run in runs) for label, runs in groups.items()}
    test = {label: fmean(run.final[key] or 0.0 for run in runs) for label, runs in groups.items()}
    favourite = max(validation, key=lambda label: (validation[label], label in simpler))
    measured = _Measured(groups, key, validation, test, frozenset(simpler))
    evidence = measured.against(favourite)
    as_good = [each.rival for each in evidence if each.is_simpler and not _is_shown_better(each.difference)]
    if favourite in simpler or not as_good:
        label, why = favourite, measured.why_favourite(favourite, evidence)
        notes = [*_notes(evidence), *_nearly(evidence, test, favourite, simpler)]
    else:
        label, notes = max(as_good, key=lambda rival: validation[rival]), []
        why = measured.why_simpler(label, favourite)
    sentence, rising = f"Use {(described or {}).get(label, label)}: {why}.", still_rising(groups)
    return Advice(label, favourite, key, f"{sentence} {rising}".strip(), evidence, validation, test, notes, rising)


@dataclass(frozen=True)
class _Measured:
    """The runs of the final comparison, and their means by label."""

    groups: Groups
    key: str
    validation: Mapping[str, float]
    test: Mapping[str, float]
    simpler: frozenset[str]

    def against(self, label: str) -> list[Evidence]:
        """What a label is, minus each other one, on test data."""
        own = self.groups[label]
        return [
            Evidence(rival, found, rival in self.simpler)
            for rival, runs in self.groups.items()
            if rival != label and (found := paired(own, runs, self.key)) is not None
        ]

    def why_favourite(self, favourite: str, evidence: Sequence[Evidence]) -> str:
        """Of the best on validation data: how it does on test data against the second best there, of whatever kind."""
        it = "this baseline" if self._is_baseline(favourite) else "it"
        best = f"{it} is the best on validation data"
        if not evidence:
            return best
        second = self._strongest(evidence)
        said = [f"{best}, ahead of {second.rival}, {self._on_test(second)}"]
        others = [each for each in evidence if each.is_simpler and each is not second]
        if favourite not in self.simpler and others:
            said.append(_over_the_simple(others, self._strongest(others), second))
        return "".join([*said, self._top(favourite, {second.rival})])

    def why_simpler(self, label: str, favourite: str) -> str:
        """Of something simpler than which the favourite is not shown to be better."""
        found = next(each.difference for each in self.against(label) if each.rival == favourite)
        what = "this baseline" if self._is_baseline(label) else "it"
        name = f"in {metric_name(self.key)} on test data"
        than = f"{favourite}, the best on validation data,"
        if _is_shown_better(found):
            said = f"{what} is better, and simpler, than {than} {name} ({_by(found)})"
        elif _within(found, CLOSE * abs(self.test[label])):
            said = f"{what} is as good as {than} and simpler, {name} ({_by(found)})"
        else:
            said = (
                f"{what} is simpler, and {than} is not shown to be better {name} ({_by(_reversed(found))}), which more "
                "seeds may decide"
            )
        return said + self._top(label, {favourite})

    def _strongest(self, evidence: Sequence[Evidence]) -> Evidence:
        return max(evidence, key=lambda each: self.validation[each.rival])

    def _on_test(self, second: Evidence) -> str:
        whom, name, by = second.rival, f"in {metric_name(self.key)} on test data", _by(second.difference)
        match standing(second.difference):
            case "better":
                return f"and clearly better than {whom} {name} ({by})"
            case "better over users only":
                return f"and better than {whom} {name} over users, though not over seeds ({by})"
            case "worse":
                return f"though clearly worse than {whom} {name} ({by})"
            case "worse over users only":
                return f"though worse than {whom} {name} over users, if not over seeds ({by})"
            case _:
                return f"from which it is not distinguishable {name} ({by})"

    def _top(self, label: str, named: Collection[str]) -> str:
        """A clause on the highest mean of the table, where it is of something that the sentence has not named."""
        top = max(self.test, key=self.test.__getitem__)
        found = paired(self.groups[top], self.groups[label], self.key)
        if top in {label, *named} or found is None:
            return ""
        how = {
            "better": "clearly better than this one",
            "better over users only": "better than this one over users, though not over seeds",
        }.get(standing(found), "not distinguishable from this one")
        return f"; the highest mean on test data, of {top}, is {how} ({_by(found)}), but validation data decides"

    def _is_baseline(self, label: str) -> bool:
        return self.groups[label][0].is_baseline


def _over_the_simple(others: Sequence[Evidence], best: Evidence, second: Evidence) -> str:
    """Of a tuned favourite: that it is better than plain RNS and the baselines, those that are not named yet."""
    clear = all(each.difference.is_clear for each in others)
    if second.is_simpler:
        return f", and {'' if clear else 'at least over users '}than everything else that is simpler"
    how = "clearly better there" if clear else "better there, at least over users,"
    whom = best.rival if len(others) == 1 else f"every baseline and plain RNS, on validation data the best {best.rival}"
    return f", and {how} than {whom} ({_by(best.difference)})"


def _notes(evidence: Sequence[Evidence]) -> Iterator[str]:
    """Rivals that are equal to the recommendation on test data, or ahead of it there."""
    equals = [each.rival for each in evidence if standing(each.difference) == "not distinguishable"]
    ahead = [each.rival for each in evidence if standing(each.difference).startswith("worse")]
    if equals:
        yield f"Not distinguishable from it on test data: {'; '.join(equals)}."
    if ahead:
        yield f"Better on test data, but not on validation data, which decides: {'; '.join(ahead)}."


def _nearly(
    evidence: Sequence[Evidence], test: Mapping[str, float], favourite: str, simpler: Collection[str]
) -> Iterator[str]:
    """What is simpler and shown to be worse than a tuned favourite, but by little."""
    if favourite in simpler:
        return
    near = [
        each.rival
        for each in evidence
        if each.is_simpler and _is_shown_better(each.difference) and _within(each.difference, CLOSE * test[favourite])
    ]
    if near:
        yield f"Simpler, and worse by at most {CLOSE:.0%} of its score on test data: {'; '.join(near)}."


def _is_shown_better(found: PairedDifference) -> bool:
    """Whether a difference is shown, over users at least: it is then no longer true that the other is as good."""
    return standing(found).startswith("better")


def _within(found: PairedDifference, margin: float) -> bool:
    """Whether both intervals of the difference, over users and over seeds, lie within the margin."""
    ranges = [found.over_users, *([found.over_seeds] if found.n_seeds > 1 else [])]
    return all(max(abs(one.low), abs(one.high)) <= margin for one in ranges)


def _by(found: PairedDifference) -> str:
    """What is recommended minus a rival: ``+0.0120, 95% over users …, over 5 seeds …``."""
    seeds = f", over {found.n_seeds} seeds {_range(found.over_seeds)}" if found.n_seeds > 1 else ", one seed only"
    return f"{_signed(found.mean)}, 95% over users {_range(found.over_users)}{seeds}"


def _reversed(found: PairedDifference) -> PairedDifference:
    users, seeds = (
        replace(one, mean=-one.mean, low=-one.high, high=-one.low) for one in (found.over_users, found.over_seeds)
    )
    return PairedDifference(users, seeds, found.n_seeds)


def _range(difference: Estimate) -> str:
    return f"{_signed(difference.low)} to {_signed(difference.high)}"


def _signed(value: float) -> str:
    """With the minus sign of the tables."""
    return f"{value:+z.4f}".replace("-", "−")


def _judged_by(record: RunRecord) -> str:
    """The metric that selected the epoch: ``ndcg@20``, or of a shorter list where the catalogue is small."""
    names = [name for line in record.epochs for name in line if name.startswith("validation_ndcg@")]
    return names[0].removeprefix("validation_")


def _chosen(record: RunRecord, key: str) -> float:
    return record.at_epochs(key)[record.reported_epoch]
