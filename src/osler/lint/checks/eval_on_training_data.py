"""What judges the model is what it was trained on: a loader over the training set, a fit on all rows, one set twice."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from osler.core.finding import Confidence, Severity
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.leakage import EVALUATES, LIBRARIES, Rows, rows
from osler.lint.reading import Bindings, brings_in, last_name, own_nodes, site_of, target_name, twins, words
from osler.syntax.module import Call, Scope
from osler.syntax.trace import Event
from osler.syntax.values import INSTANCE, alternatives, slice_back

RULE = "eval-on-training-data"
CALLS = frozenset({"DataLoader", "score", "predict", "predict_proba", "evaluate", "validate", "fit", "Trainer"})

_LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
_TRAIN = re.compile(r"train|^tr_|_tr$|_tr_", re.IGNORECASE)
_JUDGE = re.compile(
    r"(^|_)(val|valid|validation|test|eval|evaluation|dev|heldout|holdout)(_|\d|$|loader)", re.IGNORECASE
)
_FEEDS = re.compile(r"loader|_dl$|iter|set$|data", re.IGNORECASE)
_CHECKS = re.compile(r"^(val|valid|validate|validation|evaluate|eval|test)(_(epoch|model|one_epoch|step|loop))?$")
_CHOOSE = ("sampler", "batch_sampler")
# What a trainer takes that must be two sets.
_PAIRS = (
    ("train_dataset", "eval_dataset"),
    ("train_dataloaders", "val_dataloaders"),
    ("train_dataloader", "val_dataloaders"),
)


def check(facts: Facts) -> Iterator[Hit]:
    """Loaders, trainers and estimators."""
    bindings: dict[Scope, Bindings] = {}
    loaders = list(facts.module.called(*_LOADERS))
    yield from _loaders(facts, loaders, bindings)
    yield from _lightning(facts, loaders)
    yield from _trainers(facts)
    yield from _wrong_loader(facts, bindings)
    yield from _other_loader(facts, bindings)
    if facts.module.methods.get(facts.module.tree, set()) & {"fit"} and brings_in(facts.module, *LIBRARIES):
        for one in rows(facts):
            yield from _refitted(one)
        for trace in facts.traces:
            yield from _itself(trace.events())


# --- loaders ----------------------------------------------------------------------------------------------------------


def _loaders(facts: Facts, loaders: list[Call], bindings: dict[Scope, Bindings]) -> Iterator[Hit]:
    """Two loaders over one set, of which one is named for judging."""
    training = [c for c in loaders if _TRAIN.search(target_name(c.parent)) and not _JUDGE.search(target_name(c.parent))]
    for call in loaders:
        name = target_name(call.parent)
        if not _JUDGE.search(name) or _TRAIN.search(name):
            continue
        data = call.argument(0, "dataset")
        for other in training:
            given = other.argument(0, "dataset")
            if other.scope is not call.scope or not twins(data, given) or not _alike(call, other):
                continue
            bound = bindings.setdefault(call.scope, Bindings(call.scope))
            if isinstance(data, ast.Name) and len(bound.values.get(data.id, ())) > 1:
                continue
            twin = site_of(facts.module, other.node)
            yield Hit(
                site_of(facts.module, call.node),
                f"`{name}` goes through the same data as `{target_name(other.parent)}` ({line_of(twin)}): the model is judged "
                "on what it was trained on.",
                f"Give `{name}` the rows that were held out.",
                evidence={"training": twin},
            )
            break
        else:
            flag = _train_flag(bindings.setdefault(call.scope, Bindings(call.scope)).follow(data))
            if flag and training and not any(call.keyword(k) for k in _CHOOSE):
                yield Hit(
                    site_of(facts.module, call.node),
                    f"`{name}` is given the training part: its dataset is made with {flag}.",
                    "Ask the dataset for its test or validation part.",
                    Confidence.PROBABLE,
                )


def _alike(a: Call, b: Call) -> bool:
    """Neither chooses its rows by a sampler, or both by the same one; what `**` brings in nobody knows."""
    if any(k.arg is None for c in (a, b) for k in c.node.keywords):
        return False
    for key in _CHOOSE:
        x, y = a.keyword(key), b.keyword(key)
        if (x is None) != (y is None) or (x is not None and not twins(x, y)):
            return False
    return True


def _train_flag(node: ast.expr | None) -> str:
    """`train=True` or `split="train"` of a dataset's constructor."""
    if not isinstance(node, ast.Call):
        return ""
    given = words([*node.args, *(k.value for k in node.keywords)])
    if any(_JUDGE.search(word) for word in given):
        return ""  # the rows are those of a validation file, whatever is done to them
    for keyword in node.keywords:
        value = keyword.value
        if isinstance(value, ast.Constant):
            if keyword.arg == "train" and value.value is True:
                return "train=True"
            if keyword.arg in ("split", "mode", "phase", "subset") and value.value in ("train", "training"):
                return f'{keyword.arg}="{value.value}"'
    return ""


def _lightning(facts: Facts, loaders: list[Call]) -> Iterator[Hit]:
    """`train_dataloader` and `val_dataloader` of one class over one attribute."""
    hooks: dict[tuple[Scope | None, str], Call] = {}
    for call in loaders:
        name = getattr(call.scope, "name", "")
        if name.endswith("_dataloader") and isinstance(call.parent, ast.Return):
            hooks[(facts.module.scopes.get(call.scope), name)] = call
    for (owner, name), call in hooks.items():
        other = hooks.get((owner, "train_dataloader"))
        if name not in ("val_dataloader", "test_dataloader") or other is None or not isinstance(owner, ast.ClassDef):
            continue
        data = call.argument(0, "dataset")
        if isinstance(data, ast.Attribute) and twins(data, other.argument(0, "dataset")) and _alike(call, other):
            twin = site_of(facts.module, other.node)
            yield Hit(
                site_of(facts.module, call.node),
                f"`{name}` gives the same data as `train_dataloader` ({line_of(twin)}).",
                f"Give `{name}` the rows that were held out.",
                evidence={"training": twin},
            )


# --- trainers ---------------------------------------------------------------------------------------------------------


def _trainers(facts: Facts) -> Iterator[Hit]:
    """One set given for training and for judging."""
    for calls in facts.module.calls.values():
        for call in calls:
            for first, second in _pairs(call):
                if twins(first, second):
                    yield Hit(
                        site_of(facts.module, second),
                        f"`{ast.unparse(second)}` is given both for training and for judging.",
                        "Hold rows out before training, and judge on those.",
                        Confidence.PROBABLE,
                    )


def _pairs(call: Call) -> Iterator[tuple[ast.expr, ast.expr]]:
    for train, judge in _PAIRS:
        a, b = call.keyword(train), call.keyword(judge)
        if a is not None and b is not None:
            yield a, b
    if call.name != "?.fit" or len(call.node.args) < 2 or any(isinstance(a, ast.Starred) for a in call.node.args):
        return
    held = call.keyword("validation_data")
    if isinstance(held, (ast.Tuple, ast.List)) and len(held.elts) == 2:
        yield ast.Tuple(call.node.args[:2], ast.Load()), ast.copy_location(ast.Tuple(held.elts, ast.Load()), held)
    judged = call.argument(2, "val_dataloaders")
    if judged is not None and _FEEDS.search(last_name(judged)) and _TRAIN.search(last_name(judged)):
        yield call.node.args[1], judged


def _wrong_loader(facts: Facts, bindings: dict[Scope, Bindings]) -> Iterator[Hit]:
    """The training loader handed to a validation, while the validation loader is made and never used."""
    for calls in facts.module.calls.values():
        for call in calls:
            if not _CHECKS.match(call.name.rpartition(".")[2] or call.name) and not _CHECKS.match(
                last_name(call.node.func)
            ):
                continue
            for given in call.node.args:
                name = last_name(given)
                if not isinstance(given, ast.Name) or not _TRAIN.search(name) or _JUDGE.search(name):
                    continue
                if not _FEEDS.search(name):
                    continue
                bound = bindings.setdefault(call.scope, Bindings(call.scope))
                idle = next(
                    (n for n in bound.values if _JUDGE.search(n) and _like(n, name) and not bound.loads.get(n)), None
                )
                if idle is not None:
                    yield Hit(
                        site_of(facts.module, given),
                        f"`{name}` is given to `{last_name(call.node.func)}`, while `{idle}` is made and never used.",
                        f"Judge on `{idle}`.",
                        Confidence.PROBABLE,
                    )


def _other_loader(facts: Facts, bindings: dict[Scope, Bindings]) -> Iterator[Hit]:
    """A loop over the training loader in a function that is given the one to judge on, and never uses it."""
    for scope in facts.module.scopes:
        if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) or not _CHECKS.match(scope.name):
            continue
        asked = scope.args.args[: len(scope.args.args) - len(scope.args.defaults)]
        given = [a.arg for a in asked if _JUDGE.search(a.arg) and _FEEDS.search(a.arg)]
        bound = bindings.setdefault(scope, Bindings(scope)) if given else None
        idle = [name for name in given if bound is not None and not bound.loads.get(name)]
        for node in own_nodes(scope) if idle else ():
            if not isinstance(node, ast.For):
                continue
            for name in (n.id for n in ast.walk(node.iter) if isinstance(n, ast.Name)):
                if _TRAIN.search(name) and _FEEDS.search(name) and not _JUDGE.search(name):
                    yield Hit(
                        site_of(facts.module, node),
                        f"`{scope.name}` goes through `{name}`, while `{idle[0]}`, which it is given, is never used.",
                        f"Go through `{idle[0]}`.",
                        Confidence.PROBABLE,
                    )


def _like(judge: str, train: str) -> bool:
    """`val_loader` is to `train_loader` what its name says."""
    return _JUDGE.sub("_", judge).strip("_").endswith(train.rpartition("_")[2])


# --- estimators -------------------------------------------------------------------------------------------------------


def _refitted(one: Rows) -> Iterator[Hit]:
    """A model fitted on all rows and then judged on a part of them."""
    for event, judged in one.evaluations:
        if event.name == "()" or event.receiver is None:
            continue
        fits = [f for f in one.fits(event.receiver, event.order, (".fit",)) if len(f.arguments) + len(f.keywords) > 1]
        if not fits:
            continue
        fit = fits[-1]
        given = fit.argument(0, "X")
        around = {id(b) for b in event.branches()}
        if given is None or not all(id(b) in around for b in fit.branches()):
            continue
        for split in one.splits:
            if split.folds or split.order > event.order or 1 not in split.sides(judged):
                continue
            if any(given is base for base in split.bases):
                yield Hit(
                    event.site,
                    f"The model is fitted on all rows ({line_of(fit.site)}) and judged on a part of them, which the split "
                    f"in {line_of(split.site)} holds out.",
                    f"Fit on the training part of {line_of(split.site)}; fit on all rows only after judging.",
                    evidence={"fit": fit.site, "split": split.site},
                )


def _itself(events: list[Event]) -> Iterator[Hit]:
    """An estimator that is scored on what it was fitted on, and on nothing else."""
    scores = [e for e in events if e.name == ".score" and e.receiver is not None and e.arguments]
    for event in scores:
        assert event.receiver is not None
        model = next(
            (v for v in alternatives(event.receiver) if v.kind == INSTANCE and v.name.startswith("sklearn.")), None
        )
        if model is None or model.name.startswith(("sklearn.mixture", "sklearn.cluster", "sklearn.decomposition")):
            continue
        mine = [e for e in events if e.receiver is not None and any(v is model for v in alternatives(e.receiver))]
        fits = [e for e in mine if e.name == ".fit" and e.order < event.order and len(e.arguments) > 1]
        others = [e for e in mine if e.name in EVALUATES and e.arguments and e.arguments[0] is not event.arguments[0]]
        if not fits or others or fits[-1].arguments[0] is not event.arguments[0]:
            continue
        if any("cross_val" in e.name or e.name.endswith("cross_validate") for e in events):
            continue
        if any(v.kind == INSTANCE and v.name.endswith("CV") for v in slice_back(model, limit=20)):
            continue
        yield Hit(
            event.site,
            f"The score is taken on the rows of the fit in {line_of(fits[-1].site)}: it says how well the model "
            "remembers them.",
            "Hold rows out with train_test_split, or use cross_val_score.",
            Confidence.PROBABLE,
            Severity.INFO,
            evidence={"fit": fits[-1].site},
        )
