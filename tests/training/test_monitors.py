"""The monitors of gradients and activations: each fault with its line and numbers, each twin without a word."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from osler.catalogue import RULES
from osler.core.finding import Finding
from osler.core.report import Report

# case, rule, severity, mark of the line (None: the script has several), where, evidence
FAULTS: list[tuple[str, str, str, str | None, dict[str, object], dict[str, object]]] = [
    ("vanishing", "vanishing-gradient", "warning", None, {"module": "layers.0", "parameter": "layers.0.weight"}, {"layers": 14}),
    ("exploding", "exploding-gradient", "error", "exploding", {"optimizer": "SGD"}, {"norm_before": 8.0, "learning_rate": 2.0}),
    ("zero", "zero-gradient", "warning", "rounded", {"module": "first"}, {"count": 2, "window": 64, "operation": "round"}),
    ("update_high", "update-ratio", "warning", None, {"optimizer": "Adam", "parameter": "2.weight"}, {"learning_rate": 1.0}),
    ("update_low", "update-ratio", "warning", "slow", {"optimizer": "SGD"}, {"learning_rate": 1e-12, "layers_affected": 2}),
    ("dead", "dead-relu", "warning", "dead", {}, {"dead": 16, "units": 16, "share": 1.0, "layers": 1}),
    ("saturated", "saturated-activation", "warning", "saturated", {}, {"layers": 1}),
    ("unused", "unused-parameter", "warning", "unused", {"module": "spare", "parameter": "spare.weight"}, {"count": 2}),
    ("not_in_optimizer", "parameter-not-in-optimizer", "warning", "left out", {"parameter": "2.weight"}, {"count": 2, "elements": 34}),
    ("backbone_left_out", "parameter-not-in-optimizer", "info", None, {"parameter": "0.weight"}, {"count": 2, "elements": 144}),
    ("stale", "stale-optimizer-parameters", "error", "stale", {"parameter": "2.weight"}, {"stale": 2, "of": 4, "same_shape": 2}),
    ("not_registered", "layers-not-registered", "error", "unregistered", {"module": "Listed"}, {"attribute": "blocks", "kind": "list", "tensors": 4, "elements": 144}),
]  # fmt: skip


def roots(facts: dict[str, Any]) -> list[Finding]:
    findings = [Finding.from_dict(f) for f in facts["findings"]]
    return [p.finding for p in Report({"kind": "watch"}, findings=findings).diagnosis(RULES).roots]


@pytest.mark.parametrize(
    ("case", "rule", "severity", "mark", "where", "evidence"), FAULTS, ids=[f"{f[0]}-{f[1]}" for f in FAULTS]
)
def test_a_fault_and_its_twin(
    batch: Callable[[str], Any],
    case: str,
    rule: str,
    severity: str,
    mark: str | None,
    where: dict[str, object],
    evidence: dict[str, object],
) -> None:
    run = batch("monitors")
    facts = run.facts(f"case_{case}")
    (root,) = roots(facts["faulty"])
    assert (root.rule, root.severity.label) == (rule, severity)
    assert root.where.file == str(run.script)
    if mark is not None:
        assert root.where.line == run.line(mark)
    assert {k: getattr(root.where, k) for k in where} == where
    assert {k: root.evidence[k] for k in evidence} == evidence
    assert root.first_step == 0
    assert root.fix
    for side in ("faulty", "clean"):
        assert facts[side]["raised"] is None
        assert facts[side]["notes"] == []
    assert facts["clean"]["findings"] == []


def test_the_numbers_of_a_vanishing_gradient(batch: Callable[[str], Any]) -> None:
    (finding,) = batch("monitors").facts("case_vanishing")["faulty"]["findings"]
    evidence = finding["evidence"]
    assert evidence["ratio"] <= 1e-5
    assert evidence["ratio"] == pytest.approx(evidence["gradient_rms_first"] / evidence["gradient_rms_reference"])
    assert evidence["layers_affected"] == len(evidence["parameters"])
    assert len(evidence["ratios"]) == 14


def test_the_numbers_of_an_explosion(batch: Callable[[str], Any]) -> None:
    """Each step multiplies the weights by 1 - 2 * 2 = -3, and with them the gradient."""
    (finding,) = batch("monitors").facts("case_exploding")["faulty"]["findings"]
    norms = finding["evidence"]["norms"]
    assert [b / a for a, b in itertools.pairwise(norms)] == pytest.approx([3.0] * (len(norms) - 1), rel=1e-3)
    assert finding["evidence"]["growth"] == finding["evidence"]["norm"] / finding["evidence"]["norm_before"] > 1e3


@pytest.mark.parametrize(("how", "mark"), [("detach", "detach"), ("numpy", "numpy"), ("no_grad", "no grad")])
def test_a_cut_graph(batch: Callable[[str], Any], how: str, mark: str) -> None:
    run = batch("monitors")
    facts = run.facts("case_detached")[how]
    (root,) = roots(facts)
    assert root.rule == "gradient-detached"
    assert root.where.line == run.line(mark)
    assert root.evidence["parameters"] == ["first.weight", "first.bias"]
    assert root.evidence["no_grad"] is (how == "no_grad")
    assert "got no gradient in 16 steps" in root.message


def test_no_cut_no_finding(batch: Callable[[str], Any]) -> None:
    assert batch("monitors").facts("case_detached")["none"]["findings"] == []


def test_a_backward_that_was_refused(batch: Callable[[str], Any]) -> None:
    run = batch("monitors")
    facts = run.facts("case_refused")
    (finding,) = facts["findings"]
    assert (finding["rule"], finding["confidence"]) == ("gradient-detached", "definite")
    assert finding["where"]["line"] == run.line("refused")
    assert finding["message"].endswith("the loss does not depend on any parameter: argmax cuts the graph.")
    assert facts["raised"].startswith("RuntimeError: element 0 of tensors does not require grad")
    (frozen,) = facts["frozen"]["findings"]
    assert frozen["where"]["line"] == run.line("frozen")
    assert frozen["message"].endswith("no parameter requires a gradient.")


def test_what_was_too_short_to_judge_is_said(batch: Callable[[str], Any]) -> None:
    facts = batch("monitors").facts("case_short")
    told = dict(facts["short"]["not_checked"])
    assert told["vanishing-gradient"] == "Adam took 3 steps; a window of 64 is needed"
    assert told["unused-parameter"] == told["gradient-detached"] == "Adam took 3 steps; 4 are needed"
    assert {r.name for r in RULES.values() if r.part == "gradients"} - set(told) == {"exploding-gradient"}
    assert dict(facts["lbfgs"]["not_checked"])["update-ratio"].startswith("LBFGS takes a closure")
    assert facts["short"]["findings"] == facts["lbfgs"]["findings"] == []


def test_the_monitors_detect_every_rule_once() -> None:
    from osler.training.monitors import DETECTORS

    detected = [rule for cls in DETECTORS.values() for rule in cls.detects]
    assert sorted(detected) == sorted(r.name for r in RULES.values() if r.part in ("numbers", "gradients"))
