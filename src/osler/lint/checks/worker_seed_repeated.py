"""Workers of a DataLoader that draw the same random numbers: a generator copied with the dataset, one seed for all."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.reading import Bindings, number, site_of, words
from osler.syntax.module import Call, Module, Scope

RULE = "worker-seed-repeated"
CALLS = frozenset({"DataLoader"})

NUMPY_SEEDED_SINCE = (1, 9)  # torch's workers seed numpy's global generator
_LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
_GENERATORS = frozenset(
    (
        "numpy.random.default_rng",
        "numpy.random.RandomState",
        "numpy.random.Generator",
        "random.Random",
        "torch.Generator",
    )
)
_SEEDS = frozenset(("numpy.random.seed", "random.seed", "torch.manual_seed"))
_KNOWS = ("get_worker_info", "initial_seed", "worker_info", "worker_id")


def check(facts: Facts) -> Iterator[Hit]:
    """Each loader with workers, and the dataset that it is given."""
    module = facts.module
    classes = {s.name: s for s in module.scopes if isinstance(s, ast.ClassDef)}
    seen: set[int] = set()
    for call in module.called(*_LOADERS):
        workers = number(_value(module, call, call.argument(5, "num_workers")))
        if workers is None or workers < 1:
            continue
        init = call.keyword("worker_init_fn")
        if init is not None and not (isinstance(init, ast.Constant) and init.value is None):
            yield from _one_seed(module, call, init)
            continue
        cls = _dataset(module, call, classes)
        if cls is None or id(cls) in seen or any(k in w for w in words([cls]) for k in _KNOWS):
            continue
        seen.add(id(cls))
        yield from _copied(module, cls, call, int(workers))
        if facts.torch is not None and facts.torch < NUMPY_SEEDED_SINCE:
            yield from _numpy(module, cls, call, facts.torch)


def _dataset(module: Module, call: Call, classes: dict[str, ast.ClassDef]) -> ast.ClassDef | None:
    """The class of the dataset that a loader is given, where it is of this file."""
    data = _value(module, call, call.argument(0, "dataset"))
    if isinstance(data, ast.Attribute) and isinstance(data.value, ast.Name) and data.value.id == "self":
        data = _attribute(module.scopes.get(call.scope), data.attr)
    return classes.get(data.func.id) if isinstance(data, ast.Call) and isinstance(data.func, ast.Name) else None


def _value(module: Module, call: Call, node: ast.expr | None) -> ast.expr | None:
    """An expression behind names that the scope, or the module, assigns once."""
    if isinstance(node, ast.Name):
        node = Bindings(call.scope).follow(node)
    if isinstance(node, ast.Name) and call.scope is not module.tree:
        node = Bindings(module.tree).follow(node)
    return node


def _attribute(cls: Scope | None, name: str) -> ast.expr | None:
    """What a class assigns to `self.<name>`, where it does so once."""
    found = [
        n.value
        for n in (ast.walk(cls) if cls is not None else ())
        if isinstance(n, ast.Assign)
        and any(isinstance(t, ast.Attribute) and t.attr == name and isinstance(t.value, ast.Name) for t in n.targets)
    ]
    return found[0] if len(found) == 1 else None


def _method(cls: ast.ClassDef, *names: str) -> list[ast.FunctionDef]:
    return [n for n in cls.body if isinstance(n, ast.FunctionDef) and n.name in names]


def _copied(module: Module, cls: ast.ClassDef, call: Call, workers: int) -> Iterator[Hit]:
    """A generator made with the dataset and drawn from in the workers."""
    loader = site_of(module, call.node)
    made: dict[str, str] = {}
    for init in _method(cls, "__init__"):
        for node in ast.walk(init):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                name = module.dotted(node.value.func)
                if name not in _GENERATORS:
                    continue
                for target in node.targets:
                    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                        made[f"self.{target.attr}"] = f"{name.rpartition('.')[2]} of {line_of(site_of(module, node))}"
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name):
            name = module.dotted(node.value.func)
            if name in _GENERATORS:
                made[node.targets[0].id] = f"{name.rpartition('.')[2]} of {line_of(site_of(module, node))}"
    reset = {
        ast.unparse(t)
        for m in cls.body
        if isinstance(m, ast.FunctionDef) and m.name != "__init__"
        for n in ast.walk(m)
        if isinstance(n, ast.Assign)
        for t in n.targets
    }
    for method in _method(cls, "__getitem__", "__iter__"):
        for node in ast.walk(method):
            if not isinstance(node, (ast.Attribute, ast.Name)) or not isinstance(node.ctx, ast.Load):
                continue
            written = ast.unparse(node)
            if written in made and written not in reset and not _local(method, written):
                yield Hit(
                    site_of(module, node),
                    f"Each of the {workers} workers of the loader in {line_of(loader)} has its own copy of "
                    f"`{written}` ({made[written]}) in the same state: they draw the same numbers, and the same again in "
                    "every epoch.",
                    "Draw from numpy's or torch's global generator, which torch seeds per worker, or make the generator in a "
                    "worker_init_fn from torch.initial_seed().",
                    evidence={"loader": loader, "workers": workers},
                )
                break


def _local(method: ast.FunctionDef, name: str) -> bool:
    return "." not in name and bool(Bindings(method).values.get(name))


def _numpy(module: Module, cls: ast.ClassDef, call: Call, torch: tuple[int, int]) -> Iterator[Hit]:
    """numpy's global generator, on a torch that does not seed it in workers."""
    loader = site_of(module, call.node)
    for method in _method(cls, "__getitem__", "__iter__"):
        for node in ast.walk(method):
            name = module.dotted(node.func, method) if isinstance(node, ast.Call) else ""
            if name.startswith("numpy.random.") and name.rpartition(".")[2][0].islower() and isinstance(node, ast.expr):
                if name in _GENERATORS or name in _SEEDS:
                    continue
                yield Hit(
                    site_of(module, node),
                    f"torch {torch[0]}.{torch[1]} does not seed numpy in its workers: all of those of the loader in "
                    f"{line_of(loader)} draw the same numbers here.",
                    "Give the loader a worker_init_fn that calls np.random.seed(torch.initial_seed() % 2**32), or use torch 1.9 "
                    "or later.",
                    Confidence.DEFINITE,
                    evidence={"loader": loader},
                )
                break


def _one_seed(module: Module, call: Call, init: ast.expr) -> Iterator[Hit]:
    """A worker_init_fn that sets a constant."""
    body: ast.AST | None = init if isinstance(init, ast.Lambda) else None
    if isinstance(init, ast.Name):
        body = next((s for s in module.scopes if isinstance(s, ast.FunctionDef) and s.name == init.id), None)
    if body is None:
        return
    loader = site_of(module, call.node)
    for node in ast.walk(body):
        if (
            isinstance(node, ast.Call)
            and module.dotted(node.func) in _SEEDS
            and node.args
            and number(node.args[0]) is not None
        ):
            yield Hit(
                site_of(module, node),
                f"Every worker of the loader in {line_of(loader)} gets the same seed here, so all draw the same numbers.",
                "Leave it out: torch seeds random, numpy and itself per worker. Or seed from torch.initial_seed() % 2**32.",
                evidence={"loader": loader},
            )
            return
