"""Labels and predictions from files and objects; nothing is unpickled."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

from osler.data.labels.inputs import join
from osler.data.labels.read import read_labels, read_probs
from osler.data.need import DataError

Y = np.array([0, 1, 2, 1])
P = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3]], dtype=np.float32)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    np.save(tmp_path / "y.npy", Y)
    np.save(tmp_path / "p.npy", P)
    np.savez(tmp_path / "both.npz", given=Y, true=Y, pred_probs=P)
    table = pa.table({"id": ["a", "b", "c", "d"], "label": Y, **{f"p{k}": P[:, k] for k in range(3)}})
    csv.write_csv(table, tmp_path / "t.csv")
    pq.write_table(table, tmp_path / "t.parquet")
    save_file({"y": Y, "probs": P}, tmp_path / "s.safetensors")
    return tmp_path


@pytest.mark.parametrize("name", ["y.npy", "both.npz", "t.csv", "t.parquet", "s.safetensors", "both.npz:true"])
def test_labels_come_from_every_kind_of_file(here: Path, name: str) -> None:
    assert read_labels(here / name).tolist() == Y.tolist()


@pytest.mark.parametrize("name", ["p.npy", "both.npz", "t.csv", "t.parquet", "s.safetensors"])
def test_predictions_come_from_every_kind_of_file(here: Path, name: str) -> None:
    np.testing.assert_allclose(read_probs(str(here / name)), P, rtol=1e-6)


def test_predictions_of_a_npy_file_are_mapped_not_read(here: Path) -> None:
    assert isinstance(read_probs(here / "p.npy").base, np.memmap)


def test_objects() -> None:
    class Tensor:
        """Like a torch tensor in bfloat16 on another device."""

        def __init__(self, values: np.ndarray, dtype: str = "torch.bfloat16") -> None:
            self.values, self.dtype = values, dtype

        def detach(self) -> Tensor:
            return self

        def cpu(self) -> Tensor:
            return self

        def float(self) -> Tensor:
            return Tensor(self.values, "torch.float32")

        def numpy(self) -> np.ndarray:
            assert self.dtype == "torch.float32"
            return self.values

    assert read_probs(Tensor(P)) is P
    assert read_labels([0, 1, 2]).tolist() == [0, 1, 2]
    assert read_labels(pa.chunked_array([[0, 1], [2]])).tolist() == [0, 1, 2]
    assert read_labels({"y": Y, "x": P}).tolist() == Y.tolist()
    assert read_labels(Y[:, None]).shape == (4,)
    assert read_probs(P.astype(np.float16)).dtype == np.float16
    np.testing.assert_allclose(read_probs([0.25, 1.0]), [[0.75, 0.25], [0, 1]])


def test_a_plain_list_of_numbers_in_a_text_file(tmp_path: Path) -> None:
    (tmp_path / "y.csv").write_text("0\n1\n1\n")
    assert read_labels(tmp_path / "y.csv").tolist() == [0, 1, 1]
    (tmp_path / "w.txt").write_text("label\ncat\ndog\n")
    assert read_labels(tmp_path / "w.txt").tolist() == ["cat", "dog"]


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, ...]:
            return (Path.touch, (tmp_path / "ran",))

    np.save(tmp_path / "y.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    (tmp_path / "y.pkl").write_bytes(pickle.dumps(Bomb()))
    np.savez(tmp_path / "y.npz", y=np.array([Bomb()], dtype=object))
    for name in ("y.npy", "y.pkl", "y.npz"):
        with pytest.raises(DataError, match="unpickled"):
            read_labels(tmp_path / name)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.npy", "no such file"),
        ("both.npz:nothing", "has no 'nothing'; it has given, true, pred_probs"),
        ("odd.xyz", "unknown kind of file"),
        ("cut.npy", "cannot be read"),
        ("p.npy", "one label a row"),
    ],
)
def test_one_clear_line(here: Path, name: str, message: str) -> None:
    (here / "odd.xyz").write_text("?")
    (here / "cut.npy").write_bytes((here / "y.npy").read_bytes()[:40])
    with pytest.raises(DataError, match=message) as error:
        read_labels(here / name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("labels", "probs", "message"),
    [
        (Y[:3], P, "3 labels and 4 rows of predictions"),
        (
            Y,
            np.where(P > 0.65, np.where(P < 0.75, np.nan, P), P),
            r"1 rows of predictions hold NaN or Inf \(first: row 1\)",
        ),
        (Y, np.log(P), "look like logits"),
        (Y, P * 3, "look like logits"),
        (Y, np.where(np.arange(4)[:, None] == 2, P * 0.5, P), "row 2 of the predictions sums to 0.5, not to 1"),
        (Y + 1, P, r"1 labels are outside 0 … 2 \(first at row 2\)"),
        (Y + 0.5, P, "no whole numbers"),
        (np.array(["a", "b", "a", "b"]), P, "2 different words and the predictions 3 columns"),
        (Y, P[:, :1], "one column"),
        (Y[:0], P[:0], "no labels"),
    ],
)
def test_labels_and_predictions_that_do_not_fit(labels: np.ndarray, probs: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        join(labels, probs)


def test_logits_on_request() -> None:
    inputs = join(Y, np.log(P) + 7, logits=True)
    np.testing.assert_allclose(inputs.columns(slice(0, 4)).T, P, atol=1e-6)


def test_words_follow_the_class_list_or_the_sorted_order() -> None:
    words = np.array(["dog", "cat", "cow", None], dtype=object)
    assert join(words, P, ["dog", "cow", "cat"]).codes.tolist() == [0, 2, 1, -1]
    inputs = join(words, P)
    assert inputs.codes.tolist() == [2, 0, 1, -1]
    assert inputs.names == ["class 0", "class 1", "class 2"]  # raw values stay out of reports
    assert join(words, P, show_values=True).names == ["cat", "cow", "dog"]
    with pytest.raises(DataError, match="2 class names for 3 columns"):
        join(words, P, ["dog", "cow"])
    with pytest.raises(DataError, match="1 of the 3 different labels"):
        join(words, P, ["dog", "cow", "hen"])


def test_rows_without_a_label() -> None:
    assert join(np.array([0, -100, 2, 1]), P).codes.tolist() == [0, -1, 2, 1]
    assert join(np.array([0, np.nan, 2, 1]), P).codes.tolist() == [0, -1, 2, 1]
    with pytest.raises(DataError, match="outside"):
        join(np.array([0, -100, 2, 1]), P, ignore_index=None)
