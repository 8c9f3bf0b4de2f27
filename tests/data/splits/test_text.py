"""Near copies among texts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from osler.core.finding import Finding
from osler.core.report import Report
from osler.core.settings import Settings
from osler.data.need import DataError
from osler.data.splits import check_splits
from osler.data.splits.text import jaccard, normalise, recall, shingles, signatures

SPLITS = Settings().splits


@pytest.fixture
def words() -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.array(["".join(rng.choice(list("abcdefghijklmnop"), rng.integers(3, 9))) for _ in range(3_000)])


def written(words: np.ndarray, n: int, seed: int, length: int = 60) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.choice(words, length) for _ in range(n)]


def near(report: Report) -> list[Finding]:
    return [f for f in report.findings if f.evidence.get("kind") == "text"]


def table(texts: list[np.ndarray]) -> pa.Table:
    return pa.table({"text": [" ".join(t) for t in texts], "n": np.arange(len(texts))})


def test_the_share_of_equal_values_estimates_the_similarity(words: np.ndarray) -> None:
    rng = np.random.default_rng(3)
    errors = []
    for text in written(words, 60, 1):
        copy = text.copy()
        changed = rng.random(copy.size) < rng.random() * 0.3
        copy[changed] = rng.choice(words, int(changed.sum()))
        pair = normalise(pa.array([" ".join(text), " ".join(copy)]))
        truth = jaccard(*(shingles(t.as_buffer(), 5) for t in pair))
        values, _ = signatures(pair, SPLITS)
        errors.append((values[0] == values[1]).mean() - truth)
    # the standard error of one estimate from 125 values is at most 0.045
    assert abs(np.mean(errors)) < 0.02
    assert np.std(errors) < 0.06


def test_the_stated_bound() -> None:
    assert recall(0.8, 25, 5) == pytest.approx(0.99995, abs=2e-5)
    assert recall(0.5, 25, 5) < 0.6
    assert recall(1.0, 25, 5) == 1.0


def test_texts_with_changed_words_are_found(words: np.ndarray) -> None:
    train, fresh = written(words, 400, 1), written(words, 100, 2)
    for i in range(20):
        fresh[i * 5] = train[i].copy()
        fresh[i * 5][i] = words[i]
    (finding,) = near(check_splits(table(train), table(fresh), text="text"))
    assert finding.evidence["eval_rows_near"] == 20
    assert finding.evidence["rows"] == [i * 5 for i in range(20)]
    assert finding.evidence["train_rows_first"] == list(range(20))
    assert "in text are nearly training texts" in finding.message


def test_case_and_white_space_do_not_matter(words: np.ndarray) -> None:
    train = table(written(words, 50, 1))
    shouted = pa.table({"text": [t.upper().replace(" ", "\n  ") for t in train["text"].to_pylist()[:10]]})
    (finding,) = near(check_splits(train, shouted, text="text"))
    assert finding.evidence["median_similarity"] == 1.0


def test_different_texts_are_no_finding(words: np.ndarray) -> None:
    report = check_splits(table(written(words, 400, 1)), table(written(words, 100, 2)), text=["text"])
    assert not near(report)


def test_templates_are_left_out_and_said_so() -> None:
    rng = np.random.default_rng(4)
    form = "Dear customer, your invoice number {} over {} euro is due within thirty days of this letter. Kind regards, sales"
    make = [form.format(*rng.integers(1_000, 9_999, 2)) for _ in range(300)]
    report = check_splits(pa.table({"t": make[:200]}), pa.table({"t": make[200:]}), text="t")
    assert not near(report)
    assert any("boilerplate" in n.why for n in report.not_checked)


def test_short_and_missing_texts_are_left_out_and_said_so() -> None:
    values = ["yes", "no", None, "maybe", ""] * 30
    report = check_splits(pa.table({"t": values}), pa.table({"t": values[:50]}), text="t", near=False)
    assert not near(report)
    assert any("50 evaluation texts shorter" in n.why for n in report.not_checked)


def test_numbers_are_no_text() -> None:
    with pytest.raises(DataError, match="column 'n' is integer and holds no text"):
        check_splits(pa.table({"n": [1, 2]}), pa.table({"n": [3, 4]}), text="n")
