"""One schema for several files: what can be widened without losing a value is, the rest is an error that names the file."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as at

from osler.data.need import DataError
from osler.data.tables.kinds import normal_type, normalise


def unify(schemas: Sequence[tuple[str, pa.Schema]], what: str) -> tuple[pa.Schema, list[str]]:
    """The schema that holds all of them, columns in the order of their first appearance; and notes.

    A column that some files lack is null there. Numbers widen (int32 to int64, integers to float64), times take the
    finer unit, two zones become UTC, a date becomes a timestamp, a dictionary the type of its values.

    Args:
        schemas: the name of each file and its schema, unique names.
        what: what they are together, for messages.

    Raises:
        DataError: two types of one column have nothing in common; the message names both files.
    """
    types: dict[str, pa.DataType] = {}
    origin: dict[str, str] = {}
    count: dict[str, int] = {}
    for file, schema in schemas:
        for field in schema:
            name = field.name
            count[name] = count.get(name, 0) + 1
            if name not in types:
                types[name], origin[name] = normal_type(field.type), file
                continue
            wide = common_type(types[name], field.type)
            if wide is None:
                raise DataError(
                    f"{file}: column {name!r} is {field.type}, but {types[name]} in {origin[name]}: "
                    "make them one type, or check the files on their own"
                )
            if at.is_null(types[name]) and not at.is_null(field.type):
                origin[name] = file
            types[name] = wide
    notes = []
    for name, found in count.items():
        if found < len(schemas):
            lacking = next(file for file, schema in schemas if name not in schema.names)
            notes.append(
                f"{what}: {len(schemas) - found} of {len(schemas)} files lack the column {name!r} "
                f"(the first is {lacking}); it is null there"
            )
    return pa.schema(list(types.items())), notes


def common_type(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """The narrowest type that holds the values of both, None where there is none."""
    a, b = normal_type(a), normal_type(b)
    if a == b:
        return a
    if at.is_dictionary(a) or at.is_dictionary(b):
        if at.is_null(a) or at.is_null(b):
            return b if at.is_null(a) else a
        return common_type(_plain(a), _plain(b))
    if at.is_timestamp(a) and at.is_timestamp(b) and a.tz and b.tz and a.tz != b.tz:
        return common_type(pa.timestamp(a.unit, "UTC"), pa.timestamp(b.unit, "UTC"))
    for one, other in ((a, b), (b, a)):
        if at.is_date(one) and at.is_timestamp(other) and not other.tz:
            return other
        if at.is_uint64(one) and at.is_signed_integer(other):
            return pa.float64()
        if at.is_integer(one) and at.is_floating(other):
            return pa.float64()
        if at.is_binary(one) and at.is_string(other):
            return None
    try:
        merged = pa.unify_schemas([pa.schema([("x", a)]), pa.schema([("x", b)])], promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return None
    return merged.field(0).type


def fit(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """The array in a type that `common_type` found for it."""
    array = normalise(array)
    if array.type == type_:
        return array
    if at.is_dictionary(array.type) and not at.is_dictionary(type_):
        array = array.dictionary_decode()
    if at.is_dictionary(type_) and not at.is_dictionary(array.type):
        return array.cast(type_.value_type).dictionary_encode().cast(type_)
    # integers beyond 2**53 become the nearest float64; every other cast here is exact
    return array.cast(type_, safe=not at.is_floating(type_))


def _plain(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if at.is_dictionary(type_) else type_
