"""Text to identifiers and times, without losing what was written."""

from __future__ import annotations

import polars as pl

CANONICAL = r"^(0|-?[1-9][0-9]*)$"  # "7" is an integer; "007", "+7" and "7.0" stay the text they are
# with dots the day comes first, everywhere; with slashes it depends on the country, and is refused
_DATES = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y")
_MOMENTS = (
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M",
    "%Y/%m/%d %H:%M:%S%.f",
    "%Y/%m/%d %H:%M",
    "%d.%m.%Y %H:%M:%S%.f",
    "%d.%m.%Y %H:%M",
)
_ZONED = ("%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%d %H:%M:%S%.f%#z")


def typed(rows: pl.LazyFrame, names: list[str]) -> pl.DataFrame:
    """The columns ``names`` as integers where every value is canonical integer text, else as the text itself.

    Integers are tried first, inside the streaming read, so that the text of a large file is never held in memory.
    """
    trial = rows.select(
        pl.all().exclude(names),
        *(pl.col(name).cast(pl.Int64, strict=False) for name in names),
        *(is_canonical(pl.col(name)).alias(f"{name}?") for name in names),
    ).collect(engine="streaming")
    texts = [name for name in names if not trial[f"{name}?"].all()]
    trial = trial.drop(f"{name}?" for name in names)
    if not texts:
        return trial
    return trial.with_columns(rows.select(texts).collect(engine="streaming"))


def is_canonical(text: pl.Expr) -> pl.Expr:
    """True where the text is an integer that is written back the same; missing text does not decide."""
    fits = text.cast(pl.Int64, strict=False).is_not_null()
    return (text.str.contains(CANONICAL) & fits) | text.is_null()


def as_ids(texts: pl.Series) -> pl.Series:
    """Text as integers where every value is canonical, else as it is."""
    if texts.dtype != pl.String:
        return texts
    name = texts.name
    return typed(texts.to_frame().lazy(), [name])[name]


def as_times(values: pl.Series) -> pl.Series:
    """Numbers as they are, dates as seconds since 1970 (UTC where they name no zone); null where it is neither.

    >>> as_times(pl.Series(["1970-01-02", "1970-01-01T00:00:01.5Z"])).to_list()
    [86400.0, 1.5]
    >>> as_times(pl.Series(["02.01.1970", "01.01.1970 00:01", "01/02/1970"])).to_list()
    [86400.0, 60.0, None]
    """
    if values.dtype.is_integer():
        return values.cast(pl.Int64)
    if values.dtype.is_float():
        return values.cast(pl.Float64).fill_nan(None)
    if values.dtype.is_temporal():
        return _seconds(values)
    text = values.cast(pl.String).str.strip_chars()
    numbers = text.cast(pl.Float64, strict=False).fill_nan(None)
    return numbers if not numbers.is_null().any() else numbers.zip_with(numbers.is_not_null(), _parsed(text))


def _parsed(text: pl.Series) -> pl.Series:
    frame = text.alias("text").to_frame()
    days = (pl.col("text").str.to_date(form, strict=False).cast(pl.Datetime("us")) for form in _DATES)
    moments = (pl.col("text").str.to_datetime(form, strict=False, time_unit="us") for form in _MOMENTS)
    zoned = (
        pl.col("text").str.to_datetime(form, strict=False, time_unit="us", time_zone="UTC").dt.replace_time_zone(None)
        for form in _ZONED
    )
    return _seconds(frame.select(pl.coalesce(*days, *moments, *zoned))["text"])


def _seconds(moments: pl.Series) -> pl.Series:
    return moments.cast(pl.Datetime("us")).dt.epoch("us").cast(pl.Float64) / 1e6
