"""Faults of many kinds, each replayed: the rule, the line and the numbers that come out of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

# case, mark of the faulty line, rule, direction, confirmed, step, part of the message
LOCATED = [
    ("dropout", "dropout", "log-of-zero", "forward", True, 2, "holds 1 value of 0 or below (sample 3)"),
    ("in_place", "in place", "log-of-zero", "forward", True, 2, "holds 6 values of 0 or below"),
    ("accumulation", "accumulation", "divide-by-zero", "forward", True, 2, "divides by zero in 1 element (sample 6)"),
    ("two_losses_one_graph", "retained graph", "sqrt-at-zero", "backward", True, 2, "differentiated at 0 in 8 elements"),
    ("autocast_fp16", "autocast", "half-overflow", "forward", True, 2, "linear goes beyond float16's largest value"),
    ("checkpoint", "checkpointed", "sqrt-at-zero", "backward", None, 2, "sqrt is differentiated at 0"),
    ("checkpoint_reentrant", "checkpointed", "sqrt-at-zero", "backward", True, 2, "sqrt is differentiated at 0"),
    ("compiled_module", "compiled module", "log-of-zero", "forward", True, 2, "holds 8 values of 0 or below"),
    ("compiled_function", "compiled function", "divide-by-zero", "forward", True, 2, "divides by zero in 1 element"),
    ("double_backward", "double backward", "sqrt-at-zero", "backward", True, 2, "differentiated at 0 in 8 elements"),
    ("lbfgs", "lbfgs", "divide-by-zero", "forward", True, 2, "divides by zero in 8 elements"),
    ("gan", "gan", "log-of-zero", "forward", True, 2, "holds 8 values of 0 or below"),
    ("custom_function", "custom backward", "divide-by-zero", "backward", None, 2, "divides by zero in 8 elements"),
    ("attention_mask", "masked", "all-masked-softmax", "forward", True, 2, "2 of 6 rows"),
    ("exp", "exp", "exp-overflow", "forward", True, 2, "exp is given 200"),
    ("std_of_one", "std", "too-few-samples", "forward", True, 2, "taken over 1 element: with correction 1"),
    ("clip_refuses", "clip", "sqrt-at-zero", "backward", True, 2, "differentiated at 0 in 6 elements"),
    ("loss_checked_by_the_script", "own check", "log-of-zero", "forward", True, 2, "holds 24 values of 0 or below"),
    ("anomaly_mode", "anomaly", "sqrt-at-zero", "backward", True, 2, "differentiated at 0 in 6 elements"),
    ("tag", "tag", "log-of-zero", "forward", True, 2, "probabilities, the input of log, holds 24 values"),
    ("tag_in_forward", "tag in forward", "log-of-zero", "forward", True, 2, "inner, the input of log, holds 24 values"),
    ("nan_input", "nan input", "nonfinite-input", "forward", True, 2, "2 NaN values in 2 of 8 samples (first: sample 3, column 4)"),
    ("batch_norm", "batch norm", "nonfinite-input", "forward", True, 2, "1 NaN value in 1 of 8 samples (first: sample 5)"),
    ("scaler_keeps_skipping", "always skipped", "sqrt-at-zero", "backward", True, 11, "differentiated at 0 in 4 elements"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("case", "mark", "rule", "direction", "confirmed", "step", "words"), LOCATED, ids=[c[0] for c in LOCATED]
)
def test_a_fault_is_located(
    batch: Callable[[str], Any],
    case: str,
    mark: str,
    rule: str,
    direction: str,
    confirmed: bool | None,
    step: int,
    words: str,
) -> None:
    run = batch("faults")
    facts = run.facts(f"case_{case}")
    first = facts["findings"][0]
    assert first["rule"] == rule
    assert first["where"]["line"] == run.line(mark)
    assert first["where"]["file"] == str(run.script)
    assert first["where"]["direction"] == direction
    assert first["confirmed"] is confirmed
    assert first["first_step"] == first["where"]["step"] == step
    assert words in first["message"]
    assert "not_reproduced" not in first["evidence"]
    assert not [note for note in facts["notes"] if "failed" in note]
    # what follows from it may be said, another cause may not
    assert {f["rule"] for f in facts["findings"][1:]} <= {"nonfinite-parameter"}


def test_the_same_dropout_mask_is_drawn_again(batch: Callable[[str], Any]) -> None:
    run = batch("faults")
    facts = run.facts("case_functional_dropout")
    first = facts["findings"][0]
    assert (first["rule"], first["where"]["line"]) == ("divide-by-zero", run.line("functional dropout"))
    assert first["evidence"]["elements"] == facts["dropped"][0] > 0
    assert first["confirmed"] is True


def test_an_input_changed_after_the_call_is_not_taken_for_a_cause(batch: Callable[[str], Any]) -> None:
    run = batch("faults")
    findings = run.facts("case_input_changed_in_place")["findings"]
    # the gradient of out / x needs x, which torch saved: what osler holds is the same memory
    for f in findings:
        if f["rule"] == "divide-by-zero":
            assert f["where"]["line"] == run.line("input changed")
        else:
            assert "changed in place" in f["message"]


def test_a_replay_restores_the_running_statistics(batch: Callable[[str], Any]) -> None:
    """To what the training's own forward made of them: four batches, the replayed one counted once."""
    assert batch("faults").facts("case_batch_norm")["batches"] == 4


@pytest.mark.parametrize("case", ["checkpoint", "checkpoint_reentrant"])
def test_no_gradient_is_accumulated_by_a_replay(batch: Callable[[str], Any], case: str) -> None:
    assert batch("faults").facts(f"case_{case}")["accumulated"] == 3 * 4


def test_a_skipping_scaler(batch: Callable[[str], Any]) -> None:
    """Forty skips in a row are one fault; once the scale has settled, a bad loss is another."""
    run = batch("faults")
    facts = run.facts("case_grad_scaler")
    overflow, log = facts["findings"]
    assert overflow["rule"] == "half-overflow"
    assert overflow["where"]["line"] == run.line("scaler")
    assert overflow["first_step"] == 11
    assert overflow["count"] == 3
    assert "the gradient at float goes beyond float16's" in overflow["message"]
    assert overflow["evidence"]["function"] == "float"
    assert (log["rule"], log["where"]["line"]) == ("log-of-zero", run.line("scaler"))
    assert (log["first_step"], log["confirmed"], log["where"]["sample"]) == (40, True, 2)
    assert facts["scale"][-1] == facts["scale"][-5] == 2.0**19


def test_an_update_that_blew_up(batch: Callable[[str], Any]) -> None:
    run = batch("faults")
    (finding,) = run.facts("case_update_that_blew_up")["findings"]
    assert finding["rule"] == "nonfinite-parameter"
    assert finding["where"]["line"] == run.line("blew up")
    assert finding["evidence"]["update_step"] == 2
    assert finding["evidence"]["learning_rate"] == "Infinity"
    assert "applied with learning rate inf to a gradient of norm" in finding["message"]
    assert finding["fix"].startswith("Lower the learning rate (here inf)")
    assert (finding["first_step"], finding["last_step"]) == (3, 4)


@pytest.mark.parametrize("case", ["dropout", "gan", "lbfgs", "tag"])
def test_weights_spoilt_by_a_bad_gradient_do_not_blame_the_learning_rate(
    batch: Callable[[str], Any], case: str
) -> None:
    findings = batch("faults").facts(f"case_{case}")["findings"]
    (after,) = (f for f in findings if f["rule"] == "nonfinite-parameter")
    assert after["message"].endswith("since the update of step 2, whose gradient was already not finite.")
    assert after["fix"].startswith("Mend what made the gradient of step 2 NaN or Inf")
    assert "Lower the learning rate" not in after["fix"]


def test_the_optimizer_that_owns_the_weights_is_named(batch: Callable[[str], Any]) -> None:
    """The critic's optimizer is the first to meet the NaN, the generator's step has made it."""
    run = batch("faults")
    findings = run.facts("case_gan")["findings"]
    (after,) = (f for f in findings if f["rule"] == "nonfinite-parameter")
    assert after["where"]["line"] == run.line("generator's step")
    assert "optimizer:1" in after["touches"]
    assert after["evidence"]["learning_rate"] == 0.01


def test_rules_can_be_ignored_and_selected(batch: Callable[[str], Any]) -> None:
    facts = batch("faults").facts("case_select_and_ignore")
    assert facts == {"ignored": [], "selected": [], "plain": ["log-of-zero"]}


def test_repeats_are_counted(batch: Callable[[str], Any]) -> None:
    run = batch("faults")
    (finding,) = run.facts("case_repeats_are_counted")["findings"]
    assert (finding["rule"], finding["where"]["line"]) == ("sqrt-at-zero", run.line("repeats"))
    assert (finding["first_step"], finding["last_step"], finding["count"]) == (1, 5, 3)


def test_a_loss_that_was_not_recorded_is_not_run_on_the_users_own_graph(batch: Callable[[str], Any]) -> None:
    facts = batch("faults").facts("case_loss_not_recorded")
    assert facts["why_not"] == "the operations that made the loss were not recorded"
    assert facts["hooks"] == 0
