"""From a non-finite loss or gradient back to the operation that made it.

The slice runs backwards over operands that are not finite. NaN is usually born of an infinity made earlier (inf/inf,
0*inf, inf-inf), so the operation to name is the one that made the infinity, unless that was put there on purpose (a mask).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from osler.training.deep import Op, Operand

# Operations that write a constant or choose between tensors: an infinity coming out of them was put in on purpose.
_ON_PURPOSE = frozenset(
    [
        "masked_fill",
        "masked_fill_",
        "fill_",
        "full",
        "full_like",
        "new_full",
        "where",
        "index_fill",
        "index_fill_",
        "index_put",
        "index_put_",
        "scalar_tensor",
        "lift_fresh",
        "masked_scatter",
        "masked_scatter_",
        "constant_pad_nd",
    ]
)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where it began.

    Attributes:
        op: the operation to name.
        leaf: the operand that was already bad when the step began, where that is the cause.
        spread: the operation at which the loss or gradient turned NaN, where that is another one.
    """

    op: Op
    leaf: Operand | None = None
    spread: Op | None = None


def bare(name: str) -> str:
    """`aten::log_` → `log_`."""
    return name.rpartition("::")[2]


def on_purpose(op: Op) -> bool:
    """Whether an infinity that this operation makes is a constant that the user wrote."""
    return bare(op.name) in _ON_PURPOSE or any(math.isinf(s) for s in op.scalars)


def slice_back(targets: Iterable[Op]) -> list[Op]:
    """The operations that non-finite values came through on their way to `targets`, in order."""
    seen: dict[int, Op] = {}
    stack = list(targets)
    while stack:
        op = stack.pop()
        if op.index in seen:
            continue
        seen[op.index] = op
        stack.extend(i.maker for i in op.inputs if i.bad and i.maker is not None)
    return [seen[i] for i in sorted(seen)]


def find(targets: Iterable[Op]) -> Origin | None:
    """The origin of what is wrong with the outputs of `targets`, None where there is nothing wrong."""
    ops = [op for op in slice_back(targets) if op.makes_nan or op.makes_inf]
    if not ops:
        return None
    first_nan = next((op for op in ops if op.makes_nan), None)
    if first_nan is None:
        return _of_infinity(ops, None)
    if first_nan.clean_inputs:
        return Origin(first_nan)
    leaf = next((i for i in first_nan.inputs if i.bad.nan and i.maker is None), None)
    if leaf is not None:
        return Origin(first_nan, leaf)
    if whole_row_masked(first_nan):
        return Origin(first_nan)
    upstream = [op for op in slice_back([first_nan]) if op is not first_nan and op.makes_inf]
    found = _of_infinity(upstream, first_nan)
    if found is not None:
        return found
    leaf = next((i for i in first_nan.inputs if i.bad and i.maker is None), None)
    return Origin(first_nan, leaf)


def _of_infinity(ops: list[Op], spread: Op | None) -> Origin | None:
    for op in ops:
        if not op.makes_inf or on_purpose(op):
            continue
        leaf = next((i for i in op.inputs if i.bad and i.maker is None), None)
        if leaf is None and any(i.bad for i in op.inputs):
            continue
        return Origin(op, leaf, spread)
    if spread is not None or not ops:
        return None
    return Origin(ops[0])


def whole_row_masked(op: Op) -> bool:
    """Whether the operation is a softmax over a row that holds nothing but -inf."""
    if bare(op.name) not in SOFTMAX or not op.inputs:
        return False
    return bool((op.inputs[0].tensor == -math.inf).all(dim=softmax_dim(op)).any())


def softmax_dim(op: Op) -> int:
    """The dimension that a softmax runs over."""
    dim = op.keyword.get("dim")
    if isinstance(dim, int):
        return dim
    shape = op.inputs[0].tensor.dim()
    if op.scalars and float(op.scalars[0]).is_integer() and -shape <= op.scalars[0] < max(shape, 1):
        return int(op.scalars[0])
    return -1


SOFTMAX = frozenset(["_softmax", "_log_softmax", "_safe_softmax", "softmax", "log_softmax", "logsumexp"])
