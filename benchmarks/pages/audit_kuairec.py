"""docs/audit-kuairec.md and its figures, from results/audit_kuairec.parquet alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from bayesneg.evaluation.calibration import EDGES
from bayesneg.evaluation.picks import RELIABILITY
from bayesneg.evaluation.statistics import Estimate
from bayesneg.report.audit_page.rows import (
    BELIEF,
    MEANINGS,
    PICKS,
    UNIFORM,
    Study,
    audited,
    bins,
    calibration_finding,
    finding,
    measured,
    short_names,
)
from bayesneg.report.names import NOTHING, joined, number
from bayesneg.report.runs import Group
from bayesneg.report.summary import final_estimate
from bayesneg.reproduction.markdown import grid
from bayesneg.runs.record import is_number
from benchmarks import archive
from benchmarks.pages.publish import HOME, keep, keep_pictures

RECORDS: Final = HOME / "benchmarks" / "results" / "audit_kuairec.parquet"
PAGE: Final = HOME / "docs" / "audit-kuairec.md"
IMAGES: Final = HOME / "docs" / "images" / "audit"
FEWEST: Final = 30  # beliefs that a bin needs to be shown


def publish(*, check: bool) -> None:
    found = audited([entry.record for entry in archive.read(RECORDS).values()])
    keep_pictures(IMAGES, partial(draw, found), check=check)
    keep(PAGE, document(found), check=check)


def document(found: Sequence[Study]) -> str:
    """The whole page."""
    parts = [
        "# Which sampler picks what: KuaiRec",
        "Written by `python -m benchmarks.pages` from `benchmarks/results/audit_kuairec.parquet`, which "
        "`python -m benchmarks.studies.audit_kuairec` makes; `--check` tells whether it is current. "
        "[audit.md](audit.md) says what is measured and how.",
        _about(found),
        "## False negatives",
        _findings(found),
        _across(found),
        "![The share of false negatives of every sampler against the share that is hidden](images/audit/across.svg)",
        "## What is picked",
        *[part for study in found for part in (f"### {study.name}", _picks(study))],
        "## Is unbias calibrated?",
        *[part for study in found for part in (f"### {study.name}", calibration_finding(study), _beliefs(study))],
        f"![Called a false negative, and was one, {found[1].name}](images/audit/reliability.svg)",
        "### Bin by bin",
        f"{found[1].name}: of the picks that were called true negatives with a probability in each range, how many "
        "were (last epoch, all seeds). Ranges with fewer than 30 picks are left out.",
        *[_reliability(member) for member in found[1].believers],
        "## How to read the tables",
        "\n".join(f"- **{name}**: {text}" for name, text in MEANINGS.items()),
    ]
    return "\n\n".join(parts) + "\n"


def _about(found: Sequence[Study]) -> str:
    run = found[0].runs[0]
    seeds = sorted({member.seeds for study in found for member in study.groups})
    data = run.data
    return (
        f"In the small matrix of KuaiRec {data['n_users']:,} users watched nearly every one of {data['n_items']:,} "
        "videos, so for each pair it is known whether the user likes it (watched it more than twice over). A share of "
        "each user's positives is hidden from training; these are all the false negatives there are, and every rate "
        "below is the true one. The rate and the learned prior believe in one hidden positive for four observed ones, "
        "unless told; here it is one for 9, for 2.3, or for one. Rows that are told so have nothing else from the "
        "hidden labels. There is no user column, so that group priors are missing, and nobody recorded what was shown "
        "and passed over. "
        f"{run.model}, {run.epochs[-1]['epoch']} epochs, numbers of the last; seeds "
        f"{joined(', '.join(map(str, own)) for own in seeds)}; ± is half of the 95% interval over seeds. The runs of "
        "learned priors are from before the topmost pool of their calibration curve, once as small as one pair, had "
        "got the size of the others."
    )


def _findings(found: Sequence[Study]) -> str:
    return "\n".join(f"- {study.name}: {finding(study)}" for study in found)


def _across(found: Sequence[Study]) -> str:
    rows = [
        [member.marked_name, *(_text(measured(study.groups[place], "fn")) for study in found)]
        for place, member in enumerate(found[0].groups)
    ]
    rows.append([UNIFORM, *(number(study.uniform) for study in found)])
    return _table(["sampler", *short_names(found)], rows)


def _picks(study: Study) -> str:
    rows = [
        [
            member.marked_name,
            *(_text(measured(member, key)) for key in PICKS),
            _text(final_estimate(member, "ndcg@20")),
        ]
        for member in study.groups
    ]
    return _table(["sampler", *PICKS.values(), "NDCG@20"], rows)


def _beliefs(study: Study) -> str:
    keys = [*BELIEF, "candidates_mean_predicted", "candidates_observed_rate", "candidates_ece"]
    rows = [[member.marked_name, *(_text(measured(member, key)) for key in keys)] for member in study.believers]
    names = [*BELIEF.values(), "Called, candidates", "Were, candidates", "ECE, candidates"]
    return _table(["sampler", *names], rows)


def _reliability(member: Group) -> str:
    pooled = bins(member, RELIABILITY["picked"])
    assert pooled is not None
    rows = [
        [f"{1 - EDGES[place + 1]:g} to {1 - EDGES[place]:g}", f"{n:,}", number(called), number(were)]
        for place, (n, called, were) in enumerate(zip(*pooled, strict=True))
        if n >= FEWEST
    ]
    return f"**{member.marked_name}**\n\n{_table(['called true with', 'picks', 'mean called', 'were true'], rows)}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return grid([head, ["---", *["---:"] * (len(head) - 1)], *rows])


def _text(value: Estimate) -> str:
    if not is_number(value.mean):
        return NOTHING
    return f"{number(value.mean)} ± {number(value.half_width)}" if value.has_interval else number(value.mean)


def draw(found: Sequence[Study], folder: Path) -> None:
    """Two figures of the page, as SVG."""
    from bayesneg.report.audit_page import plots

    reliability = plots.reliability(found[1].groups, RELIABILITY["picked"], prefix="reliability")
    for name, drawing in (("across", plots.across(found, prefix="across")), ("reliability", reliability)):
        (folder / f"{name}.svg").write_text(drawing + "\n", encoding="utf-8")
