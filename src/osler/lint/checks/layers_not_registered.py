"""Layers kept in a plain list or dict of a Module."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Hit
from osler.lint.ownership import LAYERS
from osler.lint.reading import brings_in, named, own_nodes, site_of
from osler.syntax.module import Module
from osler.syntax.values import CLASS, ancestry

RULE = "layers-not-registered"
CALLS: frozenset[str] = frozenset()

_BASES = frozenset(
    (
        "torch.nn.Module",
        "lightning.LightningModule",
        "pytorch_lightning.LightningModule",
        "lightning.pytorch.LightningModule",
    )
)
_LAYERS = LAYERS | {"Parameter", "PReLU", "SyncBatchNorm", "InstanceNorm1d", "InstanceNorm2d", "LazyConv2d"}
_KEEPERS = named("ModuleList ModuleDict Sequential ParameterList ParameterDict add_module register_module setattr")


def check(facts: Facts) -> Iterator[Hit]:
    """Each class with an attribute that is a plain list, tuple or dict of layers made there."""
    module = facts.module
    if not brings_in(module, "torch", "lightning", "pytorch_lightning"):
        return
    for scope in module.scopes:
        if not isinstance(scope, ast.ClassDef):
            continue
        init = next((n for n in scope.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
        if init is None:
            continue
        for name, node, made, local in _plain(module, init):
            if not _is_module(facts, scope):
                break
            if _kept(scope, {name, local}) or not _used(scope, init, name):
                continue
            yield Hit(
                site_of(module, node),
                f"`self.{name}` is a plain {_kind(node)} of layers (`{made}`): parameters(), to() and state_dict() do not see "
                "them, so they are neither trained, moved nor saved.",
                f"Make it an nn.{'ModuleDict' if _kind(node) == 'dict' else 'ModuleList'}.",
                Confidence.POSSIBLE if _hidden(node) else Confidence.DEFINITE,
                evidence={"attribute": name},
            )


def _kind(node: ast.expr) -> str:
    if isinstance(node, (ast.Dict, ast.DictComp)):
        return "dict"
    return "tuple" if isinstance(node, ast.Tuple) else "list"


def _hidden(node: ast.expr) -> bool:
    """`[layer]`, the usual way to keep one module out of parameters() on purpose."""
    return isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) == 1


def _plain(module: Module, init: ast.FunctionDef) -> Iterator[tuple[str, ast.expr, str, str]]:
    """Attribute, the display that it is given, a layer in it, and the name that the display has before."""
    displays: dict[str, ast.expr] = {}
    filled: dict[str, str] = {}
    given: dict[str, str] = {}
    for node in own_nodes(init):
        for target, value in _assignments(node):
            holder = _holder(target)
            if holder and isinstance(value, _DISPLAYS):
                displays[holder] = value
            elif holder.startswith("self.") and isinstance(value, ast.Name):
                given[holder] = value.id
        for target, value in _fillings(node):
            holder, layer = _holder(target), _layer(module, value, init)
            if holder and layer:
                filled[holder] = layer
    for holder, display in displays.items():
        layer = next(filter(None, (_layer(module, e, init) for e in _elements(display))), "") or filled.get(holder, "")
        named_so = [holder] if holder.startswith("self.") else [a for a, local in given.items() if local == holder]
        for attribute in named_so if layer else ():
            yield attribute.removeprefix("self."), display, layer, holder.removeprefix("self.")


def _assignments(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.Assign):
        return [(target, node.value) for target in node.targets]
    return [(node.target, node.value)] if isinstance(node, ast.AnnAssign) and node.value is not None else []


def _fillings(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """What a statement puts into a list or dict: `x[k] = v`, `x += [v]`, `x.append(v)`."""
    if isinstance(node, ast.Assign):
        return [(target.value, node.value) for target in node.targets if isinstance(target, ast.Subscript)]
    if isinstance(node, ast.AugAssign) and isinstance(node.value, ast.List):
        return [(node.target, value) for value in node.value.elts]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
        return [(node.func.value, value) for value in node.args[:1]]
    return []


_DISPLAYS = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp)


def _holder(node: ast.AST) -> str:
    """What is filled: `self.x` or a local name."""
    attribute = _own(node)
    return f"self.{attribute}" if attribute else _name(node)


def _own(node: ast.AST) -> str:
    """The attribute's name of `self.x`; empty for anything else."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return node.attr
    return ""


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _elements(display: ast.expr) -> list[ast.expr]:
    if isinstance(display, (ast.List, ast.Tuple)):
        return display.elts
    if isinstance(display, ast.Dict):
        return display.values
    if isinstance(display, ast.ListComp):
        return [display.elt]
    return [display.value] if isinstance(display, ast.DictComp) else []


def _layer(module: Module, node: ast.expr, scope: ast.FunctionDef) -> str:
    """The class of a layer with parameters that an expression makes; empty for anything else."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return next(filter(None, (_layer(module, e, scope) for e in node.elts)), "")
    if not isinstance(node, ast.Call):
        return ""
    name = module.dotted(node.func, scope)
    last = name.rpartition(".")[2]
    if name.startswith("torch.nn.") and last in _LAYERS and not any(k.arg == "requires_grad" for k in node.keywords):
        return last
    if name == "torch.nn.Sequential":
        return last if any(_layer(module, a, scope) for a in node.args) else ""
    if isinstance(node.func, ast.Name) and any(_of_file(module, c, name) for c in module.scopes):
        return name
    return ""


def _of_file(module: Module, cls: ast.AST, name: str) -> bool:
    """A module class of the same file that holds a layer with parameters."""
    if not isinstance(cls, ast.ClassDef) or cls.name != name or module.scopes.get(cls) is not module.tree:
        return False
    if not any(module.dotted(b) in _BASES for b in cls.bases):
        return False
    return any(
        c.name.startswith("torch.nn.") and c.name.rpartition(".")[2] in _LAYERS and module.scopes.get(c.scope) is cls
        for calls in module.calls.values()
        for c in calls
    )


def _is_module(facts: Facts, cls: ast.ClassDef) -> bool:
    """It descends from `nn.Module`, directly or through classes of the project."""
    if any(facts.module.dotted(b) in _BASES for b in cls.bases):
        return True
    if not cls.bases:
        return False
    value = facts.project.name(facts.module, cls.name)
    if value is None or value.kind != CLASS or value.definition is None or value.definition.node is not cls:
        return False
    return any(a in _BASES for a in ancestry(value))


def _kept(cls: ast.ClassDef, names: set[str]) -> bool:
    """Something registers them all the same, or hands their parameters on."""
    for node in ast.walk(cls):
        if isinstance(node, ast.Call):
            last = node.func.attr if isinstance(node.func, ast.Attribute) else _name(node.func)
            if last in ("add_module", "register_module", "setattr", "register_parameter"):
                return True
            if last in _KEEPERS and any(_mentions(a, names) for a in node.args):
                return True
            if last in ("parameters", "named_parameters", "requires_grad_", "state_dict"):
                return True
    return False


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return any(_own(n) in names or _name(n) in names for n in ast.walk(node))


def _used(cls: ast.ClassDef, init: ast.FunctionDef, name: str) -> bool:
    """A method other than `__init__` reads it."""
    return any(
        isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load) and _own(n) == name
        for method in cls.body
        if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)) and method is not init
        for n in ast.walk(method)
    )
