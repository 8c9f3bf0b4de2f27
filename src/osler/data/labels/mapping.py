"""Does an index mean the same class in training and in serving?"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from osler.core.finding import Confidence, Finding, Severity
from osler.core.progress import Progress, quiet
from osler.core.report import NotChecked, Report, Table
from osler.core.settings import Settings
from osler.data.labels.classlists import ClassList, read_classes
from osler.data.labels.read import read_labels
from osler.data.need import DataError

RULE = "label-mapping-drift"
_SHOWN = 50


@dataclass(frozen=True)
class Difference:
    """Two class lists compared; indices are those of the lists they are named after.

    Attributes:
        moved: (index in training, index in serving) of classes that stand elsewhere.
        missing: indices in training of classes that serving does not have.
        extra: indices in serving of classes that training does not have.
        renamed: (index in training, index in serving) of classes whose names differ slightly.
        permutation: for each training index the index in serving, None where serving lacks the class.
        wrong: indices at which serving names another class than the model was trained to put there.
        cause: what the difference looks like, empty if like nothing known.
    """

    moved: list[tuple[int, int]]
    missing: list[int]
    extra: list[int]
    renamed: list[tuple[int, int]]
    permutation: list[int | None]
    wrong: list[int]
    cause: str


def check_mapping(
    training: Any,
    serving: Any,
    *,
    traffic: Any = None,
    settings: Settings | None = None,
    progress: Progress = quiet,
) -> Report:
    """Compare the class lists of training and serving.

    Args:
        training: class list of the training (`osler.data.labels.classlists.read_classes` says which kinds).
        serving: class list that predictions are named by.
        traffic: how often each class is predicted, to weigh the damage: counts by index, a mapping of name or index to
            count, or predictions (class indices or names) as an array or file.
        settings: thresholds.
        progress: not used; every check takes it.

    Returns:
        At most one finding of `label-mapping-drift`, and the differing indices as a table.

    Raises:
        DataError: a list or the traffic cannot be read.
    """
    tree = settings or Settings()
    one, two = read_classes(training, "the training list"), read_classes(serving, "the serving list")
    difference = compare(one, two, tree.labels.near_name)
    out = Report(
        subject={
            "kind": "check",
            "check": "mapping",
            "reference": one.name,
            "current": two.name,
            "classes": len(one.names),
        }
    )
    share = None if traffic is None else _affected(traffic, one, difference)
    for source in (one, two):
        if source.clashes:
            out.findings.append(_clash(source))
    if difference.wrong or difference.missing or difference.extra:
        out.findings.append(_finding(one, two, difference, share))
    elif difference.renamed:
        out.findings.append(_renamed(one, two, difference))
    if any(difference.wrong) and traffic is None:
        out.not_checked.append(
            NotChecked(
                "share of traffic affected", "no traffic was given (counts per class, or predictions)", is_rule=False
            )
        )
    if difference.wrong or difference.missing or difference.extra or difference.renamed:
        out.tables.append(_table(one, two, difference))
    return out


def compare(one: ClassList, two: ClassList, near: float) -> Difference:
    """The differences from training (`one`) to serving (`two`); `near` is the likeness that counts as a renaming."""
    left = {name: i for i, name in enumerate(one.names) if name is not None}
    right = {name: i for i, name in enumerate(two.names) if name is not None}
    match: dict[int, int] = {i: right[name] for name, i in left.items() if name in right}
    renamed = _renamings(left, right, match, near)
    match.update(renamed)
    taken = set(match.values())
    moved = sorted((i, j) for i, j in match.items() if i != j)
    missing = sorted(i for i in left.values() if i not in match)
    extra = sorted(j for j in right.values() if j not in taken)
    back = {j: i for i, j in match.items()}
    wrong = [i for i in range(len(one.names)) if one.names[i] is not None and back.get(i) != i]
    return Difference(
        moved,
        missing,
        extra,
        sorted(renamed.items()),
        [match.get(i) for i in range(len(one.names))],
        wrong,
        _cause(one.names, two.names, moved, missing, extra),
    )


def _renamings(
    left: Mapping[str, int], right: Mapping[str, int], match: Mapping[int, int], near: float
) -> dict[int, int]:
    """Pairs of unmatched names that differ in case and separators, or in a letter or two at the same index."""
    free = {name: j for name, j in right.items() if j not in set(match.values())}
    plain: dict[str, list[int]] = {}
    for name, j in free.items():
        plain.setdefault(_plain(name), []).append(j)
    out: dict[int, int] = {}
    rest: list[tuple[str, int]] = []
    for name, i in left.items():
        if i in match:
            continue
        same = plain.get(_plain(name), [])
        if len(same) == 1 and same[0] not in out.values():
            out[i] = same[0]
        else:
            rest.append((name, i))
    by_index = {j: name for name, j in free.items() if j not in out.values()}
    for name, i in rest:
        other = by_index.get(i)
        # class_1 and class_2 are alike and not the same: digits must agree
        if other is None or re.findall(r"\d+", name) != re.findall(r"\d+", other):
            continue
        if difflib.SequenceMatcher(None, _plain(name), _plain(other)).ratio() >= near:
            out[i] = i
    return out


def _plain(name: str) -> str:
    return re.sub(r"[\s_\-./]+", " ", name.strip().casefold()).strip()


def _cause(
    one: Sequence[str | None],
    two: Sequence[str | None],
    moved: Sequence[tuple[int, int]],
    missing: Sequence[int],
    extra: Sequence[int],
) -> str:
    if not moved:
        return ""
    names = [n for n in one if n is not None]
    if not missing and not extra and None not in two:
        served = [str(n) for n in two]
        if all(n.strip().lstrip("-").isdigit() for n in names):
            if served == sorted(names) and names == sorted(names, key=int):
                return "the numbers were sorted as text in serving: 0, 1, 10, 2 …"
            if names == sorted(names) and served == sorted(names, key=int):
                return "the numbers were sorted as text in training: 0, 1, 10, 2 …"
        if len(moved) == 2:
            return "two classes have changed places"
        if served == sorted(names):
            return "the serving list is in alphabetical order, the training list is not"
        if names == sorted(names):
            return "the training list is in alphabetical order, the serving list is not"
        if served == names[::-1]:
            return "the list is reversed"
    steps = {j - i for i, j in moved}
    if len(steps) == 1:
        step = steps.pop()
        start = min(i for i, _ in moved)
        return f"every class from index {start} on stands {abs(step)} {'later' if step > 0 else 'earlier'} in serving"
    return ""


def _affected(traffic: Any, one: ClassList, difference: Difference) -> float:
    """Share of predictions that serving gives a wrong name."""
    count = _traffic(traffic, one)
    total = count.sum()
    if total <= 0:
        raise DataError("the traffic is empty")
    return float(count[[i for i in difference.wrong if i < len(count)]].sum() / total)


def _traffic(traffic: Any, one: ClassList) -> np.ndarray[Any, np.dtype[np.float64]]:
    index = {name: i for i, name in enumerate(one.names) if name is not None}
    out = np.zeros(len(one.names))
    if isinstance(traffic, Mapping):
        for key, value in traffic.items():
            where = index.get(str(key), int(key) if str(key).isdigit() else -1)
            if not 0 <= where < len(out):
                raise DataError("the traffic names a class that the training list does not have")
            out[where] += float(value)
        return out
    array = read_labels(traffic)
    if array.dtype.kind in "OUST":
        for word in array.tolist():
            if str(word) not in index:
                raise DataError("the traffic names a class that the training list does not have")
            out[index[str(word)]] += 1
        return out
    values = array.astype(np.float64)
    whole = np.isfinite(values).all() and (values >= 0).all()
    if whole and len(values) == len(out):
        return values  # a count for each class
    if not whole or (values != np.floor(values)).any() or values.max(initial=0) >= len(out):
        raise DataError(f"the traffic holds no class indices 0 … {len(out) - 1} and not {len(out)} counts")
    return np.bincount(values.astype(np.int64), minlength=len(out)).astype(np.float64)


def _finding(one: ClassList, two: ClassList, d: Difference, share: float | None) -> Finding:
    parts = []
    if d.moved:
        i, j = d.moved[0]
        parts.append(f"{len(d.moved)} of {len(one.names)} classes stand at another index ({one.names[i]}: {i} → {j})")
    if d.missing:
        parts.append(f"{len(d.missing)} missing in serving ({_some(one, d.missing)})")
    if d.extra:
        parts.append(f"{len(d.extra)} more in serving ({_some(two, d.extra)})")
    message = "; ".join(parts)
    if share is not None:
        message += f"; {share:.1%} of the predictions get a wrong name"
    evidence: dict[str, object] = {
        "moved": len(d.moved),
        "missing": len(d.missing),
        "extra": len(d.extra),
        "renamed": len(d.renamed),
        "wrong_indices": len(d.wrong),
        "permutation": d.permutation[:_SHOWN],
    }
    if d.cause:
        evidence["cause"] = d.cause
        message += f": {d.cause}"
    if share is not None:
        evidence["traffic_affected"] = share
    fix = "Save the class list with the model at training time and read it from there in serving"
    if d.moved and not d.missing and not d.extra:
        fix += "; until then, map outputs with `serving_names[permutation[i]]` (the permutation is in the evidence)"
    if d.cause and "sorted as text" in d.cause:
        fix += "; sort class ids as integers (`key=int`), or pad folder names with zeros"
    # a name more at the end of the serving list is never looked up
    severity = Severity.ERROR if d.wrong else Severity.WARNING
    return Finding(
        RULE, severity, Confidence.DEFINITE, message, evidence=evidence, fix=fix + ".", touches=frozenset({"classes"})
    )


def _renamed(one: ClassList, two: ClassList, d: Difference) -> Finding:
    i, j = d.renamed[0]
    return Finding(
        RULE,
        Severity.INFO,
        Confidence.PROBABLE,
        f"{len(d.renamed)} of {len(one.names)} classes are spelled differently in serving ({one.names[i]} → {two.names[j]}), "
        "at the same index",
        evidence={"renamed": len(d.renamed)},
        fix="Use one list for both, so that code which compares names does not miss these classes.",
        touches=frozenset({"classes"}),
    )


def _clash(source: ClassList) -> Finding:
    return Finding(
        RULE,
        Severity.ERROR,
        Confidence.DEFINITE,
        f"{source.name}: id2label and label2id disagree at {len(source.clashes)} indices (first: {source.clashes[0]})",
        evidence={"indices": source.clashes[:_SHOWN]},
        fix="Make label2id the inverse of id2label: `{name: i for i, name in id2label.items()}`.",
        touches=frozenset({"classes"}),
    )


def _some(source: ClassList, indices: Sequence[int]) -> str:
    shown = ", ".join(str(source.names[i]) for i in indices[:3])
    return shown + (" …" if len(indices) > 3 else "")


def _table(one: ClassList, two: ClassList, d: Difference) -> Table:
    rows: list[list[str | int | float | bool | None]] = []
    width = max(len(one.names), len(two.names))
    where = dict(enumerate(d.permutation))
    for i in range(width):
        a = one.names[i] if i < len(one.names) else None
        b = two.names[i] if i < len(two.names) else None
        if a != b and len(rows) < _SHOWN:
            rows.append([i, a, b, where.get(i)])
    return Table("class lists", ["index", "training", "serving", "training's class is at"], rows, "indices that differ")
