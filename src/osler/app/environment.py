"""Where a result came from: interpreter, packages, torch build, hardware, switches; and what differs between two."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import osler
from osler.app.errors import UserError
from osler.core.jsonable import dumps

# By name only: an environment holds secrets, so nothing is taken that is not listed here.
_NAMES = {
    "OMP_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES",
    "CUBLAS_WORKSPACE_CONFIG",
    "NVIDIA_TF32_OVERRIDE",
    "OPENBLAS_CORETYPE",
    "PYTHONHASHSEED",
}
_PREFIXES = ("MKL_", "TORCH_", "PYTORCH_")
_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)

# Prefix of a fact's dotted name → how it changes numbers. The first that fits counts.
_CHANGES: tuple[tuple[str, str], ...] = (
    ("torch.version", "kernels, defaults and random streams change between versions of torch"),
    ("torch.git", "kernels differ between builds of torch"),
    ("torch.cuda", "another CUDA version brings other kernels, which sum in another order"),
    ("torch.cudnn", "cuDNN picks its algorithms by version and by these flags"),
    ("torch.mkl", "another BLAS sums in another order"),
    ("torch.blas", "another BLAS sums in another order"),
    ("torch.cpu_capability", "vector width decides the order of summation"),
    ("torch.threads", "the number of threads decides how sums are split"),
    ("torch.deterministic", "without it some operations differ from run to run"),
    ("torch.default_dtype", "everything is computed in another precision"),
    ("torch.matmul", "reduced precision (TF32, bfloat16) in matrix products"),
    ("gpus", "another GPU runs other kernels"),
    ("cpu.model", "BLAS picks its kernels by the processor"),
    ("cpu.machine", "another architecture rounds and sums differently"),
    ("variables.OMP_NUM_THREADS", "the number of threads decides how sums are split"),
    ("variables.MKL_", "steers which BLAS kernels run"),
    ("variables.OPENBLAS_CORETYPE", "steers which BLAS kernels run"),
    ("variables.CUBLAS_WORKSPACE_CONFIG", "decides whether cuBLAS is deterministic"),
    ("variables.NVIDIA_TF32_OVERRIDE", "switches TF32 for the whole process"),
    ("variables.PYTHONHASHSEED", "order of sets, and what is derived from it"),
    ("packages.torch", "kernels, defaults and random streams change between versions of torch"),
    ("packages.numpy", "random streams and kernels may change between versions"),
    ("packages.scipy", "kernels may change between versions"),
    ("packages.scikit-learn", "algorithms and defaults may change between versions"),
    ("packages.transformers", "model code, defaults and tokenisation may change between versions"),
    ("packages.tokenizers", "tokenisation may change between versions"),
    ("packages.lightning", "the training loop and its defaults may change between versions"),
    ("packages.pytorch-lightning", "the training loop and its defaults may change between versions"),
    ("packages.accelerate", "the training loop and its defaults may change between versions"),
    ("packages.nvidia-", "CUDA libraries bring other kernels"),
    ("packages.triton", "compiled kernels differ"),
    ("packages.pillow", "decoding and resizing of images may change between versions"),
    ("packages.opencv", "decoding and resizing of images may change between versions"),
    ("packages.pandas", "parsing and defaults may change between versions"),
    ("git", "the code is not the same"),
)


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact that is not the same on both sides.

    Attributes:
        name: dotted, e.g. `packages.numpy`.
        a, b: the two values; None where a side does not have it.
        changes_numbers: how it is known to change results; empty where it is not known to.
    """

    name: str
    a: object
    b: object
    changes_numbers: str = ""

    def to_dict(self) -> dict[str, object]:
        """JSON-ready."""
        return {"name": self.name, "a": self.a, "b": self.b, "changes_numbers": self.changes_numbers or None}


def fingerprint(full: bool = True, cwd: Path | None = None) -> dict[str, object]:
    """What decides a result besides the script: JSON-ready, no paths, no secrets.

    Args:
        full: import torch, if there is one, for the facts that only it knows (seconds). Without it only installed
            versions are read.
        cwd: the folder whose git commit is named.
    """
    facts: dict[str, object] = {
        "osler": osler.__version__,
        "python": {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "build": " ".join(platform.python_build()),
            "compiler": platform.python_compiler(),
            "virtual_environment": sys.prefix != sys.base_prefix,
        },
        "platform": {"system": platform.system(), "release": platform.release(), "libc": " ".join(platform.libc_ver())},
        "cpu": {
            "model": _cpu_model(),
            "machine": platform.machine(),
            "cores": os.cpu_count(),
            "usable": _usable_cores(),
        },
        "memory_gib": _memory_gib(),
        "packages": packages(),
        "variables": variables(os.environ),
        "git": git(cwd or Path.cwd()),
    }
    if full:
        facts.update(_torch())
    return facts


def packages() -> dict[str, str]:
    """Installed distributions, lower-case name → version, sorted."""
    from importlib.metadata import distributions

    found: dict[str, str] = {}
    for dist in distributions():
        name = dist.metadata["Name"]
        if name:  # a broken installation can have none; the first on the path is the one that is imported
            found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), dist.version)
    return dict(sorted(found.items()))


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that steer numbers or devices, by an allow-list."""
    return {
        name: value
        for name, value in sorted(environ.items())
        if (name in _NAMES or name.startswith(_PREFIXES)) and not _SECRET.search(name)
    }


def git(cwd: Path) -> dict[str, object] | None:
    """Commit and whether tracked files differ from it; None outside a repository or without git."""
    command = ["git", "-C", str(cwd)]
    try:
        head = subprocess.run([*command, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=False)
        if head.returncode:
            return None
        status = subprocess.run(
            [*command, "--no-optional-locks", "status", "--porcelain", "--untracked-files=no"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return {"commit": head.stdout.strip(), "dirty": bool(status.stdout.strip()) if status.returncode == 0 else None}


def read(path: Path) -> dict[str, object]:
    """A fingerprint from a file: of `osler env --json`, or the `environment` of a report in JSON.

    Raises:
        UserError: the file cannot be read or holds neither.
    """
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError as err:
        raise UserError(f"{path} cannot be read: {err.strerror or err}") from None
    except ValueError as err:
        raise UserError(f"{path} is not JSON: {err}") from None
    if isinstance(data, dict) and isinstance(data.get("environment"), dict):
        data = data["environment"]
    if not isinstance(data, dict) or not ("python" in data or "packages" in data):
        raise UserError(f"{path} holds no fingerprint; write one with `osler env --json > {path.name}`")
    return data


def side(name: str, cwd: Path) -> dict[str, object]:
    """One side of a comparison: the file of that name (see `read`), else the environment of the run of that name.

    Raises:
        UserError: it is neither, or the file cannot be used.
    """
    path = cwd / name
    if path.is_file():
        return read(path)
    from osler.records.assemble import assemble
    from osler.records.folder import Home, NoRun

    home = Home.find(cwd)
    if home is None:
        raise UserError(f"{name} is no file, and no runs are kept here")
    try:
        return assemble(home.find_run(name)).environment
    except NoRun as err:
        raise UserError(f"{name} is no file, and as a run: {err}") from None


def diff(a: Mapping[str, object], b: Mapping[str, object]) -> list[Difference]:
    """What is not the same, first what is known to change numbers, then by name.

    Sections that only one side has (`torch` is not asked by the parent of a run) are not compared; see `one_sided`.
    """
    common = a.keys() & b.keys()
    left, right = (flat({key: facts[key] for key in common}) for facts in (a, b))
    found = [
        Difference(name, left.get(name), right.get(name), _reason(name))
        for name in sorted(left.keys() | right.keys())
        if left.get(name) != right.get(name)
    ]
    return sorted(found, key=lambda d: not d.changes_numbers)


def one_sided(a: Mapping[str, object], b: Mapping[str, object]) -> list[str]:
    """The sections that only one side has."""
    return sorted(a.keys() ^ b.keys())


def flat(facts: object, prefix: str = "") -> dict[str, object]:
    """Dotted name → value; items of lists are numbered from 0, what is None is left out."""
    if isinstance(facts, Mapping):
        items = [(str(key), value) for key, value in facts.items()]
    elif isinstance(facts, list):
        items = [(str(i), value) for i, value in enumerate(facts)]
    else:
        return {prefix: facts} if facts is not None else {}
    out: dict[str, object] = {}
    for key, value in items:
        out.update(flat(value, f"{prefix}.{key}" if prefix else key))
    return out


def _reason(name: str) -> str:
    return next((why for prefix, why in _CHANGES if name.startswith(prefix)), "")


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8", errors="replace").splitlines():
            if line.lower().startswith(("model name", "hardware")):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _usable_cores() -> int | None:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError, AttributeError):
        return None


def _torch() -> dict[str, object]:
    """Facts that only an imported torch knows; a torch that cannot be imported is a fact as well."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        return {"torch": None, "gpus": []}
    try:
        import torch
    except Exception as err:
        return {"torch": {"error": f"{type(err).__name__}: {err}"}, "gpus": []}

    backends: Any = torch.backends  # partly without annotations
    cudnn = backends.cudnn
    facts: dict[str, object] = {
        "version": str(torch.__version__),
        "git": torch.version.git_version,
        "debug": bool(torch.version.debug),
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
        "cudnn": {
            "version": cudnn.version() if cudnn.is_available() else None,
            "benchmark": cudnn.benchmark,
            "deterministic": cudnn.deterministic,
        },
        "mkl": backends.mkl.is_available(),
        "mkldnn": backends.mkldnn.is_available(),
        "blas": _blas(torch.__config__.show()),
        "openmp": backends.openmp.is_available(),
        "cpu_capability": backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "default_dtype": str(torch.get_default_dtype()).removeprefix("torch."),
        "matmul_precision": torch.get_float32_matmul_precision(),
    }
    gpus: list[dict[str, object]] = []
    if torch.cuda.is_available():
        for i in range(torch.cuda.device_count()):
            p = torch.cuda.get_device_properties(i)
            memory = round(p.total_memory / 2**30, 1)
            gpus.append({"name": p.name, "capability": f"{p.major}.{p.minor}", "memory_gib": memory})
    return {"torch": facts, "gpus": gpus}


def _blas(build: str) -> str | None:
    found = re.search(r"BLAS_INFO=(\w+)", build)
    return found[1] if found else None


def show(facts: Mapping[str, object], as_json: bool = False) -> None:
    """Print a fingerprint on stdout; packages come last, several a line."""
    if as_json:
        print(dumps(facts, indent=2))  # noqa: T201
        return
    from rich.console import Console

    from osler.render.pen import Pen

    pen = Pen(Console())
    rows = {name: value for name, value in flat(facts).items() if not name.startswith("packages.")}
    wide = max(map(len, rows)) + 2
    for name, value in rows.items():
        pen.line((f"{name:<{wide}}", "bold"), str(value), hang=wide)
    installed = facts.get("packages")
    if isinstance(installed, Mapping):
        pen.line((f"{'packages':<{wide}}", "bold"), ", ".join(f"{n} {v}" for n, v in installed.items()), hang=wide)


def show_diff(names: tuple[str, str], cwd: Path, as_json: bool = False) -> None:
    """Print what differs between two fingerprints, files or runs, on stdout.

    Raises:
        UserError: one of them is neither.
    """
    a, b = (side(name, cwd) for name in names)
    differences, alone = diff(a, b), one_sided(a, b)
    if as_json:
        print(dumps({"differences": [d.to_dict() for d in differences], "not_compared": alone}, indent=2))  # noqa: T201
        return
    from rich.console import Console

    from osler.render.pen import QUIET, Pen

    pen = Pen(Console())
    if not differences:
        pen.line(f"{names[0]} and {names[1]} do not differ")
    known = [d for d in differences if d.changes_numbers]
    for title, part in (
        ("Known to change numbers", known),
        ("Other differences", [d for d in differences if not d.changes_numbers]),
    ):
        if part:
            pen.line((title, "bold"))
        for d in part:
            pen.line((d.name, "bold"), f"  {_side(d.a)} → {_side(d.b)}", indent=2, hang=4)
            if d.changes_numbers:
                pen.line((d.changes_numbers, QUIET), indent=4)
    if alone:
        pen.line(f"not compared, since only one side has it: {', '.join(alone)}")


def _side(value: object) -> str:
    return "absent" if value is None else str(value)
