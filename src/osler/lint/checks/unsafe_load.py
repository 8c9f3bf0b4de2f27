"""A file is unpickled that others may have written; a load is bound to a device that may be absent."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from osler.core.finding import Confidence, Severity
from osler.lint.facts import Facts
from osler.lint.hit import Edit, Fix, Hit
from osler.lint.reading import Bindings, is_false, is_true, own_nodes, site_of, twins
from osler.syntax.module import Call, Module, Scope

RULE = "unsafe-load"
CALLS = frozenset({"load", "loads", "read_pickle", "Unpickler"})

SAFE_SINCE = (2, 6)  # torch.load takes nothing but tensors by default
_UNPICKLES = (
    "pickle.load",
    "pickle.loads",
    "joblib.load",
    "dill.load",
    "dill.loads",
    "cloudpickle.load",
    "pandas.read_pickle",
)
_FETCHES = (
    "huggingface_hub.hf_hub_download",
    "huggingface_hub.snapshot_download",
    "huggingface_hub.cached_download",
    "transformers.utils.cached_file",
    "urllib.request.urlopen",
    "urllib.request.urlretrieve",
    "requests.get",
    "requests.post",
    "httpx.get",
    "wget.download",
    "gdown.download",
    "torch.hub.download_url_to_file",
    "torchvision.datasets.utils.download_url",
)
# Writes what its first argument names to the file that its second names.
_WRITES = {
    "urllib.request.urlretrieve": 1,
    "torch.hub.download_url_to_file": 1,
    "wget.download": 1,
    "gdown.download": 1,
}


def check(facts: Facts) -> Iterator[Hit]:
    """Each load that unpickles, as it is written."""
    module = facts.module
    known: dict[Scope, Bindings] = {}
    for call in module.called("torch.load"):
        yield from _torch(facts, call, known.setdefault(call.scope, Bindings(call.scope)))
    for call in module.called(*_UNPICKLES, "numpy.load"):
        if call.name == "numpy.load" and not is_true(call.keyword("allow_pickle")):
            continue
        fetch = _fetched(module, call, known.setdefault(call.scope, Bindings(call.scope)))
        if fetch:
            yield Hit(
                site_of(module, call.node),
                f"`{call.name}` runs what the file says, and the file comes over the network (`{fetch}`).",
                "Load a format that holds data only (safetensors, npz without pickles, skops), or check the file against a "
                "known hash first.",
                Confidence.PROBABLE,
                evidence={"from": fetch},
            )


def _torch(facts: Facts, call: Call, bound: Bindings) -> Iterator[Hit]:
    module = facts.module
    if any(k.arg is None for k in call.node.keywords):
        return
    given = call.keyword("weights_only")
    own = _saved_here(module, call)
    old = given is None and facts.torch is not None and facts.torch < SAFE_SINCE
    if (is_false(given) or old) and not own:
        fetch = _fetched(module, call, bound)
        how = (
            "weights_only=False"
            if given is not None
            else f"its default on torch {'.'.join(map(str, facts.torch or ()))}"
        )
        where = f" and comes over the network (`{fetch}`)" if fetch else ""
        yield Hit(
            site_of(module, call.node),
            f"torch.load with {how} runs what the file says{where}.",
            "Give weights_only=True; a checkpoint of tensors and plain containers loads the same. Better, keep weights in "
            "safetensors.",
            Confidence.DEFINITE if fetch else Confidence.PROBABLE,
            None if fetch else Severity.INFO,
            evidence={"from": fetch} if fetch else {},
            fix=_weights_only(call, given),
        )
    if not _anywhere(call) and "torch.cuda.is_available" in module.calls and not own:
        yield Hit(
            site_of(module, call.node),
            "torch.load without map_location puts each tensor where it was saved: a file from a GPU does not load on a "
            "machine without one, where this file is also meant to run.",
            'Give map_location="cpu" (load_state_dict then copies to the model\'s device).',
            Confidence.PROBABLE,
            Severity.INFO,
            fix=_map_location(module, call),
        )


def _anywhere(call: Call) -> bool:
    return call.argument(1, "map_location") is not None or any(isinstance(a, ast.Starred) for a in call.node.args)


def _saved_here(module: Module, call: Call) -> bool:
    """The same source saves a file of that name: it was written on this machine."""
    path = call.argument(0, "f")
    for save in module.called("torch.save"):
        target = save.argument(1, "f")
        if target is not None and path is not None and ast.dump(target) == ast.dump(path):
            return True
    return False


def _fetched(module: Module, call: Call, bound: Bindings) -> str:
    """The call by which the file came over the network, as far as this scope tells; empty for none."""
    if not call.node.args:
        return ""
    path = call.node.args[0]
    todo: list[ast.AST] = [path]
    seen: set[str] = set()
    while todo:
        for node in ast.walk(todo.pop()):
            if isinstance(node, ast.Call):
                name = module.dotted(node.func, call.scope)
                if name in _FETCHES:
                    return name
            elif isinstance(node, ast.Name) and node.id not in seen:
                seen.add(node.id)
                todo += [v for v in bound.values.get(node.id, ()) if v is not None]
    for name, position in _WRITES.items():
        for fetch in module.called(name):
            target = fetch.argument(position)
            if fetch.scope is call.scope and fetch.node.lineno < call.node.lineno and target is not None:
                if any(twins(target, n) or _constant(target, n) for n in ast.walk(path)):
                    return name
                if any(_opened(module, n, target) for n in own_nodes(call.scope)):
                    return name
    return ""


def _constant(a: ast.AST, b: ast.AST) -> bool:
    return (
        isinstance(a, ast.Constant) and isinstance(b, ast.Constant) and isinstance(a.value, str) and a.value == b.value
    )


def _opened(module: Module, node: ast.AST, target: ast.expr) -> bool:
    """`with open(target)` of the file that was fetched."""
    if not isinstance(node, ast.withitem) or not isinstance(node.context_expr, ast.Call):
        return False
    args = node.context_expr.args
    return bool(args) and (twins(args[0], target) or _constant(args[0], target))


# --- edits ------------------------------------------------------------------------------------------------------------


def _weights_only(call: Call, given: ast.expr | None) -> Fix | None:
    summary = "give weights_only=True"
    if given is not None:
        if given.end_lineno is None or given.end_col_offset is None:
            return None
        edit = Edit(given.lineno, given.col_offset, given.end_lineno, given.end_col_offset, "True")
        return Fix((edit,), False, summary)
    edit_ = _appended(call, "weights_only=True")
    return Fix((edit_,), False, summary) if edit_ is not None else None


def _map_location(module: Module, call: Call) -> Fix | None:
    """Safe where the tensors go straight into load_state_dict, which copies them to the model's own device."""
    edit = _appended(call, 'map_location="cpu"')
    if edit is None:
        return None
    into = any(c.node.args and c.node.args[0] is call.node for c in module.called("?.load_state_dict"))
    into = into and not any(c.keyword("assign") for c in module.called("?.load_state_dict"))
    return Fix((edit,), into, 'give map_location="cpu"')


def _appended(call: Call, text: str) -> Edit | None:
    """The argument after the last one."""
    last: ast.AST | None = None
    for one in (*call.node.args, *(k for k in call.node.keywords)):
        place = (getattr(one, "end_lineno", 0), getattr(one, "end_col_offset", 0))
        if last is None or place > (getattr(last, "end_lineno", 0), getattr(last, "end_col_offset", 0)):
            last = one
    line, column = getattr(last, "end_lineno", None), getattr(last, "end_col_offset", None)
    if not isinstance(line, int) or not isinstance(column, int):
        return None
    only = len(call.node.args) == 1 and not call.node.keywords
    if only and isinstance(call.node.args[0], ast.GeneratorExp):
        return None
    return Edit(line, column, line, column, f", {text}")
