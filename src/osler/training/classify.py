"""Which rule an origin breaks, and which of its elements are to blame."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch

from osler.training.deep import Op
from osler.training.origin import SOFTMAX, Origin, bare, softmax_dim, whole_row_masked
from osler.training.values import first_index

_LOG = frozenset(["log", "log2", "log10", "log1p", "xlogy", "special_xlog1py", "logit", "special_xlogy"])
_DIVIDE = frozenset(["div", "reciprocal", "rsqrt", "true_divide", "remainder", "fmod", "floor_divide"])
_ROOT = frozenset(
    [
        "sqrt",
        "norm",
        "linalg_vector_norm",
        "cdist",
        "_cdist_forward",
        "_euclidean_dist",
        "pow",
        "std",
        "var",
        "std_mean",
        "hypot",
        "rsqrt",
        "_pdist_forward",
        "dist",
        "native_norm",
    ]
)
_EXP = frozenset(["exp", "exp2", "expm1", "cosh", "sinh", "special_exp2"])
_SPREAD = frozenset(["std", "var", "std_mean", "var_mean"])
_NORMALISE = frozenset(
    ["native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update", "cudnn_batch_norm", "batch_norm"]
)
_HALF = (torch.float16, torch.bfloat16)
_PRODUCTS = frozenset(
    [
        "mm",
        "addmm",
        "bmm",
        "baddbmm",
        "convolution",
        "linear",
        "mv",
        "dot",
        "matmul",
        "_addmm_activation",
        "mkldnn_convolution",
    ]
)
_HALF_FREE = frozenset(["_to_copy", "copy_", "to"])


@dataclass(slots=True)
class Verdict:
    """The rule, the operation that the user wrote, and what is to blame.

    Attributes:
        rule: name in the catalogue.
        op: the forward operation (the origin itself, or the one whose derivative it computes).
        operand: index of the input of `op` that holds the culprits.
        culprits: boolean mask over that input, None where single elements are not to blame.
        facts: named numbers for the message and the evidence.
    """

    rule: str
    op: Op
    operand: int = 0
    culprits: torch.Tensor | None = None
    facts: dict[str, object] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many elements are to blame."""
        return 0 if self.culprits is None else int(self.culprits.sum())

    @property
    def index(self) -> list[int] | None:
        """Index of the first of them."""
        return None if self.culprits is None else first_index(self.culprits)


def exp_limit(name: str, dtype: torch.dtype) -> float:
    """The largest argument whose exponential (`exp`, `exp2`, `cosh` …) is finite in `dtype`: 88.72 for exp in float32."""
    largest = math.log(torch.finfo(dtype).max)
    if name in ("exp2", "special_exp2"):
        return largest / math.log(2)
    if name in ("cosh", "sinh"):
        return largest + math.log(2)
    return largest


def classify(origin: Origin) -> Verdict:
    """The verdict for an origin whose leaf, if any, has been dealt with by the caller."""
    op = origin.op
    forward = op.forward if op.backward and op.forward is not None and not op.own else op
    name = bare(forward.name).rstrip("_") if bare(forward.name) != "_" else forward.name
    for test in (_masked, _few, _log, _divide, _root, _exponential, _half):
        verdict = test(op, forward, name)
        if verdict is not None:
            return verdict
    return Verdict("nonfinite-op", forward, culprits=None, facts={"operation": forward.name})


def _input(op: Op, i: int = 0) -> torch.Tensor | None:
    return op.inputs[i].tensor if len(op.inputs) > i else None


def _masked(op: Op, forward: Op, name: str) -> Verdict | None:
    for candidate in (op, forward):
        if bare(candidate.name) in SOFTMAX and whole_row_masked(candidate):
            rows = (candidate.inputs[0].tensor == -math.inf).all(dim=softmax_dim(candidate))
            return Verdict(
                "all-masked-softmax", candidate, 0, rows, {"rows_masked": int(rows.sum()), "rows": rows.numel()}
            )
    return None


def _few(op: Op, forward: Op, name: str) -> Verdict | None:
    x = _input(forward)
    if name not in _SPREAD | _NORMALISE or x is None or not forward.outputs:
        return None
    groups = forward.outputs[0].tensor.numel() if name in _SPREAD else x.shape[1] if x.dim() > 1 else 1
    per_group = x.numel() / max(groups, 1)
    correction = forward.keyword.get("correction", 1)
    floor = float(correction) if isinstance(correction, (int, float)) else 1.0
    if (name in _SPREAD and per_group <= max(floor, 0.0)) or (name in _NORMALISE and per_group <= 1):
        return Verdict("too-few-samples", forward, facts={"samples": int(per_group), "correction": floor})
    return None


def _log(op: Op, forward: Op, name: str) -> Verdict | None:
    if name not in _LOG:
        return None
    i = len(forward.inputs) - 1 if name in ("xlogy", "special_xlog1py", "special_xlogy") else 0
    x = _input(forward, i)
    if x is None:
        return None
    if name in ("log1p", "special_xlog1py"):
        mask = x <= -1
    elif name == "logit":
        mask = (x <= 0) | (x >= 1)
    else:
        mask = x <= 0
    if not bool(mask.any()):
        return None
    return Verdict("log-of-zero", forward, i, mask, {"zeros": int((x == 0).sum()), "negative": int((x < 0).sum())})


def _divide(op: Op, forward: Op, name: str) -> Verdict | None:
    if name == "pow":
        base, exponent = _input(forward), forward.scalars[-1] if forward.scalars else None
        if base is None or exponent is None or exponent >= 0 or len(forward.inputs) > 1:
            return None
        mask = base == 0
        return Verdict("divide-by-zero", forward, 0, mask, {"zeros": int(mask.sum())}) if bool(mask.any()) else None
    if name in ("mean", "nll_loss_forward", "nll_loss2d_forward") and not op.backward:
        x = _input(forward)
        if x is not None and (x.numel() == 0 or name != "mean") and forward.makes_nan and forward.clean_inputs:
            return Verdict("divide-by-zero", forward, facts={"averaged_over": 0})
        return None
    if name not in _DIVIDE:
        return None
    i = len(forward.inputs) - 1
    if name in ("div", "true_divide", "remainder", "fmod", "floor_divide") and i == 0:
        if not (forward.scalars and forward.scalars[0] == 0):
            return None
        return Verdict("divide-by-zero", forward, facts={"divisor": 0})
    x = _input(forward, i)
    if x is None:
        return None
    mask = x == 0
    if not bool(mask.any()):
        return None
    return Verdict("divide-by-zero", forward, i, mask, {"zeros": int(mask.sum())})


def _root(op: Op, forward: Op, name: str) -> Verdict | None:
    if not op.backward or name not in _ROOT:
        return None
    x = _input(forward)
    if x is None:
        return None
    if name == "pow":
        exponent = forward.scalars[-1] if forward.scalars else None
        if exponent is None or exponent >= 1:
            return None
        mask = x == 0
    elif name in _SPREAD or name in ("norm", "linalg_vector_norm", "dist"):
        # Judged on the result: the distance or the spread is 0, whatever the elements are.
        out = forward.outputs[0].tensor if forward.outputs else x
        mask = out == 0
    elif name in ("cdist", "_cdist_forward", "_euclidean_dist", "_pdist_forward"):
        out = forward.outputs[0].tensor if forward.outputs else x
        mask = out == 0
    else:
        mask = x == 0
    if not bool(mask.any()):
        return None
    return Verdict("sqrt-at-zero", forward, 0, mask, {"zeros": int(mask.sum())})


def _exponential(op: Op, forward: Op, name: str) -> Verdict | None:
    x = _input(forward)
    if x is None:
        return None
    if name in _EXP:
        limit = exp_limit(name, x.dtype)
        mask = (x.abs() if name in ("cosh", "sinh") else x) > limit
        if not bool(mask.any()):
            return None
        return Verdict("exp-overflow", forward, 0, mask, {"largest": float(x.max()), "limit": limit})
    if name == "pow" and len(forward.inputs) == 1 and forward.scalars and forward.makes_inf:
        # pow(Scalar, Tensor): the exponent is the tensor. With a tensor base, an overflow is no exponential's.
        return None
    return None


def _half(op: Op, forward: Op, name: str) -> Verdict | None:
    outputs = [o for o in op.outputs if o.bad]
    if not outputs or outputs[0].tensor.dtype not in _HALF or not op.clean_inputs:
        return None
    if not op.makes_inf and name not in _PRODUCTS:
        return None  # sums of products may meet +Inf and -Inf before the result is written
    dtype = outputs[0].tensor.dtype
    largest = torch.finfo(dtype).max
    facts: dict[str, object] = {"dtype": str(dtype).removeprefix("torch."), "limit": largest}
    mask = None
    if bare(op.name).rstrip("_") in _HALF_FREE and op.inputs:
        x = op.inputs[0].tensor
        mask = x.abs() > largest
        facts["largest"] = float(x.abs().max())
    else:
        facts["overflowed"] = outputs[0].bad.inf
    return Verdict("half-overflow", op if mask is not None else forward, 0, mask, facts)
