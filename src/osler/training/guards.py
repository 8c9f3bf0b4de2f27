"""The proposed mends, applied to one torch function call of a replay: does the fault vanish with it?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from osler.training.classify import exp_limit

Call = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


def _floor(x: torch.Tensor) -> float:
    return 1e-4 if x.dtype == torch.float16 else 1e-8


def _with_first(change: Callable[[torch.Tensor], torch.Tensor]) -> Call:
    """A guard that changes the first tensor argument."""

    def guard(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not args:
            key = "input" if "input" in kwargs else next(iter(kwargs), None)
            if key is None:
                return func(*args, **kwargs)
            return func(**{**kwargs, key: change(kwargs[key])})
        return func(change(args[0]), *args[1:], **kwargs)

    return guard


def _log(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if getattr(func, "__name__", "") in ("xlogy", "special_xlogy") and len(args) > 1:
        return func(args[0], args[1].clamp_min(_floor(args[1])), *args[2:], **kwargs)
    if getattr(func, "__name__", "") == "log1p":
        return _with_first(lambda x: x.clamp_min(-1 + 1e-6))(func, args, kwargs)
    if getattr(func, "__name__", "") == "logit":
        return _with_first(lambda x: x.clamp(1e-6, 1 - 1e-6))(func, args, kwargs)
    return _with_first(lambda x: x.clamp_min(_floor(x)))(func, args, kwargs)


def _away_from_zero(x: Any) -> Any:
    if not isinstance(x, torch.Tensor):
        return x if x != 0 else 1e-8
    # clamp's gradient is 0 where it acts, so the mended derivative is finite too
    return torch.where(x < 0, x.clamp_max(-_floor(x)), x.clamp_min(_floor(x)))


def _divide(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = getattr(func, "__name__", "")
    if name in ("reciprocal", "rsqrt", "pow", "__pow__", "reciprocal_", "rsqrt_", "__rdiv__", "__rtruediv__"):
        return _with_first(_away_from_zero)(func, args, kwargs)
    if len(args) > 1:
        return func(args[0], _away_from_zero(args[1]), *args[2:], **kwargs)
    if "other" in kwargs:
        return func(*args, **{**kwargs, "other": _away_from_zero(kwargs["other"])})
    return func(*args, **kwargs)


def _root(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = getattr(func, "__name__", "")
    if name in ("std", "std_mean"):
        x = args[0]
        variance = torch.var(*args, **kwargs)
        root = (variance + _floor(x)).sqrt()
        return root if name == "std" else (root, x.mean(*args[1:], **{k: v for k, v in kwargs.items() if k == "dim"}))
    if name in ("cdist", "pairwise_distance", "pdist"):
        return _with_first(lambda x: x + 1e-4)(func, args, kwargs)
    if name in ("norm", "vector_norm", "dist"):
        return _with_first(lambda x: torch.where(x.abs() < _floor(x), torch.full_like(x, _floor(x)), x))(
            func, args, kwargs
        )
    return _with_first(lambda x: x.clamp_min(_floor(x)))(func, args, kwargs)


def _exponential(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = str(getattr(func, "__name__", "")).rstrip("_")

    def cap(x: torch.Tensor) -> torch.Tensor:
        # a margin below the limit leaves room for the sums and products that follow
        limit = 0.25 * exp_limit(name, x.dtype)
        return x.clamp(-limit, limit)

    return _with_first(cap)(func, args, kwargs)


def _masked(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    dim = kwargs.get("dim", args[1] if len(args) > 1 else -1)
    dim = dim if isinstance(dim, int) else -1

    def open_rows(x: torch.Tensor) -> torch.Tensor:
        return x.masked_fill((x == float("-inf")).all(dim=dim, keepdim=True), 0.0)

    return _with_first(open_rows)(func, args, kwargs)


def _few(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = getattr(func, "__name__", "")
    if name not in ("std", "var", "std_mean", "var_mean"):
        return func(*args, **kwargs)
    keep = {k: v for k, v in kwargs.items() if k in ("dim", "keepdim")}
    dims = next((a for a in args[1:] if isinstance(a, (int, tuple, list)) and not isinstance(a, bool)), None)
    if dims is not None:
        keep.setdefault("dim", dims)
    variance = torch.var(args[0], correction=0, **keep)
    result = (variance + _floor(args[0])).sqrt() if name.startswith("std") else variance
    return result if not name.endswith("_mean") else (result, args[0].mean(**keep))


def _half(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    def capped(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            return value.clamp(-6e4, 6e4)
        return value

    return func(*(capped(a) for a in args), **kwargs)


def _inside_domain(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _with_first(lambda x: x.clamp(-1 + 1e-6, 1 - 1e-6))(func, args, kwargs)


_GUARDS: dict[str, Call] = {
    "log-of-zero": _log,
    "divide-by-zero": _divide,
    "sqrt-at-zero": _root,
    "exp-overflow": _exponential,
    "all-masked-softmax": _masked,
    "too-few-samples": _few,
}
_BY_FUNCTION: dict[str, Call] = dict.fromkeys(
    ("acos", "asin", "arccos", "arcsin", "atanh", "arctanh", "erfinv"), _inside_domain
)
_CASTS = frozenset(("half", "to", "type", "bfloat16"))


def guard_for(rule: str, function: str | None) -> Call | None:
    """The mend for a rule at a call of that torch function, None where there is none to try."""
    function = (function or "").rstrip("_") or function
    if rule == "nonfinite-op":
        return _BY_FUNCTION.get(function or "")
    if rule == "all-masked-softmax" and function not in ("softmax", "log_softmax"):
        return None  # inside a composed function (attention) the scores are out of reach
    if rule == "half-overflow":
        return _half if function in _CASTS else None
    return _GUARDS.get(rule)
