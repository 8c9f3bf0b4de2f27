"""`osler doctor`: can osler watch here? Each answer is tried, not looked up: a child process trains a model whose loss
becomes NaN at a known line, and osler has to say so."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from osler.app.config import Loaded
from osler.core.runfolder import DISABLE, PLAN, RUN_DIR
from osler.core.settings import Settings

SUPPORTED_PYTHON = ((3, 10), (3, 13))
OLDEST_TORCH = (2, 6)
_TIMEOUT_S = 120.0
_MARK = "# planted"

# Runs in the interpreter that is examined, which need not have osler. The fault is on the marked line.
_PROBE = """\
import json
import os
import sys

facts = {
    "python": list(sys.version_info[:3]),
    "awake": "osler.app.wake" in sys.modules,
    "hooks": [p for p in sys.path if os.path.isfile(os.path.join(p, "osler-wake.pth"))],
}
try:
    import osler

    facts["osler"] = osler.__version__
except Exception as err:
    facts["osler_error"] = type(err).__name__ + ": " + str(err)
try:
    import torch
except Exception as err:
    facts["torch_error"] = type(err).__name__ + ": " + str(err)
else:
    facts["torch"] = str(torch.__version__)
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(4):
        x = torch.rand(8, 4)
        gap = (model(x) - 1.0) ** 2 + 1.0
        loss = torch.log(gap - 2.0 * gap * (step == 2)).mean()  # planted
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    try:
        from osler.training import private

        facts["private"] = private.status()
    except Exception as err:
        facts["private_error"] = type(err).__name__ + ": " + str(err)
with open(sys.argv[1], "w") as out:
    json.dump(facts, out)
"""


@dataclass(frozen=True, slots=True)
class Check:
    """One question and its answer.

    Attributes:
        name: what was asked.
        state: `ok`, `failed` (osler cannot do its job), `off` (it is told not to) or `note` (works, with less).
        detail: what was found.
        fix: what to do about it; empty where there is nothing to do.
    """

    name: str
    state: str
    detail: str
    fix: str = ""

    def to_dict(self) -> dict[str, str]:
        """JSON-ready."""
        return dataclasses.asdict(self)


def examine(loaded: Loaded, cwd: Path, python: str | None = None) -> list[Check]:
    """Ask everything. Starts one child that imports torch, where there is one: 2 to 10 seconds.

    Args:
        loaded: the settings in force, for what they switch off.
        cwd: where runs would be kept.
        python: the interpreter to examine; by default the one that runs osler.
    """
    checks = [*_switched_off(loaded), _writable(cwd)]
    interpreter = python or sys.executable
    with tempfile.TemporaryDirectory(prefix="osler-doctor-") as folder:
        facts, records, problem = _try(interpreter, Path(folder), cwd)
    if facts is None:
        fix = "give a working interpreter with --python"
        return [Check("interpreter", "failed", f"{interpreter}: {problem}", fix), *checks]
    return [*_interpreter(interpreter, facts), *_watching(facts, records), *_private(facts), *checks]


def healthy(checks: list[Check]) -> bool:
    """Whether nothing failed; what is off by choice does not count."""
    return all(check.state != "failed" for check in checks)


def _try(python: str, folder: Path, cwd: Path) -> tuple[dict[str, object] | None, list[dict[str, object]], str]:
    """Run the probe under watch: its facts, what its journals hold, and what went wrong."""
    script, answer, run = folder / "probe.py", folder / "facts.json", folder / "run"
    run.mkdir(mode=0o700)
    script.write_text(_PROBE, "utf-8")
    options = {
        "budget_none": True,
        "trace_layers": False,
        "expect": None,
        "record_graph": None,
        "dump": False,
        "cwd": str(folder),
    }
    plan = {"settings": dataclasses.asdict(Settings()), "options": options}
    (run / PLAN).write_text(json.dumps(plan), "utf-8")
    environ = {k: v for k, v in os.environ.items() if k != DISABLE} | {RUN_DIR: str(run)}
    try:
        child = subprocess.run(
            [python, str(script), str(answer)],
            env=environ,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, [], f"a small training did not end within {_TIMEOUT_S:g} s"
    except OSError as err:
        return None, [], f"cannot be started: {err.strerror or err}"
    try:
        facts = json.loads(answer.read_text("utf-8"))
    except (OSError, ValueError):
        last = (child.stderr.strip().splitlines() or ["no message"])[-1]
        return None, [], f"a small training ended with exit code {child.returncode}: {last}"
    return facts, list(_records(run)), ""


def _records(run: Path) -> Iterator[dict[str, object]]:
    for journal in run.glob("journal-*.jsonl"):
        for line in journal.read_text("utf-8", errors="replace").splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                yield record


def _interpreter(python: str, facts: Mapping[str, object]) -> Iterator[Check]:
    raw = facts["python"]
    version = tuple(raw) if isinstance(raw, list) else ()
    low, high = (".".join(map(str, v)) for v in SUPPORTED_PYTHON)
    detail = f"{python}, Python {'.'.join(map(str, version))}"
    if SUPPORTED_PYTHON[0] <= version[:2] <= SUPPORTED_PYTHON[1]:
        yield Check("interpreter", "ok", detail)
    else:
        yield Check("interpreter", "note", f"{detail}; osler is tested with {low} to {high}")
    if "torch" in facts:
        torch = str(facts["torch"])
        oldest = ".".join(map(str, OLDEST_TORCH))
        if _release(torch) >= OLDEST_TORCH:
            yield Check("torch", "ok", torch)
        else:
            yield Check("torch", "failed", f"{torch} is older than {oldest}", f"upgrade torch to {oldest} or later")
    else:
        fix = "install torch beside osler (`pip install 'osler[torch]'`), or name the interpreter that has it: --python"
        yield Check("torch", "failed", str(facts.get("torch_error")), fix)


def _release(version: str) -> tuple[int, ...]:
    numbers = version.partition("+")[0].split(".")[:2]
    return tuple(int("".join(c for c in n if c.isdigit()) or 0) for n in numbers)


def _watching(facts: Mapping[str, object], records: list[dict[str, object]]) -> Iterator[Check]:
    hooks = facts.get("hooks")
    if not facts.get("osler"):
        fix = "install osler in that interpreter's environment: `PYTHON -m pip install osler`"
        yield Check("start-up hook", "failed", f"osler is not there ({facts.get('osler_error')})", fix)
        return
    if not hooks or not isinstance(hooks, list):
        yield Check("start-up hook", "failed", "osler-wake.pth is not in site-packages", "install osler again with pip")
        return
    if not facts.get("awake"):
        fix = "start Python without -S, and see whether its site-packages are read (`python -m site`)"
        yield Check("start-up hook", "failed", f"{hooks[0]}/osler-wake.pth is there but does not run", fix)
        return
    yield Check("start-up hook", "ok", f"{hooks[0]}/osler-wake.pth, live in a new process")
    if "torch" not in facts:
        return
    line = next(n for n, text in enumerate(_PROBE.splitlines(), 1) if _MARK in text)
    lines = [_line(r) for r in records if r.get("t") == "finding"]
    report = "report it with the output of `osler env --json`"
    if line in lines:
        yield Check("watching", "ok", "a NaN planted in a small training was found at its line")
    elif lines:
        yield Check(
            "watching", "failed", f"the planted NaN of line {line} was found at {lines[0] or 'no line'}", report
        )
    elif any(r.get("t") == "awake" for r in records):
        yield Check("watching", "failed", "the training was seen but not the NaN planted in it", report)
    else:
        notes = [str(r.get("text")) for r in records if r.get("t") == "note"]
        yield Check("watching", "failed", notes[0] if notes else "a small training left no record", report)


def _line(record: Mapping[str, object]) -> int | None:
    finding = record.get("finding")
    where = finding.get("where") if isinstance(finding, dict) else None
    return where.get("line") if isinstance(where, dict) else None


def _private(facts: Mapping[str, object]) -> Iterator[Check]:
    status = facts.get("private")
    if not isinstance(status, dict):
        if "private_error" in facts and "osler" in facts:
            yield Check("private torch APIs", "failed", str(facts["private_error"]), "install a supported torch")
        return
    fallen = {name: how for name, how in status.items() if how != "in use"}
    used = [name for name in status if name not in fallen]
    yield Check("private torch APIs", "ok", f"{len(used)} of {len(status)} in use: {', '.join(used) or 'none'}")
    for name, how in fallen.items():
        yield Check(f"private API: {name}", "note", f"fell back: {how}")


def _writable(cwd: Path) -> Check:
    folder = cwd / ".osler"
    place = folder if folder.is_dir() else cwd
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".osler-doctor-") as file:
            file.write(b"x" * 4096)
            file.flush()
    except OSError as err:
        fix = "make it writable or free some space; until then osler watches in memory and keeps nothing"
        return Check("records", "failed", f"cannot write to {place}: {err.strerror or err}", fix)
    return Check("records", "ok", f"{folder} can be written")


def _switched_off(loaded: Loaded) -> Iterator[Check]:
    settings, origins = loaded.settings, loaded.origins
    if os.environ.get(DISABLE):
        yield Check("osler", "off", f"{DISABLE} is set: `osler run` starts scripts unwatched", f"unset {DISABLE}")
    if settings.select:
        yield Check("rules", "off", f"all but {', '.join(settings.select)} ({origins['select']})")
    if settings.ignore:
        yield Check("rules", "off", f"{', '.join(settings.ignore)} ({origins['ignore']})")
    for glob, rules in settings.per_file_ignores.items():
        yield Check("rules", "off", f"{', '.join(rules)} in {glob} ({origins['per_file_ignores']})")
    if not settings.dump.enabled:
        yield Check("dumps", "off", f"dump.enabled = false ({origins['dump.enabled']}): `osler replay` has no bundles")
    if platform.system() != "Linux":
        yield Check("platform", "note", f"{platform.system()} is not tested; Linux is")


def show(checks: list[Check], as_json: bool = False) -> None:
    """Print the answers on stdout, each failure with its fix."""
    if as_json:
        print(json.dumps([check.to_dict() for check in checks], indent=2))  # noqa: T201
        return
    from rich.console import Console

    from osler.render.pen import QUIET, Pen

    styles = {"ok": "green", "failed": "bold red", "off": "yellow", "note": "cyan"}
    pen = Pen(Console())
    for check in checks:
        pen.line((f"{check.state:<7}", styles[check.state]), (check.name, "bold"), f": {check.detail}", hang=7)
        if check.fix:
            pen.line((f"fix: {check.fix}", QUIET), indent=7)
    pen.line("osler can watch here" if healthy(checks) else ("osler cannot do its whole job here", "bold red"))
