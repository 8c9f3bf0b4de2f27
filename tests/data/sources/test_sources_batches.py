"""Batches of one shape."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sources_builders import kinds, only

from osler.core.finding import Confidence, Severity
from osler.data.need import DataError
from osler.data.sources import check_batches


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.fixture
def sequences(rng):
    return [rng.integers(1, 99, n) for n in rng.integers(3, 80, 300)]


class Sentences:
    """What looks like a map-style data set."""

    def __init__(self, sequences):
        self.sequences = sequences

    def __len__(self):
        return len(self.sequences)

    def __getitem__(self, i):
        return self.sequences[i], i


def padded(batch):
    longest = max(len(x) for x, _ in batch)
    return np.stack([np.pad(x, (0, longest - len(x)), constant_values=-1) for x, _ in batch]), [y for _, y in batch]


def test_a_list_of_unequal_arrays(sequences):
    found = only(check_batches(sequences), "ragged")
    lengths = [len(s) for s in sequences]
    assert (found.evidence["shortest"], found.evidence["longest"]) == (min(lengths), max(lengths))
    assert found.evidence["distinct_lengths"] == len(set(lengths))
    assert "pad_sequence" in found.fix and "bucketing" in found.fix
    assert found.evidence["padding"] > 3 * found.evidence["padding_bucketed"]


def test_shapes_that_agree():
    assert check_batches([np.arange(5.0)] * 40).findings == []
    assert check_batches(np.zeros((50, 7, 3))).findings == []
    assert check_batches([(np.arange(4), 1), (np.arange(4), 2)]).findings == []


def test_lengths_may_differ_between_batches(rng):
    assert check_batches(rng.random((16, int(n))) for n in rng.integers(5, 50, 20)).findings == []
    assert check_batches([[np.zeros(4)] * 8, [np.zeros(6)] * 8]).findings == []
    found = only(check_batches([[np.zeros(4)] * 8, [np.zeros(6)] * 7 + [np.zeros(5)]]), "ragged")
    assert (found.where.batch, found.where.sample) == (1, 15) and found.confidence is Confidence.DEFINITE


def test_other_axes_and_dimensions(rng):
    found = only(check_batches([rng.random((5, 8)), rng.random((5, 7)), rng.random((5, 8))]), "features")
    assert found.evidence["first_samples"] == [1] and found.evidence["shape"] == [5, 7]
    assert kinds(check_batches([rng.random((8, 5)), rng.random((8, 7))], axis=1)) == ["ragged"]
    assert kinds(check_batches([rng.random(5), rng.random((5, 1)), rng.random(5)])) == ["dimensions"]


def test_dtypes_within_a_batch():
    report = check_batches([np.zeros(4), np.zeros(4, np.float32)])
    assert only(report, "dtype").severity is Severity.INFO
    assert kinds(check_batches([{"x": np.arange(3)}, {"x": ["a", "b", "c"]}])) == ["dtype"]


def test_fields_of_dicts(sequences):
    found = only(check_batches([{"tokens": s, "label": 1.0} for s in sequences]), "ragged")
    assert found.where.column == "tokens"


def test_list_columns(tmp_path, sequences):
    table = pa.table({"tokens": [s.tolist() for s in sequences], "label": range(300)})
    pq.write_table(table, tmp_path / "s.parquet")
    for data in (table, pl.from_arrow(table), tmp_path / "s.parquet"):
        found = only(check_batches(data, column="tokens"), "ragged")
        assert found.severity is Severity.WARNING and found.confidence is Confidence.PROBABLE
    assert kinds(check_batches(table)) == ["ragged"]
    fixed = pa.table({"tokens": pa.array([[1, 2]] * 9, pa.list_(pa.int64(), 2))})
    assert check_batches(fixed).findings == []


def test_buckets_in_a_file(sequences):
    lengths = np.repeat(np.arange(4, 30), 16)
    table = pa.table({"tokens": [list(range(n)) for n in lengths]})
    assert check_batches(table, column="tokens", batch_size=16).findings == []
    assert kinds(check_batches(table, column="tokens", batch_size=24)) == ["ragged"]
    assert kinds(check_batches(table, column="tokens")) == ["ragged"]


def test_null_lists():
    found = only(check_batches(pa.table({"s": [[1, 2], None, [3, 4]]})), "null")
    assert found.where.sample == 1


def test_padding_that_cannot_be_told_from_data(rng):
    rows = np.zeros((100, 40))
    for row in rows:
        n = rng.integers(10, 30)
        row[:n] = rng.integers(0, 3, n)
    report = check_batches(rows)
    assert kinds(report) == [] and only(report, "padding").confidence is Confidence.POSSIBLE


def test_data_sets_by_their_looks(sequences):
    assert kinds(check_batches(Sentences(sequences))) == ["ragged"]
    assert kinds(check_batches(Sentences(sequences), collate_fn=padded)) == []
    healthy = Sentences(sequences)
    healthy.collate_fn = padded
    assert kinds(check_batches(healthy)) == []


def test_the_error_of_a_collate_function_is_told_without_its_data(sequences):
    def broken(batch):
        raise ValueError("cannot convert 'Jane Doe'")

    found = check_batches(Sentences([np.arange(3)] * 40), collate_fn=broken).findings[0]
    assert found.severity is Severity.ERROR and "ValueError" in found.message and "Jane" not in found.message


def test_object_files_are_refused(tmp_path, sequences):
    np.savez(tmp_path / "o.npz", np.array(sequences, dtype=object))
    np.save(tmp_path / "o.npy", np.array(sequences, dtype=object))
    for name in ("o.npz", "o.npy"):
        with pytest.raises(DataError, match="only unpickling"):
            check_batches(tmp_path / name)
    np.savez(tmp_path / "s.npz", *sequences[:20])
    assert kinds(check_batches(tmp_path / "s.npz")) == ["ragged"]
    np.savez(tmp_path / "x.npz", x=np.zeros((5, 3)), lengths=np.arange(5))
    assert check_batches(tmp_path / "x.npz").findings == []


def test_nothing_to_look_at():
    for data in ([], iter([]), pa.table({"s": pa.array([], pa.list_(pa.int64()))})):
        report = check_batches(data)
        assert report.findings == [] and "no samples" in report.not_checked[0].why


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (5, {}, "holds no samples"), ({"a": 1}, {}, "a mapping"), ("no-such.parquet", {}, "there is no such file"),
        (pa.table({"s": [[1]], "y": [1]}), {"column": "y"}, "not lists"), (pa.table({"y": [1]}), {}, "--column"),
        (pa.table({"s": [[1]]}), {"column": "z"}, "no column 'z'"), ([np.zeros(3)], {"batch_size": 0}, "at least 1"),
        ("/no/such.npy", {}, "cannot be read"),
    ],
)  # fmt: skip
def test_bad_arguments(data, options, words):
    with pytest.raises(DataError, match=words):
        check_batches(data, **options)


def test_the_limit_is_told(sequences):
    report = check_batches(([s] for s in sequences), limit=7)
    assert report.subject["batches"] == 7 and "first 7" in report.not_checked[0].why


def test_loaders_of_torch(sequences):
    torch = pytest.importorskip("torch")
    from torch.nn.utils.rnn import pad_sequence
    from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

    class Text(Dataset):
        def __len__(self):
            return len(sequences)

        def __getitem__(self, i):
            return torch.tensor(sequences[i]), i % 2

    class Stream(IterableDataset):
        def __iter__(self):
            return ((torch.tensor(s), 0) for s in sequences)

    def collate(batch):
        return pad_sequence([x for x, _ in batch], batch_first=True), torch.tensor([len(x) for x, _ in batch])

    before = torch.get_rng_state()
    found = only(check_batches(DataLoader(Text(), batch_size=8, shuffle=True)), "ragged")
    assert found.severity is Severity.ERROR and "stack expects each tensor" in found.message
    assert kinds(check_batches(DataLoader(Text(), batch_size=8, shuffle=True, collate_fn=collate))) == []
    assert kinds(check_batches(DataLoader(Text(), batch_size=8, collate_fn=lambda b: [x for x, _ in b]))) == []
    assert kinds(check_batches(DataLoader(Stream(), batch_size=8))) == ["ragged"]
    assert kinds(check_batches(DataLoader(Stream(), batch_size=8, collate_fn=collate))) == []
    assert kinds(check_batches(DataLoader(TensorDataset(torch.ones(40, 3), torch.ones(40)), batch_size=16))) == []
    assert kinds(check_batches(Text())) == ["ragged"]
    assert torch.equal(before, torch.get_rng_state())
