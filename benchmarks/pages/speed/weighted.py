"""The sections of docs/explanation/speed.md on several weighted negatives: losses, shared pools, the drop-in loop."""

from __future__ import annotations

from typing import Any

from benchmarks.pages.text import milliseconds, table

Result = dict[str, Any]


def against(ratio: float, goal: float | None) -> str:
    if goal is None:
        return f"{ratio:.2f}"
    return f"{ratio:.2f} (goal {goal:g}: {'reached' if ratio <= goal else '**not reached**'})"


def losses(result: Result) -> list[str]:
    rows = [
        [label, milliseconds(seconds), f"{result['ratios'][label]:.1f}"]
        for label, seconds in result["seconds_per_epoch"].items()
    ]
    return [
        "## Several negatives and other losses",
        f"One epoch of `MF` on MovieLens-100K ({result['examples']:,} training pairs): loss, score if not the inner product, "
        "sampler, negatives per pair. Ratios are to BPR with one uniform negative.",
        table(["epoch", "ms", "ratio"], rows),
    ]


def pools(result: Result) -> list[str]:
    per_step, ratios, prior = result["milliseconds_per_step"], result["ratios"], result["learned_prior"]
    on_gpu = result["device"] == "cuda"
    where = result["gpu"] if on_gpu else f"{result['threads']} threads"
    goal = 1 if on_gpu else 20
    rows = [
        [label, milliseconds(spent / 1e3), against(result["seconds_per_epoch"][label], goal),
         against(ratios[label], None if label == "none" else 1.5)]
        for label, spent in per_step.items()
    ]  # fmt: skip
    peak = f"{result['host_peak_mib']:,.0f} MiB at the peak, everything included"
    if on_gpu:
        peak = f"{max(result['gpu_peak_mib'].values()):,.0f} MiB of GPU memory at the peak"
    rows_of_prior = "" if not prior else (
        f" The likeliest items of the learned prior, {prior['items_per_user']:.0f} per user, take {prior['rows_mib']:.0f} MiB "
        f"and {prior['rows_seconds']:.0f} s once per fit, which takes {prior['fit_seconds']:.0f} s."
    )  # fmt: skip
    return [
        f"## A shared pool and the posterior, {where}",
        f"A step of `TorchMF` with `Softmax(temperature=0.08, negative_weight=1.22)` over {result['pool']:,} shared "
        f"negatives: batch {result['batch']:,}, d = {result['dim']}, cosine scores, {result['data']}. The goals: posterior "
        f"weights at most 1.5 times none, an epoch of {result['steps_per_epoch']} steps in {goal} s. {peak}. A matrix of "
        f"batch × pool takes 16 MiB.{rows_of_prior}",
        table(["weights", "ms per step", "s per epoch", "ratio"], rows),
    ]


def drop_in(result: Result) -> list[str]:
    """One row per sampler, one column per size of data."""
    data = result["data"]
    first = next(iter(data.values()))
    rows = [
        [label, *(f"{milliseconds(part['milliseconds_per_step'][label] / 1e3)} ms" for part in data.values()),
         *(against(part["ratios"][label], 1.5 if label == "BNS, m = 5" else None) for part in data.values())]
        for label in first["ratios"]
    ]  # fmt: skip
    where = result["gpu"] or f"{result['threads']} thread{'s' if result['threads'] > 1 else ''}"
    return [
        f"## `bayesneg.torch.Sampler` in a bare loop, {where}",
        f"A step of matrix factorization in a loop of plain torch: batch {result['batch']:,}, d = {result['dim']}, Adam, "
        "generated data of the sizes given. Ratios are to negatives from `torch.randint`, which may be training items.",
        table(["negatives", *data, *(f"{name}, ratio" for name in data)], rows),
    ]
