"""A training gives the same results, bit for bit, with and without osler, and with replays in the middle of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

CASES = ["mlp", "cnn", "transformer", "gan", "lbfgs", "amp", "compiled"]


@pytest.mark.parametrize("mode", ["watched", "thrifty", "forced"])
@pytest.mark.parametrize("case", CASES)
def test_bit_for_bit(batch: Callable[[str], Any], case: str, mode: str) -> None:
    """Losses, weights, buffers, gradients, optimizer state, generators, attributes of modules, hooks and warnings."""
    facts = batch("same").facts(f"case_{case}")
    assert facts["losses"] >= 6
    assert facts[mode]["differs"] == [], facts[mode]["warnings"]
    assert facts[mode]["notes"] == []
    assert facts[mode]["replays"] >= (2 if mode == "forced" else 0)


def test_nothing_of_osler_is_saved_or_copied(batch: Callable[[str], Any]) -> None:
    assert batch("same").facts("case_copies") == {"found": [], "same": True, "loads": ["model", "opt"]}
