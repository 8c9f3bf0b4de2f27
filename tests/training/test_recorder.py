"""The recorder among everything else that goes on in a script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def facts(batch: Callable[[str], Any]) -> Callable[[str], dict[str, Any]]:
    """The facts of a case of `surroundings.py`; where osler watched, it had nothing to say."""

    def of(case: str) -> dict[str, Any]:
        found: dict[str, Any] = batch("surroundings").facts(f"case_{case}")
        assert found.get("findings", []) == found.get("notes", []) == []
        assert found.get("modes", 0) == 0  # nothing is left on the stack of function modes
        return found

    return of


def test_device_contexts_hold(facts: Callable[[str], dict[str, Any]]) -> None:
    assert facts("device_contexts")["devices"] == ["meta", "meta", "cpu", "meta", "cpu"] * 3


def test_the_default_device_can_be_set_again(facts: Callable[[str], dict[str, Any]]) -> None:
    seen = facts("default_device")
    assert not seen["error"]
    assert seen["devices"] == ["cpu", "cpu", "meta", "meta", "cpu", "cpu"]


def test_function_modes_of_the_users_own(facts: Callable[[str], dict[str, Any]]) -> None:
    """They see the script's calls in order; between forward and backward nothing else."""
    seen = facts("function_modes")
    assert seen["calls"] is True
    assert seen["in_order"] is seen["same_inside"] is True


def test_transforms(facts: Callable[[str], dict[str, Any]]) -> None:
    """grad, vmap, jacrev, hessian, jvp and a loop that updates weights by hand."""
    seen = facts("transforms")
    assert seen["same"] is seen["again"] is True


def test_export_and_symbolic_tracing(facts: Callable[[str], dict[str, Any]]) -> None:
    seen = facts("tracing")
    assert seen["first"] == seen["between"] == [True, True]


def test_jit_trace(facts: Callable[[str], dict[str, Any]]) -> None:
    seen = facts("jit_trace")
    assert not seen["error"]
    assert seen["codes"] == seen["same"] == [True, True, True]


def test_another_thread_is_left_alone(facts: Callable[[str], dict[str, Any]]) -> None:
    seen = facts("another_thread")
    assert seen["worked"] is True
    assert seen["steps"] == 60
    assert seen["hooks"] == 0


def test_a_forward_that_raises_is_no_end(batch: Callable[[str], Any], facts: Callable[[str], dict[str, Any]]) -> None:
    seen = facts("forward_raises")
    assert seen["raised"] == 3
    assert seen["found"] == ["log-of-zero", batch("surroundings").line("broken")]
    assert seen["hooks"] == 0


def test_workers_and_forks(facts: Callable[[str], dict[str, Any]]) -> None:
    seen = facts("loader_workers")
    assert seen["batches"] == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert seen["child"] == 0
    assert seen["steps"] == 6


def test_removal_restores_torch(facts: Callable[[str], dict[str, Any]]) -> None:
    seen = facts("restored")
    assert {"Function.apply", "clip", "compile", "backward", "GradScaler", "Optimizer", "DataLoader"} <= set(
        seen["changed"]
    )
    assert seen["left"] == seen["left_after_two"] == []
    assert seen["compiled"] is True
    assert seen["active"] is False


def test_two_sessions_are_refused(facts: Callable[[str], dict[str, Any]]) -> None:
    assert facts("restored")["refused"] == "osler is already watching this process"


def test_nothing_piles_up(facts: Callable[[str], dict[str, Any]]) -> None:
    seen = facts("no_leak")
    for loop in ("evaluation", "training"):
        early, late = seen["counts"][loop]
        assert late <= early + 2, loop
    # small tensors outside any graph wait for the next forward, up to numbers.max_tape of them
    assert seen["held"] <= 512
