"""What pages say about quality is what the records in benchmarks/results/quality hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.machine import read_result

DOCS = Path(__file__).parent.parent.parent / "docs"


def signed(value: float) -> str:
    return f"{value:+.4f}".replace("-", "−")


def test_the_errors_of_f_among_in_batch_negatives_are_those_of_the_record() -> None:
    found, text = read_result("quality/in_batch_cdf"), (DOCS / "reference" / "samplers.md").read_text(encoding="utf-8")
    assert found is not None
    for size, bands in found["sizes"].items():
        for band, own in bands.items():
            order = [own[how] for how in ("corrected", "uniform pool", "plain rank")]
            cells = [f"{signed(each['bias'])} ± {each['standard_error']:.4f}" for each in order]
            assert f"| {int(size):,} | {band} | {' | '.join(cells)} |" in text
    at_median = [bands["0.5"] for bands in found["sizes"].values()]
    ratios = [own["corrected"]["standard_error"] / own["uniform pool"]["standard_error"] for own in at_median]
    assert f"{min(ratios):.1f} to {max(ratios):.1f} times that of a uniform pool" in text


def test_exact_against_refreshed_f_in_a_torch_loop_is_that_of_the_record() -> None:
    found, text = read_result("quality/drop_in_cdf"), (DOCS / "how-to" / "torch.md").read_text(encoding="utf-8")
    assert found is not None
    for name, title in (("ml-100k", "ML-100K"), ("ml-1m", "ML-1M")):
        own = found["data"][name]["refreshed − exact"]
        half = (own["high"] - own["low"]) / 2
        said = f"{signed(own['mean'])} (±{half:.4f}) on {title}"
        assert said in " ".join(text.replace("95% interval ", "").split())
    assert all(own["refreshed − exact"]["n"] == 3 for own in found["data"].values())


def test_the_correction_for_the_draw_removes_the_bias_of_ranks_in_a_batch() -> None:
    from benchmarks.quality.in_batch_cdf import errors_of, generated

    errors = errors_of(generated(), 256, 3, 4)["0.5"]
    assert abs(np.mean(errors["corrected"])) < 0.05
    assert np.mean(errors["plain rank"]) < -0.15


TITLES = {"ml-100k": "ML-100K", "ml-1m": "ML-1M"}


def test_what_folding_in_loses_is_that_of_the_record() -> None:
    found, text = read_result("quality/fold_in"), (DOCS / "how-to" / "using.md").read_text(encoding="utf-8")
    assert found is not None
    for name, title in TITLES.items():
        for model, own in found["data"][name]["models"].items():
            apart = own["difference"]
            between = f"{signed(apart['mean'])} ({signed(apart['low'])} to {signed(apart['high'])})"
            cells = [f"{own[key]:.4f}" for key in ("retrained", "folded_in")]
            few = [f"{own[key]:.4f}" for key in ("folded_in_five_items", "popularity")]
            assert f"| {title} | {model} | {' | '.join([*cells, between, *few])} |" in text
            for given, rules in own.get("rules", {}).items():
                values = " | ".join(f"{rule['on the test users']:.4f}" for rule in rules.values())
                assert f"| {title} | {model} | {given} | {values} |" in text
    models = [own for name in TITLES for own in found["data"][name]["models"].values()]
    lost = [own for own in models if own["difference"]["high"] < 0]
    assert (len(models), len(lost)) == (8, 1)
    share = -lost[0]["difference"]["mean"] / lost[0]["retrained"]
    said = f"within the noise for seven of eight; MF with the softmax and cosines loses {share:.1%} on ML-1M"
    assert said in " ".join(text.split())
    below = [own for own in models if own["folded_in_five_items"] < own["popularity"]]
    assert below == [found["data"]["ml-1m"]["models"]["EASE"]]  # as the page says


def test_the_setting_of_the_regression_is_within_a_percent_of_the_best_on_the_choosing_users() -> None:
    from bayesneg.recommendation.fold_in import EXPONENT, RIDGE

    found = read_result("quality/fold_in")
    assert found is not None
    means = found["regression"]
    assert means[f"exponent {EXPONENT:g}, ridge {RIDGE:g}"] > 0.99 * max(means.values())
