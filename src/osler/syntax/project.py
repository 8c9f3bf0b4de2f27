"""The files of a project: which dotted name is which file, read and interpreted when first asked for."""

from __future__ import annotations

import ast
import contextlib
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from osler.syntax.bindings import together
from osler.syntax.interpreter import Interpreter
from osler.syntax.module import Module, Scope, survey
from osler.syntax.trace import Trace
from osler.syntax.values import INSTANCE, UNKNOWN, Definition, Value

# Whose names the rules know. Their own sources are read as any user's: what happens behind a name is not followed.
KNOWN = frozenset({"torch", "sklearn"})
_FOREIGN = frozenset({"site-packages", "dist-packages"})

MODULES = 30  # of a project, as far as the words of one are followed

# A function that calls one of these is worth a trace of its own.
TRAINS = frozenset(
    [
        "backward",
        "zero_grad",
        "step",
        "unscale_",
        "clip_grad_norm_",
        "clip_grad_value_",
        "manual_backward",
        "fit",
        "fit_transform",
        "fit_resample",
        "fit_sample",
        "fit_predict",
        "partial_fit",
        "train_test_split",
        "cross_val_score",
        "cross_validate",
        "random_split",
        "Trainer",
        "Seq2SeqTrainer",
        "SFTTrainer",
    ]
)
# The same in a file that speaks of CUDA.
TIMES = frozenset(["time", "perf_counter", "monotonic", "perf_counter_ns", "time_ns"])
# A function that calls one of these, or one that does, is gone into wherever it is called.
TELLS = TRAINS | frozenset(
    [
        "softmax",
        "log_softmax",
        "sigmoid",
        "Softmax",
        "LogSoftmax",
        "Sigmoid",
        "cross_entropy",
        "nll_loss",
        "binary_cross_entropy",
        "detach",
        "numpy",
        "item",
        "eval",
        "train",
        "no_grad",
        "inference_mode",
        "DataLoader",
        "Subset",
        "set_epoch",
        "manual_seed",
        "seed",
        "transform",
        "predict",
        "score",
        "DistributedDataParallel",
        "autocast",
        "GradScaler",
        "synchronize",
        "perf_counter",
        "time",
    ]
)


@dataclass(slots=True, eq=False)
class _Outline:
    """What a word may lead to in a module.

    Attributes:
        functions: functions and methods by name; what happens when a class is made and called, by the class's.
        names: what is imported out of a module, by its name there.
        modules: the project's modules that are imported whole.
    """

    module: Module
    functions: dict[str, list[Scope]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    modules: list[str] = field(default_factory=list)


class Project:
    """Finds and keeps modules.

    Attributes:
        used: for each module's path the paths of the project's files that its facts came from.
    """

    def __init__(self, read: Callable[[Path], str | None]) -> None:
        """Make an empty project.

        Args:
            read: the text of a file; None where it cannot be read or is no Python.
        """
        self._read = read
        self._modules: dict[Path, Module | None] = {}
        self._found: dict[tuple[Path, str], Path | None] = {}
        self._seen: dict[tuple[str, str], Module | None] = {}
        self._lacking: dict[str, set[str]] = {}
        self._kinds: dict[Path, str] = {}
        self._roots: dict[Path, tuple[Path, str]] = {}
        self._exported: set[str] = set()
        self._using: str | None = None
        self._telling: dict[tuple[str, int], bool] = {}
        self._reach: dict[str, set[str]] = {}
        self._reach_alone: dict[tuple[str, bool], set[str]] = {}
        self._words: dict[str, set[str]] = {}
        self._outlines: dict[str, _Outline] = {}
        self.used: dict[str, set[str]] = {}

    # --- files --------------------------------------------------------------------------------------------------------

    def add(self, path: Path, text: str, tree: ast.Module) -> Module:
        """A module that has been parsed already."""
        module = survey(str(path), text, tree, self._place(path)[1], path.name == "__init__.py")
        self._modules[path] = module
        return module

    def find(self, name: str, importer: Module) -> Module | None:
        """The project's module of a dotted name as the importer sees it; None for a library's."""
        key = (importer.path, name)
        if key in self._seen:
            module = self._seen[key]
        else:
            module = self._seen[key] = self._find(name, importer)
        if module is not None and self._using is not None and module.path != self._using:
            self.used.setdefault(self._using, set()).add(module.path)
        return module

    def holds(self, name: str, importer: Module) -> bool:
        """Whether a dotted name is a module of the project as the importer sees it; the file is not read."""
        return self._path(name, importer) is not None

    def _find(self, name: str, importer: Module) -> Module | None:
        path = self._path(name, importer)
        return None if path is None else self.open(path)

    def _path(self, name: str, importer: Module) -> Path | None:
        if not name or name.startswith(".") or name.partition(".")[0] in KNOWN:
            return None
        here = Path(importer.path)
        root, own = self._place(here)
        key = (here.parent, name)
        if key not in self._found:
            self._found[key] = self._locate(name, here.parent, root, self._package(here, own))
        path = self._found[key]
        return None if path == here else path

    def _locate(self, name: str, folder: Path, root: Path, package: str) -> Path | None:
        # A script's own folder is on its path; installed packages know only themselves as a project.
        place = root if package else folder
        if name.partition(".")[0] != package and _foreign(place):
            return None
        base = place.joinpath(*name.split("."))
        return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)

    def _package(self, path: Path, own: str) -> str:
        """The outermost package of a file with the dotted name `own`; empty for a script."""
        return own.partition(".")[0] if "." in own or path.name == "__init__.py" else ""

    def missing(self, module: Module) -> set[str]:
        """What a module imports and the project has no file for: paths without suffix at which a new one would be found."""
        if module.path in self._lacking:
            return self._lacking[module.path]
        here = Path(module.path)
        root, own = self._place(here)
        package = self._package(here, own)
        place = root if package else here.parent
        foreign = _foreign(place)
        out = self._lacking[module.path] = set()
        for dotted in {*module.imports.values(), *module.stars}:
            parts = dotted.split(".")
            if not parts[0] or (parts[0] != package and foreign):
                continue
            base = place
            for part in parts:
                base = base / part
                kind = self._kinds.get(base)
                if kind is None:
                    kind = "folder" if base.is_dir() else "file" if base.with_suffix(".py").is_file() else "nothing"
                    self._kinds[base] = kind
                if kind == "nothing":
                    out.add(str(base))
                if kind != "folder":
                    break
        return out

    def _place(self, path: Path) -> tuple[Path, str]:
        """The folder that imports of a file start from, and its dotted name there."""
        folder = path.parent
        if folder not in self._roots:
            parts: list[str] = []
            root = folder
            while (root / "__init__.py").is_file() and root.parent != root:
                parts.insert(0, root.name)
                root = root.parent
            self._roots[folder] = (root, ".".join(parts))
        root, package = self._roots[folder]
        stem = "" if path.name == "__init__.py" else path.stem
        return root, ".".join(p for p in (package, stem) if p)

    def at(self, path: str) -> Module | None:
        """A module that has been read already, by the path that its sites name."""
        return self._modules.get(Path(path))

    def open(self, path: Path) -> Module | None:
        """The module of a file, read and parsed when first asked for; None where that cannot be done."""
        if path not in self._modules:
            text = self._read(path)
            module = None
            if text is not None:
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        tree = ast.parse(text)
                except (SyntaxError, ValueError, RecursionError, MemoryError):
                    pass
                else:
                    module = survey(str(path), text, tree, self._place(path)[1], path.name == "__init__.py")
            self._modules[path] = module
        return self._modules[path]

    # --- what a file leads to -----------------------------------------------------------------------------------------

    def telling(self, definition: Definition) -> bool:
        """Whether a function leads, by the names of what it calls, to something that rules ask about."""
        module, node = definition.module, definition.node
        key = (module.path, id(node))
        known = self._telling.get(key)
        if known is None:
            names = module.methods.get(node, set())
            known = bool(names & TELLS) or bool(names & self._reaching(module))
            self._telling[key] = known
        return known

    def words(self, module: Module) -> set[str]:
        """The last names of what a module calls, itself or in the functions of the project that it leads to by name."""
        known = self._words.get(module.path)
        if known is None:
            known = self._words[module.path] = set()
            with self._facts_of(module):
                self._follow(module, known)
        return known

    def _follow(self, module: Module, words: set[str]) -> None:
        """Add a module's words, and those of what they name in the modules that they are imported from."""
        outlines: dict[str, _Outline] = {}
        gone: set[Scope] = set()
        entering = [module]
        new = set(module.methods.get(module.tree, ()))
        while new or entering:
            words |= new
            told = [(outline, new) for outline in outlines.values()]
            told += [(self._outline(one), words) for one in entering]
            outlines.update((outline.module.path, outline) for outline, _ in told)
            entering, found = [], set()
            for outline, these in told:
                if outline.module is not module:
                    for name in outline.functions.keys() & these:
                        for scope in outline.functions[name]:
                            if scope not in gone:
                                gone.add(scope)
                                found |= outline.module.methods.get(scope, set())
                sources = [base for name, base in outline.names.items() if name in these]
                for source in sources if these is new else [*outline.modules, *sources]:
                    one = self.find(source, outline.module)
                    if one is None or one.path in outlines or one in entering:
                        continue
                    if len(outlines) + len(entering) < MODULES:
                        entering.append(one)
            new = found - words

    def _outline(self, module: Module) -> _Outline:
        known = self._outlines.get(module.path)
        if known is None:
            known = self._outlines[module.path] = _Outline(module)
            for dotted in module.imports.values():
                base, _, last = dotted.rpartition(".")
                if self.holds(dotted, module):
                    known.modules.append(dotted)
                elif base:
                    known.names[last] = base
            for scope, parent in module.scopes.items():
                if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    made = isinstance(parent, ast.ClassDef) and scope.name in ("__init__", "__call__", "forward")
                    known.functions.setdefault(parent.name if made else scope.name, []).append(scope)  # type: ignore[union-attr]
        return known

    def _reaching(self, module: Module) -> set[str]:
        """Names of the module's functions and classes from which a telling call can be reached."""
        known = self._reach.get(module.path)
        if known is None:
            known = self._reach[module.path] = set(self._reaching_alone(module, TELLS))
            # What is imported out of the project may be telling too: one level is looked at, whatever was read before.
            called = module.methods.get(module.tree, set())
            with self._facts_of(module):
                for local, dotted in module.imports.items():
                    base, _, last = dotted.rpartition(".")
                    source = self.find(base, module) if local in called else None
                    if source is not None and last in self._reaching_alone(source, TELLS):
                        known.add(local)
        return known

    def _reaching_alone(self, module: Module, words: frozenset[str]) -> set[str]:
        """The same without what is imported."""
        key = (module.path, words is TELLS)
        reached = self._reach_alone.get(key)
        if reached is None:
            named = {
                s.name: s for s in module.scopes if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            }
            calls = {name: module.methods.get(scope, set()) for name, scope in named.items()}
            reached = {name for name, inside in calls.items() if inside & words}
            grown = True
            while grown:
                more = {name for name, inside in calls.items() if name not in reached and inside & reached}
                grown = bool(more)
                reached |= more
            self._reach_alone[key] = reached
        return reached

    def _training(self, module: Module) -> set[str]:
        """The functions imported out of the project that train, or call one that does."""
        out = set()
        called = module.methods.get(module.tree, set())
        for dotted in module.imports.values():
            base, _, last = dotted.rpartition(".")
            whole = self.holds(dotted, module)
            source = self.find(dotted if whole else base, module) if whole or last in called else None
            if source is not None:
                out |= self._reaching_alone(source, TRAINS) & (called if whole else {last})
        return out

    # --- interpretation -----------------------------------------------------------------------------------------------

    def names(self, module: Module) -> dict[str, Value]:
        """A module's names, as another module sees them after `import`; some are `PENDING` until they are `needed`."""
        if module.path not in self._exported:
            self._exported.add(module.path)
            with self._facts_of(module):
                Interpreter(self).outline(module)
        return module.exported

    def name(self, module: Module, name: str) -> Value | None:
        """What a name of a module is to another module; None where it has none."""
        names = self.names(module)
        return Interpreter(self).resolved(names[name], name, names, module) if name in names else None

    def needed(self, module: Module, name: str) -> Value:
        """A pending name of a module: the statements that bind it are gone through, in their order."""
        names = module.exported
        if name not in module.pending:  # its own definition asks for it
            return Value(UNKNOWN, name)
        body = together(module.pending, name)
        bound = {n: names.pop(n) for n, nodes in module.pending.items() if not body.isdisjoint(nodes)}
        for one in bound:
            del module.pending[one]
        with self._facts_of(module):
            Interpreter(self).fill(module, sorted(body, key=lambda s: (s.lineno, s.col_offset)))
        for one, pending in bound.items():
            # Unknown where none of the statements was reached.
            pending.sources = (self.name(module, one) or Value(UNKNOWN, one),)
        return bound[name].sources[0]

    @contextlib.contextmanager
    def _facts_of(self, module: Module) -> Iterator[None]:
        """What is found meanwhile belongs to the module's facts."""
        using, self._using = self._using, module.path
        try:
            yield
        finally:
            self._using = using

    def traces(self, module: Module) -> list[Trace]:
        """What the module does as a script, then each of its functions and methods that the script does not reach."""
        self._using = module.path
        interpreter = Interpreter(self)
        out = [interpreter.script(module)]
        trains = TRAINS | TIMES if "cuda" in module.text else TRAINS
        trains |= self._training(module)
        own = [v.definition for v in module.env.values() if v.definition is not None and v.kind != INSTANCE]
        for definition in _callers_first(module, [d for d in own if d.module is module], trains):
            if isinstance(definition.node, ast.ClassDef):
                out += self._methods(interpreter, definition, trains)
            elif id(definition.node) not in interpreter.seen and definition.parent is None:
                out.append(interpreter.entry(definition))
        self._using = None
        return out

    def _methods(self, interpreter: Interpreter, cls: Definition, trains: frozenset[str]) -> list[Trace]:
        """The methods of a class on one object, `__init__` first."""
        owner = Value(INSTANCE, cls.name, definition=cls)
        methods = [
            v.definition for v in cls.members.values() if v.definition is not None and v.definition.parent is cls
        ]
        first = [d for d in methods if _name(d) == "__init__"]
        out = [interpreter.entry(definition, owner) for definition in first]
        for definition in _callers_first(cls.module, [d for d in methods if d not in first], trains):
            if id(definition.node) not in interpreter.seen:
                out.append(interpreter.entry(definition, owner))
        return out


def _foreign(folder: Path) -> bool:
    """Installed packages lie there, which are no parts of one project; also where it is the working directory."""
    return os.path.basename(os.path.abspath(folder)) in _FOREIGN  # noqa: PTH100, PTH119 - `resolve` would follow links


def _callers_first(module: Module, definitions: list[Definition], trains: frozenset[str]) -> list[Definition]:
    """Those that call something that trains, themselves or by way of each other; who calls others comes before them.

    A function that is gone into from its caller, with what it is given there, tells more than one of its own.
    """
    calls = {id(d): module.methods.get(d.node, set()) for d in definitions}
    training = [d for d in definitions if calls[id(d)] & trains]
    while True:
        names = {_name(d) for d in training}
        more = [d for d in definitions if d not in training and calls[id(d)] & names]
        if not more:
            break
        training += more
    called = {id(d): any(_name(d) in calls[id(o)] for o in training if o is not d) for d in training}
    return sorted((d for d in definitions if d in training), key=lambda d: called[id(d)])


def _name(definition: Definition) -> str:
    return getattr(definition.node, "name", "")
