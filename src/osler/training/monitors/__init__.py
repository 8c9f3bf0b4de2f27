"""What judges. One file per family of rules; each class names the rules that it `detects`."""

from __future__ import annotations

from osler.training.monitors.detached import DetachedMonitor
from osler.training.monitors.magnitudes import MagnitudeMonitor
from osler.training.monitors.numbers import NumberMonitor
from osler.training.monitors.ownership import OwnershipMonitor
from osler.training.monitors.units import UnitMonitor

DETECTORS = {
    cls.__name__: cls for cls in (NumberMonitor, MagnitudeMonitor, UnitMonitor, OwnershipMonitor, DetachedMonitor)
}
"""Every monitor by name; together they detect every rule of the parts `numbers` and `gradients`."""
