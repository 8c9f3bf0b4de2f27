"""A run meant to be repeatable that is not; a seed that makes every epoch the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Edit, Fix, Hit, line_of
from osler.lint.objects import known_model
from osler.lint.reading import is_false, is_true, own_nodes, site_of
from osler.syntax.module import Module
from osler.syntax.trace import Event, Loop, Region, Trace
from osler.syntax.values import CONSTANT, INSTANCE, JOIN, Site, Value, slice_back

RULE = "nondeterministic-run"
CALLS: frozenset[str] = frozenset()

_CUDNN = "torch.backends.cudnn"
_ASKS = "torch.use_deterministic_algorithms"
_SEEDS = (
    "torch.manual_seed",
    "torch.random.manual_seed",
    "torch.cuda.manual_seed",
    "torch.cuda.manual_seed_all",
    "numpy.random.seed",
    "random.seed",
)


def check(facts: Facts) -> Iterator[Hit]:
    """Benchmark beside deterministic, no seed at all, a seed in the loop."""
    module = facts.module
    if "deterministic" in module.text:
        yield from _benchmark(module)
        yield from _unseeded(facts)
    if (
        module.methods.get(module.tree, set()) & {"manual_seed", "manual_seed_all", "seed"}
        and "backward" in module.text
    ):
        for trace in facts.traces:
            yield from _reset(trace)


# --- benchmark beside deterministic -----------------------------------------------------------------------------------


def _benchmark(module: Module) -> Iterator[Hit]:
    for scope in module.scopes:
        if isinstance(scope, ast.Lambda):
            continue
        switched = [
            n for n in own_nodes(scope) if isinstance(n, ast.Assign) and _switches(module, n, "benchmark", scope)
        ]
        for assignment in switched:
            asked = next(_asked(module, scope, assignment), None)
            if asked is None or _given_up(module, scope, assignment):
                continue
            value = assignment.value
            edit = Edit(value.lineno, value.col_offset, value.end_lineno or 0, value.end_col_offset or 0, "False")
            yield Hit(
                site_of(module, assignment),
                f"{line_of(asked)} asks for deterministic results, and cudnn.benchmark picks kernels by measuring their speed, "
                "which differs from run to run.",
                "Set torch.backends.cudnn.benchmark = False, or do without determinism.",
                evidence={"deterministic": asked},
                fix=Fix((edit,), True, "set cudnn.benchmark = False"),
            )


def _switches(module: Module, node: ast.Assign, name: str, scope: ast.AST) -> bool:
    """`torch.backends.cudnn.<name> = True`."""
    if not is_true(node.value) or len(node.targets) != 1:
        return False
    target = node.targets[0]
    return isinstance(target, ast.Attribute) and module.dotted(target) == f"{_CUDNN}.{name}"


def _asked(module: Module, scope: ast.AST, assignment: ast.Assign) -> Iterator[Site]:
    """Statements of the same block, or of one around it, that ask for determinism."""
    for block in _blocks_around(scope, assignment):
        for statement in block:
            if isinstance(statement, ast.Assign) and _switches(module, statement, "deterministic", scope):
                yield site_of(module, statement)
            call = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(call, ast.Call) and module.dotted(call.func) == _ASKS and _first_true(call):
                yield site_of(module, statement)


def _given_up(module: Module, scope: ast.AST, assignment: ast.Assign) -> bool:
    """The statements beside it take the wish for determinism back."""
    own = (_blocks_around(scope, assignment) or [[]])[-1]
    return any(
        isinstance(s, ast.Assign)
        and is_false(s.value)
        and any(isinstance(t, ast.Attribute) and module.dotted(t) == f"{_CUDNN}.deterministic" for t in s.targets)
        for s in own
    )


def _first_true(call: ast.Call) -> bool:
    first = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "mode"), None)
    return is_true(first)


def _blocks_around(scope: ast.AST, statement: ast.stmt) -> list[list[ast.stmt]]:
    """The lists of statements that hold a statement, from the scope's body inwards."""

    def search(body: list[ast.stmt]) -> list[list[ast.stmt]] | None:
        for one in body:
            if one is statement:
                return [body]
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                continue
            for name in ("body", "orelse", "finalbody"):
                inner = getattr(one, name, None)
                found = search(inner) if isinstance(inner, list) else None
                if found is not None:
                    return [body, *found]
        return None

    return search(getattr(scope, "body", [])) or []


# --- no seed ----------------------------------------------------------------------------------------------------------


def _unseeded(facts: Facts) -> Iterator[Hit]:
    if "seed" in facts.module.text.lower():
        return
    for trace in facts.traces:
        events = trace.events()
        if trace.kind != "script" or not any(e.name == ".backward" for e in events):
            continue
        if any("seed" in e.name.lower() or e.name.endswith("load_state_dict") for e in events):
            continue
        for event in events:
            if _asks(event) and event.site.file == facts.module.path:
                yield Hit(
                    event.site,
                    "Deterministic results are asked for here, and no seed is set: weights and order still differ from run "
                    "to run.",
                    "Call torch.manual_seed(…) before the model is made; seed numpy and random too where they are used.",
                    Confidence.PROBABLE,
                )
                return


def _asks(event: Event) -> bool:
    if event.name == _ASKS:
        first = event.argument(0, "mode")
        return first is not None and first.constant is True
    if event.name == ".deterministic=" and event.receiver is not None and event.receiver.name == _CUDNN:
        return event.arguments[0].constant is True
    return False


# --- a seed in the loop -----------------------------------------------------------------------------------------------


def _reset(trace: Trace) -> Iterator[Hit]:
    """A seed that does not change with the loop, set in each pass of a loop that trains."""
    for event in trace.events():
        if event.name not in _SEEDS or not event.arguments or event.loop is None:
            continue
        if any(isinstance(n, Region) and "fork_rng" in (n.context.name if n.context else "") for n in event.above()):
            continue
        for loop in event.loops():
            inside = list(loop.events())
            if not any(e.name == ".backward" for e in inside):
                continue
            if event.branches(loop) or _makes_model(loop, inside) or _compares(event, inside):
                break
            if any(_varies(v, loop) for v in slice_back(event.arguments[0], limit=60)):
                continue
            if not _constant_outside(event.arguments[0]):
                break
            yield Hit(
                event.site,
                f"The seed is set again in each pass of the training loop in {line_of(loop.site)}: every pass draws the "
                "same dropout masks, noise and order.",
                "Set the seed once before the loop, or let it count up with the pass.",
                evidence={"loop": loop.site},
            )
            break


def _compares(event: Event, inside: list[Event]) -> bool:
    """The pass seeds more than once: what runs between is to draw the same numbers."""
    return any(e.name == event.name and e is not event for e in inside)


def _varies(value: Value, loop: Loop) -> bool:
    if value is loop.target or value.kind == JOIN:
        return True
    return loop.order < value.order <= loop.end and value.kind != CONSTANT


def _constant_outside(value: Value) -> bool:
    """A number, or a setting: nothing that a function gives anew at each call."""
    return all(
        v.kind == CONSTANT or not v.name or v.event is None or v.name.startswith("argparse") for v in slice_back(value)
    )


def _makes_model(loop: Loop, inside: list[Event]) -> bool:
    """Each pass is a training of its own."""
    if any(e.method in ("load_state_dict", "reset_parameters", "deepcopy") for e in inside):
        return True
    return any(e.result.kind == INSTANCE and known_model(e.result) and "Loss" not in e.name for e in inside)
