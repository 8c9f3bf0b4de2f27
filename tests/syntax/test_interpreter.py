"""What a program does, in order, across functions, classes and files of a project."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from osler.syntax.project import Project
from osler.syntax.trace import Branch, Event, Inlined, Region, Trace
from osler.syntax.values import CONSTANT, INSTANCE, Value, alternatives, same, slice_back


def traces(tmp_path: Path, **files: str) -> list[Trace]:
    """The traces of `main.py`; the other files lie beside it."""
    for name, text in files.items():
        path = tmp_path / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    project = Project(lambda path: path.read_text())
    module = project.open(tmp_path / "main.py")
    assert module is not None
    return project.traces(module)


def script(tmp_path: Path, text: str, **files: str) -> Trace:
    return traces(tmp_path, main=text, **files)[0]


def one(trace: Trace, name: str) -> Event:
    (event,) = [e for e in trace.events() if e.name == name]
    return event


def names(value: Value) -> set[str]:
    return {v.name for v in slice_back(value)}


def test_aliases_end_at_the_library(tmp_path: Path) -> None:
    trace = script(
        tmp_path,
        """
        import torch.nn.functional as F
        from torch import optim as o, nn
        from torch.nn import CrossEntropyLoss as Loss
        a = F.softmax(1)
        b = o.SGD([], lr=1.0)
        c = nn.Linear(1, 2)
        d = Loss()
        """,
    )
    assert [e.name for e in trace.events()] == [
        "torch.nn.functional.softmax",
        "torch.optim.SGD",
        "torch.nn.Linear",
        "torch.nn.CrossEntropyLoss",
    ]


def test_a_function_of_another_file_is_gone_into(tmp_path: Path) -> None:
    trace = script(
        tmp_path,
        """
        from torch.optim import SGD
        from lib.engine import epoch as run
        optimizer = SGD([])
        for _ in range(3):
            run(optimizer)
        """,
        lib__engine="def epoch(opt):\n    opt.zero_grad()\n    opt.step()\n",
    )
    step = one(trace, ".step")
    assert step.site.file.endswith("engine.py") and step.site.line == 3
    assert step.receiver is not None and (step.receiver.kind, step.receiver.name) == (INSTANCE, "torch.optim.SGD")
    assert step.receiver is one(trace, ".zero_grad").receiver
    assert step.loop is not None and step.loop.site.line == 5
    assert [f.definition.name for f in step.functions() if f.definition] == ["epoch"]


def test_an_object_keeps_what_its_methods_put_into_it(tmp_path: Path) -> None:
    trace = script(
        tmp_path,
        """
        import torch
        class Trainer:
            def __init__(self, optimizer):
                self.optimizer = optimizer
            def step(self):
                self.optimizer.step()
        trainer = Trainer(torch.optim.Adam([]))
        trainer.step()
        """,
    )
    inner = next(e for e in trace.events() if e.name == ".step")
    assert inner.receiver is not None and inner.receiver.name == "torch.optim.Adam"


def test_calling_a_model_goes_through_forward(tmp_path: Path) -> None:
    trace = script(
        tmp_path,
        """
        import torch
        from torch import nn
        class Base(nn.Module):
            def forward(self, x):
                return torch.softmax(self.head(x), 1)
        class Net(Base):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(1, 2)
        net = Net().to("cuda")
        loss = nn.CrossEntropyLoss()(net(1), 2)
        """,
    )
    loss = [
        e for e in trace.events() if e.name == "()" and e.receiver and e.receiver.name == "torch.nn.CrossEntropyLoss"
    ]
    argument = loss[0].argument(0)
    assert argument is not None and argument.name == "torch.softmax"


def test_branches_are_joined(tmp_path: Path) -> None:
    trace = script(
        tmp_path,
        """
        import torch, sys
        if sys.argv:
            o = torch.optim.SGD([])
        else:
            o = torch.optim.Adam([])
        o.step()
        """,
    )
    receiver = one(trace, ".step").receiver
    assert receiver is not None
    assert {v.name for v in alternatives(receiver)} == {"torch.optim.SGD", "torch.optim.Adam"}


def test_what_follows_an_early_continue_is_conditional(tmp_path: Path) -> None:
    trace = script(
        tmp_path,
        """
        for i in range(9):
            loss.backward()
            if i % 4:
                continue
            opt.step()
        """,
    )
    loop = trace.loops()[0]
    assert one(trace, ".backward").branches(loop) == []
    assert len(one(trace, ".step").branches(loop)) == 1


def test_a_raise_is_no_condition(tmp_path: Path) -> None:
    trace = script(tmp_path, "for i in x:\n    if bad(i):\n        raise ValueError\n    opt.step()\n")
    assert one(trace, ".step").branches() == []


def test_a_loop_carries_its_values(tmp_path: Path) -> None:
    trace = script(
        tmp_path,
        """
        total = 0
        for x in data:
            loss = criterion(x)
            total += loss
        total.backward()
        """,
    )
    added, backward = one(trace, "+="), one(trace, ".backward")
    assert backward.receiver is not None
    assert same(slice_back(backward.receiver), [added.result])
    assert added.receiver is not None and same(slice_back(added.receiver), [added.result])


def test_regions_and_decorators(tmp_path: Path) -> None:
    trace = script(
        tmp_path,
        """
        import torch
        @torch.inference_mode()
        def evaluate(model):
            with torch.autocast("cuda"):
                return model(1)
        evaluate(net)
        """,
    )
    call = one(trace, "()")
    assert [r.context.name for r in call.regions() if r.context] == ["torch.autocast", "torch.inference_mode"]


def test_closures_see_what_is_assigned_later(tmp_path: Path) -> None:
    trace = script(
        tmp_path,
        """
        import torch
        def main():
            def closure():
                opt.zero_grad()
            opt = torch.optim.LBFGS([])
            closure()
        if __name__ == "__main__":
            main()
        """,
    )
    receiver = one(trace, ".zero_grad").receiver
    assert receiver is not None and receiver.name == "torch.optim.LBFGS"


def test_unpacking_keeps_apart(tmp_path: Path) -> None:
    trace = script(
        tmp_path,
        """
        from sklearn.model_selection import train_test_split
        def load():
            a, b = train_test_split(x)
            return a, b
        train, test = load()
        model.fit(train)
        model.score(test)
        """,
    )
    fitted, scored = one(trace, ".fit").argument(0), one(trace, ".score").argument(0)
    assert fitted is not None and scored is not None
    assert (fitted.name, scored.name) == ("[0]", "[1]")
    assert fitted.sources[0] is scored.sources[0]


def test_what_is_put_into_a_frame_is_found(tmp_path: Path) -> None:
    trace = script(tmp_path, "df = load()\ndf['a'] = scaler.fit_transform(df[['a']])\nmodel.fit(df)\n")
    argument = one(trace, ".fit").argument(0)
    assert argument is not None and ".fit_transform" in names(argument)


def test_entries_are_what_nobody_calls(tmp_path: Path) -> None:
    found = traces(
        tmp_path,
        main="""
        class Trainer:
            def __init__(self, model, lr=0.1):
                self.lr = lr
            def epoch(self):
                self.loss().backward()
            def loss(self):
                return self.criterion(self.lr)
            def name(self):
                return 1
        def used(x):
            x.backward()
        used(1)
        """,
    )
    assert [(t.kind, t.definition.name if t.definition else "") for t in found] == [
        ("script", ""),
        ("entry", "Trainer.__init__"),
        ("entry", "Trainer.epoch"),
    ]
    backward = one(found[2], ".backward")
    assert backward.receiver is not None
    # An entry's arguments are unknown, whatever their defaults.
    assert all(v.kind != CONSTANT for v in slice_back(backward.receiver))


def test_recursion_and_cycles_of_imports_end(tmp_path: Path) -> None:
    trace = script(
        tmp_path,
        "from other import g\ndef f(n):\n    opt.step()\n    return f(n - 1)\nf(3)\ng()\n",
        other="from main import f\ndef g():\n    f(1)\n",
    )
    assert len([e for e in trace.events() if e.name == ".step"]) >= 1


def test_packages_and_relative_imports(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("from .sub import step\n")
    (tmp_path / "pkg" / "sub.py").write_text("def step(o):\n    o.step()\n")
    (tmp_path / "pkg" / "train.py").write_text(
        "from . import step\nfrom .sub import step as again\nstep(o)\nagain(o)\n"
    )
    project = Project(lambda path: path.read_text())
    module = project.open(tmp_path / "pkg" / "train.py")
    assert module is not None and module.name == "pkg.train"
    events = [e.name for e in project.traces(module)[0].events()]
    assert events == ["step", ".step", "step", ".step"]
    assert {Path(p).name for p in project.used[module.path]} == {"__init__.py", "sub.py"}


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    yield from g()\nfor x in f(): pass\n",
        "async def f():\n    async with a as b:\n        await b.step()\n",
        "match x:\n    case {'a': y, **rest}:\n        y.step()\n    case [z, *_]:\n        z.step()\n",
        "a, *b, c = f()\n(d, [e, g]) = f()\nx[0], y.z = f()\n",
        "try:\n    a()\nexcept (E, F) as e:\n    b(e)\nelse:\n    c()\nfinally:\n    d()\n",
        "x = [i for i in y if i] + [*z] + list({k: v for k, v in m.items()})\n",
        "lambda *a, k=1, **kw: a\nf(*a, **{'b': 1})\nglobal g\ng = 1\n",
        "class A(metaclass=M, x=1):\n    y: int = 3\n    z: int\n    @property\n    def p(self): return self.y\nA().p\n",
        "while True:\n    if (n := f()):\n        break\ndel n\nassert n, n\n",
        "x = f'{a.step():>{w}}' if c else not d\ny = a < b <= c\nz = a[1:2, ..., None]\n",
    ],
)
def test_every_statement_of_python(tmp_path: Path, text: str) -> None:
    ast.parse(text)
    assert script(tmp_path, text).complete


def test_events_know_what_they_stand_in(tmp_path: Path) -> None:
    trace = script(tmp_path, "with a():\n    if b:\n        for c in d:\n            e.step()\n")
    above = list(one(trace, ".step").above())
    assert [type(n).__name__ for n in above] == ["Loop", "Branch", "Region"]
    assert isinstance(above[1], Branch) and isinstance(above[2], Region) and not isinstance(above[0], Inlined)


def test_what_is_followed_does_not_depend_on_what_was_read_before(tmp_path: Path) -> None:
    (tmp_path / "deep.py").write_text("def work(o):\n    o.step()\nif __name__ == '__main__':\n    work(opt)\n")
    (tmp_path / "main.py").write_text(
        "from deep import work\ndef a(o): b(o)\ndef b(o): c(o)\ndef c(o): d(o)\ndef d(o): work(o)\na(opt)\n"
    )
    seen = []
    for first in ("main.py", "deep.py"):
        project = Project(lambda path: path.read_text())
        one_read = project.open(tmp_path / first)
        assert one_read is not None
        project.traces(one_read)
        module = project.open(tmp_path / "main.py")
        assert module is not None
        seen.append([e.name for e in project.traces(module)[0].events()])
    assert seen[0] == seen[1]
    assert ".step" in seen[0]


def test_what_an_imported_module_does_is_gone_through_when_it_is_needed(tmp_path: Path) -> None:
    """Its names in whatever order, by whatever statement; what nobody asks for is not looked at."""
    files = {
        "main.py": """
        from parts import net, LAYERS, either, Derived, late
        a, b, c, d, e = net, LAYERS, either, Derived().run(), late
        """,
        "parts.py": """
        import thing
        from other import Base
        net = thing.Net()
        LAYERS = []
        LAYERS.append(thing.Linear())
        if thing.fast():
            either = thing.Fast()
        else:
            either = thing.Slow()
        class Derived(Base):
            pass
        late = thing.first()
        late = thing.second(late)
        if __name__ == "__main__":
            net = thing.Never()
        unused = thing.Unused()
        """,
        "other.py": """
        import thing
        class Base:
            def run(self):
                return thing.result()
        """,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(textwrap.dedent(text))
    project = Project(lambda path: path.read_text())
    main, parts = project.open(tmp_path / "main.py"), project.open(tmp_path / "parts.py")
    assert main is not None and parts is not None
    project.traces(main)
    env = main.env
    assert (env["a"].kind, env["a"].name) == (INSTANCE, "thing.Net")
    assert [v.name for v in env["b"].items] == ["thing.Linear"]
    assert {v.name for v in alternatives(env["c"])} == {"thing.Fast", "thing.Slow"}
    assert (env["d"].name, env["e"].name) == ("thing.result", "thing.second")
    assert list(parts.pending) == ["unused"]


def test_what_an_importer_sees_does_not_depend_on_what_was_read_before(tmp_path: Path) -> None:
    files = {
        "main.py": "from parts import make\nnet = make()\n",
        "parts.py": "import thing\nholder = thing.Holder()\ndef make():\n    return holder.net\nholder.net = thing.Net()\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    told = []
    for first in (False, True):
        project = Project(lambda path: path.read_text())
        main, parts = (project.open(tmp_path / name) for name in files)
        assert main is not None and parts is not None
        if first:
            project.traces(parts)
        project.traces(main)
        told.append([v.name for v in alternatives(main.env["net"])])
    assert told == [["thing.Net"], ["thing.Net"]]


def test_libraries_that_the_rules_know_are_known_by_name_in_their_own_sources_too(tmp_path: Path) -> None:
    folder = tmp_path / "sklearn"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "pipeline.py").write_text("class Pipeline:\n    def fit(self, X):\n        return X.inside()\n")
    (folder / "use.py").write_text("from .pipeline import Pipeline\nPipeline().fit(1)\n")
    project = Project(lambda path: path.read_text())
    module = project.open(folder / "use.py")
    assert module is not None
    assert [e.name for e in project.traces(module)[0].events()] == ["sklearn.pipeline.Pipeline", ".fit"]


def test_a_name_first_used_under_a_condition_is_the_same_afterwards(tmp_path: Path) -> None:
    """Of an imported module too, whose names are looked up within the arms of its own branches."""
    (tmp_path / "parts.py").write_text(
        "import thing\n"
        "from other import first\n"
        "logger = thing.Logger()\n"
        "try:\n"
        "    version = thing.version(logger)\n"
        "except thing.Error:\n"
        "    version = thing.none(logger)\n"
        "if thing.fast(version):\n"
        "    mode = first(logger)\n"
        "else:\n"
        "    mode = thing.slow(logger)\n"
        "after = logger\n"
    )
    (tmp_path / "other.py").write_text("import thing\ndef first(log):\n    return thing.First(log)\n")
    (tmp_path / "main.py").write_text(
        "import thing\n"
        "from parts import mode, logger, after, version\n"
        "if thing.ask():\n"
        "    a = logger\n"
        "b, c, d, e = mode, logger, after, version\n"
    )
    project = Project(lambda path: path.read_text())
    main = project.open(tmp_path / "main.py")
    assert main is not None
    project.traces(main)
    env = main.env
    assert {v.name for v in alternatives(env["b"])} == {"thing.First", "thing.slow"}
    assert env["c"] is env["d"] is env["a"] and (env["c"].kind, env["c"].name) == (INSTANCE, "thing.Logger")
    assert env["e"].name == "thing.version"


def test_installed_packages_know_only_themselves_also_from_their_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "site-packages"
    for name, text in {
        "one": "import two\ntwo.act()\n",
        "two": "import thing\ndef act():\n    thing.inside()\n",
    }.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(text)
    monkeypatch.chdir(folder)
    for path in (Path("one/__init__.py"), folder / "one" / "__init__.py"):
        project = Project(lambda path: path.read_text())
        module = project.open(path)
        assert module is not None
        assert [e.name for e in project.traces(module)[0].events()] == ["two.act"]


def test_modules_that_import_each_other_come_to_an_end(tmp_path: Path) -> None:
    files = {
        "a.py": "import numpy as np\nfrom b import *\nfrom b import shared\nx = np.zeros(3)\n",
        "b.py": "from a import *\nfrom a import shared\ndef helper(z):\n    return np.ones(z)\n",
        "main.py": "from a import helper, shared, np\nv = helper(3)\nw = np.zeros(1)\nu = shared\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    project = Project(lambda path: path.read_text())
    told = {}
    for name in ("main.py", "a.py"):
        module = project.open(tmp_path / name)
        assert module is not None
        (trace, *_) = project.traces(module)
        assert trace.complete
        told[name] = [e.name for e in trace.events()]
    assert told == {"main.py": ["helper", "numpy.ones", "numpy.zeros"], "a.py": ["numpy.zeros"]}
