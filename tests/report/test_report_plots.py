"""Figures: named lines, repeatable bytes, ids that do not clash."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from report_runs import run, three_samplers

from bayesneg.report.figures import canvas, labels, plots
from bayesneg.report.figures.captions import result_figures
from bayesneg.report.groups import RunGroup, run_groups

GROUPS = run_groups(three_samplers())
FIGURES: dict[str, Callable[[str], str]] = {
    "ndcg": lambda prefix: plots.curves(GROUPS, "ndcg@20", prefix=prefix),
    "tnr": lambda prefix: plots.curves(GROUPS, "tnr", prefix=prefix, expected="tnr_uniform"),
    "map": lambda prefix: plots.quality_map(GROUPS, prefix=prefix),
    "cost": lambda prefix: plots.cost_map(GROUPS, "ndcg@20", prefix=prefix),
    "dots": lambda prefix: plots.dots(GROUPS, "ndcg@20", prefix=prefix),
}


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES.keys())
def test_a_figure_is_xml_that_names_each_sampler_and_is_drawn_the_same_twice(
    draw: Callable[[str], str],
) -> None:
    drawn = draw("a")
    texts = {node.text for node in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")}
    assert {"RNS", "DNS", "BNS"} <= texts
    assert draw("a") == drawn


@pytest.mark.parametrize("seconds", [(0.011, 0.012, 0.013), (0.02, 0.03, 0.07), (0.01, 1.0, 30.0), (0.05, 0.05, 0.05)])
def test_a_logarithmic_axis_has_plain_labels(seconds: tuple[float, ...]) -> None:
    runs = [run(name, epochs=[{"epoch": 1, "seconds": s}]) for name, s in zip("ABC", seconds, strict=True)]
    drawn = plots.cost_map(run_groups(runs), "ndcg@20", prefix="a")
    texts = [node.text or "" for node in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
    assert not [text for text in texts if "$" in text or "math" in text], "mathtext is not parsed"
    below = [text for text in texts if text.replace(".", "").isdigit()]
    assert any(seconds[0] / 2 <= float(text) <= 2 * seconds[-1] for text in below), "the axis has a label"


@pytest.mark.parametrize("n_epochs", [1, 2, 3])
def test_ticks_of_few_epochs_are_whole_numbers(n_epochs: int) -> None:
    lines = [{"epoch": epoch, "tnr": 0.9 + epoch / 100} for epoch in range(1, n_epochs + 1)]
    drawn = plots.curves(run_groups([run("A", epochs=lines)]), "tnr", prefix="a")
    texts = [node.text or "" for node in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
    below = texts[: texts.index("epoch")]
    assert below == [str(epoch) for epoch in range(1, n_epochs + 1)]


def test_the_cost_figure_says_that_baselines_are_left_out() -> None:
    ease = run("EASE", epochs=[{"epoch": 1}], spec={"sampler": None})
    captions = [
        [each.caption for each in result_figures(run_groups(runs), "ndcg@20", prefix="a") if "cost" in each.slug]
        for runs in (three_samplers(), [*three_samplers(), ease])
    ]
    assert ["Baselines have no epochs and are left out." in caption for (caption,) in captions] == [False, True]


def test_figures_of_one_page_share_no_id() -> None:
    ids = [set(re.findall(r' id="([^"]*)"', draw(name))) for name, draw in FIGURES.items()]
    assert all(ids)
    assert len(set.union(*ids)) == sum(map(len, ids))


def test_a_figure_brings_no_style_for_the_page_around_it() -> None:
    drawn = FIGURES["ndcg"]("a")
    assert "<style" not in drawn
    assert "<metadata" not in drawn


def test_the_uniform_expectation_is_drawn_where_it_is_known() -> None:
    assert "uniform, expected" in FIGURES["tnr"]("a")
    assert "uniform, expected" not in plots.curves(GROUPS, "tnr", prefix="a", expected="tnr_uniform_true")


def test_drawing_leaves_matplotlib_as_it_was() -> None:
    before = dict(matplotlib.rcParams)
    FIGURES["ndcg"]("a")
    assert dict(matplotlib.rcParams) == before


def test_a_curve_is_the_mean_and_range_over_the_epochs_all_seeds_reached() -> None:
    short = run("RNS", 1, epochs=[{"epoch": 1, "tnr": 0.8}, {"epoch": 2, "tnr": 0.6}])
    long = run("RNS", 0, epochs=[{"epoch": epoch, "tnr": 0.9} for epoch in (1, 2, 3)])
    without = run("RNS", 2, epochs=[{"epoch": 1}])
    curve = plots.Curve.of(RunGroup("RNS", (long, short, without)), "tnr")
    assert curve is not None
    assert curve.epochs.tolist() == [1, 2]
    np.testing.assert_allclose([curve.mean, curve.low, curve.high], [[0.85, 0.75], [0.8, 0.6], [0.9, 0.9]])


def test_every_pair_of_samplers_differs_without_colour() -> None:
    looks = [(str(plots.look(place)["linestyle"]), plots.look(place)["marker"]) for place in range(35)]
    assert len(set(looks)) == 35


def test_labels_are_moved_apart_and_no_further_than_needed() -> None:
    centres = labels._spread([0.1, 0.5, 0.5, 0.52], [0.1] * 4)
    assert np.diff(centres).min() >= 0.1 - 1e-12
    assert centres[0] == 0.1


def test_names_that_fit_stay_within_the_axes():
    centres = labels._spread([0.97, 0.98, 0.99], [0.2] * 3)
    assert np.allclose(centres, [0.5, 0.7, 0.9])
    assert np.allclose(labels._spread([0.0, 0.0], [0.2] * 2), [0.1, 0.3])
    crowded = labels._spread([0.02, 0.04, 0.05, 0.9, 0.95], [0.2] * 5)  # as high as the axes, with a gap between
    assert np.allclose(crowded, [0.1, 0.3, 0.5, 0.7, 0.9])
    assert np.allclose(labels._spread([0.3, 0.97, 0.98], [0.2] * 3), [0.3, 0.7, 0.9])  # the first fits where it is
    assert labels._spread([], []) == []


def test_a_figure_with_many_long_names_is_made_as_high_as_they_are():
    names = [f"BNS (likelihood=mixture, candidates={m})" for m in range(20)]
    with canvas._settings("many"):
        figure = Figure(figsize=(5.6, 3.3), layout="constrained")
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1])
        labels.label_ends(axes, [labels.EndLabel(1.0, place / 20, name, "black") for place, name in enumerate(names)])
        FigureCanvasAgg(figure).draw()
        boxes = sorted((Text.get_window_extent(text) for text in axes.texts), key=lambda box: box.y0)
    assert len(boxes) == 20
    assert all(below.y1 <= above.y0 + 1 for below, above in pairwise(boxes)), "no two names overlap"
    assert boxes[0].y0 >= 0
    assert boxes[-1].y1 <= figure.bbox.height


def test_early_epochs_far_off_leave_the_frame() -> None:
    epochs = np.arange(1, 41)
    values = 0.4 - 0.4 * np.exp(-epochs / 2)
    low, high = plots._frame([plots.Curve(epochs, values, values, values)])
    assert low > values[0]
    assert high > values[-1]


def test_a_long_name_loses_its_middle_and_keeps_its_loss_and_its_mark():
    name = "BNS (candidates=2048, shared=true, weighting=oracle, prior=oracle) + Softmax (temperature=0.08)"
    short = labels.elided(f"{name} (sees test labels)", 64)
    assert len(short) <= 64
    assert short.startswith("BNS (candidates")
    assert short.endswith("(sees test labels)")
    assert labels.elided("BNS", 64) == "BNS"


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES.keys())
def test_a_drawing_for_a_file_has_nothing_for_a_script(draw: Callable[[str], str]) -> None:
    still = canvas.still(draw("a"))
    assert "data-chart='" in draw("a")
    assert "data-" not in still
    ET.fromstring(still)


def test_no_logarithmic_axis_of_any_figure_has_mathtext() -> None:
    def draw(figure: Figure) -> None:
        for axes in figure.subplots(1, 2):
            axes.loglog([1e-5, 1e8], [0.001, 2000])

    drawn = canvas.figure_svg(draw, "a", size=(8, 4))
    texts = [node.text or "" for node in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
    assert {"0.001", "1,000"} <= set(texts)
    assert not [text for text in texts if "$" in text]
