"""Sources that must line up: ids, clocks, rates, as-of joins that assert alignment, and batches of one shape.

report = check_sources(["orders.parquet", "payments.parquet"], id="order_id", time="ts", tolerance="500ms")
aligned = asof_join(trades, quotes, on="time", by="symbol", tolerance="2s", require=0.99)
report = check_batches("sentences.parquet", column="tokens")
"""

from osler.data.sources.asof import Aligned, asof_join
from osler.data.sources.batches import check_batches
from osler.data.sources.check import check_sources
from osler.data.sources.durations import parse_duration, parse_rate
from osler.data.sources.sides import AlignmentError

__all__ = ["Aligned", "AlignmentError", "asof_join", "check_batches", "check_sources", "parse_duration", "parse_rate"]
