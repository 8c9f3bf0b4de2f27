"""Every threshold has a name, a default with its source, and a place in this tree.

Set them in `pyproject.toml` (`[tool.osler.gradients] vanishing_ratio = 1e-6`), in `osler.toml` (without the `tool.osler`
prefix) or on the command line (`--set gradients.vanishing_ratio=1e-6`). `osler explain RULE` prints those of a rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from typing import Any, ClassVar


def threshold(default: Any, doc: str, source: str, rules: tuple[str, ...] = ()) -> Any:
    """A dataclass field for a setting.

    Args:
        default: the value when nothing is configured.
        doc: what it does, with its unit.
        source: where the default comes from: a paper, documentation, or a measurement in `docs/`.
        rules: the rules that it steers.
    """
    metadata = {"doc": doc, "source": source, "rules": rules}
    if isinstance(default, (list, dict)):
        return field(default_factory=lambda: type(default)(default), metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Budget:
    """How much of the training's time the watcher may take."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    fraction: float = threshold(
        0.03,
        "share of the step's own time that recording may take; `none` on the command line lifts every limit",
        "a judgement: small enough to leave a watch on for good",
    )
    short_step_fraction: float = threshold(
        0.08,
        "share allowed on steps so short that the fixed cost of looking at the gradients alone exceeds `fraction`",
        "norms of every gradient alone cost 1.04–1.05 on steps of about 1 ms (`item norms` in docs/benchmarks.md)",
    )
    short_step_us: float = threshold(
        80.0,
        "absolute allowance per step in microseconds that short steps may use, within `short_step_fraction`",
        "a judgement: 8 % of a 1 ms step, so that the two limits for short steps meet there",
    )
    full_steps: int = threshold(
        64,
        "first steps of a training that are recorded whole whatever they cost",
        "one observation window (`gradients.window`)",
    )


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers that stop being numbers."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    scaler_skips: int = threshold(
        12,
        "skipped steps in a row after which a GradScaler's overflow counts as a fault",
        "GradScaler halves its scale at each skip; from the default 65536 a healthy model settles in a few (torch.amp docs)",
        ("half-overflow", "nonfinite-op"),
    )
    max_replays: int = threshold(
        3,
        "failing steps that are replayed in one training; later ones are only counted",
        "weights are not finite after the first bad update, so later replays say nothing new",
    )
    max_segments: int = threshold(
        64,
        "backward passes between two optimizer steps whose inputs are held for replay; older ones are let go",
        "a judgement: each one held keeps its batch alive",
    )
    max_tape: int = threshold(
        512,
        "operations outside modules that are kept for one backward pass; more than that is not replayed",
        "a judgement: many times what a loss written out in single operations takes",
    )


@dataclass(frozen=True, slots=True)
class Gradients:
    """Gradients, activations, weights."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    window: int = threshold(64, "steps over which a judgement is made", "the observation window of the frame")
    structure_window: int = threshold(
        16,
        "steps after which it is settled which parameters take part",
        "a judgement: updates that alternate step by step (GANs, multi-task) come round well within it",
        ("unused-parameter", "parameter-not-in-optimizer", "gradient-detached", "stale-optimizer-parameters"),
    )
    sample_every: int = threshold(
        50,
        "steps between two looks at activations and update sizes (denser at the start: steps 0, 1, 2, 4, 8 … 48)",
        "a judgement; where a look costs more than a tenth of the budget allows, the governor puts them further apart",
    )
    vanishing_ratio: float = threshold(
        1e-5,
        "a layer's gradient norm per element, relative to the deepest healthy layer's, at or below which it vanishes",
        "upper end of the vanishing band 1e-5…1e-3 of the log-magnitude histogram's peak, taken relative: a healthy "
        "digits MLP has a median |gradient| of 3.5e-4, so absolute bands cry on healthy models",
        ("vanishing-gradient",),
    )
    exploding_growth: float = threshold(
        1e3,
        "growth of the gradient norm over its own earlier level at which it counts as exploding",
        "upper end of the exploding band 10…1e3",
        ("exploding-gradient",),
    )
    exploding_norm: float = threshold(
        10.0,
        "gradient norm below which growth is never called an explosion",
        "lower end of the exploding band 10…1e3",
        ("exploding-gradient",),
    )
    dead_share: float = threshold(
        0.8,
        "share of a ReLU-like layer's units that are 0 on every sample of the window",
        "Lu et al. 2019 (arXiv:1903.06733) call a network dead when whole layers are; below 1 because one stray unit does not revive a layer",
        ("dead-relu",),
    )
    saturation_share: float = threshold(
        0.95,
        "share of a hidden layer's outputs at the limits of its sigmoid, tanh or softmax",
        "Glorot & Bengio 2010, figure 2: a saturated layer has nearly all its mass at the limits",
        ("saturated-activation",),
    )
    saturation_margin: float = threshold(
        0.01,
        "distance from a limit, as a share of the function's range, that counts as sitting at it",
        "the derivative of a sigmoid there is 4 % of its largest",
        ("saturated-activation",),
    )
    collapse_spread: float = threshold(
        0.02,
        "mean standard deviation over the batch of unit-length features, times the square root of their number, at or "
        "below which a hidden layer has collapsed",
        "Chen & He 2021 (SimSiam, arXiv:2011.10566): 1 for spread features, 0 at collapse",
        ("activation-collapse",),
    )
    collapse_start: float = threshold(
        0.4,
        "spread that a hidden layer must have had before its loss is a collapse",
        "a judgement between 0 and 1; the encoder means of the healthy script vae-digits begin at 0.23 and fall",
        ("activation-collapse",),
    )
    update_high: float = threshold(
        0.1,
        "median |update| / |weight| of a layer above which its steps are too large",
        "Karpathy's rule of thumb is 1e-3; a hundred times that rewrites a layer in ten steps",
        ("update-ratio",),
    )
    update_low: float = threshold(
        1e-8,
        "median |update| / |weight| of a layer below which float32 rounding swallows the update",
        "half the spacing of float32 is 6e-8 of the value",
        ("update-ratio",),
    )


@dataclass(frozen=True, slots=True)
class Dump:
    """The bundle written when a number stops being one."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    enabled: bool = threshold(True, "write a bundle of the failing step (`--no-dump` switches it off)", "this project")
    max_mb: float = threshold(
        512.0,
        "largest bundle in MiB; parameters are left out first, then inputs",
        "a judgement",
    )


@dataclass(frozen=True, slots=True)
class Records:
    """What is kept in `.osler/`."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    keep_runs: int = threshold(200, "runs kept; the oldest beyond it are pruned after a run", "this project")
    keep_days: float = threshold(90.0, "age in days after which a run is pruned", "this project")
    max_mb: float = threshold(2048.0, "size of `.osler/` in MiB above which the oldest runs are pruned", "this project")
    flush_s: float = threshold(
        2.0, "longest time in seconds that a curve's points wait in memory", "live findings are written at once"
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole tree."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    budget: Budget = field(default_factory=Budget)
    numbers: Numbers = field(default_factory=Numbers)
    gradients: Gradients = field(default_factory=Gradients)
    dump: Dump = field(default_factory=Dump)
    records: Records = field(default_factory=Records)
    select: list[str] = threshold([], "rules to judge; empty means all", "this project")
    ignore: list[str] = threshold([], "rules never to report", "this project")
    per_file_ignores: dict[str, list[str]] = threshold({}, "glob of file → rules not reported there", "as in ruff")
    fail_on: str = threshold(
        "",
        "severity from which `run` turns a script's success into exit code 1; empty: never",
        "`run` gives the script's own exit code",
    )


@dataclass(frozen=True, slots=True)
class Option:
    """One setting as documentation: its dotted name, default, what it does, where the default comes from."""

    name: str
    default: object
    doc: str
    source: str
    rules: tuple[str, ...]


def options(tree: type = Settings, prefix: str = "") -> Iterator[Option]:
    """Every setting of the tree, in order."""
    for f in fields(tree):
        default = _default(f)
        if is_dataclass(default):
            yield from options(type(default), f"{prefix}{f.name}.")
        else:
            m: Mapping[str, Any] = f.metadata
            yield Option(prefix + f.name, default, m["doc"], m["source"], m["rules"])


def _default(f: Field[Any]) -> object:
    return f.default if f.default is not MISSING else f.default_factory() if f.default_factory is not MISSING else None


def build(tree: Mapping[str, Any]) -> Settings:
    """Settings from a nested mapping that has been validated before (or was made by `dataclasses.asdict`)."""
    sections = {"budget": Budget, "numbers": Numbers, "gradients": Gradients, "dump": Dump, "records": Records}
    return Settings(**{k: sections[k](**v) if k in sections else v for k, v in tree.items()})
