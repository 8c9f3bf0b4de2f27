"""A training loop as the rules see it: one pass, with its backward, its clearing, its clipping and its steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from osler.lint.facts import Facts
from osler.lint.objects import known_optimizer, model_like, scaler_like, scheduler_like, stepped
from osler.syntax.trace import Block, Event, Inlined, Loop
from osler.syntax.values import CONSTANT, Value, alternatives, same, slice_back

CLIPS = (
    "torch.nn.utils.clip_grad_norm_",
    "torch.nn.utils.clip_grad_value_",
    "torch.nn.utils.clip_grad_norm",
    "torch.nn.utils.clip_grad.clip_grad_norm_",
    "torch.nn.utils.clip_grad.clip_grad_value_",
    ".clip_grad_norm_",
    ".clip_grad_value_",
)


@dataclass(slots=True, eq=False)
class Turn:
    """One pass of a loop that steps an optimizer.

    Attributes:
        step: the event of the step.
        optimizer: what is stepped.
        loop: the innermost loop that holds both the step and a backward; without any backward, the step's own.
        events: every event of the loop, in order.
        backwards: those of `.backward`.
        clears: those that clear gradients.
        clips: those that clip them.
    """

    step: Event
    optimizer: Value
    loop: Loop
    events: list[Event]
    backwards: list[Event] = field(default_factory=list)
    clears: list[Event] = field(default_factory=list)
    clips: list[Event] = field(default_factory=list)

    @property
    def known(self) -> bool:
        """The optimizer was seen to be made."""
        return known_optimizer(self.optimizer)

    @property
    def accumulates(self) -> bool:
        """The step does not follow every backward: it stands under a condition on the counter, or outside an inner loop."""
        inner = any(b.loop is not self.loop for b in self.backwards) and self.step.loop is self.loop
        return inner or any(counted(b.test) for b in self.step.branches(self.loop) if b.test is not None)

    def handed_over(self) -> bool:
        """The optimizer or a model is given to a function that nobody could look into."""
        inside = gone_into(self.loop.blocks)
        for event in self.events:
            if event.name.startswith((".", "(", "builtins.", "torch.", "super.")) or event.result.name != event.name:
                continue
            if id(event) in inside:
                continue
            handed = [v for a in (*event.arguments, *event.keywords.values()) for v in alternatives(a)]
            if same(handed, alternatives(self.optimizer)) or any(model_like(v) for v in handed):
                return True
        return False

    def together(self, event: Event) -> bool:
        """Whether an event of the loop happens whenever the step does, as far as the branches tell."""
        around = {id(b) for b in self.step.branches(self.loop)}
        return all(id(b) in around for b in event.branches(self.loop))


def turns(facts: Facts) -> Iterator[Turn]:
    """Every step of an optimizer inside a loop, each place of a step once."""
    seen: set[tuple[object, ...]] = set()
    for step in facts.events(".step"):
        optimizer = stepped(step.receiver, step.arguments)
        if optimizer is None or step.keywords.get("closure") is not None:
            continue
        if not scaler_like(step.receiver or optimizer) and step.arguments:
            continue  # a closure: what it does is not seen here
        loops = step.loops()
        if not loops:
            continue
        loop = next((n for n in loops if any(e.name == ".backward" for e in n.events())), loops[0])
        key = (step.site, loop.site)
        if key in seen:
            continue
        seen.add(key)
        events = list(loop.events())
        yield Turn(
            step,
            optimizer,
            loop,
            events,
            [e for e in events if e.name == ".backward"],
            [e for e in events if clears(e)],
            [e for e in events if e.name in CLIPS],
        )


def gone_into(blocks: Iterable[Block]) -> set[int]:
    """Ids of the calls in some blocks whose functions the trace goes into."""
    return {id(n.call) for block in blocks for n in block.nodes() if isinstance(n, Inlined)}


def clears(event: Event) -> bool:
    """Whether an event clears gradients: `zero_grad`, `p.grad = None`, `p.grad.zero_()`."""
    if event.name in (".zero_grad", "super.zero_grad"):
        return True
    if event.name == ".grad=":
        return all(v.kind == CONSTANT and v.constant is None for v in event.arguments)
    return event.name in (".zero_", ".fill_") and event.receiver is not None and event.receiver.name.endswith(".grad")


def counted(test: Value) -> bool:
    """Whether a condition depends on a remainder, as `(i + 1) % k == 0` does."""
    return any(v.name == "%" for v in slice_back(test, limit=200))


def scaled(backward: Event) -> Value | None:
    """The scaler of `scaler.scale(loss).backward()`; None for a plain backward."""
    if backward.receiver is None:
        return None
    for value in alternatives(backward.receiver):
        if value.name == ".scale" and value.sources and scaler_like(value.sources[0]):
            return value.sources[0]
    return None


def schedules(event: Event) -> bool:
    """Whether an event is a scheduler's step."""
    return event.name == ".step" and event.receiver is not None and scheduler_like(event.receiver)
