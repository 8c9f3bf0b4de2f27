"""What correcting labels is worth to a network: a small CNN on a part of CIFAR-10 with 40 % symmetric label noise.

    python benchmarks/labels_cnn.py --images 4000 --epochs 12 --seeds 3

Trains on the labels as given (raw), after the usual two stages (keep confident rows, relabel the others by the vote, without
looking whether the confident prediction agrees), after dropping what cleanlab calls wrong, and on osler's soft targets. All
work from the same out-of-fold predictions of the same network. osler leaves the labels as they are where the network is too
weak to show noise. Top-1 on clean test images, and how many labels are right
after correction. Needs torch and ../shared/data/labels; cleanlab is skipped where it is not installed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from common import facts, machine, progress, table

import osler.data.labels as labels

DATA = Path(__file__).resolve().parents[2] / "shared/data/labels/cifar10_10k2k.npz"
TARGET_TOP1, TARGET_CORRECTED = 0.739, 0.865
FOLDS = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=4000)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--noise", type=float, default=0.4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not DATA.exists():
        print(f"skipped: {DATA} is not there")
        return 0
    try:
        import torch
    except ImportError:
        print("skipped: torch is not installed")
        return 0
    torch.set_num_threads(options.threads)
    with np.load(DATA, allow_pickle=False) as archive:
        X, y, X_test, y_test = (archive[name] for name in ("Xtrain", "ytrain", "Xtest", "ytest"))
    X, y = X[: options.images], y[: options.images].astype(int)
    images, test = prepared(X), prepared(X_test)
    results: dict[str, list[tuple[float, float, int]]] = {}
    started = time.perf_counter()
    for seed in range(options.seeds):
        rng = np.random.default_rng(seed)
        given = y.copy()
        wrong = rng.random(len(y)) < options.noise
        given[wrong] = (y[wrong] + rng.integers(1, 10, wrong.sum())) % 10
        probs = out_of_fold(images, given, options.epochs, seed)
        done: dict[int, float] = {}
        for name, (rows, targets) in treatments(given, probs).items():
            if id(targets) not in done:
                done[id(targets)] = accuracy(train(images[rows], targets, options.epochs, seed), test, y_test)
            top1 = done[id(targets)]
            right = float((targets.argmax(axis=1) == y[rows]).mean())
            results.setdefault(name, []).append((top1, right, len(rows)))
            progress(f"seed {seed} {name}: top-1 {top1:.3f}, right labels {right:.3f} of {len(rows)} rows")
    seconds = time.perf_counter() - started
    if options.json:
        print(json.dumps({"options": vars(options), "seconds": seconds, "results": results}))
        return 0
    rows = []
    for name, runs in results.items():
        tops, right = [r[0] for r in runs], [r[1] for r in runs]
        spread = f"{np.mean(tops):.3f} ± {np.std(tops, ddof=1):.3f}" if len(tops) > 1 else f"{tops[0]:.3f}"
        rows.append([name, spread, f"{np.mean(right):.3f}", f"{np.mean([r[2] for r in runs]):,.0f}"])
    print(facts(machine()))
    print(table(["labels", "top-1", "labels right", "rows trained on"], rows))
    print(
        f"\n{options.images:,} images, {options.epochs} epochs, {options.seeds} seeds, {options.noise:.0%} symmetric noise, "
        f"{seconds:,.0f} s. The target for a full-size network on all of CIFAR-10 is {TARGET_TOP1:.1%} top-1 with "
        f"{TARGET_CORRECTED:.1%} of the labels right; figures of this size are as measured and say nothing about it."
    )
    return 0


def treatments(given: np.ndarray, probs: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rows to train on and their targets."""
    everything, one_hot = np.arange(len(given)), np.eye(10, dtype=np.float32)
    sure = probs.max(axis=1) >= np.median(probs.max(axis=1))
    two_stage = np.where(sure, given, probs.argmax(axis=1))
    out = {"raw": (everything, one_hot[given]), "two-stage": (everything, one_hot[two_stage])}
    try:
        from cleanlab.filter import find_label_issues
    except ImportError:
        progress("cleanlab skipped: not installed")
    else:
        kept = np.flatnonzero(~find_label_issues(given, probs, filter_by="prune_by_noise_rate", n_jobs=1))
        out["cleanlab, dropped"] = (kept, one_hot[given[kept]])
    audit = labels.audit_labels(given, probs, out_of_fold=True)
    progress(f"osler: noise by class {audit.noisy}; {audit.fits[1]}")
    # what the tool does by itself: where it cannot show noise under a weak network, the labels stay as given
    out["osler, soft targets"] = (everything, audit.soft_targets() if audit.noisy else out["raw"][1])
    return out


def prepared(images: np.ndarray):
    import torch

    tensor = torch.from_numpy(images.astype(np.float32) / 255)
    if tensor.shape[-1] == 3:
        tensor = tensor.permute(0, 3, 1, 2)
    return ((tensor - 0.47) / 0.25).contiguous()


def network():
    from torch import nn

    def block(a: int, b: int) -> list[nn.Module]:
        return [nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2)]

    return nn.Sequential(
        *block(3, 24), *block(24, 48), *block(48, 96), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, 10)
    )


def train(images, targets: np.ndarray, epochs: int, seed: int):
    """A network trained on soft or one-hot targets, with flips and shifts."""
    import torch
    import torch.nn.functional as F

    torch.manual_seed(seed)
    model, goal = network(), torch.from_numpy(np.ascontiguousarray(targets, dtype=np.float32))
    batch = 64
    steps = epochs * -(-len(images) // batch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    for _ in range(epochs):
        for rows in torch.randperm(len(images)).split(batch):
            x = images[rows]
            if torch.rand(()) < 0.5:
                x = x.flip(3)
            x = torch.roll(x, tuple(torch.randint(-2, 3, (2,)).tolist()), (2, 3))
            optimizer.zero_grad()
            F.cross_entropy(model(x), goal[rows]).backward()
            optimizer.step()
            schedule.step()
    return model.eval()


def predicted(model, images) -> np.ndarray:
    import torch

    with torch.no_grad():
        return torch.cat([model(part).softmax(1) for part in images.split(500)]).numpy()


def accuracy(model, images, true: np.ndarray) -> float:
    return float((predicted(model, images).argmax(axis=1) == true).mean())


def out_of_fold(images, given: np.ndarray, epochs: int, seed: int) -> np.ndarray:
    fold = np.random.default_rng(seed + 100).permutation(len(given)) % FOLDS
    out = np.empty((len(given), 10), dtype=np.float32)
    for k in range(FOLDS):
        rows = np.flatnonzero(fold != k)
        model = train(images[rows], np.eye(10, dtype=np.float32)[given[rows]], epochs, seed + k)
        held = np.flatnonzero(fold == k)
        out[held] = predicted(model, images[held])
    return out


if __name__ == "__main__":
    sys.exit(main())
