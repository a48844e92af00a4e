"""The HTTP interface: recommend, similar, fold-in, health and metrics."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any, Final, TypeVar

from anyio.to_thread import current_default_thread_limiter
from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from bayesneg import __version__
from bayesneg.data.identifiers import Unknown, numbers_of, plain
from bayesneg.errors import BayesnegError, InputError
from bayesneg.runs.exports.loading import ExportedModel
from bayesneg.serving import messages as msg
from bayesneg.serving.limits import Guard, Limits
from bayesneg.serving.openapi_page import openapi_page
from bayesneg.serving.reloading import Reloader
from bayesneg.serving.telemetry import CONTENT_TYPE

T = TypeVar("T")
AT_ONCE: Final = 20_000  # items that are ranked in less than a millisecond
PATHS: Final = ("/recommend", "/similar", "/fold-in", "/health", "/metrics", "/docs", "/openapi.json")
PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": msg.Problem, "description": text}
    for status, text in {
        400: "This model cannot answer it",
        404: "An identifier is not in the data",
        413: "The body is too large",
        422: "A parameter is missing or wrong",
    }.items()
}
DESCRIPTION: Final = """
Recommendations of a trained model. Identifiers are those of the data; an integer and its decimal text are the same.
A request that cannot be answered gets a 4xx with one sentence: `{"error": "…"}`.
"""


class UnknownIdError(InputError):
    """An identifier is not in the data."""


def create_app(reloader: Reloader, limits: Limits) -> FastAPI:
    """The application of a model.

    Args:
        reloader: Holds the model; a request takes the one that is current when it begins.
        limits: Bounds on requests.

    Returns:
        An ASGI application.
    """
    app = FastAPI(
        title="bayesneg",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=_with_few_threads,
    )
    app.add_middleware(Guard, telemetry=reloader.telemetry, max_body=limits.max_body, paths=PATHS)
    _answer_errors(app)

    @app.get(
        "/recommend",
        dependencies=[Depends(_each_once)],
        responses=PROBLEMS,
        summary="The best items that a user does not have yet",
    )
    async def recommend(asked: Annotated[msg.RecommendQuery, Query()]) -> msg.Recommended:
        limits.check(k=asked.k)
        model, how = reloader.current.model, {"k": asked.k, "include_held_out": asked.include_held_out}
        return await _computed(model, lambda: _list_of(model, asked.user, **how))

    @app.post("/recommend", responses=PROBLEMS, summary="The lists of several users")
    def recommend_several(asked: msg.RecommendBody) -> msg.RecommendedLists:
        limits.check(k=asked.k, users=asked.users, exclude=asked.exclude, only=asked.only)
        model, how = reloader.current.model, asked.model_dump(exclude={"users"})
        for user in asked.users:  # before any list is computed
            _user_number(model, user)
        return msg.RecommendedLists(lists=[_list_of(model, user, **how) for user in asked.users])

    @app.get(
        "/similar", dependencies=[Depends(_each_once)], responses=PROBLEMS, summary="The items most similar to one"
    )
    async def similar(asked: Annotated[msg.SimilarQuery, Query()]) -> msg.SimilarItems:
        limits.check(k=asked.k)
        model = reloader.current.model
        return await _computed(model, lambda: _similar_to(model, asked.item, asked.k))

    @app.post("/fold-in", responses=PROBLEMS, summary="The list of a new user, from the user's items")
    def fold_in(asked: msg.FoldInBody) -> msg.FoldedIn:
        limits.check(k=asked.k, items=asked.items, exclude=asked.exclude, only=asked.only)
        model = reloader.current.model
        model.check_fold_in()
        unknown: Unknown = "skip" if asked.skip_unknown else "error"
        with _looking_up():
            numbers = model.run.split.train.numbers_of_items
            numbers_of(asked.items, numbers, argument="items", noun="item", unknown=unknown)
        user = model.fold_in(asked.items, unknown=unknown)
        found = model.recommend_to(user, k=asked.k, exclude=asked.exclude, only=asked.only)
        return msg.FoldedIn(
            n_items=len(user.items),
            unknown=list(user.unknown),
            untrained=list(user.untrained),
            items=_scored(found),
        )

    @app.get("/health", summary="The model that answers")
    async def health() -> msg.Health:
        current = reloader.current
        return msg.Health(
            status="ok",
            n_users=current.model.run.split.train.n_users,
            n_items=current.model.run.split.train.n_items,
            loaded_at=current.loaded_at,
            reloads=reloader.telemetry.reloads["loaded"],
            version=__version__,
            **_names(current.model),
        )

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return openapi_page(app.openapi())

    @app.get("/metrics", response_class=Response, summary="Measures in the text format of Prometheus")
    async def metrics() -> Response:
        current = reloader.current
        text = reloader.telemetry.text(_names(current.model), current.loaded_at)
        return Response(text, media_type=CONTENT_TYPE)

    return app


async def _computed(model: ExportedModel, answer: Callable[[], T]) -> T:
    """The answer, from another thread where the catalogue is large; below, the way there would take longer."""
    if model.run.split.train.n_items <= AT_ONCE:
        return answer()
    return await run_in_threadpool(answer)


@asynccontextmanager
async def _with_few_threads(app: FastAPI) -> AsyncIterator[None]:
    """Scores of a large catalogue take memory and all cores: more requests at a time would only wait for each other."""
    current_default_thread_limiter().total_tokens = 2 * (os.cpu_count() or 1)
    yield


async def _each_once(request: Request) -> None:
    """Of a parameter that is given twice the last would count, and nobody would know."""
    given = Counter(name for name, _ in request.query_params.multi_items())
    for name, times in given.items():
        if times > 1:
            raise InputError(f"{name:.60} is given {times} times; give it once")


@contextmanager
def _looking_up() -> Iterator[None]:
    """An error of a look-up is that of an unknown identifier."""
    try:
        yield
    except InputError as error:
        raise UnknownIdError(str(error)) from error


def _user_number(model: ExportedModel, user: Any) -> int:
    with _looking_up():
        return model.run.split.train.user_number(user)


def _list_of(model: ExportedModel, user: Any, **how: Any) -> msg.Recommended:
    train, number = model.run.split.train, _user_number(model, user)
    return msg.Recommended(
        user=plain(train.user_ids[number]),
        n_training_interactions=len(train.row(number)) if model.has_interactions else None,
        items=_scored(model.recommend(user, **how)),
    )


def _similar_to(model: ExportedModel, item: Any, k: int) -> msg.SimilarItems:
    train = model.run.split.train
    with _looking_up():
        number = train.item_number(item)
    found = [msg.Similar(item=other, similarity=value) for other, value in model.similar(item, k)]
    return msg.SimilarItems(item=plain(train.item_ids[number]), items=found)


def _scored(found: list[tuple[Any, float]]) -> list[msg.Scored]:
    return [msg.Scored(item=item, score=score) for item, score in found]


def _names(model: ExportedModel) -> dict[str, str]:
    record = model.run.record
    return {
        "label": record.label,
        "model": record.model,
        "dataset": record.dataset,
        "fingerprint": str(record.data.get("fingerprint", "")),
        "search": "exact" if model.index is None else "index",
    }


def _answer_errors(app: FastAPI) -> None:
    """Every error is a sentence, ``{"error": …}``; none is a stack trace."""

    @app.exception_handler(BayesnegError)
    async def of_ours(request: Request, error: BayesnegError) -> JSONResponse:
        return _problem(404 if isinstance(error, UnknownIdError) else 400, str(error))

    @app.exception_handler(RequestValidationError)
    async def of_a_parameter(request: Request, error: RequestValidationError) -> JSONResponse:
        return _problem(422, msg.sentence(error.errors(), msg.parameters(request.method, request.url.path)))

    @app.exception_handler(HTTPException)
    async def of_a_path(request: Request, error: HTTPException) -> JSONResponse:
        if error.status_code == 404:
            return _problem(404, f"there is no {request.url.path!r:.80}; the paths are {', '.join(PATHS)}")
        if error.status_code == 405:
            allowed = " or ".join(msg.methods(request.url.path))
            sentence = f"{request.url.path} does not take {request.method}; use {allowed}"
            return _problem(405, sentence, {"Allow": allowed.replace(" or ", ", ")})
        if error.status_code == 400:  # a body that is not read as JSON: other bytes than UTF-8, or nested too deeply
            return _problem(400, f"{msg.NO_JSON}, not nested deeply")
        return _problem(error.status_code, f"{error.detail}; the paths are {', '.join(PATHS)}")

    @app.exception_handler(Exception)
    async def of_the_server(request: Request, error: Exception) -> JSONResponse:
        return _problem(500, "the server failed to answer; its log says why")


def _problem(status: int, sentence: str, headers: Any = None) -> JSONResponse:
    return JSONResponse({"error": sentence}, status_code=status, headers=headers)
