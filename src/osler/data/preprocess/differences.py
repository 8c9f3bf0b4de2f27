"""What differs between two fitted states, step by step and feature by feature."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from osler.data.preprocess.snapshots import Attribute, StateSnapshot, Step

_SPREADS = ("scale_", "data_range_")  # fitted spreads of a step's own input, feature by feature
_VARIANCES = ("var_",)
_COUNTS = {"n_samples_seen_", "n_iter_", "n_samples_", "batch_size_", "n_batches_seen_", "n_steps_"}
UNKNOWN = math.inf
_EPSILON = 1e-15  # some units in the last place of a float64


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is not as it was.

    Attributes:
        what: attribute, setting, or what else differs.
        kind: `number`, `shape`, `words`, `order`, `setting`, `content`, `missing`, `count`.
        feature: name or number of the column; empty where it concerns no single one.
        old, new: numbers or words for the reader.
        size: change relative to the spread of the column (of the attribute where no spread is known); `inf` where a size
            makes no sense.
        relative_to: what the size is relative to.
    """

    what: str
    kind: str
    feature: str = ""
    old: str | float = ""
    new: str | float = ""
    size: float = UNKNOWN
    relative_to: str = ""


@dataclass(slots=True)
class StepChanges:
    """The changes of one step; `old` and `new` are None where the step is on one side only."""

    path: str
    old: Step | None
    new: Step | None
    changes: list[Change] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Class, with the path where it stands in something."""
        step = self.old or self.new
        kind = "" if step is None else step.type.rpartition(".")[2]
        return f"{kind} `{self.path}`" if self.path else kind


def differences(old: StateSnapshot, new: StateSnapshot, noise: float) -> list[StepChanges]:
    """Every step that is not as it was.

    Args:
        old: the state trained with.
        new: the state in use.
        noise: changes of numbers, relative to their spread, up to which they count as the same.
    """
    before = {step.path: step for step in old.steps}
    after = {step.path: step for step in new.steps}
    out = []
    for path in dict.fromkeys([*before, *after]):
        changes = StepChanges(path, before.get(path), after.get(path))
        if changes.old is None or changes.new is None:
            changes.changes.append(_one_sided(changes))
        else:
            changes.changes += _step(changes.old, changes.new, noise)
        if changes.changes:
            out.append(changes)
    return out


def _one_sided(changes: StepChanges) -> Change:
    if changes.new is None:
        return Change("step", "missing", old="present", new="absent")
    return Change("step", "missing", old="absent", new="present")


def _step(old: Step, new: Step, noise: float) -> Iterator[Change]:
    if old.type != new.type:
        yield Change("class", "content", old=old.type, new=new.type)
        return
    for name in sorted({*old.params, *new.params}):
        before, after = old.params.get(name, "absent"), new.params.get(name, "absent")
        if before != after:
            yield Change(name, "setting", old=before, new=after)
    reordered = False
    if old.features and new.features and old.features != new.features:
        yield from _features(old.features, new.features)
        reordered = True
    elif old.n_features is not None and new.n_features is not None and old.n_features != new.n_features:
        yield Change("number of columns", "shape", old=old.n_features, new=new.n_features)
    for name in sorted({*old.attributes, *new.attributes}):
        first, second = old.attributes.get(name), new.attributes.get(name)
        if first is None or second is None:
            absent = first if second is None else second
            if absent is not None and absent.kind != "value":
                yield Change(
                    name, "missing", old="present" if first else "absent", new="present" if second else "absent"
                )
        elif first.hash != second.hash or first.kind != second.kind:
            yield from _attribute(name, first, second, old, new, noise, reordered)


def _features(old: tuple[str, ...], new: tuple[str, ...]) -> Iterator[Change]:
    if sorted(old) == sorted(new):
        for i, (before, after) in enumerate(zip(old, new, strict=True)):
            if before != after:
                yield Change("column order", "order", before, old=i, new=new.index(before))
        return
    for name in old:
        if name not in new:
            yield Change("columns", "missing", name, "present", "absent")
    for name in new:
        if name not in old:
            yield Change("columns", "missing", name, "absent", "present")


def _attribute(
    name: str, old: Attribute, new: Attribute, before: Step, after: Step, noise: float, reordered: bool
) -> Iterator[Change]:
    if old.kind != new.kind:
        yield Change(name, "content", old=old.kind, new=new.kind)
    elif old.kind in ("words", "vocabulary"):
        yield from _words(name, old, new)
    elif old.kind == "value":
        yield Change(name, "content", old=_text(old), new=_text(new))
    elif name in _COUNTS:
        yield Change(name, "count", old=_first(old), new=_first(new))
    elif old.words != new.words and (old.words or new.words):
        yield from _labelled(name, old, new, noise)
    elif old.shape != new.shape:
        yield Change(name, "shape", old=_size(old), new=_size(new))
    elif old.values is None or new.values is None:
        yield Change(name, "content", old=_range(old), new=_range(new))
    else:
        yield from _numbers(name, old, new, before, after, noise, reordered)


def _numbers(
    name: str, old: Attribute, new: Attribute, before: Step, after: Step, noise: float, reordered: bool
) -> Iterator[Change]:
    """Number by number; where the columns were only put in another order, each column by its name."""
    first, second = _floats(old), _floats(new)
    features = before.features
    count = len(features) or before.n_features or 0
    per_feature = count > 0 and bool(old.shape) and old.shape[-1] == count
    place = list(range(len(second)))
    if reordered and per_feature:
        if sorted(before.features) != sorted(after.features):
            return
        to = [after.features.index(f) for f in features]
        place = [i - i % count + to[i % count] for i in range(len(second))]
    spreads, relative_to = _spread(name, before, first)
    rounding = _EPSILON * _largest(before)
    found = 0
    for i, value in enumerate(first):
        other = second[place[i]]
        if value == other or (math.isnan(value) and math.isnan(other)):
            continue
        if abs(other - value) <= rounding:
            continue
        spread = spreads[i % len(spreads)]
        size = abs(other - value) / spread if spread > 0 and math.isfinite(other - value) else UNKNOWN
        if size <= noise:
            continue
        found += 1
        column = i % count if per_feature else i
        label = (features[column] if features else str(column)) if per_feature else ""
        yield Change(name, "number", label, value, other, size, relative_to)
    if not found and old.dtype != new.dtype:
        yield Change(name, "count", old=old.dtype, new=new.dtype)


def _largest(step: Step) -> float:
    """The largest number of a step: next to it a mean of 1e-17 is 0."""
    ends = (abs(end) for a in step.attributes.values() for end in (a.low, a.high) if end is not None)
    return max(ends, default=0.0)


def _spread(name: str, step: Step, values: list[float]) -> tuple[list[float], str]:
    """What a change of this attribute is measured by: the column's own spread where the step knows it."""
    if name in (*_SPREADS, *_VARIANCES):
        return [abs(v) or 1.0 for v in values], "its own size"
    for other in _SPREADS:
        known = step.attributes.get(other)
        # MinMaxScaler's scale_ is the factor, not the spread: only a StandardScaler-like step has a centre beside it.
        if other == "scale_" and "data_range_" in step.attributes:
            continue
        if known is not None and known.values and len(known.values) == len(values):
            return [abs(v) or 1.0 for v in _floats(known)], "the column's spread"
    finite = [v for v in values if math.isfinite(v)]
    if len(finite) < 2:
        return [abs(finite[0]) if finite and finite[0] else 1.0], "its own size"
    mean = math.fsum(finite) / len(finite)
    spread = math.sqrt(math.fsum((v - mean) ** 2 for v in finite) / len(finite))
    return [max(spread, max(abs(v) for v in finite) * 1e-3) or 1.0], "the spread of its numbers"


def _words(name: str, old: Attribute, new: Attribute) -> Iterator[Change]:
    if not old.words or not new.words:
        yield Change(name, "words", old=_size(old), new=_size(new))
        return
    where_old = {w: i for i, w in enumerate(old.words)}
    where_new = {w: i for i, w in enumerate(new.words)}
    added = sum(w not in where_old for w in where_new)
    gone = sum(w not in where_new for w in where_old)
    moved = sum(where_new[w] != i for w, i in where_old.items() if w in where_new)
    what = ", ".join(f"{n:,} {word}" for n, word in ((added, "added"), (gone, "gone"), (moved, "moved")) if n)
    size = UNKNOWN if moved or gone else 0.0
    yield Change(name, "words", old=f"{len(old.words):,} words", new=f"{len(new.words):,} words: {what}", size=size)


def _labelled(name: str, old: Attribute, new: Attribute, noise: float) -> Iterator[Change]:
    """Numbers that belong to words: those that both sides have are compared."""
    if not old.values or not new.values:
        yield Change(name, "content", old=_range(old), new=_range(new))
        return
    here = _by_word(old)
    there = _by_word(new)
    yield Change(
        name,
        "words",
        old=f"{len(here):,} entries",
        new=f"{len(there):,} entries: {len(there.keys() - here.keys()):,} added, {len(here.keys() - there.keys()):,} gone",
    )
    spread = _spread(name, Step("", ""), list(here.values()))[0][0]
    changed = [w for w in here.keys() & there.keys() if abs(here[w] - there[w]) > noise * spread]
    if changed:
        most = max(changed, key=lambda w: (abs(here[w] - there[w]), w))
        size = abs(here[most] - there[most]) / spread
        yield Change(name, "number", "", here[most], there[most], size, "the spread of its numbers")


def _by_word(of: Attribute) -> Mapping[str, float]:
    return dict(zip(of.words, _floats(of), strict=False))


def _floats(of: Attribute) -> list[float]:
    return [float(v) for v in of.values or ()]


def _first(of: Attribute) -> str | float:
    values = _floats(of)
    return values[0] if len(values) == 1 else _range(of)


def _text(of: Attribute) -> str:
    return str(of.values[0]) if of.values else f"text {of.hash[:8]}"


def _size(of: Attribute) -> str:
    return " × ".join(str(n) for n in of.shape) or "one number"


def _range(of: Attribute) -> str:
    if of.low is None or of.high is None:
        return f"hash {of.hash[:8]}"
    return f"{of.low:.6g} … {of.high:.6g} (hash {of.hash[:8]})"
