"""Texts of the evaluation that are training texts with a few words changed: MinHash and locality-sensitive hashing.

The share of equal MinHash values estimates the Jaccard similarity s of two sets of shingles (Broder 1997). Signatures
are cut into b bands of r values; a pair that agrees in a band is a candidate, which happens with probability
1 − (1 − s^r)^b. Candidates are then compared by their true similarity, so the bound is one on recall and nothing is
reported that is not near.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from osler.core.progress import Progress
from osler.core.settings.splits import Splits
from osler.data.need import DataError
from osler.data.splits import compiled
from osler.data.splits.columns import Rows
from osler.data.splits.hashes import M1, Hashes, bytes_of, mix
from osler.data.splits.index import KeyIndex
from osler.data.tables import Kind, Source

Signatures = npt.NDArray[np.uint32]

_BATCH = 8_192


def recall(similarity: float, bands: int, rows: int) -> float:
    """The probability that a pair of that Jaccard similarity becomes a candidate: 1 − (1 − s^r)^b."""
    return 1 - (1 - similarity**rows) ** bands


@dataclass(slots=True)
class TextMatches:
    """Near texts of one column.

    Attributes:
        column: its name.
        rows: evaluation rows whose text is nearly a training text, ascending.
        partners: the most similar training row of each.
        similarities: Jaccard similarity of their shingles.
        templates: evaluation rows left out because many different training texts are alike.
        compared: evaluation rows with a text long enough.
        short: evaluation rows whose text is too short.
    """

    column: str
    rows: Rows
    partners: Rows
    similarities: npt.NDArray[np.float64]
    templates: int
    compared: int
    short: int


def near_texts(train: Source, eval_: Source, column: str, settings: Splits, progress: Progress) -> TextMatches:
    """Search the texts of a column; the texts of evaluation are held in memory, those of training are streamed.

    Raises:
        DataError: the column is missing on a side or holds no text.
    """
    for side in (train, eval_):
        if side.column(column).kind not in (Kind.CATEGORY, Kind.NULL):
            raise DataError(f"{side.name}: column {column!r} is {side.column(column).kind.value} and holds no text")
    texts: list[pa.Array] = []
    parts: list[Signatures] = []
    sizes: list[npt.NDArray[np.int64]] = []
    done = 0
    for batch in eval_.batches([column], _BATCH):
        clean = normalise(batch.column(0))
        signature, size = signatures(clean, settings)
        texts.append(clean)
        parts.append(signature)
        sizes.append(size)
        done += batch.num_rows
        progress("evaluation texts hashed", done, eval_.rows)
    empty = TextMatches(column, np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), 0, 0, 0)
    if not texts:
        return empty
    held = pa.concat_arrays(texts)
    size = np.concatenate(sizes)
    long = np.flatnonzero(size >= settings.text_shortest)
    empty.short = int((size < settings.text_shortest).sum())
    if not long.size:
        return empty
    keys = _band_keys(np.concatenate(parts)[long], settings)
    indexes = [KeyIndex(k, settings.bucket_cap) for k in keys]
    best = np.zeros(long.size)
    partner = np.full(long.size, -1, np.int64)
    alike: dict[int, set[int]] = {}
    start = 0
    for batch in train.batches([column], _BATCH):
        clean = normalise(batch.column(0))
        signature, size = signatures(clean, settings)
        usable = np.flatnonzero(size >= settings.text_shortest)
        pairs: list[npt.NDArray[np.int64]] = []
        for k, index in zip(_band_keys(signature[usable], settings), indexes):
            left, right = index.pairs(k)
            pairs.append(np.stack([usable[left], right], axis=1))
        for left, right in np.unique(np.concatenate(pairs), axis=0):
            if len(alike.get(int(right), ())) > settings.text_alike:
                continue
            a = shingles(clean[int(left)].as_buffer(), settings.text_shingle)
            b = shingles(held[int(long[right])].as_buffer(), settings.text_shingle)
            similarity = jaccard(a, b)
            if similarity >= settings.text_template:
                # one training text many times over is one text
                alike.setdefault(int(right), set()).add(int(np.bitwise_xor.reduce(mix(a))))
            if similarity >= settings.text_jaccard and similarity > best[right]:
                best[right], partner[right] = similarity, start + left
        start += batch.num_rows
        progress("training texts searched", start, train.rows)
    template = np.zeros(long.size, np.bool_)
    template[[r for r, different in alike.items() if len(different) > settings.text_alike]] = True
    found = np.flatnonzero((partner >= 0) & ~template)
    return TextMatches(
        column, long[found], partner[found], best[found], int(template.sum()), int(long.size), empty.short
    )


def normalise(array: pa.Array) -> pa.Array:
    """Lower case, runs of white space as one space; nulls become empty. Large binary."""
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    text = pc.fill_null(array.cast(pa.large_string()), "")
    text = pc.utf8_trim_whitespace(pc.replace_substring_regex(pc.utf8_lower(text), r"\s+", " "))
    return text.cast(pa.large_binary())


def signatures(clean: pa.Array, settings: Splits) -> tuple[Signatures, npt.NDArray[np.int64]]:
    """MinHash signature of every text, shape (n, bands × rows), and its number of shingles, shape (n,)."""
    data, offsets = bytes_of(clean)
    a, b = _functions(settings.text_bands * settings.text_rows)
    out = np.empty((offsets.size - 1, a.size), np.uint32)
    counts = np.zeros(offsets.size - 1, np.int64)
    width = settings.text_shingle
    # numpy needs about as long for ten bytes of text as for a row of numbers
    if compiled.worth(int(offsets[-1] - offsets[0]) // 10):
        compiled.minhash(data, offsets, width, a, b, M1, out, counts)
        return out, counts
    for i in range(offsets.size - 1):
        x = (_rolling(data[offsets[i] : offsets[i + 1]], width) >> np.uint64(32)).astype(np.uint32)
        counts[i] = x.size
        values = a[:, None] * x[None, :] + b[:, None]
        out[i] = values.min(axis=1) if x.size else np.uint32(0xFFFFFFFF)
    return out, counts


def shingles(text: object, width: int) -> Hashes:
    """The different shingles of a text (its bytes), as ascending hashes."""
    return np.unique(_rolling(np.frombuffer(text, np.uint8), width))  # type: ignore[call-overload]


def jaccard(a: Hashes, b: Hashes) -> float:
    """Shared part of two sets given as ascending distinct hashes."""
    common = np.intersect1d(a, b, assume_unique=True).size
    union = a.size + b.size - common
    return common / union if union else 0.0


def _rolling(data: npt.NDArray[np.uint8], width: int) -> Hashes:
    n = data.size - width + 1
    if n <= 0:
        return np.zeros(0, np.uint64)
    out = np.zeros(n, np.uint64)
    for t in range(width):
        out = (out ^ data[t : t + n].astype(np.uint64)) * M1
        out ^= out >> np.uint64(29)
    return out


def _functions(n: int) -> tuple[Signatures, Signatures]:
    """Hash functions a·x + b modulo 2**32 with odd a, one to one on 32 bits."""
    rng = np.random.default_rng(17)
    a = rng.integers(0, 1 << 32, n, dtype=np.uint64).astype(np.uint32) | np.uint32(1)
    return a, rng.integers(0, 1 << 32, n, dtype=np.uint64).astype(np.uint32)


def _band_keys(signature: Signatures, settings: Splits) -> list[Hashes]:
    out: list[Hashes] = []
    for band in range(settings.text_bands):
        key = np.full(signature.shape[0], band + 1, np.uint64)
        for j in range(band * settings.text_rows, (band + 1) * settings.text_rows):
            key = mix(key * np.uint64(31) + signature[:, j].astype(np.uint64))
        out.append(key)
    return out
