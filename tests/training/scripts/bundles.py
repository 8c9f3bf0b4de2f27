"""Dumps of failing steps: written, read back, tampered with."""

from __future__ import annotations

import copy
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faults
import torch
from batch import main, seed
from safetensors.torch import load, save
from torch import nn

import osler
from osler.core.settings import Dump, Settings
from osler.training.bundle import BundleError, read, replay_bundle

BASE = Path(tempfile.mkdtemp())


def dumped(case: Callable[[], dict[str, Any]], settings: Settings | None = None) -> dict[str, Any]:
    """Run a case of faults.py with dumps on; the first finding and where the bundles are."""
    folder = BASE / f"{case.__name__}-{len(list(BASE.iterdir()))}"
    original = faults.findings_of
    kept: dict[str, Any] = {}

    def findings_of(training: Callable[[], None], **options: Any) -> dict[str, Any]:
        kept.update(original(training, folder=folder, settings=settings))
        return kept

    faults.findings_of = findings_of
    seed()
    try:
        case()
    finally:
        faults.findings_of = original
    kept["bundles"] = [str(p) for p in sorted((folder / "dumps").glob("*"))] if (folder / "dumps").exists() else []
    return kept


def case_roundtrips() -> dict[str, Any]:
    """Every fault's bundle repeats to the same cause."""
    out = {}
    names = [
        "dropout", "functional_dropout", "in_place", "accumulation", "autocast_fp16", "checkpoint", "checkpoint_reentrant",
        "compiled_module", "compiled_function", "double_backward", "lbfgs", "gan", "custom_function", "nan_input",
        "attention_mask", "exp", "std_of_one", "grad_scaler", "scaler_keeps_skipping", "batch_norm", "anomaly_mode", "tag",
    ]  # fmt: skip
    for name in names:
        facts = dumped(getattr(faults, f"case_{name}"))
        first = facts["findings"][0]
        if not facts["bundles"]:
            out[name] = {"rule": first["rule"], "why": [n for n in facts["not_checked"] if "dump" in n[0]]}
            continue
        state = torch.get_rng_state()
        report = replay_bundle(facts["bundles"][0])
        out[name] = {
            "rule": first["rule"],
            "dump": first["evidence"].get("dump") == facts["bundles"][0],
            "same_cause": report.subject["same_cause"],
            "repeated": [f.rule for f in report.findings],
            "line": [f.where.line for f in report.findings] == [first["where"]["line"]],
            "message": [f.message for f in report.findings] == [first["message"]],
            "notes": report.notes + [n.why for n in report.not_checked],
            "rng_kept": torch.equal(state, torch.get_rng_state()),
        }
    return out


def case_content() -> dict[str, Any]:
    facts = dumped(faults.case_dropout)
    bundle = Path(facts["bundles"][0])
    content, tensors = read(bundle)
    return {
        "modes": {str(p.relative_to(bundle.parent)): stat.S_IMODE(p.stat().st_mode) for p in [bundle, *bundle.iterdir()]},
        "name": bundle.name,
        "files": sorted(p.name for p in bundle.iterdir()),
        "environment": content["environment"],
        "torch": torch.__version__,
        "roles": sorted(content["roles"].values()),
        "step": content["step"],
        "bundles": len(facts["bundles"]),
        "json_only": not any(c in (bundle / "step.json").read_text() for c in ("NaN,", "Infinity,")),
        "losses": tensors["loss.0"].isinf().item(),
        "file_reads_too": read(bundle / "step.json")[0] == content,
    }  # fmt: skip


def case_relative_path() -> dict[str, Any]:
    """Below the working directory the evidence names the bundle as one would type it."""
    before = Path.cwd()
    os.chdir(BASE)
    try:
        model = nn.Linear(4, 4)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        with osler.watch(budget="none", folder="here") as w:
            opt.zero_grad()
            model(torch.ones(2, 4)).mul(0).log().mean().backward()
            opt.step()
        path = w.report.findings[0].evidence["dump"]
        return {"path": path, "exists": Path(str(path)).is_dir()}
    finally:
        os.chdir(before)


def case_cap() -> dict[str, Any]:
    """Past dump.max_mb the parameters are left out, of the inputs what fits is kept, and the cause is said all the same."""
    big = dumped(large, Settings(dump=Dump(max_mb=0.25)))
    bundle = Path(big["bundles"][0])
    tensors = load((bundle / "tensors.safetensors").read_bytes())
    report = replay_bundle(bundle)
    off = dumped(faults.case_tag, Settings(dump=Dump(enabled=False)))
    return {
        "rule": big["findings"][0]["rule"],
        "bytes": sum(p.stat().st_size for p in bundle.iterdir()),
        "kept": sorted(tensors),
        "not_checked": [n for n in big["not_checked"] if "dump" in n[0]],
        "same_cause": report.subject["same_cause"],
        "repeated": [f.rule for f in report.findings],
        "why": [n.why for n in report.not_checked],
        "off": [off["findings"][0]["rule"], off["bundles"], "dump" in off["findings"][0]["evidence"]],
    }


def large() -> dict[str, Any]:
    model = nn.Linear(512, 512, bias=False)  # 1 MiB
    opt = torch.optim.SGD(model.parameters(), lr=0.1)

    def training() -> None:
        opt.zero_grad()
        out = model(torch.randn(16, 512))  # 32 KiB
        (out * torch.zeros(())).log().mean().backward()
        opt.step()

    return faults.findings_of(training)


def case_hostile() -> dict[str, Any]:
    """What a bundle from a stranger may hold; the answer is one line of BundleError, and nothing is executed."""
    good = Path(dumped(faults.case_tag)["bundles"][0])
    content = json.loads((good / "step.json").read_text())
    tensors = load((good / "tensors.safetensors").read_bytes())
    first = next(
        i for i, o in enumerate(content["operations"]) if any(isinstance(a, dict) and "s" in a for a in o["args"])
    )
    place = next(i for i, a in enumerate(content["operations"][first]["args"]) if isinstance(a, dict) and "s" in a)

    def changed(fn: Callable[[dict[str, Any]], Any]) -> bytes:
        new = copy.deepcopy(content)
        made = fn(new)
        return json.dumps(new if made is None else made).encode()

    def op(name: str, args: list[Any] | None = None, kwargs: dict[str, Any] | None = None) -> bytes:
        record = {"op": name, "args": args or [], "kwargs": kwargs or {}, "out": [0], "backward": False, "index": 0}
        return changed(lambda c: c.update(operations=[record]))

    def piece(**values: Any) -> bytes:
        return changed(lambda c: c["operations"][first]["args"][place].update(values))

    victim = BASE / "victim"
    victim.write_bytes(b"12345678")
    tries: dict[str, bytes] = {
        "not json": b"{",
        "deep json": b"[" * 100_000,
        "not utf-8": b"\xff\xfe\x00",
        "a list": b"[]",
        "format": changed(lambda c: c.update(format=99)),
        "no finding": changed(lambda c: c.pop("finding") and None),
        "finding of another kind": changed(lambda c: c.update(finding=[1])),
        "operations of another kind": changed(lambda c: c.update(operations={"a": 1})),
        "an operation of another kind": changed(lambda c: c.update(operations=["aten::add.Tensor"])),
        "saves a file": op("aten::save.default", [[1], str(BASE / "written")]),
        "saves a file with a word": op("aten::save.default", [[1], "mean"]),
        "turns gradients on": op("aten::set_grad_enabled.default", [True]),
        "no aten": op("prim::Print.default"),
        "python": op("os::system.default", ["touch /tmp/x"]),
        "attribute": op("aten::__class__.default"),
        "unknown": op("aten::no_such_operation.default"),
        "reads a file": op("aten::from_file.default", [str(victim), False, 8]),
        "writes a file": op("aten::from_file.default", [str(victim), True, 1 << 20]),
        "too few results": op("aten::ones.default", [[2]], {}).replace(b'"out": [0]', b'"out": []'),
        "huge": op("aten::ones.default", [[1 << 60]]),
        "arguments of another kind": op("aten::ones.default", ["x"]),
        "nested arguments": changed(lambda c: c["operations"][0].update(args={"x": 1})),
        "beyond its memory": piece(o=1 << 40),
        "negative": piece(o=-1),
        "far strides": piece(t=[1 << 40 for _ in content["operations"][first]["args"][place]["t"]]),
        "another dtype": piece(d="complex128"),
        "no dtype": piece(d="nonsense"),
        "no such tensor": piece(s=123456),
        "a word as tensor": piece(s="x"),
        "rng of another kind": changed(lambda c: c["operations"][0].update(rng="x")),
        "index of another kind": changed(lambda c: c["operations"][0].update(index="x")),
        "forward of another kind": changed(lambda c: c["operations"][0].update(forward=[1])),
        "out of another kind": changed(lambda c: c["operations"][0].update(out=["x"])),
        "targets of another kind": changed(lambda c: c.update(targets=[[1]])),
        "targets no list": changed(lambda c: c.update(targets=7)),
    }
    out: dict[str, str] = {}
    for name, data in tries.items():
        out[name] = attempt(data, save(tensors))
    step = (good / "step.json").read_bytes()
    out["damaged tensors"] = attempt(step, b"\x10" * 64)
    out["no tensors"] = attempt(step, save({}))
    out["tensors of another dtype"] = attempt(step, save({k: v.double() for k, v in tensors.items()}))
    out["shorter tensors"] = attempt(step, save({k: v.flatten()[:1].clone() for k, v in tensors.items()}))
    out["no folder"] = attempt(None, None)
    written = (BASE / "written").exists() or Path("mean").exists()
    return {
        "answers": out,
        "written": written,
        "victim": victim.read_bytes().decode(),
        "good": replay_bundle(good).subject["same_cause"],
    }


def attempt(step: bytes | None, tensors: bytes | None) -> str:
    folder = Path(tempfile.mkdtemp(dir=BASE))
    if step is not None:
        (folder / "step.json").write_bytes(step)
    if tensors is not None:
        (folder / "tensors.safetensors").write_bytes(tensors)
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    try:
        report = replay_bundle(folder)
        return f"accepted: {[f.rule for f in report.findings]}"
    except BundleError as error:
        ok = threads == torch.get_num_threads() and torch.equal(state, torch.get_rng_state())
        return f"refused: {error}" if ok and "\n" not in str(error) else f"not put back: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(globals())
