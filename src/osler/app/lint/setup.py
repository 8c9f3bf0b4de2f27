"""What one call of `osler lint` works with: the settings in force, the files, what is known of them already."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

from osler.app.config import find, load
from osler.app.errors import UserError
from osler.app.lint.wishes import FORMATS, Wishes
from osler.core.progress import Progress, quiet
from osler.core.settings import Settings, build
from osler.lint.cache import Cache, place, rules_in_force
from osler.lint.files import Excludes, NoSuchPath, discover
from osler.lint.plan import Plan
from osler.lint.result import Trouble
from osler.lint.session import Outcome
from osler.lint.session import lint as look


class Setup:
    """The settings in force, and what follows from them.

    Attributes:
        wishes: what was asked for.
        cwd: the working directory.
        home: the folder of earlier results; None where none are used.
        settings: in force.
        config: the file they come from, if there is one.
        plan: how files are looked at.

    Raises:
        UserError: a wish or a setting makes no sense.
    """

    def __init__(self, wishes: Wishes) -> None:
        if wishes.output_format not in FORMATS:
            raise UserError(f"--output-format {wishes.output_format}: it is one of {', '.join(FORMATS)}")
        self.wishes = wishes
        self.cwd = Path.cwd()
        self.home = None if wishes.no_cache else place(self.cwd)
        self.settings, self.config = _settings(wishes, self.cwd, self.home)
        if not self.settings.lint.cache:
            self.home = None
        self.plan = Plan(torch_version(self.settings.lint.torch), self.settings.lint)

    @property
    def base(self) -> Path:
        """The folder that globs in the configuration are relative to."""
        return self.cwd if self.config is None else self.config.absolute().parent

    def files(self) -> tuple[list[str], list[tuple[str, Trouble]]]:
        """The files to look at, and what could not be searched.

        Raises:
            UserError: a path does not exist.
        """
        lint = self.settings.lint
        excludes = Excludes((*lint.exclude, *lint.extend_exclude), lint.respect_gitignore, self.wishes.force_exclude)
        try:
            found = discover(self.wishes.paths or (".",), excludes)
        except NoSuchPath as error:
            raise UserError(str(error)) from None
        return found.files, [(path, Trouble(message)) for path, message in found.troubles]

    def cache(self) -> Cache:
        """What earlier runs under the same circumstances have found."""
        from osler import __version__

        key = (str(self.cwd), __version__, sys.version_info[:3], rules_in_force(), *self.plan.key)
        return Cache.load(self.home, key)

    def look(self, files: Sequence[str], cache: Cache) -> Outcome:
        """Look at files, with a bar on a terminal."""
        jobs = self.settings.lint.jobs if self.wishes.jobs is None else self.wishes.jobs
        with self._progress() as progress:
            return look(files, self.plan, cache=cache, jobs=jobs, progress=progress)

    @contextlib.contextmanager
    def _progress(self) -> Iterator[Progress]:
        """A bar on a terminal, for what takes long enough to ask how long it takes."""
        with contextlib.ExitStack() as stack:
            drawn: list[Progress] = []

            def progress(what: str, done: int, total: int | None) -> None:
                if not drawn and (total or 0) > 20:
                    from osler.app.check import bar

                    drawn.append(stack.enter_context(bar()))
                if drawn:
                    drawn[0](what, done, total)

            yield progress if sys.stderr.isatty() and not self.wishes.quiet else quiet


def torch_version(wish: str) -> tuple[int, int] | None:
    """The version to assume: the one that is configured, else the one installed beside osler, else nobody knows.

    Raises:
        UserError: what is configured is no version.
    """
    if wish:
        parts = wish.split(".")
        try:
            return int(parts[0]), int(parts[1])
        except (IndexError, ValueError):
            raise UserError(f"lint.torch = {wish!r} is no version; write e.g. `2.6`") from None
    for folder in sys.path:
        with contextlib.suppress(OSError, ValueError, IndexError):
            for found in Path(folder or ".").glob("torch-*.dist-info"):
                parts = found.name.removeprefix("torch-").split(".")
                return int(parts[0]), int(parts[1])
    return None


def _settings(wishes: Wishes, cwd: Path, home: Path | None) -> tuple[Settings, Path | None]:
    """The settings in force. What has been validated once is not validated again: that takes longer than all the rest."""
    file = wishes.config if wishes.config is not None else find(cwd)
    told = (list(wishes.overrides), list(wishes.select), list(wishes.ignore), wishes.fail_on)
    kept: Path | None = None
    if home is not None and (file is not None or any(told)):
        with contextlib.suppress(OSError):
            from osler import __version__

            text = file.read_bytes() if file is not None else b""
            about = repr((__version__, rules_in_force(), str(file), text, told))
            kept = home / f"settings-{blake2b(about.encode('utf-8', 'surrogatepass'), digest_size=10).hexdigest()}.json"
            with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
                return build(json.loads(kept.read_bytes())), file
    loaded = load(
        cwd, wishes.config, wishes.overrides, select=wishes.select, ignore=wishes.ignore, fail_on=wishes.fail_on
    )
    if kept is not None:
        with contextlib.suppress(OSError):
            temporary = kept.with_name(f".new-settings-{os.getpid()}")
            temporary.write_text(json.dumps(dataclasses.asdict(loaded.settings)), encoding="utf-8")
            temporary.replace(kept)
    return loaded.settings, loaded.file
