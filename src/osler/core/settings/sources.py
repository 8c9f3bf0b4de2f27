"""Sources that must line up, and batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from osler.core.settings.field import POSITIVE, SHARE, Bounds, threshold

_SOURCES = ("source-misaligned",)
_BATCH = ("ragged-batch",)
_LOST = "a judgement: a left join that loses one row in twenty is common (late rows, deleted accounts); more is seldom meant"
_FEW = "a judgement: below it a median and its interval say little"


@dataclass(frozen=True, slots=True)
class Sources:
    """Sources that must line up, and batches."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    missing: float = threshold(
        0.05, "share of a source's ids absent from the other from which it is a warning", _LOST, _SOURCES, Bounds(0, 1)
    )
    extra: float = threshold(
        0.05,
        "share of ids only in the other source from which it is a warning, where neither source contains the other",
        _LOST,
        _SOURCES,
        Bounds(0, 1),
    )
    duplicate: float = threshold(
        0.1,
        "share of distinct ids that repeat, up to which repeats are duplicates; above it the id is taken for a foreign "
        "key or the name of a series",
        "a judgement: exports that were appended twice or retried repeat a few per cent; a foreign key repeats most",
        _SOURCES,
        Bounds(0, 1),
    )
    rescue: float = threshold(
        0.5,
        "share of the unmatched ids that a change of form (type, spaces, case, zero padding) must match to be the cause",
        "a judgement: chance matches of unrelated ids stay far below half",
        _SOURCES,
        SHARE,
    )
    null_ids: float = threshold(
        0.05, "share of rows without an id or without a time from which it is a warning", _LOST, _SOURCES, Bounds(0, 1)
    )
    min_pairs: int = threshold(30, "matched rows below which clocks are not compared", _FEW, _SOURCES, Bounds(5))
    interval_z: float = threshold(
        2.576,
        "half-width of the intervals of offset and drift, in standard errors; an alarm needs the whole interval on one side",
        "the 99 % point of the normal distribution",
        _SOURCES,
        POSITIVE,
    )
    tolerance_s: float = threshold(
        1.0,
        "seconds by which a drift or a step must move a clock to be reported where no tolerance is given",
        "a judgement: clocks kept by NTP agree within tens of milliseconds on the open Internet (RFC 5905, section 1)",
        _SOURCES,
        POSITIVE,
    )
    outside: float = threshold(
        0.2,
        "share of matched rows further apart than the tolerance from which it is a warning though the offset is not",
        "a judgement: delays have long tails, and one in five is no tail",
        _SOURCES,
        SHARE,
    )
    coupled: float = threshold(
        0.25,
        "spread of the time differences relative to the offset, below which two columns are taken for one event seen by "
        "two clocks where no tolerance is given",
        "a judgement: delays of unlike events (ordered, shipped) scatter about as much as they last",
        _SOURCES,
        POSITIVE,
    )
    zone_slack_s: float = threshold(
        10.0,
        "seconds from a whole quarter of an hour within which an offset is called a time zone's",
        "a judgement: a random offset falls that close to a full hour in one of 180 cases; all zones of the tz database "
        "in use are multiples of 15 minutes",
        _SOURCES,
        POSITIVE,
    )
    peak: float = threshold(
        10.0,
        "height of the best lag over the other lags, in standard deviations (the robust one where it is larger), at which streams without ids count "
        "as matched",
        "of 400 pairs of unrelated Poisson streams those with one clear peak reached 5.8 (`python benchmarks/sources.py "
        "--lags`)",
        _SOURCES,
        POSITIVE,
    )
    follow: float = threshold(
        0.3,
        "share of the shorter stream's rows that must pair at the best lag, for streams without ids",
        "a judgement: with a fifth of the rows lost on either side two thirds pair; chance pairs a few in a hundred",
        _SOURCES,
        SHARE,
    )
    regular: float = threshold(
        0.3,
        "robust spread of the intervals relative to their median, below which a source counts as sampled at a rate",
        "a judgement: an exponential distribution (events) has 1.03 by the same measure, schedulers with jitter under 0.2",
        _SOURCES,
        POSITIVE,
    )
    rate_ratio: float = threshold(
        1.5,
        "ratio of two sampling intervals from which the rates disagree",
        "a judgement: clocks and schedulers differ by per cents, configured rates by a factor of 2 and more",
        _SOURCES,
        Bounds(1, open_low=True),
    )
    rate_error: float = threshold(
        0.1,
        "relative error of a declared rate that is accepted",
        "a judgement: ten times what crystals and timers miss",
        _SOURCES,
        POSITIVE,
    )
    gap: float = threshold(
        5.0,
        "intervals between two rows of a regular source from which it is a gap",
        "a judgement: a few lost samples are ordinary",
        _SOURCES,
        Bounds(1),
    )
    late: float = threshold(
        0.01,
        "share of rows that arrive later than the tolerance after a newer one, from which it is a warning",
        "a judgement: streaming joins drop rows behind their watermark, and one in a hundred lost is noticed",
        _SOURCES,
        Bounds(0, 1),
    )
    reuse_gap: float = threshold(
        10.0,
        "silence of an id, in lengths of its longer period of use, after which it may name another entity",
        "a judgement: returning customers pause for about as long as they were active, retired ids for many times that",
        _SOURCES,
        POSITIVE,
    )
    static_share: float = threshold(
        0.98,
        "share of repeated ids within which a column must be constant to count as an attribute of the entity",
        "a judgement: columns that describe an event vary within most ids",
        _SOURCES,
        SHARE,
    )
    join_matched: float = threshold(
        0.95,
        "share of left rows that an as-of join should match; below it its report warns",
        _LOST,
        _SOURCES,
        Bounds(0, 1),
    )
    batch_size: int = threshold(
        32,
        "samples taken for one batch where nothing says how many",
        "a judgement: whether lengths differ within a batch does not depend on it unless the data is sorted by length",
        _BATCH,
        Bounds(2),
    )
    batch_limit: int = threshold(
        1000, "batches that are looked at", "a judgement: 32,000 samples show how lengths are spread", _BATCH, Bounds(1)
    )
    padding_share: float = threshold(
        0.5,
        "share of padded values in a batch from which bucketing is proposed",
        "a judgement: half of the arithmetic is then spent on padding",
        _BATCH,
        SHARE,
    )
