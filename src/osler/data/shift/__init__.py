"""Covariate shift: whether the joint distribution of many features, or of embeddings, has moved."""

from __future__ import annotations

from osler.data.shift.check import check_shift
from osler.data.shift.gate import Frozen, Gate
from osler.data.shift.monitor import ShiftEvent, ShiftMonitor
from osler.data.shift.tiers import Tier

__all__ = ["Frozen", "Gate", "ShiftEvent", "ShiftMonitor", "Tier", "check_shift"]
