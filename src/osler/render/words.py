"""Words and figures that every renderer shares, and the one place where foreign text is made harmless.

Messages, paths, module names and evidence come from the user's program: they may hold escape sequences, control
characters, bidirectional overrides or the lone surrogates of a path that is not UTF-8.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import PurePath

from osler.core.finding import Finding, Severity, Where
from osler.core.report import Report

# CSI and OSC sequences whole, so that no `[31m` is left behind, then two-byte escapes.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].{0,500}?(?:\x1b\\|\x07)|\x1b[ -/]*[0-~]|\x9b[0-?]*[ -/]*[@-~]", re.S
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")

_ARRAY_SHOWN = 8


def clean(text: object) -> str:
    r"""`text` without escape sequences, control characters (but newline and tab) and bidirectional overrides.

    A surrogate that stands for an undecodable byte of a path becomes `\xNN`, any other the replacement character, so
    the result always encodes as UTF-8.
    """
    out = _CONTROLS.sub("", _ESCAPES.sub("", str(text).replace("\r\n", "\n")))
    return _SURROGATES.sub(_byte, out)


def _byte(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else "\ufffd"


def one_line(text: object, limit: int = 2000) -> str:
    """`clean(text)` on one line, cut after `limit` characters."""
    out = " ".join(clean(text).split())
    return out if len(out) <= limit else out[: limit - 3] + "..."


def sentence(text: object, limit: int = 2000) -> str:
    """`one_line(text)` with a full stop at its end."""
    out = one_line(text, limit)
    return out if not out or out.endswith((".", "!", "?", "…", ":")) else f"{out}."


def advice(text: object, limit: int = 2000) -> str:
    """`sentence(text)` with a capital at its beginning, unless it begins with a name."""
    out = sentence(text, limit)
    first = out.partition(" ")[0]
    return out[:1].upper() + out[1:] if first.isalpha() and first.islower() else out


def figure(value: object) -> str:
    """A number in at most four significant digits, NaN and the infinities by name; anything else as text."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        if value.is_integer() and abs(value) < 1e6:
            return str(int(value))
        return f"{value:.4g}"
    return one_line(value, 300)


def shape(value: object) -> str:
    """A tensor's shape as `64x20`, a scalar's as `scalar`."""
    if isinstance(value, (list, tuple)):
        return "x".join(str(v) for v in value) or "scalar"
    return one_line(value, 60)


def evidence(facts: Mapping[str, object]) -> list[tuple[str, str]]:
    """Evidence as pairs of name and value; nested mappings are flattened with dots, long arrays are cut."""
    return list(_flat("", facts))


def _flat(prefix: str, facts: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for key, value in facts.items():
        name = prefix + one_line(key, 100)
        if isinstance(value, Mapping) and value:
            yield from _flat(f"{name}.", value)
        else:
            yield name, _value(value)


def _value(value: object) -> str:
    if isinstance(value, (list, tuple)):
        shown = ", ".join(_value(v) for v in value[:_ARRAY_SHOWN])
        more = f", ... {len(value)} in all" if len(value) > _ARRAY_SHOWN else ""
        return f"[{shown}{more}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{one_line(k, 60)}: {_value(v)}" for k, v in list(value.items())[:_ARRAY_SHOWN]) + "}"
    return figure(value)


def path(file: str, base: str | None) -> str:
    """`file` relative to the directory `base` when it lies inside it, else as given; cleaned for display."""
    if base:
        try:
            file = str(PurePath(file).relative_to(base))
        except ValueError:
            pass
    return clean(file).replace("\n", "").replace("\t", " ")


def place(where: Where, base: str | None = None) -> str:
    """`train.py:42`, `eda.ipynb:cell 3:2`, or the most telling name where there is no file; empty when nothing is known."""
    if where.file is not None:
        cell = f":cell {where.cell}" if where.cell is not None else ""
        line = f":{where.line}" if where.line is not None else ""
        return path(where.file, base) + cell + line
    for kind in ("parameter", "module", "tensor", "optimizer", "column"):
        value = getattr(where, kind)
        if value is not None:
            return f"{kind} {one_line(value, 200)}"
    return ""


def circumstances(where: Where, step: int | None = None) -> list[str]:
    """What else is known of the place: `module net.2`, `step 3`, `batch 3`, `backward`, `aten::log` …

    Args:
        where: the place.
        step: the finding's first step, used where `where` has none.
    """
    out = []
    for kind in ("module", "parameter", "tensor", "optimizer", "column"):
        value = getattr(where, kind)
        if value is not None:
            out.append(f"{kind} {one_line(value, 200)}")
    at = where.step if where.step is not None else step
    if at is not None:
        out.append(f"step {at}")
    for kind in ("epoch", "batch", "sample", "rank"):
        value = getattr(where, kind)
        if value is not None:
            out.append(f"{kind} {value}")
    out.extend(one_line(v, 100) for v in (where.direction, where.op) if v is not None)
    return out


def seen(finding: Finding) -> str:
    """How often, when more than once: `seen 12 times, steps 3 to 14`."""
    if finding.count <= 1:
        return ""
    steps = ""
    if finding.first_step is not None and finding.last_step is not None:
        steps = f", steps {finding.first_step} to {finding.last_step}"
    return f"seen {finding.count} times{steps}"


def confirmed(value: bool | None) -> str:
    """`Finding.confirmed` in words; empty where nothing was tried."""
    if value is None:
        return ""
    if value:
        return "the step was run again; with the guard in place the fault is gone"
    return "no: the step was run again with the guard in place, and the fault is still there"


def count(n: int, singular: str, plural: str | None = None) -> str:
    """`1 error`, `2 errors`."""
    return f"{n} {singular if n == 1 else plural or singular + 's'}"


def tally(findings: Iterable[Finding]) -> str:
    """`1 error, 2 warnings, 1 info`, most severe first; `no findings` for none."""
    by = Counter(f.severity for f in findings)
    plural = {Severity.ERROR: "errors", Severity.WARNING: "warnings", Severity.INFO: "info"}
    words = [count(by[s], s.label, plural[s]) for s in sorted(by, reverse=True)]
    return ", ".join(words) or "no findings"


def cost(overhead: Mapping[str, object]) -> str:
    """What watching cost, from `ratio` (time watched over time bare); empty where it was not measured.

    A ratio below 1 cannot be a cost, so it is shown as it stands instead of as 0 %.
    """
    ratio = overhead.get("ratio")
    if not isinstance(ratio, (int, float)) or isinstance(ratio, bool) or not math.isfinite(ratio):
        return ""
    if ratio < 1:
        return f"watching measured at a ratio of {ratio:.3f}"
    text = f"watching cost {(ratio - 1) * 100:.1f} %"
    full, settled = overhead.get("full_steps"), overhead.get("settled_ratio")
    if overhead.get("budget") == "none" or not isinstance(full, int):
        return text
    if isinstance(settled, float) and settled >= 1:
        return f"{text}, {(settled - 1) * 100:.1f} % once past the first {full} steps, which are recorded whole"
    return f"{text} (the first {full} steps are recorded whole)"


def steps(subject: Mapping[str, object]) -> int | None:
    """The number of optimizer steps watched, where the subject has it."""
    value = subject.get("steps")
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def watched(report: Report) -> str:
    """What was watched, as `94 steps` or `3 fits and 2 evaluations`; empty where nothing was counted."""
    number = steps(report.subject)
    fitted = report.environment.get("preprocess")
    parts = [count(number, "step")] if number else []
    if isinstance(fitted, Mapping):
        for key, word in (("fits", "fit"), ("evaluations", "evaluation")):
            value = fitted.get(key)
            parts += [count(value, word)] if isinstance(value, int) else []
    if not parts and number is not None:
        parts = [count(number, "step")]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def idle(report: Report) -> bool:
    """Whether a run was watched in which nothing happened that could be judged."""
    return steps(report.subject) == 0 and "preprocess" not in report.environment


def command(subject: Mapping[str, object]) -> str:
    """The subject's command on one line."""
    value = subject.get("command")
    if isinstance(value, (list, tuple)):
        return one_line(" ".join(map(str, value)), 500)
    return one_line(value, 500) if value is not None else ""


def moment(value: object) -> str:
    """A start time in local ISO 8601 without fractions; seconds since 1970 are converted, text is kept."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e11:
        return datetime.fromtimestamp(value).astimezone().isoformat(timespec="seconds")
    return one_line(value, 60) if isinstance(value, str) else ""
