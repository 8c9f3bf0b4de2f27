"""Faults of the data: one module per family."""

from __future__ import annotations

from osler.catalogue.data import drift, labels, missing, preprocess, shift, sources, splits
from osler.core.rule import Rule

RULES: tuple[Rule, ...] = tuple(
    rule for family in (splits, preprocess, labels, drift, shift, missing, sources) for rule in family.RULES
)
