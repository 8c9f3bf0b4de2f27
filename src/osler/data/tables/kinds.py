"""What a column is: its kind, taken from its Arrow type alone and never guessed from its values.

A column of strings stays a category however much its values look like numbers, and integers stay integers however few
of them there are: automatic categories are the most frequent complaint about tools of this sort.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pyarrow as pa
import pyarrow.types as at


class Kind(Enum):
    """How a column is treated."""

    NUMBER = "number"
    """Floats (16, 32, 64 bits) and decimals."""
    INTEGER = "integer"
    """Signed and unsigned integers."""
    BOOLEAN = "boolean"
    CATEGORY = "category"
    """Strings, dictionaries (pandas categoricals, polars enums) and text made of mixed Python objects."""
    TIME = "time"
    """Timestamps with and without a zone, and dates."""
    DURATION = "duration"
    """Durations and times of day (the time since midnight)."""
    BINARY = "binary"
    NESTED = "nested"
    """Lists, structs, maps, unions, calendar intervals: passed through, not judged."""
    NULL = "null"
    """A column whose type is null: nothing in it was ever set."""

    @property
    def numeric(self) -> bool:
        """Whether `floats` gives the column's own values: numbers, integers and booleans."""
        return self in (Kind.NUMBER, Kind.INTEGER, Kind.BOOLEAN)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a source.

    Attributes:
        name: unique within its source.
        kind: how it is treated.
        type: its Arrow type, in the normal form of `normal_type`.
        zone: time zone of a timestamp as it is stored, None for one without a zone and for every other type.
    """

    name: str
    kind: Kind
    type: pa.DataType
    zone: str | None = None


def column_of(name: str, type_: pa.DataType) -> Column:
    """The column that a name and an Arrow type make."""
    normal = normal_type(type_)
    return Column(name, kind_of(normal), normal, normal.tz if at.is_timestamp(normal) else None)


def kind_of(type_: pa.DataType) -> Kind:
    """The kind of an Arrow type."""
    for kind, tests in _TESTS:
        if any(test(type_) for test in tests):
            return kind
    return Kind.NESTED


_TESTS = (
    (Kind.NULL, (at.is_null,)),
    (Kind.BOOLEAN, (at.is_boolean,)),
    (Kind.INTEGER, (at.is_integer,)),
    (Kind.NUMBER, (at.is_floating, at.is_decimal)),
    (Kind.CATEGORY, (at.is_string, at.is_large_string, at.is_string_view, at.is_dictionary)),
    (Kind.TIME, (at.is_timestamp, at.is_date)),
    (Kind.DURATION, (at.is_duration, at.is_time)),
    (Kind.BINARY, (at.is_binary, at.is_large_binary, at.is_binary_view, at.is_fixed_size_binary)),
)


def normal_type(type_: pa.DataType) -> pa.DataType:
    """The type in which osler hands a column on: views, run-end encoding and extension types are resolved.

    `string_view` becomes `large_string`, `binary_view` becomes `large_binary`, a run-end encoded type its value type,
    an extension type its storage, a dictionary one with `int32` indices and normal values.
    """
    if isinstance(type_, pa.BaseExtensionType):
        return normal_type(type_.storage_type)
    if at.is_string_view(type_):
        return pa.large_string()
    if at.is_binary_view(type_):
        return pa.large_binary()
    if at.is_run_end_encoded(type_):
        return normal_type(type_.value_type)
    if at.is_dictionary(type_):
        return pa.dictionary(pa.int32(), normal_type(type_.value_type), type_.ordered)
    return type_


def normalise(array: pa.Array) -> pa.Array:
    """The array in its normal type; without a copy where it is in it already."""
    type_ = array.type
    if isinstance(type_, pa.BaseExtensionType):
        return normalise(array.storage)
    if at.is_run_end_encoded(type_):
        import pyarrow.compute as pc

        return normalise(pc.run_end_decode(array))
    normal = normal_type(type_)
    if normal == type_:
        return array
    if at.is_dictionary(type_):
        return pa.DictionaryArray.from_arrays(
            array.indices.cast(pa.int32()), normalise(array.dictionary), ordered=type_.ordered
        )
    return array.cast(normal)
