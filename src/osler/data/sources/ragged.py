"""What was seen of a field of the samples, and the findings that it makes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.settings import Sources
from osler.data.sources.ids import SHOWN
from osler.data.sources.samples import Batches

RULE = "ragged-batch"
_NUMBERS = ("int", "uint", "float", "bool", "double", "half", "bfloat", "complex", "halffloat")


@dataclass(slots=True)
class Field:
    """What was seen of one field."""

    name: str
    axis: int | None
    lengths: list[int] = field(default_factory=list)
    ragged: list[tuple[int, int, int, int]] = field(default_factory=list)
    dimensions: list[tuple[int, int, tuple[int, ...], tuple[int, ...]]] = field(default_factory=list)
    features: list[tuple[int, int, tuple[int, ...], tuple[int, ...]]] = field(default_factory=list)
    dtypes: Counter[str] = field(default_factory=Counter)
    mixed: int = 0
    batches: int = 0
    padded: Counter[str] = field(default_factory=Counter)
    inside: Counter[str] = field(default_factory=Counter)
    tails: int = 0
    area: int = 0
    absent: int | None = None
    stacked: int = 0

    @property
    def words(self) -> str:
        """The field for messages, in brackets; nothing where a sample is one array."""
        return f" (field {self.name!r})" if self.name else ""


def _at(found: Batches, batch: int, sample: int) -> str:
    return f"sample {sample:,} of {found.name}" + (f" (batch {batch:,})" if not found.assumed else "")


def ragged(found: Batches, seen: Field, failed: str, settings: Sources) -> Finding:
    lengths = np.asarray(seen.lengths)
    batch, sample, length, usual = seen.ragged[0]
    share = len(seen.ragged) / max(1, len(lengths))
    wasted, bucketed = _overhead(lengths, settings.batch_size)
    listed = found.collated and not failed
    bucket = (
        f"; padding would fill {wasted:.0%} of each batch, {bucketed:.0%} if samples of similar length are put "
        "together (bucketing, a batch sampler that sorts by length)"
        if wasted > settings.padding_share or wasted > 2 * bucketed + 0.1
        else ""
    )
    return Finding(
        RULE,
        Severity.INFO if listed else Severity.ERROR if failed else Severity.WARNING,
        Confidence.DEFINITE if failed or not found.assumed else Confidence.PROBABLE,
        f"{_at(found, batch, sample)} has length {length:,} where others of its batch have {usual:,}{seen.words}: lengths run "
        f"from {lengths.min():,} to {lengths.max():,}, median {np.median(lengths):,.0f}"
        + (f"; the collate function fails: {failed}" if failed else ""),
        where=Where(column=seen.name or None, batch=batch, sample=sample),
        evidence={
            "kind": "ragged",
            "axis": (seen.axis or 0),
            "count": len(seen.ragged),
            "share": share,
            "samples": len(lengths),
            "distinct_lengths": len(np.unique(lengths)),
            "shortest": int(lengths.min()),
            "median": float(np.median(lengths)),
            "longest": int(lengths.max()),
            "empty": int(np.count_nonzero(lengths == 0)),
            "first_samples": [entry[1] for entry in seen.ragged[:SHOWN]],
            "padding": wasted,
            "padding_bucketed": bucketed,
        },
        fix="pad in the collate function: torch.nn.utils.rnn.pad_sequence(sequences, batch_first=True, padding_value=…), "
        "and hand on the lengths or a mask so that loss and attention leave the padding out" + bucket,
        touches=frozenset({f"column:{seen.name}"} if seen.name else ()),
    )


def _overhead(lengths: np.ndarray[Any, Any], size: int) -> tuple[float, float]:
    """Share of padding in batches drawn at random, and in batches of samples sorted by length."""

    def padded(values: np.ndarray[Any, Any]) -> float:
        whole = len(values) // size * size
        if not whole:
            return 1 - float(values.mean() / values.max()) if len(values) and values.max() else 0.0
        tops = values[:whole].reshape(-1, size).max(axis=1)
        total = float(tops.sum()) * size
        return 1 - float(values[:whole].sum()) / total if total else 0.0

    return padded(np.random.default_rng(0).permutation(lengths)), padded(np.sort(lengths))


def odd(
    found: Batches,
    seen: Field,
    kind: str,
    entries: list[tuple[int, int, tuple[int, ...], tuple[int, ...]]],
    failed: str,
) -> Finding:
    batch, sample, size, usual = entries[0]
    fix = (
        "give every sample the same number of axes where it is read: add the missing one with unsqueeze(-1) or x[:, None], "
        "take out one of length 1 with squeeze(-1)"
        if kind == "dimensions"
        else "bring all samples to one number of features where they are read; padding this axis would mix features up. If "
        "it is the axis of time, say so with axis="
    )
    return Finding(
        RULE,
        Severity.ERROR if failed else Severity.WARNING,
        Confidence.DEFINITE if failed or not found.assumed else Confidence.PROBABLE,
        f"{_at(found, batch, sample)} has shape {_size(size)} where others have {_size(usual)}, {len(entries):,} such samples{seen.words}",
        where=Where(column=seen.name or None, batch=batch, sample=sample),
        evidence={"kind": kind, "count": len(entries), "shape": list(size), "usual": list(usual),
                  "first_samples": [entry[1] for entry in entries[:SHOWN]]},
        fix=fix,
        touches=frozenset({f"column:{seen.name}"} if seen.name else ()),
    )  # fmt: skip


def _size(size: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, size)) + ("," if len(size) == 1 else "") + ")"


def inner(found: Batches, seen: Field) -> Finding:
    count = seen.dtypes["ragged"]
    return Finding(
        RULE,
        Severity.WARNING,
        Confidence.DEFINITE,
        f"{count:,} samples of {found.name} hold lists of unequal length themselves{seen.words}: they are no array",
        where=Where(column=seen.name or None),
        evidence={"kind": "nested", "count": count},
        fix="pad the inner lists to one length, or flatten each sample and keep the offsets (torch.nested, a jagged layout)",
    )


def absent(found: Batches, seen: Field) -> Finding:
    count = seen.dtypes["NoneType"]
    return Finding(
        RULE,
        Severity.WARNING,
        Confidence.DEFINITE,
        f"{count:,} samples of {found.name} are null{seen.words}, the first is sample {seen.absent:,}: a batch cannot "
        "be stacked with them",
        where=Where(column=seen.name or None, sample=seen.absent),
        evidence={"kind": "null", "count": count, "first_samples": [seen.absent]},
        fix="drop these samples or store an empty sequence, and let the collate function pad it",
        touches=frozenset({f"column:{seen.name}"} if seen.name else ()),
    )


def mixed(found: Batches, seen: Field) -> list[Finding]:
    kinds = [k for k, _ in seen.dtypes.most_common() if k not in ("empty", "NoneType", "ragged")]
    if len(kinds) < 2:
        return []
    numbers = all(any(k.startswith(word) for word in _NUMBERS) for k in kinds)
    return [
        Finding(
            RULE,
            Severity.INFO if numbers else Severity.WARNING,
            Confidence.DEFINITE,
            f"samples of one batch of {found.name} have different dtypes{seen.words}: {', '.join(kinds[:4])}",
            where=Where(column=seen.name or None),
            evidence={"kind": "dtype", "dtypes": {k: seen.dtypes[k] for k in kinds}, "batches": seen.mixed},
            fix="cast to one dtype where the samples are read; stacking promotes silently, and a batch's dtype then depends "
            "on which samples are in it",
        )
    ]


def padding(found: Batches, seen: Field, settings: Sources) -> list[Finding]:
    """Samples of one length that end in runs of one value: padding, and whether it can be told from data."""
    if not seen.padded or len(seen.lengths) < 20:
        return []
    value, count = seen.padded.most_common(1)[0]
    if value == "other" or count < 0.3 * len(seen.lengths) or seen.tails < 0.05 * seen.area:
        return []
    share = seen.tails / max(1, seen.area)
    unclear = seen.inside[value] > 0.05 * count
    if not unclear and share <= settings.padding_share:
        return []
    return [
        Finding(
            RULE,
            Severity.INFO,
            Confidence.POSSIBLE,
            f"{count:,} of {len(seen.lengths):,} samples of {found.name} end in runs of {value}, {share:.0%} of all values"
            f"{seen.words}"
            + ("; the same value also stands within them, so padding cannot be told from data" if unclear else ""),
            where=Where(column=seen.name or None),
            evidence={
                "kind": "padding",
                "value": value,
                "samples": count,
                "share": share,
                "inside": seen.inside[value],
            },
            fix="keep the lengths or a mask beside the padded array, and pad with a value that data never has; put samples of "
            "similar length into one batch where padding outweighs data",
        )
    ]
