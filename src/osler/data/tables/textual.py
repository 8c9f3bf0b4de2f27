"""The types of text: which one a cell has, and which one holds two."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.types as at


def inferred(cells: Sequence[str], decimal: str = ".") -> pa.DataType:
    """The type that Arrow sees in these cells together."""
    if not cells:
        return pa.null()
    lines = ('"' + cell.replace('"', '""').replace("\n", " ").replace("\r", " ") + '"\n' for cell in cells)
    data = "".join(lines).encode()
    table = csv.read_csv(
        io.BytesIO(data),
        # one block: types are inferred from the first
        read_options=csv.ReadOptions(column_names=["x"], block_size=len(data) + 1),
        convert_options=csv.ConvertOptions(decimal_point=decimal),
    )
    return table.schema.field(0).type


def wider(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    """The narrowest type of text that holds both: in the end a string, which holds everything."""
    if a == b or at.is_null(b):
        return a
    if at.is_null(a):
        return b
    if {a, b} == {pa.int64(), pa.float64()}:
        return pa.float64()
    for one, other in ((a, b), (b, a)):
        if at.is_date(one) and at.is_timestamp(other) and not other.tz:
            return other
    if at.is_timestamp(a) and at.is_timestamp(b) and a.tz == b.tz:
        return pa.timestamp("ns", a.tz)
    return pa.string()
