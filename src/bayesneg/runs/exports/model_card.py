"""The model card of an export: Markdown with the YAML header that the Hugging Face Hub reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from bayesneg.data.catalogue import BUILT_IN
from bayesneg.runs.record import RunRecord, is_number, jsonable
from bayesneg.runs.reported import ranking_of_cold_users

TAGS: Final = ("recommender-system", "collaborative-filtering", "implicit-feedback", "negative-sampling")
UNKNOWN: Final = "unknown"
DATA_ROWS: Final = {  # key of a record's data facts → what a reader is told
    "n_users": "users",
    "n_items": "items",
    "n_train": "training interactions",
    "n_validation": "validation interactions",
    "n_test": "test interactions",
    "n_test_only_users": "users only in test",
    "n_test_only_items": "items only in test",
}
QUALITY: Final = {  # key of an epoch's line → what it says
    "tnr": "share of sampled negatives that are not held-out positives (TNR)",
    "tnr_uniform": "the same, expected of uniform sampling",
    "tnr_true": "share of sampled negatives that are true negatives by the ground truth",
    "tnr_uniform_true": "the same, expected of uniform sampling",
    "inf": "informativeness (INF)",
    "inf_true": "informativeness by the ground truth",
    "gradient_fn": "share of the gradient on held-out positives",
    "gradient_fn_true": "share of the gradient on false negatives by the ground truth",
}


class Contents(NamedTuple):
    """What a card says beside the record of the run."""

    files: Mapping[str, str]  # name → what is in it
    has_vectors: bool  # of users and items; an item model has weights between items
    has_interactions: bool
    item_index: Mapping[str, Any] | None  # its settings and its recall
    licence: str | None  # of the data, as the user gave it


def model_card(record: RunRecord, contents: Contents) -> str:
    """The text of README.md."""
    sections = {
        "Use": _use(contents),
        "Files": _table(("file", "content"), [(f"`{name}`", what) for name, what in contents.files.items()]),
        "Data": _data(record),
        "Evaluation": _evaluation(record),
        "Sampled negatives": _quality(record),
        "Settings": _settings(record),
        "Index": _index(contents.item_index),
        "Licence": _licence(record, contents),
        "Limits": _limits(record, contents),
    }
    body = "\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items() if text)
    return f"---\n{_header(record, contents)}---\n\n# {_plain(_title(record))}\n\n{_summary(record)}\n\n{body}\n"


def licence_of(record: RunRecord, given: str | None) -> str:
    """The licence of the data: as given, that of a built-in dataset, or ``unknown``."""
    if given is not None:
        return given
    return BUILT_IN[record.dataset].licence if record.dataset in BUILT_IN else UNKNOWN


def _header(record: RunRecord, contents: Contents) -> str:
    """YAML; every value is written as JSON, which is YAML too, so that no label can break out of it."""
    licence = licence_of(record, contents.licence)
    lines = ["library_name: bayesneg", f"license: {json.dumps(licence)}"]
    if licence == "other":
        lines.append(f"license_name: {json.dumps(f'terms-of-{record.dataset}')}")
    lines += ["tags:", *(f"- {tag}" for tag in TAGS)]
    metrics = [(key, value) for key, value in record.final.items() if is_number(value)]
    if metrics:
        dataset = {"name": record.dataset, "type": record.dataset, "split": "test"}
        lines += [
            "model-index:",
            f"- name: {_yaml(_title(record))}",
            "  results:",
            '  - task: {"type": "recommendation", "name": "Top-k recommendation"}',
            f"    dataset: {_yaml(dataset)}",
            "    metrics:",
            *(f"    - {_yaml({'type': key, 'name': _metric(key), 'value': value})}" for key, value in metrics),
        ]
    return "\n".join(lines) + "\n"


def _yaml(value: Any) -> str:
    return json.dumps(jsonable(value), ensure_ascii=False)


def _title(record: RunRecord) -> str:
    return f"{record.model or record.label} on {record.dataset}"


def _summary(record: RunRecord) -> str:
    if record.is_baseline:
        how = f"{_plain(record.label)}, a model without negative sampling"
    else:
        how = f"{_plain(record.model)}, trained with {_plain(record.label)} and the loss {_plain(record.loss)}"
    version = record.versions.get("bayesneg", "")
    return f"{how}, seed {record.seed}, epoch {record.reported_epoch}. Trained with bayesneg {version}."


def _use(contents: Contents) -> str:
    score = (
        "The score of a pair is the inner product of its two vectors."
        if contents.has_vectors
        else "The score of an item is the sum of its weights with the training items of the user."
    )
    return (
        "```python\nimport bayesneg as bn\n\n"
        'model = bn.load_export("path/to/this/folder")\n'
        "model.recommend(user, k=10)  # raw ids in, raw ids out, each with its score\n```\n\n"
        f"`bayesneg serve path/to/this/folder` answers over HTTP. {score}"
    )


def _data(record: RunRecord) -> str:
    facts = [("dataset", _plain(record.dataset))]
    facts += [(name, f"{record.data[key]:,}") for key, name in DATA_ROWS.items() if record.data.get(key) is not None]
    facts += [("split", _plain(str(record.data.get("split", "given"))))]
    facts += [("fingerprint of the split", f"`{record.data.get('fingerprint', UNKNOWN)}`")]
    what = BUILT_IN[record.dataset].what if record.dataset in BUILT_IN else ""
    return (f"{what}\n\n" if what else "") + _table(("", ""), facts)


def _evaluation(record: RunRecord) -> str:
    if not record.final and not record.before_final:
        return "The run has no test part: nothing was measured."
    found: Mapping[str, Any] = record.before_final or {
        "final": record.final,
        "intervals": record.intervals,
        "select": record.select,
    }
    rows = []
    for key, value in found["final"].items():
        low, high = found["intervals"].get(key) or (None, None)
        interval = f"{_number(low)} to {_number(high)}" if is_number(low) and is_number(high) else "–"
        rows.append((_metric(key), _number(value), interval))
    epoch = "the last epoch" if found["select"] == "last" else "the epoch that was best on validation data"
    warning = "\n\n**The sampler looked at test labels: these numbers are an upper bound.**"
    return (
        (_before_final(record) if record.before_final else "")
        + "On the test part, over the full catalogue, items of training and validation excluded, "
        f"at {'its only fit' if record.is_baseline else epoch}. Intervals are Student-t over users.\n\n"
        + _table(("metric", "mean", "95% interval"), rows)
        + (warning if record.uses_test_labels else "")
    )


def _before_final(record: RunRecord) -> str:
    """What the metrics of a final model are metrics of."""
    found = record.before_final
    validation = ", ".join(f"{_metric(key)} {_number(value)}" for key, value in found["validation"].items())
    return (
        "**Measured before the final fit.** This model was trained on all data, so that nothing is left to measure it "
        "with. The same settings were first trained without the held-out part, on "
        f"{_count(found['n_train'])} interactions; that model was measured at epoch {found['reported_epoch']}"
        f"{f' (on validation data: {validation})' if validation else ''}. "
    )


def _count(value: Any) -> str:
    return f"{value:,}" if is_number(value) else UNKNOWN


def _quality(record: RunRecord) -> str:
    if record.is_baseline or not record.epochs:
        return "" if not record.is_baseline else "The model samples no negatives."
    before = record.before_final.get("last_epoch")  # of a final model: its own negatives have no labels
    line, of = (before, " of the fit before the final one") if before else (record.epochs[-1], "")
    rows = [(what, _number(line[key])) for key, what in QUALITY.items() if is_number(line.get(key))]
    return f"In the last epoch{of}, {line['epoch']}.\n\n" + _table(("measure", "value"), rows) if rows else ""


def _settings(record: RunRecord) -> str:
    text = json.dumps(jsonable(record.spec), indent=2, ensure_ascii=False)
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    return f"```json\n{text.replace('```', '` ` `')}\n```\n\nVersions: {_plain(versions)}."


def _index(index: Mapping[str, Any] | None) -> str:
    if index is None:
        return ""
    rows = [(f"recall@{k}", _number(value)) for k, value in index["recall"].items()]
    measured = (
        f"Measured against exact search over the lists of {index['n_lists']:,} users, their known items excluded:\n\n"
        + _table(("", "mean"), rows)
        if rows
        else "The catalogue is so small that search is exact for every user; the index is not used."
    )
    several = (
        f"\n\n{index['n_searched_exactly']:,} more users know so much of the catalogue that search is exact for them."
        if rows and index["n_searched_exactly"]
        else ""
    )
    return (
        f"`{index['file']}` holds the item vectors in an HNSW graph of {index['library']} {index['version']} "
        f"(connectivity {index['connectivity']}, expansion {index['expansion_add']} and {index['expansion_search']}). "
        f"It proposes items for `recommend`; their scores are exact. {measured}{several}"
    )


def _licence(record: RunRecord, contents: Contents) -> str:
    name = licence_of(record, contents.licence)
    if contents.licence is not None:
        text = f"The data has the licence `{name}`, as whoever exported the model states."
    elif record.dataset in BUILT_IN:
        text = f"Terms of the dataset of this name: {BUILT_IN[record.dataset].terms.rstrip('.')}."
        text += "" if name != UNKNOWN else " The licence is given as unknown in the header."
    else:
        text = (
            "The licence of the data is unknown: it was read from a file or a frame, which states none. Find out "
            "before you pass this folder on, and write it here and into the header."
        )
    held = (
        "`split.parquet` has the interactions of the users, and `users.parquet` their identifiers: passing this folder "
        "on passes that data on."
        if contents.has_interactions
        else "The interactions are not part of this folder; `users.parquet` has the identifiers of the users."
    )
    return f"{text}\n\n{held}{_weights_tell(record, contents)}"


def _weights_tell(record: RunRecord, contents: Contents) -> str:
    """What the numbers of the model themselves say about users."""
    if not contents.has_vectors:
        return (
            " The weights between items are computed from the items that users have in common: they say which items "
            "occur together, and where an item has few users, what else these have."
        )
    described = record.spec.get("model")
    if isinstance(described, Mapping) and described.get("class") == "MostPopular":
        return ""  # every user has the same vector
    return (
        " The vector of a user is learned from the user's interactions: its highest scores say which they probably are."
    )


def _limits(record: RunRecord, contents: Contents) -> str:
    limits = [
        "Trained on implicit feedback: an item without an interaction may be unknown to the user, not disliked.",
        "Offline metrics on held-out interactions do not say how users respond to the lists.",
        "Interactions follow what was shown and popular at the time, and so do the recommendations.",
        "Users and items that were not in the data have no vectors here.",
    ]
    if cold := record.data.get("n_test_only_users"):
        ranked = ranking_of_cold_users([record])
        limits.append(f"{cold:,} users of the test part have no training interaction: they are {ranked}.")
    if cold := record.data.get("n_test_only_items"):
        limits.append(f"{cold:,} items have no training interaction: nothing was learned about them.")
    if not contents.has_interactions:
        limits.append(
            "Without the interactions nothing is excluded: items that a user already has are recommended too."
        )
    if record.uses_test_labels:
        limits.append("The sampler looked at test labels; do not compare its metrics with those of other models.")
    return "\n".join(f"- {limit}" for limit in limits)


def _metric(key: str) -> str:
    """``ndcg@20`` → ``NDCG@20``, ``coverage@5`` → ``Coverage@5``."""
    name, at, k = key.partition("@")
    return (name.upper() if name in ("ndcg", "mrr", "map", "auc") else name.capitalize()) + at + k


def _number(value: Any) -> str:
    return (f"{value:.4f}" if abs(value) < 10 else f"{value:.1f}") if is_number(value) else "–"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _plain(text: str) -> str:
    """Text that Markdown shows as it is, on one line and within a cell."""
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", " ".join(text.split()))
