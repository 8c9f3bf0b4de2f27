"""The overhead budget: what is thinned when, and what the figures say."""

from __future__ import annotations

import itertools
import math

import pytest

from osler.core.settings import Budget
from osler.training.governor import Governor

MS = 1e6  # nanoseconds


def run(governor: Governor, steps: int, own_ns: float, always: float, tape: float, look: float = 0.0) -> list[int]:
    """Let steps pass; the numbers of those with a tape."""
    taped = []
    for _ in range(steps):
        if governor.tape_on:
            taped.append(governor.steps)
        on, looked = governor.tape_on, governor.look_on
        spent = always + (tape if on else 0) + (look if looked else 0)
        governor.steps_done(1, own_ns + spent, always, tape if on else 0.0, look if looked else 0.0)
    return taped


def test_the_first_steps_are_recorded_whole() -> None:
    governor = Governor(Budget(), False, 50)
    assert run(governor, 64, 1 * MS, 30e3, 900e3) == list(range(64))
    assert governor.whole is False


def test_a_cheap_tape_is_never_thinned() -> None:
    governor = Governor(Budget(), False, 50)
    assert run(governor, 500, 100 * MS, 50e3, 500e3) == list(range(500))
    assert governor.every == 1


def test_an_expensive_tape_is_thinned_to_the_budget() -> None:
    governor = Governor(Budget(), False, 50)
    run(governor, 2000, 10 * MS, 100e3, 1 * MS)
    # 3 % of 10 ms, of which 70 % are aimed at, less detection leaves 110 us: a tape of 1 ms fits every tenth step
    assert governor.every == 10
    before = governor.spent_ns, governor.total_ns
    run(governor, 2000, 10 * MS, 100e3, 1 * MS)
    spent, total = governor.spent_ns - before[0], governor.total_ns - before[1]
    assert spent / (total - spent) == pytest.approx(0.02, rel=0.02)
    assert spent / (total - spent) < 0.03


def test_detection_that_exhausts_the_budget_leaves_a_tape_now_and_then() -> None:
    governor = Governor(Budget(), False, 50)
    taped = run(governor, 1000, 1 * MS, 200e3, 100e3)
    assert governor.every == math.ceil(100e3 / (0.05 * governor.allowance(1 * MS)))
    late = [s for s in taped if s > 100]
    assert 25 < len(late) < 60


def test_the_allowance() -> None:
    governor = Governor(Budget(fraction=0.03, short_step_fraction=0.08, short_step_us=80.0), False, 50)
    assert governor.allowance(10 * MS) == pytest.approx(300e3)
    assert governor.allowance(1 * MS) == pytest.approx(80e3)  # 80 us, within 8 %
    assert governor.allowance(0.1 * MS) == pytest.approx(8e3)  # 8 %


def test_no_budget_records_everything() -> None:
    governor = Governor(Budget(), True, 50)
    assert len(run(governor, 400, 1 * MS, 500e3, 5 * MS)) == 400
    assert governor.whole is True
    assert governor.figures()["budget"] == "none"


def test_a_trip_records_the_next_steps_whole() -> None:
    governor = Governor(Budget(), False, 50)
    run(governor, 301, 1 * MS, 30e3, 5 * MS)
    assert governor.whole is False
    governor.tripped()
    assert governor.tape_on is governor.whole is True
    began = governor.steps
    assert run(governor, 9, 1 * MS, 30e3, 5 * MS) == list(range(began, began + 9))
    assert len(run(governor, 9, 1 * MS, 30e3, 5 * MS)) <= 1


def test_close_looks_are_dense_at_first_then_rare() -> None:
    governor = Governor(Budget(), True, 50)
    looks = []
    for _ in range(260):
        if governor.look_on:
            looks.append(governor.steps)
        governor.steps_done(1, 10 * MS, 10e3, 10e3, 100e3 if governor.look_on else 0.0)
    assert looks == [0, 1, 2, 4, 8, 16, 24, 32, 40, 48, 99, 150, 201, 252]


def test_expensive_looks_become_rarer_inside_a_budget() -> None:
    governor = Governor(Budget(), False, 50)
    looks = []
    for _ in range(1500):
        if governor.look_on:
            looks.append(governor.steps)
        look = 3 * MS if governor.look_on else 0.0
        governor.steps_done(1, 1 * MS + 10e3 + look, 10e3, 0.0, look)
    gaps = [b - a for a, b in itertools.pairwise(looks[10:])]
    # six looks of 3 ms in 3 % of 1 ms a step: one in 600
    assert all(590 <= g <= 620 for g in gaps)


def test_pauses_do_not_count_as_a_step() -> None:
    governor = Governor(Budget(), False, 50)
    run(governor, 100, 10 * MS, 100e3, 100e3)
    governor.steps_done(1, 60_000 * MS, 100e3, 100e3, 0.0)
    assert governor.costs.step < 20 * MS + 1 * MS


def test_steps_in_one_account() -> None:
    one, eight = Governor(Budget(), False, 50), Governor(Budget(), False, 50)
    for governor in (one, eight):
        run(governor, 200, 1 * MS, 50e3, 5 * MS)
    for _ in range(8):
        one.steps_done(1, 1.05 * MS, 50e3, 0.0, 0.0)
    eight.steps_done(8, 8 * 1.05 * MS, 8 * 50e3, 0.0, 0.0)
    assert one.steps == eight.steps == 208
    assert eight.total_ns == pytest.approx(one.total_ns, rel=0.02)
    assert eight.costs.always == pytest.approx(one.costs.always, rel=0.05)


def test_what_is_due() -> None:
    governor = Governor(Budget(), False, 50)
    run(governor, 200, 1 * MS, 30e3, 50 * MS)
    assert not governor.tape_on
    assert governor.due(10_000) is True
    assert governor.due(0) is False


def test_figures() -> None:
    governor = Governor(Budget(), False, 50)
    run(governor, 101, 10 * MS, 100e3, 100e3)
    figures = governor.figures()
    assert figures["steps"] == 101
    assert figures["ratio"] == pytest.approx(1.02, abs=1e-3)
    assert figures["seconds"] == pytest.approx(100 * 200e3 / 1e9, rel=1e-3)
    assert figures["step_ms"] == pytest.approx(10.0, rel=1e-3)
    assert figures["detection_us"] == pytest.approx(100.0, rel=1e-3)
    assert figures["taped_steps"] == 101
    assert figures["budget"] == "0.03"


def test_a_governor_that_saw_nothing() -> None:
    figures = Governor(Budget(), False, 50).figures()
    assert figures["ratio"] == 1.0
    assert figures["steps"] == 0
