"""What steers the watch over a training: its budget, numbers, gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from osler.core.settings.field import POSITIVE, SHARE, Bounds, threshold


@dataclass(frozen=True, slots=True)
class Budget:
    """How much of the training's time the watcher may take."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    fraction: float = threshold(
        0.03,
        "share of the step's own time that recording may take; `none` on the command line lifts every limit",
        "a judgement: small enough to leave a watch on for good",
        bounds=SHARE,
    )
    short_step_fraction: float = threshold(
        0.08,
        "share allowed on steps so short that the fixed cost of looking at the gradients alone exceeds `fraction`",
        "norms of every gradient alone cost 1.04–1.05 on steps of about 1 ms (`item norms` in docs/benchmarks.md)",
        bounds=SHARE,
    )
    short_step_us: float = threshold(
        80.0,
        "absolute allowance per step in microseconds that short steps may use, within `short_step_fraction`",
        "a judgement: 8 % of a 1 ms step, so that the two limits for short steps meet there",
        bounds=Bounds(0, 1e6),
    )
    full_steps: int = threshold(
        64,
        "first steps of a training that are recorded whole whatever they cost",
        "one observation window (`gradients.window`)",
        bounds=Bounds(0, 1e9),
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
        bounds=Bounds(1, 1e6),
    )
    max_replays: int = threshold(
        3,
        "failing steps that are replayed in one training; later ones are only counted",
        "weights are not finite after the first bad update, so later replays say nothing new",
        bounds=Bounds(0, 1e6),
    )
    max_segments: int = threshold(
        64,
        "backward passes between two optimizer steps whose inputs are held for replay; older ones are let go",
        "a judgement: each one held keeps its batch alive",
        bounds=Bounds(1, 1e6),
    )
    max_tape: int = threshold(
        512,
        "operations outside modules that are kept for one backward pass; more than that is not replayed",
        "a judgement: many times what a loss written out in single operations takes",
        bounds=Bounds(1, 1e6),
    )


@dataclass(frozen=True, slots=True)
class Gradients:
    """Gradients, activations, weights."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    window: int = threshold(
        64, "steps over which a judgement is made", "the observation window of the frame", bounds=Bounds(8, 1e6)
    )
    structure_window: int = threshold(
        16,
        "steps after which it is settled which parameters take part",
        "a judgement: updates that alternate step by step (GANs, multi-task) come round well within it",
        ("unused-parameter", "parameter-not-in-optimizer", "gradient-detached", "stale-optimizer-parameters"),
        bounds=Bounds(2, 1e6),
    )
    sample_every: int = threshold(
        50,
        "steps between two looks at activations and update sizes (denser at the start: steps 0, 1, 2, 4, 8 … 48)",
        "a judgement; where a look costs more than a tenth of the budget allows, the governor puts them further apart",
        bounds=Bounds(1, 1e9),
    )
    vanishing_ratio: float = threshold(
        1e-5,
        "a layer's gradient norm per element, relative to the deepest healthy layer's, at or below which it vanishes",
        "upper end of the vanishing band 1e-5…1e-3 of the log-magnitude histogram's peak, taken relative: a healthy "
        "digits MLP has a median |gradient| of 3.5e-4, so absolute bands cry on healthy models",
        ("vanishing-gradient",),
        bounds=SHARE,
    )
    exploding_growth: float = threshold(
        1e3,
        "growth of the gradient norm over its own earlier level at which it counts as exploding",
        "upper end of the exploding band 10…1e3",
        ("exploding-gradient",),
        bounds=Bounds(1, open_low=True),
    )
    exploding_norm: float = threshold(
        10.0,
        "gradient norm below which growth is never called an explosion",
        "lower end of the exploding band 10…1e3",
        ("exploding-gradient",),
        bounds=POSITIVE,
    )
    dead_share: float = threshold(
        0.8,
        "share of a ReLU-like layer's units that are 0 on every sample of the window",
        "Lu et al. 2019 (arXiv:1903.06733) call a network dead when whole layers are; below 1 because one stray unit does not revive a layer",
        ("dead-relu",),
        bounds=SHARE,
    )
    saturation_share: float = threshold(
        0.95,
        "share of a hidden layer's outputs at the limits of its sigmoid, tanh or softmax",
        "Glorot & Bengio 2010, figure 2: a saturated layer has nearly all its mass at the limits",
        ("saturated-activation",),
        bounds=SHARE,
    )
    saturation_margin: float = threshold(
        0.01,
        "distance from a limit, as a share of the function's range, that counts as sitting at it",
        "the derivative of a sigmoid there is 4 % of its largest",
        ("saturated-activation",),
        bounds=Bounds(0, 0.5, open_low=True),
    )
    collapse_spread: float = threshold(
        0.02,
        "mean standard deviation over the batch of unit-length features, times the square root of their number, at or "
        "below which a hidden layer has collapsed",
        "Chen & He 2021 (SimSiam, arXiv:2011.10566): 1 for spread features, 0 at collapse",
        ("activation-collapse",),
        bounds=SHARE,
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
        bounds=POSITIVE,
    )
    update_low: float = threshold(
        1e-8,
        "median |update| / |weight| of a layer below which float32 rounding swallows the update",
        "half the spacing of float32 is 6e-8 of the value",
        ("update-ratio",),
        bounds=POSITIVE,
    )
