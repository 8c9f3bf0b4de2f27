"""The files of a project: which dotted name is which file, read and interpreted when first asked for."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from pathlib import Path

from osler.syntax.interpreter import Interpreter
from osler.syntax.module import Module, survey
from osler.syntax.trace import Trace
from osler.syntax.values import INSTANCE, Definition, Value

_FOREIGN = frozenset({"site-packages", "dist-packages"})

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
    ]
)
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
        self._roots: dict[Path, tuple[Path, str]] = {}
        self._entered: set[Path] = set()
        self._ready: set[Path] = set()
        self._using: str | None = None
        self._telling: dict[tuple[str, int], bool] = {}
        self._reach: dict[str, set[str]] = {}
        self.used: dict[str, set[str]] = {}

    # --- files --------------------------------------------------------------------------------------------------------

    def add(self, path: Path, text: str, tree: ast.Module) -> Module:
        """A module that has been parsed already."""
        module = survey(str(path), text, tree, self._place(path)[1], path.name == "__init__.py")
        self._modules[path] = module
        return module

    def find(self, name: str, importer: Module) -> Module | None:
        """The project's module of a dotted name as the importer sees it; None for a library's."""
        if not name or name.startswith("."):
            return None
        here = Path(importer.path)
        root, own = self._place(here)
        key = (here.parent, name)
        if key not in self._found:
            self._found[key] = self._locate(name, here, root, own)
        path = self._found[key]
        if path is None:
            return None
        module = self.open(path)
        if module is not None and self._using is not None and module.path != self._using:
            self.used.setdefault(self._using, set()).add(module.path)
        return module

    def _locate(self, name: str, here: Path, root: Path, own: str) -> Path | None:
        package = own.partition(".")[0] if "." in own or here.name == "__init__.py" else ""
        first = name.partition(".")[0]
        # A script's own folder is on its path; installed packages know only themselves as a project.
        places = [root] if package else [here.parent]
        for place in places:
            if place.name in _FOREIGN and first != package:
                continue
            base = place.joinpath(*name.split("."))
            for path in (base.with_suffix(".py"), base / "__init__.py"):
                if path.is_file() and path != here:
                    return path
        return None

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

    def _reaching(self, module: Module) -> set[str]:
        """Names of the module's functions and classes from which a telling call can be reached."""
        if module.path not in self._reach:
            named = {
                s.name: s for s in module.scopes if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            }
            calls = {name: module.methods.get(scope, set()) for name, scope in named.items()}
            reached = {name for name, inside in calls.items() if inside & TELLS}
            grown = True
            while grown:
                more = {name for name, inside in calls.items() if name not in reached and inside & reached}
                grown = bool(more)
                reached |= more
            # What is imported out of the project may be telling too: one level is looked at.
            for local, dotted in module.imports.items():
                source = self.find(dotted.rpartition(".")[0], module)
                if (
                    source is not None
                    and source.path in self._reach
                    and dotted.rpartition(".")[2] in self._reach[source.path]
                ):
                    reached.add(local)
            self._reach[module.path] = reached
        return self._reach[module.path]

    # --- interpretation -----------------------------------------------------------------------------------------------

    def names(self, module: Module) -> dict[str, Value]:
        """A module's names, as another module sees them after `import`."""
        path = Path(module.path)
        if path not in self._entered:
            self._entered.add(path)
            Interpreter(self).names_only(module)
        return module.env

    def traces(self, module: Module) -> list[Trace]:
        """What the module does as a script, then each of its functions and methods that the script does not reach."""
        self._using = module.path
        self._entered.add(Path(module.path))
        interpreter = Interpreter(self)
        out = [interpreter.script(module)]
        for value in list(module.env.values()):
            definition = value.definition
            if definition is None or definition.module is not module or value.kind == INSTANCE:
                continue
            if not module.methods.get(definition.node, set()) & TRAINS:
                continue
            if isinstance(definition.node, ast.ClassDef):
                out += self._methods(interpreter, definition)
            elif id(definition.node) not in interpreter.seen and definition.parent is None:
                out.append(interpreter.entry(definition))
        self._using = None
        return out

    def _methods(self, interpreter: Interpreter, cls: Definition) -> list[Trace]:
        """The methods of a class on one object, `__init__` first."""
        owner = Value(INSTANCE, cls.name, definition=cls)
        methods = [
            v.definition for v in cls.members.values() if v.definition is not None and v.definition.parent is cls
        ]
        methods = [d for d in methods if id(d.node) not in interpreter.seen or d.node.name == "__init__"]  # type: ignore[union-attr]
        methods.sort(key=lambda d: d.node.name != "__init__")  # type: ignore[union-attr]
        out = []
        for definition in methods:
            name = definition.node.name  # type: ignore[union-attr]
            if id(definition.node) in interpreter.seen and name != "__init__":
                continue
            if name != "__init__" and not cls.module.methods.get(definition.node, set()) & TRAINS:
                continue
            out.append(interpreter.entry(definition, owner))
        return out
