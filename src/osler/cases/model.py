"""`case.toml` and `healthy.toml` as validated data."""

from __future__ import annotations

import difflib
import re
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from osler.cases.expression import parse

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def _listed(value: object) -> object:
    """One string where a list of strings is meant is a list of one."""
    return [value] if isinstance(value, str) else value


Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[list[Text], BeforeValidator(_listed)]
Flag = Annotated[str, Field(pattern=r"^--?[A-Za-z][\w-]*$")]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class About(_Table):
    """`[case]`: what the case is.

    Attributes:
        id: kebab-case; the name of the folder.
        title: one line, the fault in words.
        detects: the rules that it shows.
        source: where the fault was seen or described.
        cost_s: seconds that both sides take together on two cores.
        needs: what must be there: a package, with a version if it matters (`torch>=2.6`), `cuda`, `linux`, `root`.
    """

    id: Text
    title: Text
    detects: Annotated[list[Text], Field(min_length=1)]
    source: str = ""
    cost_s: Annotated[float, Field(gt=0)]
    needs: Texts = []

    @field_validator("id")
    @classmethod
    def _kebab(cls, value: str) -> str:
        if not NAME.fullmatch(value):
            raise ValueError(f"{value!r} is no name; use small letters, digits and single hyphens")
        return value


class Check(_Table):
    """`[check]`: the script writes data, and `osler check` looks at it, instead of `osler run` at the script.

    Attributes:
        args: what follows `osler check`, e.g. `["drift", "reference.parquet", "current.parquet"]`.
    """

    args: Annotated[list[Text], Field(min_length=1)]


class Lint(_Table):
    """`[lint]`: a script for each side, both run in plain Python for their evidence, and `osler lint` reads them.

    Attributes:
        faulty, clean: the scripts.
    """

    faulty: Text = "faulty.py"
    clean: Text = "clean.py"


class Inject(_Table):
    """`[inject]`: the switch that brings the fault in, and how the script then ends in plain Python."""

    flag: Flag = "--faulty"
    exit_code: int = 0


class InEffect(_Table):
    """`[in_effect]`: a comparison over the names of `evidence.json` (`osler.cases.expression`)."""

    expr: Text

    @field_validator("expr")
    @classmethod
    def _of_the_language(cls, value: str) -> str:
        parse(value)
        return value


class ExpectedFinding(_Table):
    """The finding that the faulty side must give; a field that is left out is not compared.

    Attributes:
        rule: name of the rule.
        root: it is a cause, not the symptom of another finding.
        by_step: last optimizer step (0-based) at which it may first be seen.
        direction, module, parameter, column: as in `osler.core.finding.Where`.
    """

    rule: Text
    root: bool = True
    by_step: Annotated[int, Field(ge=0)] | None = None
    direction: Literal["forward", "backward"] | None = None
    module: str | None = None
    parameter: str | None = None
    column: str | None = None


class Expect(_Table):
    """`[expect]`: the finding, and other rules that may stand beside it as roots."""

    finding: ExpectedFinding
    also: Texts = []


class Twin(_Table):
    """`[twin]`: the switch for the same script without the fault."""

    flag: Flag = "--clean"


class Panel(_Table):
    """A panel of a dashboard."""

    dashboard: Text
    id: int


class Observe(_Table):
    """`[observe]`: how the fault shows in exported metrics."""

    promql: Text
    panel: Panel | None = None


class CaseFile(_Table):
    """The whole of `case.toml`."""

    case: About
    check: Check | None = None
    lint: Lint | None = None
    inject: Inject = Inject()
    in_effect: InEffect
    expect: Expect
    twin: Twin = Twin()
    observe: Observe | None = None

    @model_validator(mode="after")
    def _agrees(self) -> CaseFile:
        if self.expect.finding.rule not in self.case.detects:
            raise ValueError(
                f"[expect] wants {self.expect.finding.rule!r}, which [case] detects does not list "
                f"({', '.join(self.case.detects)})"
            )
        if self.check is not None and self.lint is not None:
            raise ValueError("[check] and [lint] are two cases; make a folder for each")
        if self.inject.flag == self.twin.flag:
            raise ValueError(f"[inject] and [twin] have the same flag, {self.inject.flag}")
        return self


class HealthyFileScript(_Table):
    """One `[[script]]` of `healthy.toml`.

    Attributes:
        id: kebab-case name.
        file: the script, beside `healthy.toml`.
        title: what it trains.
        cost_s: seconds it takes on two cores.
        needs: as in a case.
        traps: which false alarms it tempts osler to.
        steps: optimizer steps that it makes.
        check: what follows `osler check`, where the script writes data for it; empty: it runs under `osler run`.
    """

    id: Text
    file: Text
    title: Text
    cost_s: Annotated[float, Field(gt=0)]
    needs: Texts = []
    traps: Texts = []
    steps: Annotated[int, Field(ge=0)]
    check: list[Text] = []


class HealthyFile(_Table):
    """The whole of `healthy.toml`."""

    script: Annotated[list[HealthyFileScript], Field(min_length=1)]

    @model_validator(mode="after")
    def _distinct(self) -> HealthyFile:
        seen: set[str] = set()
        for script in self.script:
            if script.id in seen:
                raise ValueError(f"two scripts have the id {script.id!r}")
            seen.add(script.id)
        return self


M = TypeVar("M", bound=BaseModel)


class ModelError(ValueError):
    """The data does not fit. `lines` holds one clear line an error."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("; ".join(lines))
        self.lines = lines


def read(model: type[M], data: Mapping[str, Any]) -> M:
    """`data` as a `model`.

    Raises:
        ModelError: it does not fit; for an unknown key the line names the closest known one.
    """
    try:
        return model.model_validate(data)
    except ValidationError as err:
        lines = [
            _line(model, e["loc"], e["type"], e["msg"]) for e in err.errors(include_url=False, include_input=False)
        ]
        raise ModelError(list(dict.fromkeys(lines))) from None


def _line(model: type[BaseModel], loc: tuple[int | str, ...], kind: str, message: str) -> str:
    table, key = _table(loc[:-1]), str(loc[-1]) if loc else ""
    if kind == "extra_forbidden":
        known = _keys(model, loc[:-1])
        close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
        hint = f"closest: {close[0]}" if close else f"it has {', '.join(known)}"
        return f"{table} has no key {key!r}; {hint}"
    if kind == "missing":
        return f"{table} lacks {key!r}"
    text = message.removeprefix("Value error, ")
    if not loc:
        return text
    return f"{table} {key}: {text[:1].lower() + text[1:]}"


def _table(loc: tuple[int | str, ...]) -> str:
    if not loc:
        return "the file"
    out = str(loc[0])
    for part in loc[1:]:
        out += f"[{part}]" if isinstance(part, int) else f".{part}"
    return f"[{out}]"


def _keys(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """The keys that the table at `loc` may have."""
    here: type[BaseModel] | None = model
    for part in loc:
        if isinstance(part, int) or here is None:
            continue
        field = here.model_fields.get(part)
        here = _model_in(field.annotation) if field else None
    return list(here.model_fields) if here else []


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and not get_origin(annotation) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (Union, types.UnionType, list, Annotated):
        return next((m for arg in get_args(annotation) if (m := _model_in(arg))), None)
    return None
