from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from osler.cases.library import (
    CasebookError,
    casebook_root,
    find_markers,
    load_case,
    load_cases,
    load_healthy,
    scan,
    select,
)
from osler.cases.needs import missing

from .fakes import MARKED_LINE, TOML

Make = Callable[..., Path]


def test_cases_are_read_in_order(casebook: Path, make_case: Make) -> None:
    make_case("b-case")
    make_case("a-case")
    (casebook / "_shared").mkdir()
    (casebook / "notes.txt").write_text("not a case")
    cases = load_cases(casebook)
    assert [c.id for c in cases] == ["a-case", "b-case"]
    assert str(cases[0].marker) == f"repro.py:{MARKED_LINE}"
    assert (cases[0].rule, cases[0].cost_s, cases[0].needs) == ("log-of-zero", 1, [])


def test_a_case_folder_is_a_casebook_of_one(make_case: Make) -> None:
    assert [c.id for c in load_cases(make_case("a-case"))] == ["a-case"]


def test_the_casebook_is_part_of_the_package() -> None:
    root = casebook_root()
    assert (root / "_healthy").is_dir()
    assert (root.parent / "core" / "rule.py").is_file()


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(CasebookError, match="is no folder"):
        load_cases(tmp_path / "nowhere")


def test_marker_must_stand_once(make_case: Make) -> None:
    folder = make_case("a-case", repro="print(1)\n")
    with pytest.raises(CasebookError, match=r"exactly one line .* it stands nowhere"):
        load_case(folder)
    (folder / "faulty.py").write_text("a = 1\nb = 2  # fault-here: too late\n")
    assert str(load_case(folder).marker) == "faulty.py:2"
    (folder / "repro.py").write_text("import faulty  #fault-here\n")
    with pytest.raises(CasebookError, match=r"it stands on faulty.py:2, repro.py:1"):
        load_case(folder)


def test_markers_in_caches_do_not_count(make_case: Make) -> None:
    folder = make_case("a-case")
    (folder / ".osler").mkdir()
    (folder / ".osler" / "copy.py").write_text("x  # fault-here\n")
    assert len(find_markers(folder)) == 1


def test_id_is_the_name_of_the_folder(make_case: Make) -> None:
    folder = make_case("a-case", toml=TOML.format(id="another", exit_code=0, place="", also=""))
    with pytest.raises(CasebookError, match="id is 'another' but the folder is called 'a-case'"):
        load_case(folder)


def test_broken_folders_do_not_hide_the_others(casebook: Path, make_case: Make) -> None:
    make_case("good")
    make_case("no-toml", toml="[case\n")
    (make_case("no-script") / "repro.py").unlink()
    cases, broken = scan(casebook)
    assert [c.id for c in cases] == ["good"]
    assert broken["no-toml"][0].startswith("no-toml/case.toml: not TOML: ")
    assert "no-script: repro.py is missing" in broken["no-script"]
    with pytest.raises(CasebookError) as err:
        load_cases(casebook)
    assert len(err.value.lines) == 3  # the script that is gone took the marker with it


def test_select(casebook: Path, make_case: Make, make_healthy: Make) -> None:
    for id in ("half-cast", "half-sum", "clip"):
        make_case(id)
    make_healthy()
    cases, healthy = load_cases(casebook), load_healthy(casebook)

    def ids(*patterns: str) -> list[str]:
        chosen, quiet = select(cases, patterns, healthy)
        return [c.id for c in chosen] + [h.id for h in quiet]

    assert ids("clip") == ["clip"]
    assert ids("half-*") == ["half-cast", "half-sum"]
    assert ids("clip", "half-sum", "clip") == ["clip", "half-sum"]
    assert ids("log-of-zero") == ["clip", "half-cast", "half-sum"]
    assert ids("_healthy/fine") == ids("fine") == ["fine"]
    make_case("log-of-zero")
    cases = load_cases(casebook)
    assert ids("log-of-zero") == ["log-of-zero"]  # the case of that name, not every case of the rule
    with pytest.raises(CasebookError, match="called 'half-csat'; closest: half-cast"):
        ids("half-csat")


def test_healthy(casebook: Path, make_healthy: Make) -> None:
    assert load_healthy(casebook) == []
    folder = make_healthy()
    (script,) = load_healthy(casebook)
    assert (script.id, script.file.steps, script.folder) == ("fine", 10, folder)
    (folder / "fine.py").unlink()
    with pytest.raises(CasebookError, match=r"fine\.py is missing"):
        load_healthy(casebook)


@pytest.mark.parametrize(
    ("need", "why"),
    [
        ("pytest", ""),
        ("pytest>=1.0", ""),
        ("pytest<1000", ""),
        ("json", ""),
        ("pytest>=1000.1", "needs pytest>=1000.1, "),
        ("pytest<1", "needs pytest<1, "),
        ("no-such-package-here", "no-such-package-here is not installed"),
        ("what is this?", "cannot read the need"),
    ],
)
def test_needs(need: str, why: str) -> None:
    assert missing([need]).startswith(why)
    assert bool(missing([need])) is bool(why)
