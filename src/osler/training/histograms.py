"""Log-magnitude histograms of gradients, by counting the top byte of the float: no arithmetic on the values.

The top byte of a float32 is the sign and seven bits of the exponent, so each of 128 bins spans two octaves: bin b holds
2**(2b - 127) <= |x| < 2**(2b - 125); bin 0 holds zeros and what is next to them.
"""

from __future__ import annotations

from collections import deque

import torch

NO_GRADIENT = -1.0  # stands for a parameter whose .grad is None, in rows of norms and of peaks

BINS = 128
_SAMPLE = 1 << 16  # values counted per tensor; larger ones are strided


def log_magnitudes(gradient: torch.Tensor) -> torch.Tensor:
    """Counts per two-octave bin.

    Args:
        gradient: any shape, floating point, dense; large tensors are sampled evenly.

    Returns:
        Shape (128,), int64, on the CPU.
    """
    flat = gradient.detach().reshape(-1)
    if flat.numel() > _SAMPLE:
        # an odd stride does not fall in step with rows of even length
        flat = flat[:: (flat.numel() // _SAMPLE) | 1]
    values = flat.to(torch.float32).contiguous()
    top = values.view(torch.uint8).view(-1, 4)[:, 3]  # little-endian
    return torch.bincount((top & 127).int(), minlength=BINS).cpu()


def peak(counts: torch.Tensor) -> float:
    """The magnitude at the middle of the fullest bin, zeros left out; 0 where all are zero."""
    if not int(counts[1:].sum()):
        return 0.0
    return 2.0 ** (2 * (int(counts[1:].argmax()) + 1) - 126)


class Histograms:
    """The last 64 histograms' peaks of each parameter of an optimizer."""

    def __init__(self) -> None:
        self._peaks: dict[tuple[int, int], deque[tuple[int, float]]] = {}

    def add(self, optimizer: int, parameters: list[torch.Tensor], step: int) -> list[float]:
        """Count the gradients of a step; returns the peaks in the order of the parameters (-1: no dense gradient)."""
        out = []
        for i, p in enumerate(parameters):
            g = p.grad
            value = NO_GRADIENT
            if g is not None and g.layout == torch.strided and g.is_floating_point() and g.numel():
                value = peak(log_magnitudes(g))
                self._peaks.setdefault((optimizer, i), deque(maxlen=64)).append((step, value))
            out.append(value)
        return out

    def median_peak(self, optimizer: int, parameter: int) -> float | None:
        """Median of a parameter's peaks, None where none was taken."""
        seen = sorted(v for _, v in self._peaks.get((optimizer, parameter), ()))
        return seen[len(seen) // 2] if seen else None
