"""Where settings come from, and what is said about those that make no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from osler.app import config
from osler.app.errors import UserError
from osler.core.settings import Settings, options


def write(folder: Path, text: str, name: str = "osler.toml") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_without_a_file_everything_is_default(tmp_path: Path) -> None:
    loaded = config.load(tmp_path)
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default"}
    assert loaded.file is None
    assert not loaded.budget_none


def test_file_and_command_line_in_order_with_their_origins(tmp_path: Path) -> None:
    write(tmp_path, "# comment\nfail-on = 'error'\n[gradients]\nwindow = 32\nvanishing_ratio = 1e-6\n")
    loaded = config.load(tmp_path, overrides=["gradients.window=16", "fail_on=warning"], budget="5%")
    assert loaded.settings.gradients.window == 16
    assert loaded.settings.gradients.vanishing_ratio == 1e-6
    assert loaded.settings.fail_on == "warning"
    assert loaded.settings.budget.fraction == pytest.approx(0.05)
    assert loaded.origins["gradients.window"] == "--set"
    assert loaded.origins["gradients.vanishing_ratio"] == "osler.toml:5"
    assert loaded.origins["budget.fraction"] == "--budget"
    assert loaded.origins["gradients.update_low"] == "default"


def test_pyproject_is_found_upward_and_one_without_osler_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, "[tool.osler.gradients]\nwindow = 20\n[tool.osler]\nfail-on = 'info'\n", "pyproject.toml")
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    write(tmp_path / "a", "[project]\nname = 'osler-user'\n", "pyproject.toml")
    loaded = config.load(inner)
    assert loaded.file == tmp_path / "pyproject.toml"
    assert loaded.settings.gradients.window == 20
    assert loaded.origins["gradients.window"].endswith("pyproject.toml:2")
    write(inner, "[gradients]\nwindow = 24\n")
    assert config.load(inner).settings.gradients.window == 24


def test_a_broken_pyproject_of_somebody_else_stops_nothing(tmp_path: Path) -> None:
    write(tmp_path, "[project\nname = 'osler-user'", "pyproject.toml")
    assert config.load(tmp_path).file is None


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "[gradients]\nvanishing_ration = 1\n",
            ["osler.toml:2", "vanishing_ration", "closest: gradients.vanishing_ratio"],
        ),
        ("[gradient]\nwindow = 64\n", ["osler.toml:1", "gradient", "closest: gradients"]),
        ("[numbers]\nwindow = 64\n", ["osler.toml:2", "numbers.window", "closest: gradients.window"]),
        ("[gradients]\nwindow = '64'\n", ["osler.toml:2", "gradients.window must be a whole number", '"64"']),
        ("[gradients]\nwindow = 2.5\n", ["gradients.window must be a whole number", "2.5"]),
        ("[gradients]\nwindow = true\n", ["gradients.window must be a whole number", "true"]),
        ("[gradients]\nwindow = 4\n", ["osler.toml:2", "gradients.window = 4 must be at least 8"]),
        ("[budget]\nfraction = 3\n", ["budget.fraction = 3 must be greater than 0 and at most 1"]),
        ("[gradients]\nupdate_high = nan\n", ["gradients.update_high = nan must be greater than 0"]),
        ("[dump]\nenabled = 'yes'\n", ["dump.enabled must be true or false", '"yes"']),
        ("gradients = 3\n", ["osler.toml:1", "gradients must be a table of settings, not 3"]),
        ("ignore = 'dead-relu'\n", ["osler.toml:1", "ignore must be a list of texts"]),
        ("ignore = ['dead-rellu']\n", ["osler.toml:1", "dead-rellu", "closest: dead-relu"]),
        ("[per-file-ignores]\n'*.py' = ['dead-rellu']\n", ["per_file_ignores", "closest: dead-relu"]),
        ("per-file-ignores = {'*.py' = 'dead-relu'}\n", ["per_file_ignores must be a table of lists of texts"]),
        ("fail_on = 'fatal'\n", ["osler.toml:1", "'fatal' must be info, warning or error"]),
        ("fail-on = 'error'\nfail_on = 'error'\n", ["fail_on is given twice"]),
        ("[gradients\n", ["osler.toml is not valid TOML", "line 1"]),
        ("[gradients]\nupdate_low = 0.5\n", ["gradients.update_low = 0.5 (osler.toml:2) must be below", "(default)"]),
        ("a = 1\nb = 2\n", ["no setting is called a", "(and 1 more)"]),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(tmp_path: Path, text: str, parts: list[str]) -> None:
    write(tmp_path, text)
    with pytest.raises(UserError) as caught:
        config.load(tmp_path)
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"missing\.toml cannot be read: No such file"):
        config.load(tmp_path, tmp_path / "missing.toml")
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9\n")
    with pytest.raises(UserError, match=r"latin\.toml is not UTF-8 text \(byte 5\)"):
        config.load(tmp_path, tmp_path / "latin.toml")
    plain = write(tmp_path, "[project]\n", "pyproject.toml")
    with pytest.raises(UserError, match=r"has no \[tool\.osler\] table"):
        config.load(tmp_path, plain)
    with pytest.raises(UserError, match="Is a directory"):
        config.load(tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("gradients.window", "must be KEY=VALUE"),
        ("=3", "must be KEY=VALUE"),
        ("gradients.window=", "the value is not TOML"),
        ("gradients.window=[", "the value is not TOML"),
        ("gradients.window=32\nfail_on='error'", "the value is not TOML"),
        ("gradients.window=many", "--set: gradients.window must be a whole number"),
        ("gradients.windw=32", "--set: no setting is called gradients.windw; closest: gradients.window"),
        ("ignore=['no-such-thing']", "--set: ignore: no rule is called 'no-such-thing'"),
    ],
)
def test_what_is_wrong_with_an_override(tmp_path: Path, text: str, part: str) -> None:
    with pytest.raises(UserError) as caught:
        config.load(tmp_path, overrides=[text])
    assert part in str(caught.value)


def test_override_values_follow_toml(tmp_path: Path) -> None:
    loaded = config.load(
        tmp_path,
        overrides=[
            "dump.enabled=false",
            "dump.max-mb = 1_000",
            'ignore=["dead-relu"]',
            "gradients.vanishing_ratio=1e-6",
        ],
    )
    assert loaded.settings.dump.enabled is False
    assert loaded.settings.dump.max_mb == 1000
    assert loaded.settings.ignore == ["dead-relu"]
    assert loaded.settings.gradients.vanishing_ratio == 1e-6


def test_select_replaces_and_ignore_adds(tmp_path: Path) -> None:
    write(tmp_path, "select = ['dead-relu']\nignore = ['update-ratio']\n")
    loaded = config.load(
        tmp_path, select=["exploding-gradient"], ignore=["dead-relu,update-ratio", "activation-collapse"]
    )
    assert loaded.settings.select == ["exploding-gradient"]
    assert loaded.settings.ignore == ["update-ratio", "dead-relu", "activation-collapse"]
    assert loaded.origins["select"] == "--select"
    assert loaded.origins["ignore"] == "osler.toml:2, --ignore"
    with pytest.raises(UserError, match="--select: no rule is called 'explodin-gradient'; closest: exploding"):
        config.load(tmp_path, select=["explodin-gradient"])


@pytest.mark.parametrize(
    ("text", "value"), [("3%", 0.03), ("0.5 %", 0.005), ("0.03", 0.03), ("none", None), ("None", None)]
)
def test_budget(text: str, value: float | None) -> None:
    assert config.parse_budget(text) == (None if value is None else pytest.approx(value))


@pytest.mark.parametrize("text", ["", "3", "0", "-1%", "nan", "inf", "lots", "%"])
def test_budget_that_is_none(text: str) -> None:
    with pytest.raises(UserError, match="is no share of the step's time"):
        config.parse_budget(text)


def test_no_budget_is_not_a_setting(tmp_path: Path) -> None:
    loaded = config.load(tmp_path, budget="none")
    assert loaded.budget_none
    assert loaded.settings.budget == Settings().budget


def test_bounds_and_choices_hold_the_defaults() -> None:
    for option in options():
        if isinstance(option.default, (int, float)) and not isinstance(option.default, bool):
            assert option.bounds.holds(option.default), option.name
        if option.choices:
            assert option.default in option.choices, option.name


def test_rows_cover_the_tree(tmp_path: Path) -> None:
    write(tmp_path, "[records]\nkeep_runs = 7\n")
    table = {name: (value, origin) for name, value, origin, _ in config.rows(config.load(tmp_path))}
    assert table["records.keep_runs"] == (7, "osler.toml:2")
    assert list(table) == [o.name for o in options()]
