"""Tables, wherever they come from, as one thing: named columns of a known kind, read in batches.

source = open_source("today.parquet")            # or a glob, a folder, a frame, arrays, "-"
for batch in source.batches(["age", "income"]):  # Arrow record batches, only these columns are read
    values = floats(batch.column(0))             # float64, nulls are NaN
"""

from osler.data.tables.convert import NAT, floats, times, validity
from osler.data.tables.kinds import Column, Kind
from osler.data.tables.opening import open_source
from osler.data.tables.source import BATCH, Source, closest

__all__ = ["BATCH", "NAT", "Column", "Kind", "Source", "closest", "floats", "open_source", "times", "validity"]
