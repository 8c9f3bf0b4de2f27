"""64-bit hashes of rows that mean the same wherever the rows come from.

A row's hash is the mixed sum of one term per column, and a term depends only on the column's name and the value: not on
the order of the columns, the process, the chunking, the platform or the width of the number. Terms can therefore be
taken out of a sum again, which is how `exact` asks what the rows would look like without one column, and partitions
hashed on Spark compare with a local file.

Equal are: 1, 1.0 and True; 0.0 and -0.0; NaN and NaN; the same instant in any unit or zone; text in any Arrow layout.
Different are: null and NaN (unless `missing_alike`), null and "", 1 and "1".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from osler.data.splits import compiled
from osler.data.tables import Kind, times, validity
from osler.data.tables.kinds import kind_of

Hashes = npt.NDArray[np.uint64]

# The finaliser of SplitMix64 (Steele, Lea & Flood 2014, doi:10.1145/2660193.2660195).
M1 = np.uint64(0xBF58476D1CE4E5B9)
M2 = np.uint64(0x94D049BB133111EB)
_GOLDEN = 0x9E3779B97F4A7C15
_BASES = (0xD6E8FEB86659FD93, 0xA0761D6478BD642F)
_MASK = (1 << 64) - 1

_WHOLE, _REAL, _NAN, _HUGE, _NULL, _TEXT, _TIME, _SPAN, _NESTED = range(9)
_CLASS = np.array([(_GOLDEN * (2 * c + 3)) & _MASK for c in range(9)], np.uint64)


def seed_of(name: str) -> int:
    """The 64 bits that stand for a column's name."""
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def mix(values: Hashes) -> Hashes:
    """Spread 64 bits over 64 bits, one to one."""
    z: Hashes = values ^ (values >> np.uint64(30))
    z *= M1
    z ^= z >> np.uint64(27)
    z *= M2
    z ^= z >> np.uint64(31)
    return z


def row_hashes(
    rows: pa.RecordBatch | pa.Table, columns: Sequence[str] | None = None, *, missing_alike: bool = False
) -> Hashes:
    """The hash of every row, shape (n,), over these columns (None: all of them).

    Args:
        rows: Arrow data; the order of its columns does not matter.
        columns: names.
        missing_alike: take NaN for null.
    """
    total = np.zeros(rows.num_rows, np.uint64)
    for name in rows.schema.names if columns is None else columns:
        add_column(total, rows.column(name), seed_of(name), missing_alike=missing_alike)
    return mix(total)


def add_column(
    total: Hashes,
    array: pa.Array | pa.ChunkedArray,
    seed: int,
    *,
    missing_alike: bool = False,
    fast: bool | None = None,
) -> None:
    """Add a column's terms to the sums of its rows, in place. The row's hash is `mix(total)`.

    Args:
        total: sums, shape (n,).
        array: the column, n values.
        seed: `seed_of` its name.
        missing_alike: take NaN for null.
        fast: compiled or not; None decides by the number of rows.
    """
    if isinstance(array, pa.ChunkedArray):
        start = 0
        for chunk in array.chunks:
            add_column(total[start : start + len(chunk)], chunk, seed, missing_alike=missing_alike, fast=fast)
            start += len(chunk)
        return
    compile_ = compiled.worth(total.size) if fast is None else fast
    salts = _CLASS + np.uint64(seed)
    if missing_alike:
        salts[_NAN] = salts[_NULL]
    if compile_ and at.is_floating(array.type) and not array.null_count:
        values = array.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
        compiled.add_floats(values, values.view(np.uint64), salts[:4], M1, M2, total)
        return
    codes, classes = codes_of(array)
    # a text's code is a hash already: where a column is null, its code is 0 by the contract of `codes_of`
    one = int(classes[0]) if classes.size else 0
    chosen = salts[one : one + 1] if bool((classes == one).all()) else salts[classes]
    if compile_:
        compiled.add_codes(codes, chosen, M1, M2, total)
    else:
        total += mix(codes + chosen)


def codes_of(array: pa.Array, *, second: bool = False) -> tuple[Hashes, npt.NDArray[np.uint8]]:
    """What a value is, as 64 bits and a class; shape (n,) each.

    For numbers, times and truth values the pair is one to one with the value; for text, bytes and nested values it is a
    64-bit polynomial hash, and `second` takes another base for it. Nulls and NaN have code 0.
    """
    type_ = array.type
    if at.is_dictionary(type_):
        inner_codes, inner_classes = codes_of(array.dictionary, second=second)
        indices = array.indices
        present = validity(indices)
        picked = np.where(present, indices.fill_null(0).to_numpy(zero_copy_only=False), 0)
        if not inner_codes.size:
            return _nulls(len(array))
        return _masked(inner_codes[picked], inner_classes[picked], present)
    kind = kind_of(type_)
    present = validity(array)
    if kind is Kind.NULL:
        return _nulls(len(array))
    if kind is Kind.BOOLEAN:
        whole = array.cast(pa.uint8()).fill_null(0).to_numpy(zero_copy_only=False).astype(np.uint64)
        return _masked(whole, np.full(whole.size, _WHOLE, np.uint8), present)
    if kind is Kind.INTEGER:
        return _masked(*_integers(array), present)
    if kind is Kind.NUMBER:
        return _masked(*_numbers(array, second), present)
    if kind is Kind.TIME:
        return _masked(times(array).view(np.uint64), np.full(len(array), _TIME, np.uint8), present)
    if kind is Kind.DURATION:
        return _masked(_spans(array), np.full(len(array), _SPAN, np.uint8), present)
    if kind in (Kind.CATEGORY, Kind.BINARY):
        return _masked(_texts(array, second), np.full(len(array), _TEXT, np.uint8), present)
    return _masked(_nested(array, second), np.full(len(array), _NESTED, np.uint8), present)


def same(a: pa.Array, b: pa.Array, *, missing_alike: bool = False) -> npt.NDArray[np.bool_]:
    """Whether paired values are equal in the sense of the hashes, shape (n,), by the values themselves.

    Nested values alone are compared by two independent hashes of 64 bits.
    """
    text = all(kind_of(x.type) in (Kind.CATEGORY, Kind.BINARY) for x in (a, b))
    if text:
        left, right = (_plain_text(x) for x in (a, b))
        equal = pc.equal(left, right).fill_null(False).to_numpy(zero_copy_only=False)
        both: npt.NDArray[np.bool_] = equal | (~validity(left) & ~validity(right))
        return both
    out = np.ones(len(a), np.bool_)
    for second in (False, True):
        (codes_a, classes_a), (codes_b, classes_b) = codes_of(a, second=second), codes_of(b, second=second)
        if missing_alike:
            classes_a, classes_b = (np.where(c == _NAN, _NULL, c) for c in (classes_a, classes_b))
        out &= (codes_a == codes_b) & (classes_a == classes_b)
    return out


def polynomial(symbols: npt.NDArray[np.generic], offsets: npt.NDArray[np.int64], base: int, fast: bool) -> Hashes:
    """The polynomial hash modulo 2**64 of the runs `symbols[offsets[i]:offsets[i + 1]]`, shape (len(offsets) - 1,)."""
    out = np.zeros(offsets.size - 1, np.uint64)
    if fast:
        compiled.polynomial(symbols, offsets, np.uint64(base), out)
        return out
    first, last = int(offsets[0]), int(offsets[-1])
    run = symbols[first:last].astype(np.uint64) + np.uint64(1)
    # The sum over a run is a difference of prefix sums once every power is taken relative to the start of the buffer;
    # an odd base has an inverse modulo 2**64.
    down = np.full(run.size + 1, np.uint64(pow(base, -1, 1 << 64)))
    up = np.full(run.size + 1, np.uint64(base))
    down[:1] = up[:1] = 1
    down, up = np.multiply.accumulate(down), np.multiply.accumulate(up)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(run * down[:-1], dtype=np.uint64)])
    starts, ends = offsets[:-1] - first, offsets[1:] - first
    filled = ends > starts
    out[filled] = (sums[ends[filled]] - sums[starts[filled]]) * up[ends[filled] - 1]
    return out


def bytes_of(array: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The bytes behind text, one after the other, and the n + 1 offsets of its values; nulls may have any bytes."""
    plain = _plain_text(array)
    if not len(plain):
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    _, offsets, data = plain.buffers()
    ends = np.frombuffer(offsets, np.int64)[plain.offset : plain.offset + len(plain) + 1]
    return (np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)), ends


def cast_pairs(left: Mapping[str, pa.DataType], right: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
    """Columns that are single precision on one side and double on the other, and the narrower type to compare in."""
    casts: dict[str, pa.DataType] = {}
    for name in left.keys() & right.keys():
        a, b = left[name], right[name]
        if at.is_floating(a) and at.is_floating(b) and a != b:
            casts[name] = min((a, b), key=lambda t: t.bit_width)
    return casts


def _nulls(rows: int) -> tuple[Hashes, npt.NDArray[np.uint8]]:
    return np.zeros(rows, np.uint64), np.full(rows, _NULL, np.uint8)


def _masked(
    codes: Hashes, classes: npt.NDArray[np.uint8], present: npt.NDArray[np.bool_]
) -> tuple[Hashes, npt.NDArray[np.uint8]]:
    if present.all():
        return codes, classes
    return np.where(present, codes, np.uint64(0)), np.where(present, classes, np.uint8(_NULL))


def _integers(array: pa.Array) -> tuple[Hashes, npt.NDArray[np.uint8]]:
    values = array.fill_null(0).to_numpy(zero_copy_only=False)
    if values.dtype == np.uint64:
        return values, np.where(values >> np.uint64(63), np.uint8(_HUGE), np.uint8(_WHOLE))
    return values.astype(np.int64).view(np.uint64), np.full(values.size, _WHOLE, np.uint8)


def _numbers(array: pa.Array, second: bool) -> tuple[Hashes, npt.NDArray[np.uint8]]:
    if at.is_decimal(array.type):
        if array.type.scale == 0 and array.type.precision <= 18:
            return _integers(array.cast(pa.int64()))
        if array.type.precision > 15:
            # more digits than a float64 tells apart
            return _texts(array.cast(pa.string()), second), np.full(len(array), _TEXT, np.uint8)
        array = array.cast(pa.float64())
    values = array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
    with np.errstate(invalid="ignore"):
        whole = (values == np.floor(values)) & (values >= -(2.0**63)) & (values < 2.0**63)
        huge = (values >= 2.0**63) & (values < 2.0**64)
    nan = np.isnan(values)
    codes = values.view(np.uint64).copy()
    codes[whole] = values[whole].astype(np.int64).view(np.uint64)
    codes[huge] = values[huge].astype(np.uint64)
    codes[nan] = 0
    classes = np.full(values.size, _REAL, np.uint8)
    classes[whole], classes[huge], classes[nan] = _WHOLE, _HUGE, _NAN
    return codes, classes


def _spans(array: pa.Array) -> Hashes:
    type_ = array.type
    per_unit = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[type_.unit]
    counts = array.cast(pa.int32()).cast(pa.int64()) if at.is_time32(type_) else array.cast(pa.int64())
    values: npt.NDArray[np.int64] = counts.fill_null(0).to_numpy(zero_copy_only=False)
    return (values * per_unit).view(np.uint64)


def _plain_text(array: pa.Array) -> pa.Array:
    if at.is_dictionary(array.type):
        array = array.dictionary_decode()
    if at.is_fixed_size_binary(array.type):
        array = array.cast(pa.binary())
    return array.cast(pa.large_binary())


def _texts(array: pa.Array, second: bool) -> Hashes:
    data, offsets = bytes_of(array)
    codes = polynomial(data, offsets, _BASES[second], compiled.worth(int(offsets[-1] - offsets[0])))
    codes += np.diff(offsets).astype(np.uint64) * np.uint64(_GOLDEN)
    return codes


def _nested(array: pa.Array, second: bool) -> Hashes:
    type_ = array.type
    if at.is_struct(type_):
        total = np.zeros(len(array), np.uint64)
        for i, field in enumerate(type_):
            codes, classes = codes_of(array.field(i), second=second)
            total += mix(codes + _CLASS[classes] + np.uint64(seed_of(field.name)))
        return total
    if at.is_fixed_size_list(type_):
        array = array.cast(pa.large_list(type_.value_type))
    elif at.is_map(type_):
        array = array.cast(pa.list_(pa.struct([("key", type_.key_type), ("value", type_.item_type)])))
    elif not (at.is_list(type_) or at.is_large_list(type_)):
        return _texts(pa.array([repr(v) for v in array.to_pylist()], pa.large_string()), second)
    offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    codes, classes = codes_of(array.values, second=second)
    elements = mix(codes + _CLASS[classes])
    hashed = polynomial(elements, offsets, _BASES[second], compiled.worth(elements.size))
    hashed += np.diff(offsets).astype(np.uint64) * np.uint64(_GOLDEN)
    return hashed
