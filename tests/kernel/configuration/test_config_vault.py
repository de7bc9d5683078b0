"""Location of a vault and its state: `--vault`, `LITHOS_VAULT`, `storage.vault` (docs/spec/vault.md §1)."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from lithos.app.options import parse_arguments
from lithos.kernel.configuration.load import load_config
from lithos.kernel.settings import StorageConfig
from lithos.server.command.session import check_places
from lithos.server.settings import ServerConfig


def state_of(vault: Path, home: Path) -> Path:
    digest = hashlib.sha256(os.fsencode(os.path.realpath(vault))).hexdigest()[:8]
    return home / "lithos" / f"{vault.name}-{digest}"


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


def test_state_of_a_vault_is_stored_in_data_home(tmp_path: Path, vault: Path) -> None:
    environment = {"XDG_DATA_HOME": str(tmp_path / "share"), "LITHOS_VAULT": str(vault)}
    storage = load_config(environment=environment).config.of(StorageConfig)
    assert (storage.vault, storage.notes_folder) == (vault, vault)
    assert storage.data_dir == state_of(vault, tmp_path / "share")
    problems: list[str] = []
    usable = load_config(environment=environment, report=problems.extend)
    assert (usable.config.of(StorageConfig), problems) == (storage, [])


def test_specified_data_directory_contains_the_vault_state(tmp_path: Path, vault: Path) -> None:
    environment = {"LITHOS_VAULT": str(vault)}
    assert (
        load_config(data_dir=tmp_path, environment=environment).config.of(StorageConfig).data_dir == tmp_path
    )
    (tmp_path / "config.yaml").write_text(f"storage: {{vault: {vault}}}\n")
    found = load_config(data_dir=tmp_path, environment={}).config.of(StorageConfig)
    assert (found.vault, found.data_dir) == (vault, tmp_path)


def test_configuration_of_a_vault_is_in_its_data_directory(tmp_path: Path, vault: Path) -> None:
    state = state_of(vault, tmp_path)
    state.mkdir(parents=True)
    (state / "config.yaml").write_text("server: {port: 9000}\n")
    environment = {"XDG_DATA_HOME": str(tmp_path)}
    loaded = load_config(environment=environment, overrides={"storage.vault": vault})
    assert loaded.config.of(ServerConfig).port == 9000
    assert loaded.config.of(StorageConfig).data_dir == state


def test_configuration_file_may_name_the_vault(tmp_path: Path, vault: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(f"storage: {{vault: {vault}}}\n")
    environment = {"XDG_DATA_HOME": str(tmp_path / "share")}
    storage = load_config(config_path=path, environment=environment).config.of(StorageConfig)
    assert storage.data_dir == state_of(vault, tmp_path / "share")


def test_relative_data_home_is_ignored_and_vault_path_made_absolute(
    vault: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(vault.parent)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    environment = {"XDG_DATA_HOME": "share", "LITHOS_VAULT": "notes"}
    storage = load_config(environment=environment).config.of(StorageConfig)
    assert storage.vault == vault
    assert storage.data_dir == state_of(vault, tmp_path / "home" / ".local" / "share")


@pytest.mark.parametrize("order", [["--vault", "v", "stats"], ["stats", "--vault", "v"]])
def test_vault_option_is_accepted_before_and_after_the_command(order: list[str]) -> None:
    assert parse_arguments(order).typed["vault"] == Path("v")


def test_vault_as_data_directory_is_refused(tmp_path: Path, vault: Path) -> None:
    """Behaviour 249."""
    (vault / "a.md").touch()
    assert f"--vault {vault}" in str(check_places(StorageConfig(data_dir=vault)))
    (vault / "knowledge").mkdir()
    assert check_places(StorageConfig(data_dir=vault)) is None
    assert check_places(StorageConfig(data_dir=tmp_path / "new")) is None
    assert check_places(StorageConfig(data_dir=tmp_path / "new", vault=vault)) is None
    for inside in (vault, vault / "state"):
        assert "inside" in str(check_places(StorageConfig(data_dir=inside, vault=vault)))
    gone = StorageConfig(data_dir=tmp_path / "new", vault=tmp_path / "gone")
    assert "does not exist" in str(check_places(gone))
    assert check_places(gone, makes_folder=True) is None
