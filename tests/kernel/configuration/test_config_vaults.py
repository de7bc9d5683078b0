"""Names of vaults, and the configuration of each vault (docs/spec/cli-config.md §3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lithos.history.settings import HistoryConfig
from lithos.kernel.configuration.load import load_config, state_of_vault
from lithos.kernel.configuration.sources import ConfigError
from lithos.kernel.configuration.vaults import ConfiguredVaults, load_vaults
from lithos.search.settings import SearchConfig
from lithos.server.settings import ServerConfig


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working folder with two vaults."""
    for name in ("work", "notes"):
        (tmp_path / "roots" / name).mkdir(parents=True)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def written(text: str, path: str = "c.yaml") -> Path:
    file = Path(path)
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file.absolute()


TWO = "vaults:\n  work: {path: ../roots/work}\n  home: {path: ../roots/notes}\n"


def load(
    *typed: str, config: Path | None = None, environment: Mapping[str, str] | None = None, **more: Any
) -> ConfiguredVaults:
    return load_vaults(typed=typed, config_path=config, environment=environment or {}, **more)


def names(vaults: ConfiguredVaults) -> list[str]:
    return [vault.name for vault in vaults.configured]


def test_configuration_without_vault_names_has_one_vault(place: Path) -> None:
    assert (
        load()
        == load("../roots/work")
        == load("work")
        == load(config=written("server: {}\n"))
        == ConfiguredVaults()
    )
    assert load(config=written("vaults: {}\n")) == ConfiguredVaults()
    assert load(data_dir=place) == ConfiguredVaults()
    # A broken file in another data directory is ignored.
    written("a: [", "data/config.yaml")
    Path("work").mkdir()
    assert load("work") == load() == ConfiguredVaults()


def test_vaults_are_read_from_command_line(place: Path) -> None:
    found = load("work=../roots/work", f"home={place}/roots/notes")
    assert names(found) == ["work", "home"]
    assert (found.default, found.chosen, found.is_typed) == ("work", (), True)
    work, home = found.configured
    assert (work.root, home.root) == (place / "roots" / "work", place / "roots" / "notes")
    assert work.data_dir == state_of_vault(work.root, {})
    assert work.loaded.sources["storage.vault"] == "the command line"


def test_home_directory_is_expanded_after_vault_name(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(place))
    assert load("work=~/roots/work").configured[0].root == place / "roots" / "work"


def test_vaults_are_read_from_configuration_file(place: Path) -> None:
    config = written(f"{TWO}default_vault: home\n")
    found = load(config=config)
    assert (names(found), found.default, found.source) == (["work", "home"], "home", config)
    assert load("work", config=config).chosen == ("work",)
    assert load("../roots/notes", "work", "work", config=config).chosen == ("home", "work")
    every = load("*", config=config)
    assert (every.chosen, every.is_every) == (("work", "home"), True)


def test_vaults_are_read_from_file_in_default_data_directory(place: Path) -> None:
    file = written(TWO, "data/config.yaml")
    assert names(load()) == ["work", "home"]
    assert load("home").chosen == ("home",)
    assert load("../roots/work") == ConfiguredVaults()  # this is a path to a folder, as for a single vault
    assert names(load(environment={"LITHOS_DATA_DIR": str(file.parent)})) == ["work", "home"]
    assert load(environment={"LITHOS_VAULT": str(place)}) == ConfiguredVaults()
    found = load_config(data_dir=file.parent, environment={})
    assert any("no effect here" in warning for warning in found.warnings)


def test_vault_on_command_line_uses_settings_of_its_name(place: Path) -> None:
    config = written(
        "search: {max_results: 7}\nvaults:\n  work: {path: ../roots/work, data_dir: ../d, history: {enabled: "
        "false}}\n  home: {path: ../roots/notes}\n"
    )
    (work,) = load("work=../roots/work", config=config).configured
    assert work.loaded.config.of(HistoryConfig).enabled is False
    assert (work.loaded.config.of(SearchConfig).max_results, work.data_dir) == (7, place / "d")
    (elsewhere,) = load(f"work={place}", config=config).configured
    assert elsewhere.data_dir == state_of_vault(place, {})


def test_sections_of_a_named_vault_take_precedence(place: Path) -> None:
    config = written(
        "search: {max_results: 7, chunk_size: 300}\nvaults:\n"
        "  work: {path: ../roots/work, search: {max_results: 9}}\n  home: {path: ../roots/notes}\n"
    )
    environment = {"LITHOS_SEARCH__MAX_RESULTS": "8", "LITHOS_VAULT": "/x", "LITHOS_DATA_DIR": "/y"}
    work, home = load(config=config, environment=environment).configured
    assert (
        work.loaded.config.of(SearchConfig).max_results,
        home.loaded.config.of(SearchConfig).max_results,
    ) == (9, 8)
    assert (
        work.loaded.config.of(SearchConfig).chunk_size
        == home.loaded.config.of(SearchConfig).chunk_size
        == 300
    )
    assert home.root == place / "roots" / "notes"
    assert work.loaded.sources["search.max_results"] == f"file {config} (vaults.work)"


def test_vaults_read_their_own_files_without_a_common_file(place: Path) -> None:
    environment = {"XDG_DATA_HOME": str(place / "share")}
    for name, results in (("work", 11), ("notes", 12)):
        state = state_of_vault(place / "roots" / name, environment)
        state.mkdir(parents=True)
        text = f"search: {{max_results: {results}}}\nserver: {{port: 90{results}}}\nvaults: {{a: 1}}\n"
        (state / "config.yaml").write_text(text)
    typed = ("work=../roots/work", "home=../roots/notes")
    work, home = load(*typed, environment=environment).configured
    assert [each.loaded.config.of(SearchConfig).max_results for each in (work, home)] == [11, 12]
    # All vaults have the same port.
    assert work.loaded.config.of(ServerConfig) == home.loaded.config.of(ServerConfig)
    assert work.loaded.config.of(ServerConfig).port == 9011
    assert any("server.port" in each and "is ignored" in each for each in home.loaded.warnings)
    assert any("no effect" in each for each in work.loaded.warnings)
    given = load(*typed, environment=environment, config=written("events: {}\n")).configured
    assert given[0].loaded.config.of(SearchConfig).max_results == 50


def test_server_and_retired_settings_of_vaults_are_ignored_with_warning() -> None:
    config = written(
        "server: {port: 9000}\nvaults:\n  work: {path: ../roots/work, server: {port: 1}, "
        "telemetry: {enabled: true}}\n"
    )
    (work,) = load(config=config, overrides={"server.host": "::1"}).configured
    server = work.loaded.config.of(ServerConfig)
    assert (server.port, server.host) == (9000, "::1")
    assert [each.split()[0] for each in work.loaded.warnings] == [
        "vaults.work.server.port", "telemetry",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "text", "told"),
    [
        (["a=x", "b"], None, "has no name"),
        (["b", "a=x"], None, "has no name"),
        (["a=x", "a=y"], None, "names 'a' twice"),
        (["a="], None, "names no folder"),
        (["x", "y"], None, "2 times without names"),
        (["*"], None, "none has a name here"),
        ([], "vaults: [a]\n", "not a mapping of names"),
        ([], "vaults: {a: ~/a}\n", "is not a mapping"),
        ([], "vaults: {a: {data_dir: x}}\n", "has no path"),
        ([], "vaults: {a: {path: 3}}\n", "is not a path"),
        ([], "vaults: {A: {path: x}}\n", "cannot name a vault"),
        ([], f"vaults: {{{'a' * 33}: {{path: x}}}}\n", "cannot name a vault"),
        ([], "vaults: {1: {path: x}}\n", "put in quotes"),
        ([], "vaults: {a: {path: x, serch: {}}}\n", "did you mean search?"),
        ([], "vaults: {a: {path: x, search: {max_result: 1}}}\n", "did you mean search.max_results?"),
        ([], "vaults: {a: {path: x, search: 3}}\n", "is a section"),
        ([], "vaults: {a: {path: x, storage: {vault: y}}}\n", "has vaults.a.path"),
        ([], "vaults: {a: {path: x, storage: {data_dir: y}}}\n", "has vaults.a.data_dir"),
        ([], "vaults: {a: {path: x, search: {max_results: -1}}}\n", "vault a: search.max_results: -1"),
        ([], "vaults:\n  a: {path: x}\n  a: {path: y}\n", "names 'a' twice"),
        ([], "storage: {vault: z}\nvaults: {a: {path: x}}\n", "storage.vault"),
        ([], "storage: {data_dir: z}\nvaults: {a: {path: x}}\n", "storage.data_dir"),
        ([], "default_vault: a\n", "the file has no vaults"),
        ([], "default_vault: b\nvaults: {a: {path: x}}\n", "not a configured vault (a)"),
        (["works"], TWO, "did you mean work?"),
        (["../roots"], TWO, "not a configured vault (work, home)"),
    ],
)
def test_contradictory_vaults_are_refused_with_a_reason(
    typed: Sequence[str], text: str | None, told: str
) -> None:
    config = None if text is None else written(text)
    with pytest.raises(ConfigError) as caught:
        load(*typed, config=config)
    message = str(caught.value)
    assert told in message
    assert ";" in message or ":" in message  # the message contains the remedy


def test_data_directory_option_is_refused_with_named_vaults(place: Path) -> None:
    for typed, config in ((["work=../roots/work"], None), ([], written(TWO))):
        with pytest.raises(ConfigError, match=r"--data-dir .* cannot be given with named vaults"):
            load(*typed, config=config, data_dir=place)


def test_ambiguous_vault_argument_is_refused(place: Path) -> None:
    Path("work=x").mkdir()
    with pytest.raises(ConfigError, match=r"write \./work=x for the folder"):
        load("work=x")
    assert load("./work=x") == ConfiguredVaults()
    Path("work").mkdir()
    with pytest.raises(ConfigError, match=r"write \./work for the folder"):
        load("work", config=written(TWO))
    Path("home").symlink_to(place / "roots" / "notes")  # both readings mean the same folder
    assert load("home", config=written(TWO)).chosen == ("home",)


def test_lenient_loading_collects_problems_by_vault() -> None:
    config = written("vaults:\n  a: {path: x, search: {max_results: -1}}\n  b: {path: y}\n")
    a, b = load(config=config, is_lenient=True).configured
    assert "search.max_results" in a.problems[0]
    assert (b.problems, a.loaded.config.of(SearchConfig).max_results) == ((), 50)
