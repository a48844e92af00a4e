"""Requests and answers as the OpenAPI page shows them, and the sentence for a request that is none of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

ID_LENGTH: Final = 1_000  # characters of an identifier
Id = StrictInt | Annotated[StrictStr, Field(min_length=1, max_length=ID_LENGTH)]
Ids = Annotated[list[Id], Field(min_length=1)]


class Scored(BaseModel):
    """An item and its score."""

    item: Id
    score: float


class Similar(BaseModel):
    """An item and its similarity."""

    item: Id
    similarity: float


class Recommended(BaseModel):
    """The list of a user."""

    user: Id
    n_training_interactions: int | None = Field(
        description="0 where the user has none; null where the export has no interactions"
    )
    items: list[Scored] = Field(description="best first; fewer than k where no more are left")


class RecommendedLists(BaseModel):
    """The lists of several users, in their order."""

    lists: list[Recommended]


class SimilarItems(BaseModel):
    """The items most similar to one."""

    item: Id
    items: list[Similar]


class FoldedIn(BaseModel):
    """The list of a user whom training has not seen."""

    n_items: int = Field(description="items of the request that the model knows")
    unknown: list[Id] = Field(description="items of the request that it does not know, which had no effect")
    untrained: list[Id] = Field(description="items of the request without a training interaction: no effect either")
    items: list[Scored]


class Health(BaseModel):
    """The model that answers."""

    status: str
    label: str
    model: str
    dataset: str
    fingerprint: str
    n_users: int
    n_items: int
    search: str = Field(description="exact, or index: approximate search")
    loaded_at: float = Field(description="seconds since 1970")
    reloads: int
    version: str


class Problem(BaseModel):
    """What is wrong with a request, in one sentence."""

    error: str


class RecommendQuery(BaseModel):
    """One user."""

    model_config = ConfigDict(extra="forbid")
    user: str = Field(min_length=1, max_length=ID_LENGTH, description="identifier of the user, as in the data")
    k: int = Field(10, ge=1, description="length of the list")
    include_held_out: bool = Field(False, description="also recommend items of the validation and test part")


class RecommendBody(BaseModel):
    """Several users."""

    model_config = ConfigDict(extra="forbid")
    users: Ids = Field(description="identifiers of the users, as in the data")
    k: StrictInt = Field(10, ge=1, description="length of each list")
    include_held_out: StrictBool = Field(False, description="also recommend items of the validation and test part")
    exclude: Ids | None = Field(None, description="items that are never recommended")
    only: Ids | None = Field(None, description="the only items that may be recommended")


class SimilarQuery(BaseModel):
    """One item."""

    model_config = ConfigDict(extra="forbid")
    item: str = Field(min_length=1, max_length=ID_LENGTH, description="identifier of the item, as in the data")
    k: int = Field(10, ge=1, description="length of the list")


class FoldInBody(BaseModel):
    """The items of a user whom training has not seen."""

    model_config = ConfigDict(extra="forbid")
    items: Ids = Field(description="identifiers of the user's items, as in the data")
    k: StrictInt = Field(10, ge=1, description="length of the list")
    skip_unknown: StrictBool = Field(False, description="leave out items that the model does not know")
    exclude: Ids | None = Field(None, description="items that are never recommended")
    only: Ids | None = Field(None, description="the only items that may be recommended")


NO_JSON: Final = 'the body must be JSON in UTF-8, such as {"items": [1, 2]}'
_ASKED: Final[Mapping[tuple[str, str], type[BaseModel]]] = {
    ("GET", "/recommend"): RecommendQuery,
    ("POST", "/recommend"): RecommendBody,
    ("GET", "/similar"): SimilarQuery,
    ("POST", "/fold-in"): FoldInBody,
}


def parameters(method: str, path: str) -> list[str]:
    """The parameters of a request."""
    return list(_ASKED[method, path].model_fields)


def methods(path: str) -> list[str]:
    """The methods that a path takes."""
    return [method for method, each in _ASKED if each == path] or ["GET"]


_RULES: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {  # kind of pydantic's error → the rule
    "greater_than_equal": lambda context: f"be at least {context['ge']}",
    "less_than_equal": lambda context: f"be at most {context['le']}",
    "int_parsing": lambda _: "be a whole number",
    "int_type": lambda _: "be a whole number",
    "int_from_float": lambda _: "be a whole number",
    "bool_parsing": lambda _: "be true or false",
    "bool_type": lambda _: "be true or false",
    "list_type": lambda _: "be a list of identifiers",
    "too_short": lambda _: "name at least one identifier",
    "string_too_short": lambda _: "not be empty",
    "string_too_long": lambda context: f"have at most {context['max_length']:,} characters",
    "model_attributes_type": lambda _: 'be a JSON object, such as {"items": [1, 2]}',
    "dict_type": lambda _: 'be a JSON object, such as {"items": [1, 2]}',
}


def sentence(errors: Sequence[Mapping[str, Any]], known: Sequence[str]) -> str:
    """The first error of pydantic as a sentence of ours.

    >>> sentence([{"type": "int_parsing", "loc": ("query", "k"), "input": "ten"}], ["user", "k"])
    "k must be a whole number, got 'ten'"
    """
    error = errors[0]
    kind, where = error["type"], [str(part) for part in error["loc"][1:]]
    name = where[0] if where else "the body"
    if kind == "missing":
        return f"{name} is missing; the parameters are {', '.join(known)}"
    if kind == "extra_forbidden":
        return f"there is no parameter {name!r:.60}; the parameters are {', '.join(known)}"
    if kind == "json_invalid":
        return f"{NO_JSON} ({error['ctx']['error']})"
    given = error.get("input")
    if isinstance(given, bytes):
        return "the body must be JSON; send it with the header content-type: application/json"
    if len(where) > 1 and where[1].isdigit() and not kind.startswith("string_too"):
        return f"{name}[{where[1]}] must be an identifier, a whole number or a text, got {given!r:.60}"
    is_number = kind in ("greater_than_equal", "less_than_equal")  # in a query it is still text
    got = "none" if kind == "too_short" else f"{given!s:.60}" if is_number else f"{given!r:.60}"
    rule = _RULES.get(kind)
    return f"{name} must {rule(error.get('ctx', {}))}, got {got}" if rule else f"{name}: {error['msg']}, got {got}"
