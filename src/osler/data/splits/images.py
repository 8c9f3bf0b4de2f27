"""Images on both sides that are the same picture: rescaled, recompressed, a little brighter.

The perceptual hash is the sign pattern of the 63 lowest frequencies of a cosine transform of the 32 × 32 grey image
(Zauner 2010, "Implementation and benchmarking of perceptual image hash functions"). Hashes within a few bits are found
through chunks of the hash of which at least one must be equal, so none is missed; candidates are compared by the
correlation of their 32 × 32 images, and by whether other images lie as close.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from osler.core.progress import Progress
from osler.core.settings.splits import Splits
from osler.data.need import DataError, need
from osler.data.splits.columns import Rows
from osler.data.splits.hashes import Hashes, mix
from osler.data.splits.index import KeyIndex
from osler.data.splits.surprise import surprising

Single = npt.NDArray[np.float32]

SIDE = 32
SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm"})


@dataclass(slots=True)
class Images:
    """Images of one side, reduced.

    Attributes:
        thumbnails: 32 × 32 grey values with mean 0 and standard deviation 1, shape (n, 1024).
        hashes: perceptual hashes, shape (n,).
        flat: images without any contrast; they are not compared.
        unreadable: positions of files that are no images.
    """

    thumbnails: Single
    hashes: Hashes
    flat: npt.NDArray[np.bool_]
    unreadable: list[int]


@dataclass(slots=True)
class ImageMatches:
    """Images of the evaluation that are training images.

    Attributes:
        count: how many.
        exact: how many of them have the same thumbnail to the last digit.
        rows: their positions, ascending; those that were judged where there are very many.
        partners: the most similar training image of each.
        correlations: correlation of the thumbnails.
        flat: blank images of either side that were left out.
        compared: evaluation images that were compared.
    """

    count: int
    exact: int
    rows: Rows
    partners: Rows
    correlations: npt.NDArray[np.float64]
    flat: int
    compared: int


def folder(path: Path) -> list[Path]:
    """The image files below a folder, in order of their names.

    Raises:
        DataError: there is none.
    """
    files = sorted(p for p in path.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
    if not files:
        raise DataError(f"{path} holds no image files ({', '.join(sorted(SUFFIXES))})")
    return files


def is_image_array(data: Any) -> bool:
    """Whether data are an array of images, n × h × w or n × h × w × c."""
    return isinstance(data, np.ndarray) and data.ndim in (3, 4) and data.dtype.kind in "uif"


def reduce_images(images: Iterable[Any], total: int | None, settings: Splits, progress: Progress, what: str) -> Images:
    """Read, shrink and hash images.

    Args:
        images: arrays h × w or h × w × c (c × h × w with c of 1, 3 or 4 is turned), paths, or the bytes of a file.
        total: how many, where known.
        settings: `image_flat`.
        progress: is told.
        what: for `progress`.
    """
    small: list[Single] = []
    contrast: list[float] = []
    unreadable: list[int] = []
    for i, image in enumerate(images):
        grey = _grey(image)
        if grey is None:
            unreadable.append(i)
            grey = np.zeros((SIDE, SIDE))
        small.append(_shrunk(grey).astype(np.float32).ravel())
        contrast.append(float(small[-1].std()))
        if i % 256 == 255:
            progress(what, i + 1, total)
    stack = np.stack(small) if small else np.zeros((0, SIDE * SIDE), np.float32)
    spread = np.array(contrast)
    flat = ~(spread > settings.image_flat)
    thumbnails = (stack - stack.mean(axis=1, keepdims=True)) / np.where(flat, 1.0, spread)[:, None]
    return Images(thumbnails.astype(np.float32), perceptual_hashes(thumbnails), flat, unreadable)


def perceptual_hashes(thumbnails: Single) -> Hashes:
    """pHash of 32 × 32 images, shape (n,): 63 signs of low frequencies against their median; the mean is left out."""
    k = np.arange(8)[:, None]
    x = np.arange(SIDE)[None, :]
    basis = np.cos(np.pi * (2 * x + 1) * k / (2 * SIDE))
    grid = thumbnails.reshape(-1, SIDE, SIDE).astype(np.float64)
    low = (basis @ grid @ basis.T).reshape(-1, 64)[:, 1:]
    bits = low > np.median(low, axis=1, keepdims=True)
    packed: Hashes = (bits.astype(np.uint64) << np.arange(63, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
    return packed


def near_images(train: Images, eval_: Images, settings: Splits, progress: Progress) -> ImageMatches:
    """Find evaluation images that are training images."""
    own, other = np.flatnonzero(~train.flat), np.flatnonzero(~eval_.flat)
    limit = settings.image_bits
    best = np.full(eval_.hashes.size, -1.0)
    partner = np.full(eval_.hashes.size, -1, np.int64)
    # pigeonhole: of limit + 1 chunks at least one is equal (Norouzi, Punjani & Fleet 2014)
    bounds = np.linspace(0, 63, limit + 2).round().astype(np.uint64)
    for chunk, (low, high) in enumerate(pairwise(bounds)):
        mask = (np.uint64(1) << (high - low)) - np.uint64(1)
        token = np.uint64(chunk + 1) << np.uint64(60)
        index = KeyIndex(mix(((eval_.hashes[other] >> low) & mask) | token), max(1, other.size))
        for start in range(0, own.size, 1_024):
            part = own[start : start + 1_024]
            left, right = index.pairs(mix(((train.hashes[part] >> low) & mask) | token))
            left, right = part[left], other[right]
            close = _differing(train.hashes[left] ^ eval_.hashes[right]) <= limit
            left, right = left[close], right[close]
            for piece in range(0, left.size, 16_384):
                a, b = left[piece : piece + 16_384], right[piece : piece + 16_384]
                alike = np.einsum("ij,ij->i", train.thumbnails[a], eval_.thumbnails[b]) / (SIDE * SIDE)
                better = np.flatnonzero((alike >= settings.image_correlation) & (alike > best[b]))
                better = better[np.argsort(alike[better], kind="stable")]
                best[b[better]] = alike[better]
                partner[b[better]] = a[better]
        progress("image hashes compared", chunk + 1, limit + 1)
    found = np.flatnonzero(partner >= 0)
    flat = int(train.flat.sum() + eval_.flat.sum())
    if not found.size:
        return ImageMatches(0, 0, found, found, np.zeros(0), flat, int(other.size))
    # for thumbnails of unit variance the mean square difference is 2 (1 − correlation)
    far = np.sqrt(np.maximum(2 * (1 - best[found]), 0.0))
    sampled = own[np.sort(np.random.default_rng(19).permutation(own.size)[: settings.image_sample])]
    share, judged = surprising(eval_.thumbnails[found], far, train.thumbnails[sampled], int(own.size), settings)
    kept = found[judged.kept]
    count = kept.size if judged.all_judged else round(share * found.size)
    exact = (
        int((np.abs(train.thumbnails[partner[kept]] - eval_.thumbnails[kept]).max(axis=1) == 0).sum())
        if kept.size
        else 0
    )
    return ImageMatches(count, exact, kept, partner[kept], best[kept].astype(np.float64), flat, int(other.size))


def _differing(bits: Hashes) -> npt.NDArray[np.int64]:
    """Number of set bits."""
    x = bits - ((bits >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    counts: npt.NDArray[np.int64] = ((x * np.uint64(0x0101010101010101)) >> np.uint64(56)).astype(np.int64)
    return counts


def _grey(image: Any) -> npt.NDArray[np.float64] | None:
    """Grey values from 0 to 255, h × w; None for a file that is no image."""
    if isinstance(image, (str, Path, bytes)):
        pillow = need("PIL.Image", "images", "reading image files")
        try:
            with pillow.open(io.BytesIO(image) if isinstance(image, bytes) else image) as opened:
                # draft lets JPEG decode at a fraction of its size
                opened.draft("L", (SIDE * 4, SIDE * 4))
                return np.asarray(opened.convert("RGB").convert("L"), np.float64)
        except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError):
            return None
    array = np.asarray(image)
    if array.ndim == 3 and array.shape[0] in (1, 3, 4) and array.shape[2] not in (1, 3, 4):
        array = np.moveaxis(array, 0, 2)
    values = np.nan_to_num(array.astype(np.float64))
    if array.dtype.kind == "f" and values.size and values.max() <= 1.0 and values.min() >= -1.0:
        values = values * 255 if values.min() >= 0 else (values + 1) * 127.5
    if values.ndim == 3:
        channels = values.shape[2]
        # ITU-R BT.601 luma, as Pillow's "L"
        values = values[..., 0] if channels < 3 else values[..., :3] @ np.array([0.299, 0.587, 0.114])
    return values


def _shrunk(grey: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The image at 32 × 32, each pixel the mean of the area that it covers."""
    if not grey.size:
        return np.zeros((SIDE, SIDE))
    small: npt.NDArray[np.float64] = _areas(grey.shape[0]) @ grey @ _areas(grey.shape[1]).T
    return small


def _areas(n: int) -> npt.NDArray[np.float64]:
    """Weights of n pixels in each of 32 equal areas, shape (32, n)."""
    edges = np.linspace(0, n, SIDE + 1)
    pixels = np.arange(n)
    overlap = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    weights = np.maximum(overlap, 0.0)
    normal: npt.NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return normal


def each(data: Any) -> tuple[Iterator[Any], int]:
    """The images of an array or of a folder, and how many."""
    if isinstance(data, np.ndarray):
        return iter(data), int(data.shape[0])
    files = folder(Path(data))
    return iter(files), len(files)
