"""Class lists of training and serving."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from osler.core.finding import Severity
from osler.data.labels import check_mapping, read_classes
from osler.data.need import DataError

ABC = ["ant", "bee", "cow", "dog"]


def only(training: Any, serving: Any, **options: Any) -> Any:
    [finding] = check_mapping(training, serving, **options).findings
    assert finding.rule == "label-mapping-drift"
    return finding


@pytest.mark.parametrize(
    "other",
    [
        ABC,
        tuple(ABC),
        np.array(ABC),
        dict(enumerate(ABC)),
        {str(k): n for k, n in reversed(list(enumerate(ABC)))},
        {n: k for k, n in enumerate(ABC)},
    ],
)
def test_the_same_list_in_another_shape_is_no_drift(other: Any) -> None:
    report = check_mapping(ABC, other)
    assert not report.findings
    assert not report.tables
    assert not report.not_checked


def test_moved_classes_with_permutation_and_traffic() -> None:
    finding = only(ABC, ["ant", "cow", "bee", "dog"], traffic=[10, 30, 50, 10])
    assert finding.severity == Severity.ERROR
    assert finding.evidence["permutation"] == [0, 2, 1, 3]
    assert finding.evidence["traffic_affected"] == pytest.approx(0.8)
    assert "two classes have changed places" in finding.message
    serving = ["ant", "cow", "bee", "dog"]
    assert [serving[j] for j in finding.evidence["permutation"]] == ABC


@pytest.mark.parametrize(
    ("traffic", "share"),
    [
        ({"bee": 3, "dog": 1}, 0.75),
        ({1: 3, 3: 1}, 0.75),
        (np.array([1, 1, 1, 3, 0]), 0.6),
        (np.array(["bee", "dog"]), 0.5),
    ],
)
def test_traffic_in_every_shape(traffic: Any, share: float) -> None:
    finding = only(ABC, ["ant", "cow", "bee", "dog"], traffic=traffic)
    assert finding.evidence["traffic_affected"] == pytest.approx(share)


@pytest.mark.parametrize(
    ("training", "serving", "cause"),
    [
        ([str(k) for k in range(12)], sorted(str(k) for k in range(12)), "sorted as text in serving"),
        (sorted(str(k) for k in range(12)), [str(k) for k in range(12)], "sorted as text in training"),
        (["dog", "ant", "cow", "bee"], sorted(ABC), "serving list is in alphabetical order"),
        (ABC, ["cow", "dog", "ant", "bee"], "training list is in alphabetical order"),
        (ABC, ["background", *ABC], "every class from index 0 on stands 1 later"),
        (ABC, ["ant", "cow", "dog"], "every class from index 2 on stands 1 earlier"),
    ],
)
def test_the_cause_is_named(training: list[str], serving: list[str], cause: str) -> None:
    assert cause in only(training, serving).message


def test_missing_and_extra() -> None:
    finding = only(ABC, ABC[:3])
    assert finding.severity == Severity.ERROR
    assert finding.evidence["missing"] == 1
    assert finding.evidence["permutation"] == [0, 1, 2, None]
    more = only(ABC, [*ABC, "eel"])
    assert more.severity == Severity.WARNING
    assert "1 more in serving (eel)" in more.message


def test_other_spelling_is_a_renaming() -> None:
    finding = only(["polar bear", "sea_lion"], ["Polar_Bear", "sea-lion"])
    assert finding.severity == Severity.INFO
    assert only(["aeroplane", "car"], ["aeroplan", "car"]).severity == Severity.INFO
    # numbered names are alike and not the same
    assert only(["class_1", "class_2"], ["class_2", "class_1"]).severity == Severity.ERROR
    assert only(["class_1", "x"], ["class_3", "x"]).severity == Severity.ERROR


def test_files(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        json.dumps({"id2label": {"0": "ant", "1": "bee"}, "label2id": {"ant": 0, "bee": 1}})
    )
    (tmp_path / "list.json").write_text(json.dumps({"classes": ["ant", "bee"]}))
    (tmp_path / "list.txt").write_text("ant\nbee\n\n")
    np.save(tmp_path / "list.npy", np.array(["ant", "bee"]))
    save_file(
        {"w": np.zeros(2, np.float32)}, tmp_path / "m.safetensors", metadata={"id2label": '{"0": "ant", "1": "bee"}'}
    )
    for name in ("config.json", "list.json", "list.txt", "list.npy", "m.safetensors", "."):
        assert read_classes(tmp_path / name).names == ["ant", "bee"], name


def test_a_fitted_estimator_is_asked_for_its_classes() -> None:
    class Fitted:
        classes_ = np.array([0, 1, 10, 2])

    assert read_classes(Fitted()).names == ["0", "1", "10", "2"]


def test_config_that_contradicts_itself(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        json.dumps({"id2label": {"0": "ant", "1": "bee"}, "label2id": {"ant": 1, "bee": 0}})
    )
    finding = only(["ant", "bee"], tmp_path)
    assert "id2label and label2id disagree at 2 indices" in finding.message


def test_onnx(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto
    node = helper.make_node("ZipMap", ["p"], ["z"], domain="ai.onnx.ml", classlabels_strings=["ant", "bee"])
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("p", kind.FLOAT, [1, 2])],
        [helper.make_tensor_value_info("z", kind.FLOAT, [1])],
    )
    onnx.save(helper.make_model(graph), str(tmp_path / "zip.onnx"))
    plain = helper.make_model(helper.make_graph([], "g", [], []))
    entry = plain.metadata_props.add()
    entry.key, entry.value = "names", "{0: 'ant', 1: 'bee'}"
    onnx.save(plain, str(tmp_path / "meta.onnx"))
    assert read_classes(tmp_path / "zip.onnx").names == ["ant", "bee"]
    assert read_classes(tmp_path / "meta.onnx").names == ["ant", "bee"]
    entry.value = "__import__('os').system('echo ran')"
    onnx.save(plain, str(tmp_path / "evil.onnx"))
    assert "ant" not in read_classes(tmp_path / "evil.onnx").names


def test_onnx_is_named_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "onnx", None)
    (tmp_path / "m.onnx").write_bytes(b"")
    with pytest.raises(DataError, match="needs onnx"):
        read_classes(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "[]", "is empty"),
        ("a.json", '["x", "x"]', "indices 0 and 1 have the same name"),
        ("a.json", '{"a": "b"}', "neither the keys nor the values are indices"),
        ("a.json", '{"lr": 0.1}', "holds no class list"),
        ("a.json", "{", "cannot be read"),
        ("a.json", '{"0": "a", "999999999": "b"}', "the indices reach from 0 to 999999999"),
        ("a.pkl", "x", "unpickled"),
        ("a.xyz", "x", "unknown kind of class list"),
        ("a.onnx", "x", "cannot be read"),
    ],
)
def test_one_clear_line(tmp_path: Path, name: str, content: str, message: str) -> None:
    if name.endswith("onnx"):
        pytest.importorskip("onnx")
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message) as error:
        read_classes(tmp_path / name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("traffic", [[1.5, 2, 3, 4, 5], {"eel": 3}, ["eel"], [0, 0, 0, 0]])
def test_traffic_that_does_not_fit(traffic: Any) -> None:
    with pytest.raises(DataError, match="traffic"):
        check_mapping(ABC, ABC[::-1], traffic=traffic)
