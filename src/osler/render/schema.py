"""The JSON contract as pydantic models, and as a JSON Schema that other programs can check against."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from osler.core.report import SCHEMA

NonFinite = Literal["NaN", "Infinity", "-Infinity"]
Number = Union[StrictInt, StrictFloat, NonFinite]  # noqa: UP007 - pydantic reads it at run time on Python 3.10
Step = Annotated[StrictInt, Field(ge=0)]
Id = Annotated[StrictStr, Field(pattern=r"^F[1-9][0-9]*$")]
Text = Annotated[StrictStr, Field(min_length=1)]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Where(_Closed):
    """The place of a finding; only what is known is there."""

    file: StrictStr | None = Field(None, description="path of the source file, as the interpreter knew it")
    line: Annotated[StrictInt, Field(ge=1)] | None = Field(None, description="1-based line in `file`")
    character: Annotated[StrictInt, Field(ge=1)] | None = Field(None, description="1-based, where the piece begins")
    end_line: Annotated[StrictInt, Field(ge=1)] | None = Field(None, description="1-based line where it ends")
    end_character: Annotated[StrictInt, Field(ge=1)] | None = Field(None, description="1-based, not included")
    cell: Annotated[StrictInt, Field(ge=1)] | None = Field(None, description="1-based notebook cell; `line` is in it")
    function: StrictStr | None = Field(None, description="function that holds the line")
    module: StrictStr | None = Field(None, description="path of the nn.Module as in named_modules()")
    parameter: StrictStr | None = Field(None, description="name as in named_parameters()")
    tensor: StrictStr | None = Field(None, description="name given with osler.tag, or the argument's name")
    optimizer: StrictStr | None = Field(None, description="class of the optimizer, numbered when there are several")
    step: Step | None = Field(None, description="0-based optimizer step")
    epoch: Step | None = Field(None, description="0-based pass over the data")
    batch: Step | None = Field(None, description="0-based batch within the epoch")
    sample: Step | None = Field(None, description="0-based index within the batch")
    rank: Step | None = Field(None, description="rank of the process")
    column: StrictStr | StrictInt | None = Field(None, description="name or index of a feature column")
    direction: Literal["forward", "backward"] | None = Field(None, description="pass in which it was seen")
    op: StrictStr | None = Field(None, description="the operation, e.g. aten::log")


class Finding(_Closed):
    """One occurrence of a rule, in its place in the diagnosis."""

    id: Id = Field(description="unique in this report, in the order in which findings were seen")
    rule: Text = Field(description="name of the rule; `osler explain` tells about it")
    severity: Literal["error", "warning", "info"] = Field(description="how bad")
    confidence: Literal["definite", "probable", "possible"] = Field(description="how sure")
    message: StrictStr = Field(description="one sentence with the number and the place")
    where: Where
    evidence: dict[str, Any] = Field(description="named numbers, words and small arrays")
    fix: StrictStr = Field(description="what to do about this occurrence")
    root: StrictBool = Field(description="true when no other finding caused it")
    caused_by: Id | None = Field(description="the finding that caused it")
    symptoms: list[Id] = Field(description="the findings that it caused")
    count: Annotated[StrictInt, Field(ge=1)] = Field(description="how often it was seen")
    first_step: Step | None
    last_step: Step | None
    confirmed: StrictBool | None = Field(
        description="true: a replay with the guard in place made it vanish; false: it did not; null: not tried"
    )
    touches: list[StrictStr] = Field(description="what it concerns, e.g. module:net.2")


class RuleNotChecked(_Closed):
    """A rule that could not be judged."""

    rule: StrictStr
    why: StrictStr


class ThingNotChecked(_Closed):
    """Another thing that could not be judged."""

    what: StrictStr
    why: StrictStr


class Curve(_Closed):
    """One value per step."""

    name: Text
    kind: Literal["curve"]
    source: StrictStr = Field(description="the process it comes from")
    unit: StrictStr
    steps: list[StrictInt]
    values: list[Number]


class Heatmap(_Closed):
    """`values[i][j]` belongs to `steps[i]` and `rows[j]`."""

    name: Text
    kind: Literal["heatmap"]
    source: StrictStr = Field(description="the process it comes from")
    unit: StrictStr
    steps: list[StrictInt]
    values: list[list[Number | None]]
    rows: list[StrictStr]


class Histogram(_Closed):
    """`values[i][j]` is the share of `rows[i]` that lies in bin j."""

    name: Text
    kind: Literal["histogram"]
    source: StrictStr = Field(description="the process it comes from")
    unit: StrictStr
    steps: list[StrictInt] = Field(description="empty")
    values: list[list[Number]]
    rows: list[StrictStr] = Field(description="what is compared, e.g. reference and current")
    edges: list[Number] = Field(description="of numbers: the ascending edges of the bins, one more than bins")
    labels: list[StrictStr] = Field(description="of categories: the names of the bins")


class Table(_Closed):
    """Figures side by side."""

    name: Text
    columns: list[StrictStr]
    rows: list[list[StrictStr | StrictBool | StrictInt | StrictFloat | None]]
    note: StrictStr = Field(description="how to read it")


class Subject(BaseModel):
    """What was looked at. More fields may follow."""

    model_config = ConfigDict(extra="allow")

    kind: Text | None = Field(None, description="`run`, `watch`, `check` …")


class Overhead(BaseModel):
    """What watching cost. More figures may follow."""

    model_config = ConfigDict(extra="allow")

    ratio: Number | None = Field(None, description="time of a watched step over the time of a bare one")


class Layer(BaseModel):
    """One module call of the first step. More fields may follow."""

    model_config = ConfigDict(extra="allow")

    module: StrictStr
    kind: StrictStr | None = None
    inputs: list[dict[str, Any]] = Field(default_factory=list)
    outputs: list[dict[str, Any]] = Field(default_factory=list)
    flags: list[StrictStr] = Field(default_factory=list)


class ReportModel(_Closed):
    """What `--json` writes."""

    osler: StrictStr = Field(description="osler's version")
    schema_: Literal[1] = Field(alias="schema", description="version of this contract")
    subject: Subject
    environment: dict[str, Any]
    findings: list[Finding]
    not_checked: list[RuleNotChecked | ThingNotChecked]
    overhead: Overhead
    series: list[Annotated[Curve | Heatmap | Histogram, Field(discriminator="kind")]]
    tables: list[Table] = Field(default_factory=list, description="the most telling first")
    notes: list[StrictStr]
    layers: list[Layer]


def schema() -> dict[str, object]:
    """The JSON Schema (draft 2020-12) of what `--json` writes."""
    out: dict[str, object] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:osler:report:{SCHEMA}",
        **ReportModel.model_json_schema(by_alias=True),
    }
    out["title"] = "osler report"
    return out
