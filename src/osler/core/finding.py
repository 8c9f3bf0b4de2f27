"""A finding: one occurrence of a rule, with where, how much and what to do."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import IntEnum

from osler.core.jsonable import strict


class Severity(IntEnum):
    """How bad: `error` (the result is wrong or will be), `warning` (it is harmed), `info` (worth knowing)."""

    INFO = 1
    WARNING = 2
    ERROR = 3

    @property
    def label(self) -> str:
        """The word used in output and in configuration."""
        return self.name.lower()

    @classmethod
    def parse(cls, word: str) -> Severity:
        """The severity of that name.

        Raises:
            ValueError: the word is none of info, warning, error.
        """
        try:
            return cls[word.upper()]
        except KeyError:
            raise ValueError(f"{word!r} is no severity; it is one of info, warning, error") from None


class Confidence(IntEnum):
    """How sure: `definite`, `probable`, `possible` (hidden unless asked for)."""

    POSSIBLE = 1
    PROBABLE = 2
    DEFINITE = 3

    @property
    def label(self) -> str:
        """The word used in output."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Where:
    """The place of a finding. Only what is known is set; every field is optional.

    Attributes:
        file: path of the source file, as the interpreter knows it.
        line: 1-based line in `file`.
        function: name of the function that holds the line.
        module: path of the nn.Module as in `named_modules()`, e.g. `encoder.layers.3.attn`.
        parameter: name of the parameter as in `named_parameters()`.
        tensor: a name given with `osler.tag`, or the argument's name.
        optimizer: class name of the optimizer, numbered when there are several.
        step: 0-based number of the optimizer step in which it was seen.
        epoch: 0-based number of the pass over the data, where it is known.
        batch: 0-based number of the batch within the epoch.
        sample: 0-based index within the batch.
        rank: rank of the process in a distributed run.
        column: name or index of a feature column.
        direction: `forward` or `backward`.
        op: the operation, e.g. `aten::log`.
        character: 1-based character in the line at which the marked piece begins.
        end_line: 1-based line where it ends.
        end_character: 1-based character where it ends, itself not included.
        cell: 1-based number of the notebook cell; `line` then counts within it.
    """

    file: str | None = None
    line: int | None = None
    function: str | None = None
    module: str | None = None
    parameter: str | None = None
    tensor: str | None = None
    optimizer: str | None = None
    step: int | None = None
    epoch: int | None = None
    batch: int | None = None
    sample: int | None = None
    rank: int | None = None
    column: str | None = None
    direction: str | None = None
    op: str | None = None
    character: int | None = None
    end_line: int | None = None
    end_character: int | None = None
    cell: int | None = None

    def to_dict(self) -> dict[str, object]:
        """The fields that are set."""
        return {f.name: v for f in fields(self) if (v := getattr(self, f.name)) is not None}

    @classmethod
    def from_dict(cls, data: dict[str, object]) -> Where:
        """The reverse of `to_dict`; unknown fields (of a later version) are passed over."""
        names = {f.name for f in fields(cls)}
        return cls(**{k: v for k, v in data.items() if k in names})  # type: ignore[arg-type]


@dataclass(slots=True)
class Finding:
    """One occurrence of a rule.

    Attributes:
        rule: name of the rule in the catalogue.
        severity: how bad this occurrence is (the rule's own severity unless the occurrence says otherwise).
        confidence: how sure.
        message: one sentence with the number and the place.
        where: the place.
        evidence: named numbers, words and small arrays; never raw user data.
        fix: what to do about this occurrence, concretely.
        confirmed: True when a replay reproduced the fault and the proposed guard made it vanish, False when the guard
            was tried and did not, None when it was not tried.
        first_step, last_step: the steps at which it was first and last seen; None where there are no steps.
        count: how often it was seen.
        touches: tokens of what it concerns (`module:net.2`, `parameter:net.2.weight`, `optimizer:0`, `tensor:logits`,
            `column:age`, `rank:1`); two findings can be cause and symptom only if they share one.
    """

    rule: str
    severity: Severity
    confidence: Confidence
    message: str
    where: Where = field(default_factory=Where)
    evidence: dict[str, object] = field(default_factory=dict)
    fix: str = ""
    confirmed: bool | None = None
    first_step: int | None = None
    last_step: int | None = None
    count: int = 1
    touches: frozenset[str] = frozenset()

    @property
    def key(self) -> str:
        """What makes two occurrences the same finding: rule, line, module, parameter and rank."""
        w = self.where
        parts = (
            self.rule,
            w.file,
            w.cell,
            w.line,
            w.module,
            w.parameter,
            w.optimizer,
            w.tensor,
            w.column,
            w.rank,
            w.direction,
        )
        return "|".join("" if p is None else str(p) for p in parts)

    def to_dict(self) -> dict[str, object]:
        """JSON-ready, without what only a diagnosis knows (`id`, `root`, `caused_by`, `symptoms`)."""
        return {
            "rule": self.rule,
            "severity": self.severity.label,
            "confidence": self.confidence.label,
            "message": self.message,
            "where": self.where.to_dict(),
            "evidence": strict(self.evidence),
            "fix": self.fix,
            "count": self.count,
            "first_step": self.first_step,
            "last_step": self.last_step,
            "confirmed": self.confirmed,
            "touches": sorted(self.touches),
        }

    @classmethod
    def from_dict(cls, data: dict[str, object]) -> Finding:
        """The reverse of `to_dict`.

        Raises:
            KeyError, ValueError: a required field is missing or not of its kind.
        """
        where = data.get("where")
        evidence = data.get("evidence")
        touches = data.get("touches")
        confirmed = data.get("confirmed")
        return cls(
            rule=str(data["rule"]),
            severity=Severity.parse(str(data["severity"])),
            confidence=Confidence[str(data["confidence"]).upper()],
            message=str(data["message"]),
            where=Where.from_dict(where) if isinstance(where, dict) else Where(),
            evidence=dict(evidence) if isinstance(evidence, dict) else {},
            fix=str(data.get("fix") or ""),
            confirmed=confirmed if isinstance(confirmed, bool) else None,
            first_step=_int(data.get("first_step")),
            last_step=_int(data.get("last_step")),
            count=_int(data.get("count")) or 1,
            touches=frozenset(map(str, touches)) if isinstance(touches, (list, tuple)) else frozenset(),
        )


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
