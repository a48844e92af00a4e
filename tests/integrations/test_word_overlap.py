"""The prior by word overlap: learned from pairs alone."""

from __future__ import annotations

import numpy as np
import pytest

from bayesneg.errors import InputError
from bayesneg.integrations.word_overlap import WordOverlap
from benchmarks.integrations.text_world import text_world


def test_rows_that_state_the_same_fact_are_likelier():
    world = text_world(40, 1, seed=0)
    prior = WordOverlap(world.anchors, world.positives, false_share=world.false_share)
    rows = np.arange(len(world.facts))
    p, same = prior.of(rows, rows), world.facts[:, None] == world.facts
    other = ~np.eye(len(rows), dtype=bool)
    assert ((p >= 0) & (p <= 1)).all()
    assert p[same & other].mean() > 0.4
    assert p[~same].mean() < 0.02
    np.testing.assert_array_equal(prior.of(rows[:3], rows[5:9]), p[:3, 5:9])


def test_the_level_is_the_share_that_is_given():
    world = text_world(40, 1, seed=0)
    low, high = (WordOverlap(world.anchors, world.positives, false_share=share) for share in (0.0, 0.01))
    rows = np.arange(20)
    assert not low.of(rows, rows).any()
    assert (high.of(rows, rows) >= low.of(rows, rows)).all()


def test_bad_input_is_answered_with_a_sentence():
    with pytest.raises(InputError, match="two or more pairs, got 1 anchors and 2 positives"):
        WordOverlap(["a"], ["b", "c"])
    with pytest.raises(InputError, match="false_share must be a number of at least 0 and at most 1, got 2"):
        WordOverlap(["a", "b"], ["b", "c"], false_share=2)
