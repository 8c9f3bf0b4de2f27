"""What finding copies across a split costs and finds: `python benchmarks/splits.py`.

Rows: a table with planted copies, exact and with noise, as two parquet files (80 % training, 20 % evaluation) and
`osler.check_splits` over them in a process of its own: seconds of CPU, peak memory, recall per noise, and how many rows
were brought up that were not planted. Beside it what rounding all columns together finds.
Texts: near copies by MinHash beside datasketch, one process each, the same texts, the same bands.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import facts, machine, progress, table

NOISES = (0.0, 5e-4, 1e-3, 1e-2)
CHUNK = 250_000


def columns(rng: np.random.Generator, rows: int, d: int) -> np.ndarray:
    """Rows of d columns: normal, skewed, heavy-tailed and uniform ones, two of few values and a constant one."""
    x = rng.normal(size=(rows, d))
    x[:, 0] = rng.random(rows) < 0.3
    x[:, 1] = rng.integers(0, 5, rows)
    x[:, 2] = 7.0
    x[:, 3] = np.exp(x[:, 3])
    x[:, 4] = rng.standard_t(3, rows)
    x[:, 5] = rng.random(rows)
    x[:, 7] = 0.8 * x[:, 6] + 0.6 * x[:, 7]
    return x


def noisy(rng: np.random.Generator, rows: np.ndarray, noise: float) -> np.ndarray:
    """The rows with noise of that part of each column's spread; of the value itself where the column is skewed."""
    out = rows.copy()
    scale = np.ones(rows.shape[1])
    scale[:3], scale[5] = 0.0, 0.29
    size = np.where(np.arange(rows.shape[1]) == 3, rows, scale)
    return out + noise * size * rng.normal(size=rows.shape)


def write(folder: Path, rows: int, d: int, planted: int, seed: int) -> None:
    """train.parquet, eval.parquet and planted.npz."""
    rng = np.random.default_rng(seed)
    n_train, n_eval = rows * 8 // 10, rows * 2 // 10
    total = planted * len(NOISES)
    source = np.sort(rng.permutation(n_train)[:total])
    target = np.sort(rng.permutation(n_eval)[:total])
    shuffled = rng.permutation(total)
    kept = np.empty((total, d))
    names = [f"c{i}" for i in range(d)]
    schema = pa.schema([(n, pa.float64()) for n in names])
    with pq.ParquetWriter(folder / "train.parquet", schema, compression="NONE") as out:
        for start in range(0, n_train, CHUNK):
            block = columns(rng, min(CHUNK, n_train - start), d)
            low, high = np.searchsorted(source, [start, start + len(block)])
            kept[low:high] = block[source[low:high] - start]
            out.write_table(pa.table(list(block.T), names=names))
    level = np.arange(total) % len(NOISES)
    copies = kept[shuffled]
    for k, noise in enumerate(NOISES):
        copies[level == k] = noisy(rng, copies[level == k], noise)
    with pq.ParquetWriter(folder / "eval.parquet", schema, compression="NONE") as out:
        for start in range(0, n_eval, CHUNK):
            block = columns(rng, min(CHUNK, n_eval - start), d)
            low, high = np.searchsorted(target, [start, start + len(block)])
            block[target[low:high] - start] = copies[low:high]
            out.write_table(pa.table(list(block.T), names=names))
    np.savez(folder / "planted.npz", target=target, source=source[shuffled], level=level)


def watch_rows(folder: Path) -> dict[str, Any]:
    """In a process of its own: the check, what it cost and found."""
    from osler.data.splits import check_splits, near

    found: list[Any] = []
    search = near.near_rows
    near.near_rows = lambda *given: found.append(search(*given)) or found[-1]
    wall, cpu = time.perf_counter(), time.process_time()
    report = check_splits(folder / "train.parquet", folder / "eval.parquet")
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    planted = np.load(folder / "planted.npz")
    exact = next(f for f in report.findings if f.evidence["kind"] == "exact")
    close = found[0].close
    recall = {
        f"{noise:g}": float(np.isin(planted["target"][planted["level"] == k], close).mean())
        for k, noise in enumerate(NOISES)
        if noise
    }
    recall["0"] = exact.evidence["eval_rows_equal"] / int((planted["level"] == 0).sum())
    return {
        "wall_s": wall,
        "cpu_s": cpu,
        "peak_gib": peak,
        "recall": recall,
        "foreseen": found[0].plan.recall(1e-3),
        "width": found[0].plan.width,
        "bands": [len(b.columns) for b in found[0].plan.bands],
        "not_planted": int((~np.isin(close, planted["target"])).sum()),
        "findings": [f.message for f in report.findings],
    }


def rounded(folder: Path) -> dict[str, float]:
    """Recall of rounding every column to two digits after the point and comparing whole rows, on the planted pairs."""
    planted = np.load(folder / "planted.npz")
    sides = []
    for name, rows in (("train", planted["source"]), ("eval", planted["target"])):
        order = np.argsort(rows)
        parts, start = [], 0
        for batch in pq.ParquetFile(folder / f"{name}.parquet").iter_batches(CHUNK):
            low, high = np.searchsorted(rows[order], [start, start + batch.num_rows])
            parts.append(np.stack([c.to_numpy()[rows[order][low:high] - start] for c in batch.columns], axis=1))
            start += batch.num_rows
        back = np.empty(rows.size, np.int64)
        back[order] = np.arange(rows.size)
        sides.append(np.concatenate(parts)[back])
    equal = (np.round(sides[0], 2) == np.round(sides[1], 2)).all(axis=1)
    return {f"{noise:g}": float(equal[planted["level"] == k].mean()) for k, noise in enumerate(NOISES)}


def shingles(text: str) -> set[str]:
    """The different runs of five characters of a text."""
    return {text[i : i + 5] for i in range(len(text) - 4)}


def similarity(a: str, b: str) -> float:
    """Jaccard similarity of their shingles."""
    x, y = shingles(a), shingles(b)
    return len(x & y) / len(x | y)


def texts(n: int, planted: int, seed: int) -> tuple[list[str], list[str], dict[int, int]]:
    """Training texts of 40 to 120 words, evaluation texts, and of the evaluation texts with changed words the source."""
    rng = np.random.default_rng(seed)
    words = np.array(
        ["".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), rng.integers(3, 9))) for _ in range(20_000)]
    )
    make = [words[rng.integers(0, words.size, rng.integers(40, 120))] for _ in range(n + n // 5)]
    train, fresh = make[:n], make[n:]
    which = rng.permutation(len(fresh))[:planted]
    sources = {int(i): int(rng.integers(0, n)) for i in which}
    for i, origin in sources.items():
        copy = train[origin].copy()
        changed = rng.random(copy.size) < rng.choice([0.01, 0.03, 0.05])
        copy[changed] = words[rng.integers(0, words.size, int(changed.sum()))]
        fresh[i] = copy
    return [" ".join(t) for t in train], [" ".join(t) for t in fresh], sources


def watch_texts(n: int, tool: str) -> dict[str, Any]:
    """In a process of its own: near texts by one of the tools."""
    train, fresh, sources = texts(n, n // 50, 5)
    wall = time.perf_counter()
    if tool == "osler":
        from osler.core.progress import quiet
        from osler.core.settings import Settings
        from osler.data.splits.text import near_texts
        from osler.data.tables import open_source

        result = near_texts(
            open_source({"text": train}), open_source({"text": fresh}), "text", Settings().splits, quiet
        )
        rows = result.rows
    else:
        from datasketch import MinHash, MinHashLSH

        def signature(text: str) -> Any:
            m = MinHash(num_perm=125)
            m.update_batch([shingle.encode() for shingle in shingles(text)])
            return m

        lsh = MinHashLSH(num_perm=125, params=(25, 5))
        for i, text in enumerate(train):
            lsh.insert(i, signature(text))
        rows = np.array(
            [i for i, t in enumerate(fresh) if any(similarity(t, train[j]) >= 0.8 for j in lsh.query(signature(t)))]
        )
    wall = time.perf_counter() - wall
    near = [i for i, origin in sources.items() if similarity(fresh[i], train[origin]) >= 0.8]
    return {
        "wall_s": wall,
        "planted": len(near),
        "found": int(np.isin(near, rows).sum()),
        "not_planted": int((~np.isin(rows, list(sources))).sum()),
    }


def child(arguments: list[str]) -> dict[str, Any]:
    """Run this file with arguments and read the JSON that it prints."""
    done = subprocess.run(
        [sys.executable, __file__, *arguments], capture_output=True, text=True, timeout=1800, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of both sides together")
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--planted", type=int, default=5_000, help="copies of each noise")
    parser.add_argument("--texts", type=int, default=20_000, help="training texts; a fifth as many for evaluation")
    parser.add_argument("--skip", choices=("rows", "texts"), action="append", default=[])
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        what, where, tool = options.child
        print(json.dumps(watch_rows(Path(where)) if what == "rows" else watch_texts(int(where), tool)))
        return
    known = machine()
    figures: dict[str, Any] = {}
    print(facts(known))
    if "rows" not in options.skip:
        with tempfile.TemporaryDirectory(prefix="osler-splits-") as name:
            folder = Path(name)
            progress(f"writing {options.rows:,} × {options.columns}")
            write(folder, options.rows, options.columns, options.planted, 1)
            progress("checking")
            got = child(["--child", "rows", name, "-"])
            plain = rounded(folder)
        figures["rows"] = {"size": [options.rows, options.columns], **got, "rounded": plain}
        print(
            f"\n{options.rows:,} rows × {options.columns} columns: {got['wall_s']:.1f} s, {got['cpu_s']:.1f} s of CPU, "
            f"peak {got['peak_gib']:.2f} GiB; cells of {got['width']:g} spreads, bands of {got['bands']} columns; "
            f"{got['not_planted']} rows within reach that were not planted\n"
        )
        rows = [[f"{n:g}", f"{got['recall'][f'{n:g}']:.4f}", f"{plain[f'{n:g}']:.4f}"] for n in NOISES]
        print(table(["noise (spreads)", "recall", "rounding all columns together"], rows))
    if "texts" not in options.skip:
        tools = ["osler"] + (["datasketch"] if importlib.util.find_spec("datasketch") else [])
        if len(tools) == 1:
            progress("datasketch is not installed: skipped (pip install datasketch)")
        rows = []
        for tool in tools:
            progress(f"texts: {tool}")
            got = child(["--child", "texts", str(options.texts), tool])
            figures[f"texts {tool}"] = got
            rows.append([tool, f"{got['wall_s']:.1f}", str(got["found"]), str(got["planted"]), str(got["not_planted"])])
        print(f"\nNear texts, {options.texts:,} in training and {options.texts // 5:,} in evaluation\n")
        print(table(["tool", "s", "found", "planted at 0.8 and above", "not planted"], rows))
    if options.json:
        options.json.write_text(json.dumps({"machine": known, **figures}, indent=1))


if __name__ == "__main__":
    main()
