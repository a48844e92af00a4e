"""Settings are read off the classes: every field has its sentence, and every sentence a field."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from bayesneg.config.docstrings import arguments, field_sentences, sections, summary
from bayesneg.config.registry import MODELS, built_in_samplers, likelihoods, priors
from bayesneg.config.settings import REQUIRED, changed, settings_of
from bayesneg.samplers.posterior.refresh import Refresh
from bayesneg.samplers.priors import Combined, Exposure, Scaled
from bayesneg.samplers.schedules import LinearDecay

PARTS = [*priors().values(), *likelihoods().values(), Refresh, LinearDecay, Scaled, Combined, Exposure]
KINDS = dict.fromkeys([*(named.kind for named in built_in_samplers().values()), *PARTS, *MODELS.values()])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_public_field_has_a_sentence_and_every_sentence_a_field(kind):
    said = field_sentences(kind)
    assert {name for name, setting in settings_of(kind).items() if not said.get(name)} == set(), "without a sentence"
    assert said.keys() - settings_of(kind).keys() == set(), "sentences without a field"


DOC = """A thing with settings. And more.

    Args:
        size: How large it is: a number,
            at least 1.
        first, second: Two names.
        kind (str): A word.

            With a paragraph.

    Returns:
        size: nothing of this is an argument.

    Example:
        >>> 1
    """


def test_the_arguments_of_a_docstring_are_found():
    assert arguments(DOC) == {
        "size": "How large it is: a number, at least 1.",
        "first": "Two names.",
        "second": "Two names.",
        "kind": "A word. With a paragraph.",
    }
    assert list(sections(DOC)) == ["Args", "Returns", "Example"]
    assert summary(DOC) == "A thing with settings"
    assert summary("Uses ``x`` and :class:`~a.b.Prior`.") == "Uses x and Prior"


@pytest.mark.parametrize("doc", [None, "", "One line.", "A text.\n\nArgs of another kind: none"])
def test_a_docstring_without_the_section_has_no_arguments(doc):
    assert arguments(doc) == {}


@dataclass(frozen=True)
class Base:
    """A base.

    Args:
        size: Of the base.
        name: A name.
    """

    size: int
    name: str = "x"


@dataclass(frozen=True)
class Derived(Base):
    """Derived.

    Args:
        size: Of the derived class.
    """


def test_a_class_has_the_sentences_of_its_bases_and_the_last_word():
    assert {key: each.sentence for key, each in settings_of(Derived).items()} == {
        "size": "Of the derived class.",
        "name": "A name.",
    }
    assert settings_of(Derived)["size"].default is REQUIRED
    assert changed(Derived(3)) == {"size": 3}
