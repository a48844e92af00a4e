"""Everything that a user can reach is documented and has a public name.

Reachable are the names of ``bn``, those of its namespaces, and the public methods of their classes. Each function has a
sentence for every parameter and says what it returns; each class that one of them returns is public.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any, get_args, get_type_hints

import pytest

import bayesneg as bn
from bayesneg.config.docstrings import arguments, field_sentences, sections
from bayesneg.config.settings import settings_of
from bayesneg.interfaces import CandidateDraw, Learner, Model, Scorer

NAMESPACES = [name for name in bn.__all__ if isinstance(getattr(bn, name), types.ModuleType)]
NAMES = {name: getattr(bn, name) for name in bn.__all__ if name not in (*NAMESPACES, "__version__")}
EXPECTED = [
    "fit",
    "compare",
    "tune",
    "audit",
    "evaluate",
    "load",
    "read_split",
    "prepare",
    "split",
    "synthetic",
    "hide",
    "load_run",
    "load_export",
    "write_report",
    "write_audit",
    "Interactions",
    "Split",
    "Run",
    "RunRecord",
    "ExportedModel",
    "NewUser",
    "NewItem",
    "Comparison",
    "Audit",
    "TuningResult",
    "EvaluationReport",
    "MF",
    "LightGCN",
    "TorchMF",
    "TorchModel",
    "NegativeSampler",
    "RNS",
    "PNS",
    "DNS",
    "AOBPR",
    "SRNS",
    "BNS",
    "Posterior",
    "WarmStart",
    "Batch",
    "Prior",
    "Observer",
    "NO_NEGATIVE",
    "Negatives",
    "BayesnegError",
]
# methods that the training loop calls on models, samplers, priors and likelihoods; they return its own types
OF_TRAINING = {"start", "solve", "rule", "draws", "plan", "form", "without_held_out", "fit", "prepare", "resolved"}
OF_TRAINING |= {"state_specs"}


def public(namespace: str) -> Iterator[tuple[str, Any]]:
    module = getattr(bn, namespace)
    for name in getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")]):
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            yield f"{namespace}.{name}", value


REACHABLE = {
    **{name: value for name, value in NAMES.items() if inspect.isclass(value) or inspect.isfunction(value)},
    **dict(each for namespace in NAMESPACES for each in public(namespace)),
}
FUNCTIONS = {name: value for name, value in REACHABLE.items() if inspect.isfunction(value)}
CLASSES = {name: value for name, value in REACHABLE.items() if inspect.isclass(value)}

PROTOCOLS = (Scorer, Learner, Model, CandidateDraw)  # what custom models and draws implement


def returned(function: Any) -> Iterator[type]:
    """The classes of this package in the annotation of what a function returns."""
    try:
        todo = [get_type_hints(function).get("return")]
    except NameError:  # names that are imported for type checking only
        return
    while todo:
        annotation = todo.pop()
        todo += get_args(annotation)
        if isinstance(annotation, type) and annotation.__module__.startswith("bayesneg"):
            yield annotation


def test_the_names_at_the_top_are_those_of_the_plan():
    assert set(NAMES) == set(EXPECTED)
    assert set(NAMESPACES) >= {"samplers", "priors", "likelihoods", "baselines"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_a_sentence_for_every_parameter_and_says_what_it_returns(name):
    function = FUNCTIONS[name]
    said = arguments(function.__doc__)
    parameters = inspect.signature(function).parameters
    assert [each for each in parameters if not said.get(each)] == [], "parameters without a sentence"
    assert said.keys() - parameters.keys() == set(), "sentences without a parameter"
    if inspect.signature(function).return_annotation not in (None, "None"):
        assert "Returns" in sections(function.__doc__), "no Returns: section"


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_has_a_sentence_for_every_field(name):
    kind = CLASSES[name]
    assert kind.__doc__, "no docstring"
    if is_dataclass(kind):
        said = field_sentences(kind)
        assert [each for each in settings_of(kind) if not said.get(each)] == [], "fields without a sentence"


METHODS = {
    f"{kind.__name__}.{key}": function
    for kind in {*CLASSES.values(), *PROTOCOLS}
    for key, value in vars(kind).items()
    for function in [getattr(value, "__func__", value)]
    if not key.startswith("_") and inspect.isfunction(function)
}
DOCUMENTED = sorted(name for name, method in METHODS.items() if method.__doc__)  # an override inherits its sentences


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_method_has_a_sentence_for_every_parameter_and_says_what_it_returns(name):
    method = METHODS[name]
    said = arguments(method.__doc__)
    parameters = inspect.signature(method).parameters.keys() - {"self", "cls"}
    assert parameters - said.keys() == set(), "parameters without a sentence"
    assert said.keys() - parameters == set(), "sentences without a parameter"
    if inspect.signature(method).return_annotation not in (None, "None"):
        assert {"Returns", "Yields"} & sections(method.__doc__).keys(), "no Returns: section"


def test_a_method_without_a_docstring_implements_one_that_has_it():
    of_protocols = {key for protocol in PROTOCOLS for key in vars(protocol)}
    kinds = {kind.__name__: kind for kind in {*CLASSES.values(), *PROTOCOLS}}
    bare = [name.split(".") for name in METHODS.keys() - set(DOCUMENTED)]
    missing = [(kind, key) for kind, key in bare if not inspect.getdoc(getattr(kinds[kind], key))]
    assert [(kind, key) for kind, key in missing if key not in of_protocols] == []


def test_every_class_that_is_returned_is_public():
    methods = {
        f"{name}.{key}": value
        for name, kind in CLASSES.items()
        for key, value in vars(kind).items()
        if not key.startswith("_") and key not in OF_TRAINING and inspect.isfunction(value)
    }
    missing = {
        f"{name} returns {kind.__qualname__}"
        for name, function in {**FUNCTIONS, **methods}.items()
        for kind in returned(function)
        if kind not in CLASSES.values() and not getattr(kind, "_is_protocol", False)
    }
    assert missing == set()
