"""The settings in force: defaults, then the configuration file, then the command line, each value with its origin.

The file is the first `osler.toml`, or `pyproject.toml` with a `[tool.osler]` table, found from the working directory
upward. Keys may be written with hyphens or underscores. Whatever is wrong is said in one line: file, line, key, what
was expected, and the closest key for an unknown one.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osler.app.errors import UserError
from osler.core.settings import Settings, options
from osler.core.settings.field import SHARE

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]

DEFAULT = "default"
_KINDS: dict[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list of texts",
    dict: "a table of lists of texts",
}


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings in force.

    Attributes:
        settings: the tree.
        origins: for each dotted name of `osler.core.settings.options()` where its value came from: `default`, the file
            (`pyproject.toml:14`), or the option of the command line (`--set`, `--budget` …).
        budget_none: `--budget none` was given: every limit on the watcher's cost is lifted.
        file: the configuration file in use, None where there is none.
    """

    settings: Settings
    origins: dict[str, str]
    budget_none: bool = False
    file: Path | None = None


@dataclass(slots=True)
class _Layer:
    """One source of values: a tree and, for messages, what to call each of its keys."""

    tree: dict[str, Any]
    name: str
    lines: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def origin(self, key: str) -> str:
        """`file:line` where the line is known."""
        line = self.lines.get(key)
        return self.name if line is None else f"{self.name}:{line}"


def load(
    cwd: Path,
    config_file: Path | None = None,
    overrides: Sequence[str] = (),
    *,
    budget: str | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    fail_on: str | None = None,
) -> Loaded:
    """The settings in force in a directory.

    Args:
        cwd: where the search for a configuration file starts.
        config_file: the file to use instead of searching.
        overrides: `KEY=VALUE` of `--set`, the value in TOML syntax (a bare word counts as a text).
        budget: `3%`, `0.03` or `none`.
        select, ignore: rule names; several in one item may be separated by commas. They replace the file's `select` and
            add to its `ignore`.
        fail_on: `info`, `warning` or `error`.

    Raises:
        UserError: a file that cannot be read, an unknown key or rule, a value of the wrong kind or out of bounds.
    """
    layers = []
    file = config_file if config_file is not None else find(cwd)
    if file is not None:
        layers.append(_from_file(file, cwd, required=config_file is not None))
    layers.extend(_from_override(text) for text in overrides)
    fraction = parse_budget(budget) if budget is not None else None
    if fraction is not None:
        layers.append(_Layer({"budget": {"fraction": fraction}}, "--budget"))
    if select:
        layers.append(_Layer({"select": _names(select)}, "--select"))
    if fail_on is not None:
        layers.append(_Layer({"fail_on": fail_on}, "--fail-on"))

    tree: dict[str, Any] = {}
    origins = {option.name: DEFAULT for option in options()}
    for layer in layers:
        _validate(layer)
        for key in _merge(tree, layer.tree):
            origins[key] = layer.origin(key)
    if ignore:
        layer = _Layer({"ignore": _names(ignore)}, "--ignore")
        _validate(layer)
        earlier = tree.get("ignore", [])
        tree["ignore"] = [*earlier, *(n for n in layer.tree["ignore"] if n not in earlier)]
        origins["ignore"] = "--ignore" if not earlier else f"{origins['ignore']}, --ignore"

    settings = _build(tree)
    if settings.gradients.update_low >= settings.gradients.update_high:
        raise UserError(
            f"gradients.update_low = {settings.gradients.update_low:g} ({origins['gradients.update_low']}) must be "
            f"below gradients.update_high = {settings.gradients.update_high:g} ({origins['gradients.update_high']})"
        )
    return Loaded(settings, origins, budget is not None and fraction is None, file)


def find(cwd: Path) -> Path | None:
    """The nearest `osler.toml`, or `pyproject.toml` that speaks of osler, from `cwd` upward."""
    for folder in (cwd, *cwd.parents):
        for name in ("osler.toml", "pyproject.toml"):
            path = folder / name
            try:
                found = path.is_file() and (name == "osler.toml" or _speaks_of_osler(path))
            except OSError:  # a parent that may not be read holds no configuration for this user
                continue
            if found:
                return path
    return None


def parse_budget(text: str) -> float | None:
    """The share behind `3%`, `0.03`; None behind `none`.

    Raises:
        UserError: it is neither, or not within 0 and 1.
    """
    word = text.strip().lower()
    if word == "none":
        return None
    try:
        value = float(word[:-1]) / 100 if word.endswith("%") else float(word)
    except ValueError:
        value = math.nan
    if not SHARE.holds(value):
        raise UserError(f"--budget {text!r} is no share of the step's time; write `3%`, `0.03` or `none`")
    return value


def rows(loaded: Loaded) -> list[tuple[str, object, str, str]]:
    """Every setting: dotted name, value in force, where it came from, what it does."""
    return [(o.name, _value(loaded.settings, o.name), loaded.origins[o.name], o.doc) for o in options()]


def show(loaded: Loaded, as_json: bool = False) -> None:
    """Print the tree in force on stdout, each value with where it came from."""
    table = rows(loaded)
    if as_json:
        data = {name: {"value": value, "origin": origin} for name, value, origin, _ in table}
        print(json.dumps(data, indent=2, ensure_ascii=False))  # noqa: T201
        return
    from rich.console import Console

    from osler.render.pen import QUIET, Pen

    pen = Pen(Console())
    pen.line(f"configuration file: {loaded.file or 'none'}")
    wide = max(len(name) for name, *_ in table) + 2
    values = [json.dumps(value, ensure_ascii=False) for _, value, *_ in table]
    column = max(map(len, values)) + 2
    for (name, _, origin, _), value in zip(table, values, strict=True):
        style = QUIET if origin == DEFAULT else "bold"
        pen.line((f"{name:<{wide}}", style), f"{value:<{column}}", (origin, style), hang=wide)


def _value(settings: Settings, name: str) -> object:
    value: object = settings
    for part in name.split("."):
        value = getattr(value, part)
    return value


# -- reading ----------------------------------------------------------------------------------------------------------


def _speaks_of_osler(path: Path) -> bool:
    """A broken pyproject.toml that has nothing to say to osler must not stop a training."""
    text = path.read_text("utf-8", errors="replace")
    if "osler" not in text:
        return False
    try:
        return "osler" in tomllib.loads(text).get("tool", {})
    except (tomllib.TOMLDecodeError, AttributeError):
        return re.search(r"^\s*\[\s*tool\s*\.\s*osler\b", text, re.MULTILINE) is not None


def _from_file(path: Path, cwd: Path, required: bool) -> _Layer:
    name = _short(path, cwd)
    try:
        text = path.read_text("utf-8")
    except OSError as err:
        raise UserError(f"the configuration file {name} cannot be read: {err.strerror or err}") from None
    except UnicodeDecodeError as err:
        raise UserError(f"{name} is not UTF-8 text (byte {err.start})") from None
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as err:
        raise UserError(f"{name} is not valid TOML: {err}") from None
    prefix = ""
    if path.name == "pyproject.toml":
        prefix = "tool.osler."
        tool = tree.get("tool", {})
        if not isinstance(tool, dict) or "osler" not in tool:
            if required:
                raise UserError(f"{name} has no [tool.osler] table")
            return _Layer({}, name)
        tree = tool["osler"]
        if not isinstance(tree, dict):
            raise UserError(f"{name}: tool.osler must be a table, not {json.dumps(tree, default=str)}")
    return _Layer(_underscored(tree, name), name, _lines(text, prefix))


def _from_override(text: str) -> _Layer:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UserError(f"--set {text!r} must be KEY=VALUE, e.g. --set gradients.window=32")
    try:
        parsed = tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError:
        parsed = {"value": value.strip()} if re.fullmatch(r"\s*[A-Za-z][\w-]*\s*", value) else {}
    if set(parsed) != {"value"}:
        raise UserError(f"--set {text!r}: the value is not TOML, e.g. 0.5, true, \"text\" or ['a', 'b']")
    tree: Any = parsed["value"]
    for part in reversed(key.strip().split(".")):
        tree = {part: tree}
    return _Layer(_underscored(tree, "--set"), "--set")


def _underscored(tree: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The same tree with `-` in the names of settings as `_`; the globs of per-file-ignores stay as they are."""
    out: dict[str, Any] = {}
    for key, value in tree.items():
        name = key.replace("-", "_")
        if name in out:
            raise UserError(f"{source}: {name} is given twice, once as {key!r}")
        out[name] = _underscored(value, source) if isinstance(value, dict) and name != "per_file_ignores" else value
    return out


def _lines(text: str, prefix: str) -> dict[str, int]:
    """The line of each plain `key = value`, by dotted name; a key written in another way is simply not in it."""
    found: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if head := re.match(r"\s*\[\s*([\w.\-]+)\s*\]", line):
            table = head[1] + "."
        elif (key := re.match(r"\s*([\w.\-]+)\s*=", line)) is None:
            continue
        dotted = table.rstrip(".") if head else table + (key[1] if key else "")
        if (dotted + ".").startswith(prefix):
            found.setdefault(dotted[len(prefix) :].replace("-", "_"), number)
    return found


def _short(path: Path, cwd: Path) -> str:
    try:
        return str(path.relative_to(cwd))
    except ValueError:
        return str(path)


def _names(items: Sequence[str]) -> list[str]:
    return [name.strip() for item in items for name in item.split(",") if name.strip()]


def _merge(into: dict[str, Any], tree: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Lay `tree` over `into`; the dotted names of the settings that it sets."""
    keys = []
    for key, value in tree.items():
        if isinstance(value, dict) and key != "per_file_ignores":
            keys += _merge(into.setdefault(key, {}), value, f"{prefix}{key}.")
        else:
            into[key] = value
            keys.append(prefix + key)
    return keys


# -- checking ---------------------------------------------------------------------------------------------------------


def _build(tree: Mapping[str, Any]) -> Settings:
    if not tree:
        return Settings()
    from pydantic import TypeAdapter

    # By way of JSON: only there does strict mode take a mapping for a dataclass; without it "64" and true are numbers.
    return TypeAdapter(Settings).validate_json(json.dumps(tree, default=str), strict=True)


def _validate(layer: _Layer) -> None:
    """One layer by itself, so that every complaint can name its source."""
    from pydantic import ValidationError

    try:
        settings = _build(layer.tree)
    except ValidationError as err:
        raise UserError(_complaint(layer, err)) from None
    for option in options():
        value = _value(settings, option.name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and not option.bounds.holds(value):
            raise UserError(f"{layer.origin(option.name)}: {option.name} = {value:g} must be {option.bounds}")
        if option.choices and value not in option.choices:
            *first, last = filter(None, option.choices)
            words = f"{', '.join(first)} or {last}"
            raise UserError(f"{layer.origin(option.name)}: {option.name} = {value!r} must be {words}")
    _check_rules(layer, settings)


def _check_rules(layer: _Layer, settings: Settings) -> None:
    if not (settings.select or settings.ignore or settings.per_file_ignores):
        return
    from osler.catalogue import UnknownRule, rule

    lists = [("select", settings.select), ("ignore", settings.ignore)]
    lists += [("per_file_ignores", names) for names in settings.per_file_ignores.values()]
    for key, names in lists:
        for name in names:
            try:
                rule(name)
            except UnknownRule as err:
                where = layer.origin(key)
                told = where if where.strip("-").replace("-", "_") == key else f"{where}: {key}"
                raise UserError(f"{told}: {err}") from None


def _complaint(layer: _Layer, err: Any) -> str:
    """The first of pydantic's errors in one line, and how many more there are."""
    errors = err.errors(include_url=False)
    first = errors[0]
    parts = [str(p) for p in first["loc"]]
    known = [o.name for o in options()]
    dotted = ".".join(parts)
    if first["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        close = _closest(dotted, known)
        hint = f"; closest: {close}" if close else "; `osler config show` lists them all"
        text = f"{layer.origin(dotted)}: no setting is called {dotted}{hint}"
    else:
        name = next((".".join(parts[:n]) for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in known), dotted)
        option = next((o for o in options() if o.name == name), None)
        wanted = _KINDS.get(type(option.default), "another kind of value") if option else "a table of settings"
        given = json.dumps(first["input"], default=str, ensure_ascii=False)
        given = given if len(given) <= 60 else given[:57] + "..."
        text = f"{layer.origin(name)}: {name} must be {wanted}, not {given}"
    more = len(errors) - 1
    return text + (f" (and {more} more)" if more else "")


def _closest(name: str, known: Sequence[str]) -> str | None:
    """The likeliest setting: by the whole dotted name, else by its last part (a setting put in the wrong table)."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    if not close:
        # Of several settings of one name, the first of the tree.
        last = {k.rsplit(".", 1)[-1]: k for k in reversed(known)} | {
            k.split(".", 1)[0]: k.split(".", 1)[0] for k in known
        }
        found = difflib.get_close_matches(name.rsplit(".", 1)[-1], last, n=1, cutoff=0.75)
        close = [last[f] for f in found]
    return close[0] if close else None
