"""The dump of a failing step: what is in it, that it repeats, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

ROUNDTRIPS = {
    "dropout": "log-of-zero",
    "functional_dropout": "divide-by-zero",
    "in_place": "log-of-zero",
    "accumulation": "divide-by-zero",
    "autocast_fp16": "half-overflow",
    "checkpoint": "sqrt-at-zero",
    "checkpoint_reentrant": "sqrt-at-zero",
    "compiled_module": "log-of-zero",
    "compiled_function": "divide-by-zero",
    "double_backward": "sqrt-at-zero",
    "lbfgs": "divide-by-zero",
    "gan": "log-of-zero",
    "custom_function": "divide-by-zero",
    "nan_input": "nonfinite-input",
    "attention_mask": "all-masked-softmax",
    "exp": "exp-overflow",
    "std_of_one": "too-few-samples",
    "grad_scaler": "half-overflow",
    "scaler_keeps_skipping": "sqrt-at-zero",
    "batch_norm": "nonfinite-input",
    "anomaly_mode": "sqrt-at-zero",
    "tag": "log-of-zero",
}


@pytest.mark.parametrize("case", ROUNDTRIPS)
def test_a_bundle_repeats_to_the_same_cause(batch: Callable[[str], Any], case: str) -> None:
    seen = batch("bundles").facts("case_roundtrips")[case]
    assert seen["rule"] == ROUNDTRIPS[case]
    assert seen["dump"] is True
    assert seen["same_cause"] is True
    assert seen["repeated"] == [ROUNDTRIPS[case]]
    assert seen["line"] is seen["message"] is seen["rng_kept"] is True
    (note,) = seen["notes"]
    assert note.startswith("repeated ")
    assert note.endswith(" operations: the same cause")


def test_what_a_bundle_holds(batch: Callable[[str], Any]) -> None:
    facts = batch("bundles").facts("case_content")
    name = facts["name"]
    assert name.startswith("step-2-")
    assert facts["files"] == ["step.json", "tensors.safetensors"]
    assert facts["modes"] == {
        name: 0o700,
        f"{name}/step.json": 0o600,
        f"{name}/tensors.safetensors": 0o600,
    }
    assert facts["bundles"] == 1
    assert facts["step"] == 2
    assert facts["environment"]["torch"] == facts["torch"]
    assert facts["environment"]["seed"] == 0
    assert facts["environment"]["threads"] == 1
    assert facts["environment"]["deterministic"] is False
    assert {"parameter 0.weight", "parameter 3.bias", "argument 0 of Sequential"} <= set(facts["roles"])
    assert facts["json_only"] is facts["losses"] is facts["file_reads_too"] is True


def test_the_path_is_relative_where_it_can_be(batch: Callable[[str], Any]) -> None:
    facts = batch("bundles").facts("case_relative_path")
    assert facts["path"].startswith("here/dumps/step-0-")
    assert facts["exists"] is True


def test_past_the_cap_parameters_are_left_out_first(batch: Callable[[str], Any]) -> None:
    facts = batch("bundles").facts("case_cap")
    assert facts["rule"] == "log-of-zero"
    assert 32 << 10 < facts["bytes"] < 256 << 10
    assert facts["kept"] == ["argument_0_of_Linear", "argument_1_of_mul", "loss.0"]
    why = "the step's inputs and parameters exceed dump.max_mb (0.25 MiB)"
    assert facts["not_checked"] == [["replay of the dump in another process", why]]
    assert facts["why"] == [why]
    assert facts["same_cause"] is None
    assert facts["repeated"] == ["log-of-zero"]


def test_no_bundle_where_dumps_are_off(batch: Callable[[str], Any]) -> None:
    assert batch("bundles").facts("case_cap")["off"] == ["log-of-zero", [], False]


HOSTILE = {
    "not json": "is not JSON",
    "deep json": "is not JSON",
    "not utf-8": "is not JSON",
    "a list": "is not of format 1",
    "format": "is not of format 1",
    "no finding": "its finding is malformed",
    "finding of another kind": "its finding is malformed",
    "operations of another kind": "its list of operations is malformed",
    "an operation of another kind": "an operation is malformed",
    "saves a file": "aten::save.default is no operation on tensors",
    "saves a file with a word": "aten::save.default is no operation on tensors",
    "turns gradients on": "aten::set_grad_enabled.default is no operation on tensors",
    "no aten": "'prim::Print.default' is not an aten operation",
    "python": "'os::system.default' is not an aten operation",
    "attribute": "has no operation aten::__class__.default",
    "unknown": "has no operation aten::no_such_operation.default",
    "reads a file": "aten::from_file is refused",
    "writes a file": "aten::from_file is refused",
    "too few results": "aten::ones.default gave 1 tensors, [] were recorded",
    "huge": "aten::ones.default failed",
    "arguments of another kind": "an argument is the word 'x'",
    "nested arguments": "an operation's arguments are malformed",
    "beyond its memory": "a tensor reaches beyond its memory",
    "negative": "a tensor is malformed",
    "far strides": "a tensor reaches beyond its memory",
    "another dtype": "a tensor is read under two dtypes",
    "no dtype": "a tensor is malformed",
    "no such tensor": "tensor 123456 is missing",
    "a word as tensor": "a tensor is malformed",
    "rng of another kind": "a generator state is missing",
    "index of another kind": "it does not fit together",
    "forward of another kind": "it does not fit together",
    "out of another kind": "it does not fit together",
    "targets of another kind": "it does not fit together",
    "targets no list": "it does not fit together",
    "damaged tensors": "tensors.safetensors is damaged",
    "no tensors": "is missing",
    "tensors of another dtype": "a generator state is missing",
    "shorter tensors": "it does not fit together",
    "no folder": "is no bundle: it has no step.json",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_bundle_is_refused(batch: Callable[[str], Any], name: str) -> None:
    answer = batch("bundles").facts("case_hostile")["answers"][name]
    assert answer.startswith("refused: ")
    assert HOSTILE[name] in answer


def test_hostile_bundles_touch_nothing(batch: Callable[[str], Any]) -> None:
    facts = batch("bundles").facts("case_hostile")
    assert set(facts["answers"]) == set(HOSTILE)
    assert facts["victim"] == "12345678"
    assert facts["written"] is False
    assert facts["good"] is True
