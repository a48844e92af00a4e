"""The fits of ``bayesneg train``: on the split, and with --final on all data."""

from __future__ import annotations

import sys
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesneg.cli.interrupt import resumable
from bayesneg.cli.output import named_as_options, warnings_as_notes

if TYPE_CHECKING:
    from bayesneg.cli.training.plans import Plan
    from bayesneg.data.splits import Split
    from bayesneg.runs.run import Run

OPTIONS = ("epochs", "evaluate_every", "evaluate_users", "patience", "label", "seed", "select", "start")


def fitted(
    plan: Plan,
    split: Split,
    *,
    epochs: int,
    out: Path | None,
    resume: bool,
    quiet: bool,
    **how: Any,
) -> Run:
    """Fit the model of a plan, with a progress bar, and warnings as notes.

    Args:
        plan: What to train.
        split: The data.
        epochs: Number of epochs, at most.
        out: The folder of the run; None for none.
        resume: Whether to resume the run in it.
        quiet: Whether to show no bar.
        how: Other arguments of :func:`bayesneg.fit`.
    """
    from bayesneg.progress import epoch_bar
    from bayesneg.training import fit

    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(sys.stderr))  # what a custom sampler prints must not mix with --json
        stack.enter_context(warnings_as_notes())
        stack.enter_context(named_as_options(*OPTIONS))
        stopping = stack.enter_context(resumable(out))
        show = stack.enter_context(epoch_bar(not quiet, plan.label, epochs))
        return fit(
            plan.model,
            split,
            plan.sampler(split),
            loss=plan.loss,
            label=plan.label,
            epochs=epochs,
            out=out,
            resume=resume,
            progress=stopping(show),
            **how,
        )
