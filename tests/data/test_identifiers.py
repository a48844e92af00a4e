"""Identifiers: what counts as the same, and what is near."""

from __future__ import annotations

import time

import pytest

from bayesneg.data.identifiers import nearest
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError


def test_the_nearest_integers_are_those_nearest_in_value():
    assert nearest("47", [1, 50, 44, 900, 48]) == [48, 44, 50]


def test_the_nearest_texts_are_those_of_a_similar_spelling_in_any_case():
    assert nearest("matrx", ["Matrix", "Heat", "Matrix II"])[0] == "Matrix"
    assert nearest("zzz", ["Matrix", "Heat"]) == []


def test_among_very_many_texts_the_nearest_is_still_found():
    others = [f"{letter}{n}" for letter in "cdefg" for n in range(5_000)]
    assert nearest("ab-Matrx", [*others, "ab-Matrix"]) == ["ab-Matrix"]


def test_among_very_many_identifiers_the_nearest_is_found_without_comparing_them_all():
    """A server answers other requests meanwhile: seconds for a misspelt identifier would stop it."""
    texts = {f"item {n}": n for n in range(300_000)}
    assert nearest("itme 77", texts.keys()) == ["item 77"]
    assert nearest("Item 5", texts.keys()) == ["item 5"]
    assert nearest("item 7x", texts.keys()) == ["item 7", "item 70", "item 71"]
    assert nearest("nothing like it", texts.keys()) == []
    integers = {n: n for n in range(0, 900_000, 3)}
    assert nearest("100", integers.keys()) == [99, 102, 96]
    assert nearest(10**6, integers.keys()) == [899_997, 899_994, 899_991]
    assert nearest(10**30, integers.keys()) == nearest("x", integers.keys()) == []
    started = time.process_time()
    nearest("x" * 1_000, texts.keys())
    nearest(10**6, integers.keys())
    assert time.process_time() - started < 0.5


def test_an_integer_and_its_text_are_one_identifier():
    data = Interactions.from_pairs([7, 8, -3], ["a", "b", "c"])
    assert data.user_number("7") == data.user_number(7) == 0
    assert data.user_number("-3") == 2
    assert data.item_number("c") == 2


@pytest.mark.parametrize("raw", [7.0, None, True])
def test_an_identifier_of_another_type_is_refused(raw):
    data = Interactions.from_pairs([7, 8, 1], ["a", "b", "c"])
    with pytest.raises(
        InputError, match=r"user must be one identifier, a whole number or a text, got .* users look like 7, 8, 1"
    ):
        data.user_number(raw)
