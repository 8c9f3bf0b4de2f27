"""The same picture on both sides."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from osler.core.finding import Finding, Severity
from osler.core.report import Report
from osler.core.settings import Settings
from osler.data.need import DataError
from osler.data.splits import check_splits
from osler.data.splits.images import perceptual_hashes, reduce_images

pillow = pytest.importorskip("PIL.Image")


def pictures(n: int, seed: int, side: int = 48) -> np.ndarray:
    """Smooth random scenes, n × side × side × 3, uint8: a few waves and a disc each."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:side, 0:side] / side
    out = np.empty((n, side, side, 3), np.uint8)
    for i in range(n):
        scene = np.zeros((side, side, 3))
        for _ in range(6):
            wave = np.sin(2 * np.pi * (rng.normal(0, 2) * x + rng.normal(0, 2) * y) + rng.random() * 7)
            scene += wave[..., None] * rng.random(3)
        scene[(x - rng.random()) ** 2 + (y - rng.random()) ** 2 < 0.03] += 3 * rng.normal(size=3)
        scene -= scene.min()
        out[i] = 255 * scene / scene.max()
    return out


def found(report: Report) -> list[Finding]:
    return [f for f in report.findings if f.evidence.get("kind") == "image"]


def jpeg(array: np.ndarray, quality: int, size: int | None = None) -> bytes:
    image = pillow.fromarray(array)
    if size:
        image = image.resize((size, size), pillow.Resampling.BICUBIC)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


def test_recompressed_resized_and_brighter_pictures_are_found() -> None:
    train, fresh = pictures(300, 1), pictures(60, 2)
    values: list[bytes] = [jpeg(p, 95) for p in fresh]
    values[3], values[10] = jpeg(train[7], 50), jpeg(train[8], 80, size=31)
    values[20] = jpeg(np.clip(train[9].astype(int) + 15, 0, 255).astype(np.uint8), 90)
    values[21] = jpeg(train[40], 95)
    left = pa.table({"image": [jpeg(p, 95) for p in train], "k": np.arange(300.0)})
    report = check_splits(left, pa.table({"image": values, "k": np.arange(60) + 0.5}), images="image", near=False)
    (finding,) = found(report)
    assert finding.evidence["rows"] == [3, 10, 20, 21]
    assert finding.evidence["train_rows_first"] == [7, 8, 9, 40]
    assert finding.severity is Severity.ERROR


@pytest.mark.parametrize("form", ["uint8", "float", "channels first", "grey"])
def test_arrays_of_any_layout(form: str) -> None:
    train, fresh = pictures(200, 1), pictures(50, 2)
    fresh[5] = train[3]
    if form == "float":
        train, fresh = train / 255.0, fresh / 255.0
    elif form == "channels first":
        train, fresh = np.moveaxis(train, 3, 1), np.moveaxis(fresh, 3, 1)
    elif form == "grey":
        train, fresh = train.mean(axis=3), fresh.mean(axis=3)
    (finding,) = found(check_splits(train, fresh))
    assert finding.evidence["rows"] == [5]
    assert finding.evidence["unchanged"] == 1


def test_other_pictures_are_no_finding() -> None:
    report = check_splits(pictures(400, 1), pictures(100, 2))
    assert not report.findings


def test_similar_pictures_of_one_kind_are_no_finding() -> None:
    """Digits look alike by nature."""
    datasets = pytest.importorskip("sklearn.datasets")
    images = datasets.load_digits().images
    report = check_splits(images[:1_400], images[1_400:])
    assert not [f for f in report.findings if f.severity >= Severity.WARNING]


def test_blank_pictures_are_left_out_and_said_so() -> None:
    train, fresh = pictures(60, 1), pictures(30, 2)
    train[:20], fresh[:10] = 255, 255
    report = check_splits(train, fresh)
    assert not report.findings
    assert any("30 images without any contrast" in n.why for n in report.not_checked)


def test_folders_with_a_broken_file(tmp_path: Path) -> None:
    scenes = pictures(80, 1)
    for name, rows in (("train", range(60)), ("eval", [*range(60, 80), 3])):
        (tmp_path / name / "cat").mkdir(parents=True)
        for i in rows:
            pillow.fromarray(scenes[i]).save(tmp_path / name / "cat" / f"{i:03d}.png")
    (tmp_path / "eval" / "broken.png").write_bytes(b"no image")
    report = check_splits(tmp_path / "train", tmp_path / "eval")
    (finding,) = found(report)
    # the files of a folder in order of their names: broken.png, then cat/003.png
    assert finding.evidence["rows"] == [1]
    assert finding.evidence["train_rows_first"] == [3]
    assert any("1 image that cannot be read" in n.why for n in report.not_checked)


def test_evaluation_folder_within_training() -> None:
    scenes = pictures(120, 1)
    assert [f.rule for f in check_splits(scenes, scenes[:40]).findings] == ["eval-on-training-data"]


def test_hashes_ignore_brightness_and_contrast() -> None:
    scenes = pictures(20, 3)
    settings = Settings().splits
    bright = np.clip(scenes * 0.7 + 30, 0, 255)
    a, b = (reduce_images(list(x), None, settings, lambda *_: None, "") for x in (scenes, bright))
    differing = [bin(int(x ^ y)).count("1") for x, y in zip(a.hashes, b.hashes)]
    assert max(differing) <= 4
    assert perceptual_hashes(a.thumbnails).tolist() == a.hashes.tolist()


def test_a_column_of_numbers_holds_no_images() -> None:
    with pytest.raises(DataError, match="images are paths or the bytes of files"):
        check_splits(pa.table({"x": [1.0, 2.0]}), pa.table({"x": [3.0, 4.0]}), images="x")
