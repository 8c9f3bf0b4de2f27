"""What was found in files that have not changed, kept between runs in one compact file.

An entry holds as long as the file, and every file of the project that its facts came from, has the same content, and
nothing that it imports in vain has appeared. Content is taken for the same where size and time of change are; only
where the time alone differs are the bytes read again.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from osler.lint.result import FileResult

_FORM = 1
_NAME = "lint-cache"
_KEPT = 12  # files of other settings, working directories, versions
# A file written in the same tick of the clock as it was read could change again and show the same time.
_TICK_NS = 50_000_000


@dataclass(slots=True)
class Cache:
    """One file of results. A file that cannot be read, or is not what this version wrote, counts as empty.

    Attributes:
        path: the file; None keeps nothing.
        entries: by file, as JSON.
        stamps: for each file its time of change in ns, its size and the hash of its content.
    """

    path: Path | None
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    stamps: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    _hashes: dict[str, str] = field(default_factory=dict)
    _changed: bool = False

    @classmethod
    def load(cls, folder: Path | None, key: object) -> Cache:
        """The results of earlier runs under the same circumstances.

        Args:
            folder: where the caches lie, as of `place`.
            key: what decides besides the files: settings, versions, working directory.
        """
        if folder is None:
            return cls(None)
        name = blake2b(repr(key).encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()
        cache = cls(folder / f"{name}.json")
        cache._read()
        return cache

    def _read(self) -> None:
        try:
            data = json.loads(self.path.read_bytes())  # type: ignore[union-attr]
            if data["form"] == _FORM:
                self.entries = {str(e["path"]): e for e in data["entries"]}
                self.stamps = {str(p): (int(t), int(s), str(h)) for p, (t, s, h) in data["stamps"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self.entries, self.stamps = {}, {}

    def known(self, files: Iterable[str]) -> dict[str, FileResult]:
        """The results that still hold."""
        files = list(files)
        self._hashes.clear()
        there: set[str] = set()
        for file in files:
            stem = file.removesuffix(".py")
            while stem and stem not in there:
                there.add(stem)
                stem = stem.rpartition(os.sep)[0]
        out = {}
        for file in files:
            entry = self.entries.get(file)
            if entry is None:
                continue
            with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError):
                if self._holds(file, entry, there):
                    out[file] = FileResult.from_dict(entry)
        return out

    def _holds(self, file: str, entry: dict[str, Any], there: set[str]) -> bool:
        if not entry["hash"] or self._hash(file) != entry["hash"]:
            return False
        if any(self._hash(path) != known for path, known in entry.get("used", {}).items()):
            return False
        return not any(name in there for name in entry.get("missing", ()))

    def _hash(self, path: str) -> str:
        """The hash of a file's content; empty where it cannot be read. Asked once a run."""
        known = self._hashes.get(path)
        if known is None:
            known = self._hashes[path] = self._hash_now(path)
        return known

    def _hash_now(self, path: str) -> str:
        try:
            about = os.stat(path)
            stamp = self.stamps.get(path)
            if stamp is None or stamp[1] != about.st_size:
                return ""
            if stamp[0] == about.st_mtime_ns:
                return stamp[2]
            from osler.lint.linter import digest

            now = digest(Path(path).read_bytes())
        except (OSError, ValueError):
            return ""
        self._stamp(path, about, now)
        self._changed = True
        return now

    def _stamp(self, path: str, about: os.stat_result, hash_: str) -> None:
        settled = time.time_ns() - about.st_mtime_ns > _TICK_NS
        self.stamps[path] = (about.st_mtime_ns if settled else 0, about.st_size, hash_)

    def take(self, result: FileResult, about: os.stat_result | None) -> None:
        """Keep a result.

        Args:
            result: what was found.
            about: the file as it was before it was read.
        """
        if about is None or not result.hash or any(t.ours for t in result.troubles):
            return
        self.entries[result.path] = result.to_dict()
        self._stamp(result.path, about, result.hash)
        for path, known in result.used.items():
            stamp = self.stamps.get(path)
            if stamp is None or stamp[2] != known:
                # Its stamp is not known here: the next run reads it once and compares.
                with contextlib.suppress(OSError):
                    self.stamps[path] = (0, os.stat(path).st_size, known)
        self._changed = True

    def save(self) -> None:
        """Write what is new. Two runs at once: the later one wins, nothing is ever half written."""
        if self.path is None or not self._changed:
            return
        for file in [f for f in self.entries if not os.path.lexists(f)]:
            del self.entries[file]
        wanted = {*self.entries, *(u for e in self.entries.values() for u in e.get("used", ()))}
        self.stamps = {p: s for p, s in self.stamps.items() if p in wanted}
        text = json.dumps(
            {"form": _FORM, "entries": list(self.entries.values()), "stamps": self.stamps}, separators=(",", ":")
        )
        with contextlib.suppress(OSError):
            self._prune()
            fd, temporary = tempfile.mkstemp(prefix=".new-", dir=self.path.parent)
            try:
                with os.fdopen(fd, "w", encoding="ascii") as handle:
                    handle.write(text)
                Path(temporary).replace(self.path)
            except OSError:
                Path(temporary).unlink(missing_ok=True)
                raise

    def _prune(self) -> None:
        assert self.path is not None
        others = [p for p in self.path.parent.iterdir() if p.suffix == ".json" and p != self.path]
        others.sort(key=lambda p: p.stat().st_mtime, reverse=True)
        for old in others[_KEPT - 1 :]:
            old.unlink(missing_ok=True)


def place(cwd: Path) -> Path | None:
    """The folder of the caches: in the nearest `.osler/` of this user, else a new one here, else the user's own cache."""
    here = cwd.absolute()
    for folder in (here, *here.parents):
        home = folder / ".osler"
        with contextlib.suppress(OSError):
            if home.is_dir() and home.stat().st_uid == os.geteuid():
                return _made(home) or _own()
        if (folder / ".git").exists():
            break
    return _made(here / ".osler") or _own()


def _own() -> Path | None:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        home = Path(base).expanduser() / "osler"
        home.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return _made(home)


def _made(home: Path) -> Path | None:
    """The folder inside a home, made where it is not there; None where it cannot be written."""
    folder = home / _NAME
    try:
        home.mkdir(mode=0o700, exist_ok=True)
        ignore = home / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="ascii")
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None


def rules_in_force() -> str:
    """What changes whenever osler's own rules do: sizes and times of the files that make them up."""
    base = Path(__file__).parent.parent
    facts = []
    for name in ("lint", "lint/checks", "syntax", "catalogue", "catalogue/data"):
        with contextlib.suppress(OSError), os.scandir(base / name) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    about = entry.stat()
                    facts.append((name, entry.name, about.st_size, about.st_mtime_ns))
    return blake2b(repr(sorted(facts)).encode(), digest_size=10).hexdigest()
