"""Looking at tensors: are they finite, what range do they span."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch


class Bad(NamedTuple):
    """How many NaN and how many infinite elements a tensor holds."""

    nan: int
    inf: int

    def __bool__(self) -> bool:
        return self.nan > 0 or self.inf > 0


CLEAN = Bad(0, 0)


def numeric(tensor: torch.Tensor) -> bool:
    """Whether the tensor can hold a NaN at all and can be looked into."""
    return (tensor.is_floating_point() or tensor.is_complex()) and tensor.layout == torch.strided and not tensor.is_meta


def bad(tensor: torch.Tensor) -> Bad:
    """Counts of non-finite elements; cheap where all are finite."""
    tensor = tensor.detach()
    if not numeric(tensor) or tensor.numel() == 0:
        return CLEAN
    # A sum that is finite has only finite terms; one that is not may have overflowed on finite ones.
    if tensor.dtype in (torch.float32, torch.float64) and math.isfinite(float(tensor.sum())):
        return CLEAN
    if bool(torch.isfinite(tensor).all()):
        return CLEAN
    return Bad(int(torch.isnan(tensor).sum()), int(torch.isinf(tensor).sum()))


def describe(tensor: torch.Tensor) -> dict[str, object]:
    """Shape, dtype and the range of the finite elements: `min`, `max`, `abs_min`; `nan`, `inf`, `zeros` where there are
    any. No element's value beyond the extremes."""
    tensor = tensor.detach()
    out: dict[str, object] = {"shape": list(tensor.shape), "dtype": str(tensor.dtype).removeprefix("torch.")}
    if not numeric(tensor) or tensor.numel() == 0:
        return out
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    finite = tensor[torch.isfinite(tensor)]
    if finite.numel():
        wide = finite.double() if finite.dtype == torch.float64 else finite.float()
        out["min"] = float(wide.min())
        out["max"] = float(wide.max())
        out["abs_min"] = float(wide.abs().min())
        zeros = int((wide == 0).sum())
        if zeros:
            out["zeros"] = zeros
    counts = bad(tensor)
    if counts.nan:
        out["nan"] = counts.nan
    if counts.inf:
        out["inf"] = counts.inf
    return out


def first_index(mask: torch.Tensor) -> list[int] | None:
    """Index of the first True element, None where there is none."""
    if mask.numel() == 0 or not bool(mask.any()):
        return None
    if mask.dim() == 0:
        return []
    return [int(i) for i in mask.nonzero()[0]]


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Bit-for-bit equal values, NaN being equal to NaN."""
    a, b = a.detach(), b.detach()
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return bool(torch.equal(torch.isnan(a), torch.isnan(b)) and torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)))
