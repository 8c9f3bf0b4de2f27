"""A state dict loaded with strict=False, and nobody asks what did not fit."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Hit
from osler.lint.reading import Bindings, brings_in, is_false, last_name, own_nodes, site_of, words
from osler.syntax.module import Call, Module, Scope

RULE = "state-partial-load"
CALLS = frozenset({"load_state_dict"})

# Someone looks at the keys in another way, or the state is a part by design.
_LOOKS = ("missing", "unexpected", "mismatch", "incompatible")
_PARTS = (
    "lora",
    "adapter",
    "delta",
    "ema",
    "backbone",
    "encoder",
    "pretrain",
    "peft",
    "trainable",
    "prefix",
    "partial",
    "average",
)

_READS = frozenset({"load", "load_file", "load_url", "load_state_dict_from_url", "load_checkpoint", "safe_load"})

# Where nothing is trained, a backbone or a converted file is read, and `strict=False` is mostly meant.
_TRAINS = frozenset({"backward", "manual_backward", "zero_grad", "training_step", "fit"})
_KEEPS = frozenset({"get", "pop", "dict", "OrderedDict", "copy", "deepcopy"})


def check(facts: Facts) -> Iterator[Hit]:
    """Each `load_state_dict(…, strict=False)` whose result is dropped."""
    for call in facts.module.called("?.load_state_dict"):
        given = call.argument(1, "strict")
        if not is_false(given) or not _dropped(call):
            continue
        func = call.node.func
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Call) and _is_super(func.value):
            continue
        said = words(_own_statements(call.scope))
        if any(look in word for word in said for look in _LOOKS):
            continue
        if _in_loop(call):
            continue  # shard by shard
        if _chosen_by_keys(call):
            continue
        meant = any(p in word for word in words([call.node]) for p in _PARTS) or _explained(facts, call)
        meant = meant or _own(call) or _begins(call) or not _read_whole(facts.module, call)
        meant = meant or not facts.project.words(facts.module) & _TRAINS
        meant = meant or brings_in(facts.module, "tensordict")  # a TensorDict has the method too, and parts by design
        yield Hit(
            site_of(facts.module, call.node),
            "strict=False loads the keys that fit and passes over the rest, and the result that names them is dropped: "
            "whatever did not fit keeps its initial values.",
            "Leave strict=False out; or keep the result and check it: "
            "`missing, unexpected = model.load_state_dict(state, strict=False)`.",
            Confidence.POSSIBLE if meant else Confidence.PROBABLE,
        )


def _in_loop(call: Call) -> bool:
    loops = (n for n in own_nodes(call.scope) if isinstance(n, (ast.For, ast.While)))
    return any(node is call.node for loop in loops for node in ast.walk(loop))


def _chosen_by_keys(call: Call) -> bool:
    """It stands under a condition that asks for the state's keys."""
    tests = [n for n in own_nodes(call.scope) if isinstance(n, ast.If) and "keys" in words([n.test])]
    return any(node is call.node for test in tests for node in ast.walk(test))


def _begins(call: Call) -> bool:
    """Under `if pretrained:` a model of another shape begins with what fits."""
    tests = [
        n for n in own_nodes(call.scope) if isinstance(n, ast.If) and any("pretrain" in w for w in words([n.test]))
    ]
    return any(node is call.node for test in tests for part in test.body for node in ast.walk(part))


def _own(call: Call) -> bool:
    """An object that reads its own state: what it leaves out of it it knows."""
    func = call.node.func
    return isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self"


def _read_whole(module: Module, call: Call) -> bool:
    """The state was seen to be read from a file and is given as it was.

    A part that the program itself picked does not fit by design; what a caller gives mostly is one.
    """
    bindings = Bindings(call.scope)
    written = {
        n.value.id
        for n in own_nodes(call.scope)
        if isinstance(n, ast.Subscript) and isinstance(n.ctx, (ast.Store, ast.Del)) and isinstance(n.value, ast.Name)
    }
    queue: list[ast.AST | None] = [call.argument(0, "state_dict")]
    seen: set[str] = set()
    read = False
    while queue:
        node = queue.pop()
        if isinstance(node, (ast.Dict, ast.DictComp)):
            return False
        if isinstance(node, ast.Call):
            last = module.dotted(node.func).rpartition(".")[2] or last_name(node.func)
            read = read or last in _READS
            if last == "state_dict":
                return False  # of another module in memory
            if last not in _READS:
                queue += [*node.args, node.func] if last in _KEEPS else []
        elif isinstance(node, (ast.Subscript, ast.Attribute)):
            queue.append(node.value)
        elif isinstance(node, ast.Name) and node.id not in seen:
            seen.add(node.id)
            if node.id in written:
                return False  # its keys are chosen or named anew
            queue += bindings.values.get(node.id, [])
    return read


def _explained(facts: Facts, call: Call) -> bool:
    """A comment right above, or beside, says why it is not strict."""
    lines = (facts.module.line(n) for n in range(call.node.lineno - 3, call.node.lineno + 1))
    return any(
        "strict" in comment for line in lines if (comment := line.partition("#")[2]) and "expect:" not in comment
    )


def _is_super(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == "super"


def _dropped(call: Call) -> bool:
    """Its result is a statement of its own, or goes to a name that is never read."""
    if isinstance(call.parent, ast.Expr):
        return True
    if not isinstance(call.parent, ast.Assign) or len(call.parent.targets) != 1:
        return False
    target = call.parent.targets[0]
    if not isinstance(target, ast.Name) or target.id == "_" or isinstance(call.scope, ast.Module):
        return False
    return not any(
        isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Load) for n in ast.walk(call.scope)
    )


def _own_statements(scope: Scope) -> list[ast.AST]:
    return [n for n in own_nodes(scope) if isinstance(n, (ast.Name, ast.Attribute, ast.Constant))]
