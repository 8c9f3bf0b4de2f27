"""What has passed already, kept in `.osler/cases-progress.json`, so that an interrupted verification can be resumed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import sys
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import osler
from osler.cases.verdict import Outcome, Verdict

FILE = Path(".osler") / "cases-progress.json"
_FORMAT = 1
_LIBRARIES = ("torch", "numpy", "lightning", "transformers", "scikit-learn")


class Progress:
    """The verdicts that passed, each with a fingerprint of everything that it depends on.

    Every new verdict is written at once. Where nothing can be written, `problem` says why and the verification goes on.

    Args:
        path: the file, `.osler/cases-progress.json` by default.
        fresh: forget what it holds.
    """

    def __init__(self, path: Path | None = None, *, fresh: bool) -> None:
        self.path = FILE if path is None else path
        self.problem = ""
        self._passed: dict[str, dict[str, Any]] = {} if fresh else _load(self.path)

    def passed(self, kind: str, id: str, budget: str, fingerprint: str) -> Verdict | None:
        """The verdict of an earlier run, if it passed and nothing that it depends on has changed."""
        entry = self._passed.get(_key(kind, id, budget))
        if entry is None or entry.get("fingerprint") != fingerprint:
            return None
        try:
            verdict = Verdict.from_dict(entry["verdict"])
        except (KeyError, TypeError, ValueError):
            return None
        if verdict.outcome is not Outcome.PASS:
            return None
        verdict.resumed = True
        return verdict

    def record(self, verdict: Verdict, fingerprint: str) -> None:
        """Keep a verdict if it passed, and forget an earlier pass if it did not."""
        key = _key(verdict.kind, verdict.id, verdict.budget)
        if verdict.outcome is Outcome.PASS:
            self._passed[key] = {"fingerprint": fingerprint, "verdict": verdict.to_dict()}
        else:
            self._passed.pop(key, None)
        if not self.problem:
            try:
                _write(self.path, {"format": _FORMAT, "passed": self._passed})
            except OSError as err:
                self.problem = f"{self.path} cannot be written ({err.strerror}); --resume will find nothing"


def fingerprint(folder: Path, *more: str) -> str:
    """A hash of a folder's content, osler's own sources and version, Python and the libraries that scripts train with.

    Args:
        folder: the case's folder, or the folder of the healthy scripts.
        more: whatever else the verdict depends on.
    """
    digest = hashlib.sha256(_surroundings().encode())
    _add(digest, folder)
    for word in more:
        digest.update(b"\0" + word.encode())
    return digest.hexdigest()


@lru_cache(maxsize=1)
def _surroundings() -> str:
    digest = hashlib.sha256()
    root = Path(osler.__file__).resolve().parent
    _add(digest, root, without=root / "casebook")
    words = [osler.__version__, sys.version, platform.platform(), digest.hexdigest()]
    for name in _LIBRARIES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            words.append(f"{name} {metadata.version(name)}")
    return "\n".join(words)


def _add(digest: Any, folder: Path, without: Path | None = None) -> None:
    """Add names and contents of the files under a folder, except caches and hidden ones."""
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if any(part == "__pycache__" or part.startswith(".") for part in relative.parts) or not path.is_file():
            continue
        if without is not None and path.is_relative_to(without):
            continue
        digest.update(relative.as_posix().encode("utf-8", "surrogateescape") + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())


def _key(kind: str, id: str, budget: str) -> str:
    return f"{kind}:{id}:{budget}"


def _load(path: Path) -> dict[str, dict[str, Any]]:
    """What the file holds; nothing if it is missing, damaged or of another format."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(data, dict) or data.get("format") != _FORMAT or not isinstance(data.get("passed"), dict):
        return {}
    return {str(k): v for k, v in data["passed"].items() if isinstance(v, dict)}


def _write(path: Path, data: dict[str, Any]) -> None:
    folder = path.parent
    if not folder.is_dir():
        folder.mkdir(mode=0o700, parents=True)
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    scratch = path.with_name(f"{path.name}.{os.getpid()}")
    scratch.write_text(json.dumps(data), encoding="utf-8")
    scratch.replace(path)
