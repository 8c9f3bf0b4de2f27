"""Ids of two sources in one code, so that equal codes mean equal ids, and the changes of form that make more of them equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from osler.data.need import need

Codes = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
_EXACT_FLOAT = 2**53


@dataclass(slots=True)
class Keys:
    """The id columns of one source.

    Attributes:
        columns: their names.
        parts: one polars Series a column.
        valid: bool [rows], every column is there (NaN counts as not there).
    """

    columns: tuple[str, ...]
    parts: list[Any]
    valid: Mask

    @property
    def name(self) -> str:
        """The columns for messages: `id`, or `site+device`."""
        return "+".join(self.columns)

    @property
    def types(self) -> str:
        """How the ids are stored: `int64`, `string`, `int64+string` …"""
        return "+".join(_type_name(part) for part in self.parts)


@dataclass(slots=True)
class Coded:
    """Ids of two sources as 64-bit codes.

    Attributes:
        left, right: int64 [rows]; what stands where an id is not valid means nothing.
        same_type: whether the ids can be compared as they are stored; False where they were written out as text first.
    """

    left: Codes
    right: Codes
    same_type: bool


def read_keys(arrays: Sequence[pa.ChunkedArray], columns: Sequence[str]) -> Keys:
    """The id columns of a table."""
    pl = need("polars", "data", "comparing ids")
    parts, valid = [], np.ones(len(arrays[0]) if arrays else 0, bool)
    for array in arrays:
        if pa.types.is_dictionary(array.type):
            array = array.cast(array.type.value_type)
        part = pl.from_arrow(array) if len(array) else pl.Series("", [], dtype=pl.Null)
        if part.dtype in (pl.Binary, pl.Categorical, pl.Enum):
            part = part.bin.encode("hex") if part.dtype == pl.Binary else part.cast(pl.String)
        elif part.dtype.is_decimal() or part.dtype == pl.Float32:
            part = part.cast(pl.Float64)
        there = part.is_not_null()
        if part.dtype == pl.Float64:
            there = there & part.is_not_nan().fill_null(False)
        parts.append(part)
        valid &= there.to_numpy()
    return Keys(tuple(columns), parts, valid)


def encode(left: Keys, right: Keys) -> Coded:
    """Codes by which the ids of two sources can be compared.

    Integers of one column are their own code. Everything else is hashed to 64 bits: among 10 million ids two share a
    hash with a probability of 3e-6.
    """
    pl = need("polars", "data", "comparing ids")
    same, ours, theirs = True, [], []
    for a, b in zip(left.parts, right.parts, strict=True):
        x, y, alike = _comparable(pl, a, b)
        same &= alike
        ours.append(x)
        theirs.append(y)
    return Coded(_codes(pl, ours), _codes(pl, theirs), same)


def _comparable(pl: Any, a: Any, b: Any) -> tuple[Any, Any, bool]:
    if pl.Null in (a.dtype, b.dtype):
        return a.cast(pl.String), b.cast(pl.String), True
    if a.dtype.is_integer() and b.dtype.is_integer():
        if a.dtype == b.dtype == pl.UInt64:
            return a.reinterpret(signed=True), b.reinterpret(signed=True), True
        if any(s.dtype == pl.UInt64 and (s.max() or 0) >= 2**63 for s in (a, b)):
            return a.cast(pl.String), b.cast(pl.String), True
        return a.cast(pl.Int64), b.cast(pl.Int64), True
    if a.dtype == b.dtype:
        return (a, b, True) if a.dtype in (pl.String, pl.Float64) else (a.cast(pl.String), b.cast(pl.String), True)
    return written(a), written(b), False


def written(part: Any) -> Any:
    """Ids as text: whole floats without a fraction, everything else as it is shown."""
    pl = need("polars", "data", "comparing ids")
    if part.dtype == pl.Float64:
        whole = (part.is_finite() & (part.abs() < 9e18) & (part == part.round(0))).fill_null(False)
        as_whole = pl.select(pl.when(whole).then(part).otherwise(None)).to_series().cast(pl.Int64).cast(pl.String)
        return pl.select(pl.when(whole).then(as_whole).otherwise(part.cast(pl.String))).to_series()
    return part.cast(pl.String)


def _codes(pl: Any, parts: list[Any]) -> Codes:
    if len(parts) == 1 and parts[0].dtype == pl.Int64:
        return np.asarray(parts[0].fill_null(0).to_numpy(), np.int64)
    if len(parts) == 1:
        return np.asarray(parts[0].hash(seed=0).to_numpy(), np.uint64).view(np.int64)
    frame = pl.DataFrame({str(i): part for i, part in enumerate(parts)})
    return np.asarray(frame.hash_rows(seed=0).to_numpy(), np.uint64).view(np.int64)


def _type_name(part: Any) -> str:
    return str(part.to_arrow().type if len(part) == 0 else part[:1].to_arrow().type).replace("large_", "")


@dataclass(frozen=True, slots=True)
class Form:
    """A change of form that makes ids of two sources meet.

    Attributes:
        cause: a word for the evidence, e.g. `zero-padding`.
        text: the same for people, as the end of "they match after …".
        rescued: unmatched ids of the left source that match after it.
        of: unmatched ids of the left or right source, the fewer of both.
    """

    cause: str
    text: str
    rescued: int
    of: int


_BLANK = " \t\r\n\x00\u00a0\u200b\ufeff"
_FORMS: tuple[tuple[str, str], ...] = (
    ("type", "both are written as text"),
    ("spaces", "spaces around them are taken off"),
    ("case", "both are written in lower case"),
    ("zero-padding", "leading zeros are taken off"),
    ("float-text", "a trailing .0 is taken off"),
    ("separators", "hyphens, underscores, dots and braces are taken out"),
    ("unicode", "both are in Unicode's compatibility form (NFKC)"),
    ("prefix", "the letters before the number are taken off"),
    ("float-rounding", "both went through float64, which is exact only up to 2^53"),
)


def find_forms(left: Keys, right: Keys, left_rows: Codes, right_rows: Codes, share: float) -> list[Form]:
    """The change of form, or the fewest changes together, by which unmatched ids meet.

    Args:
        left, right: the ids.
        left_rows, right_rows: one row of each distinct id that has no partner.
        share: share of the shorter side that must meet.

    Returns:
        the changes, in the order in which they are made; empty where none makes enough ids meet, or where it makes one
        of many different ids of one source (more than 1 in 100).
    """
    pl = need("polars", "data", "comparing ids")
    fewer = min(len(left_rows), len(right_rows))
    if not fewer:
        return []
    ours = [written(part.gather(left_rows)) for part in left.parts]
    theirs = [written(part.gather(right_rows)) for part in right.parts]
    for names in [[name] for name, _ in _FORMS] + _together():
        rounding = names == ["float-rounding"]
        if rounding and not any(map(_beyond_float, [*left.parts, *right.parts])):
            continue
        met = _met(pl, [_change(pl, p, names) for p in ours], [_change(pl, p, names) for p in theirs], rounding)
        if met >= max(2 if fewer < 20 else 3, share * fewer):
            text = dict(_FORMS)
            return [Form(name, text[name], met, fewer) for name in names]
    return []


def _together() -> list[list[str]]:
    plain = ["spaces", "unicode", "case"]
    return [["spaces", "case"], plain, [*plain, "separators"], [*plain, "float-text", "zero-padding"],
            [*plain, "prefix", "zero-padding"], [*plain, "separators", "prefix", "zero-padding"]]  # fmt: skip


def _change(pl: Any, part: Any, names: Sequence[str]) -> Any:
    for name in names:
        part = _changed(pl, part, name)
    return part


def _changed(pl: Any, part: Any, name: str) -> Any:
    if name == "spaces":
        return part.str.strip_chars(_BLANK)
    if name == "case":
        return part.str.to_lowercase()
    if name == "zero-padding":
        return part.str.replace(r"^([+-]?)0+(\d)", "${1}${2}")
    if name == "float-text":
        return part.str.replace(r"\.0+$", "")
    if name == "separators":
        return part.str.replace_all(r"[-_.{}:/ ]", "")
    if name == "unicode":
        return part.str.normalize("NFKC")
    if name == "prefix":
        return part.str.replace(r"^[A-Za-z]+[-_:#/ ]?(\d)", "${1}")
    if name == "float-rounding":
        return part.cast(pl.Float64, strict=False)
    return part


def _met(pl: Any, ours: list[Any], theirs: list[Any], rounding: bool) -> int:
    x = pl.DataFrame({str(i): part for i, part in enumerate(ours)})
    y = pl.DataFrame({str(i): part for i, part in enumerate(theirs)})
    xs, ys = x.drop_nulls().unique(), y.drop_nulls().unique()
    if not rounding and (len(xs) < 0.99 * len(x) - 1 or len(ys) < 0.99 * len(y) - 1):
        return 0
    met = ys.join(xs, on=xs.columns, how="semi") if rounding else xs.join(ys, on=xs.columns, how="semi")
    return len(met)


def _beyond_float(part: Any) -> bool:
    """Whether a column of floats holds whole numbers that float64 no longer tells apart."""
    return str(part.dtype) == "Float64" and (part.abs().max() or 0) > _EXACT_FLOAT


def row_hashes(source: Any, columns: Sequence[str]) -> Codes:
    """A 64-bit hash of these columns for every row, read batch by batch."""
    pl = need("polars", "data", "comparing rows")
    parts = [
        np.asarray(pl.from_arrow(batch).hash_rows(seed=0).to_numpy(), np.uint64).view(np.int64)
        for batch in source.batches(columns)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
