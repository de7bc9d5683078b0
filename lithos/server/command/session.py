"""The setup of every command: the parsed invocation, the configuration, logging."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.configuration.load import LoadedConfig, LogSettings, load_config, load_log_settings
from lithos.kernel.configuration.sources import ConfigError
from lithos.kernel.configuration.vaults import ConfiguredVaults, NamedVault, load_vaults
from lithos.kernel.databases.lock import is_owned, read_owner
from lithos.kernel.databases.unserved_notes import find_own_notes
from lithos.kernel.databases.vault_roots import VaultsOverlap, check_vault_roots
from lithos.kernel.log import configure_logging, get_logger
from lithos.kernel.settings import StorageConfig
from lithos.server.command.declaring import Invocation
from lithos.server.command.streams import LossyStream
from lithos.server.settings import ServerConfig

#: Options of commands and the settings they stand for.
_SETTINGS = {
    "transport": "server.transport",
    "host": "server.host",
    "port": "server.port",
    "watch": "server.watch_files",
    "tools": "server.tools",
    "public_url": "server.public_url",
    "vault": "storage.vault",
    "lock": "storage.lock",
}
_NO_VAULT = "There is no folder {}. Name the folder of your notes with --vault."


class CommandFailed(Exception):
    """The command ends with `exit_code`; the message says what to do."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@contextmanager
def refusing(*kinds: type[Exception], exit_code: int = 1) -> Iterator[None]:
    """End the command with the words of an exception of these kinds."""
    try:
        yield
    except kinds as refusal:
        raise CommandFailed(str(refusal), exit_code) from refusal


@frozen
class CommandSession:
    """One command with its configuration."""

    invocation: Invocation
    config: Config
    #: Where each setting comes from, by its key, and what is wrong with those that were ignored.
    sources: Mapping[str, str] = {}
    warnings: tuple[str, ...] = ()
    #: All vaults that have names; `config` is that of the one which is meant (`default_vault`).
    named: ConfiguredVaults = ConfiguredVaults()
    #: The name of the vault of `config`; None if it has no name.
    default_vault: str | None = None

    @property
    def vaults(self) -> tuple[NamedVault, ...]:
        """The named vaults that the command is about: those that `--vault` names, else all.

        None where one vault without a name is served.
        """
        names = self.named.chosen or [vault.name for vault in self.named.configured]
        return tuple(map(self.named.named, names))

    def about(self, vault: NamedVault) -> CommandSession:
        """The same command for one of the named vaults."""
        loaded = vault.loaded
        return evolve(self, config=loaded.config, sources=loaded.sources, default_vault=vault.name)

    @property
    def typed(self) -> dict[str, Any]:
        """The options that were given explicitly."""
        return self.invocation.typed

    @property
    def as_json(self) -> bool:
        """Whether the answer is a JSON document."""
        return self.invocation.as_json

    @property
    def private(self) -> Path:
        """The folder for the data that Lithos keeps in addition to the notes."""
        return self.config.of(StorageConfig).data_dir / ".lithos"

    @property
    def public_url(self) -> str | None:
        """`server.public_url`, else that of the server that runs now. May block; raises `OSError`.

        It is that of the whole server, also where it serves several vaults.
        """
        lock = self.private / "lock"
        if self.config.of(ServerConfig).public_url is not None or not is_owned(lock):
            return self.config.of(ServerConfig).public_url
        owner = read_owner(lock)
        address = None if owner is None else owner.public_url
        return None if address is None else address.removesuffix(self.prefix)

    @property
    def prefix(self) -> str:
        """Below which path of a server of several vaults this one is; nothing where it has no name."""
        return "" if self.default_vault is None else f"/v/{self.default_vault}"

    def require_notes(self, way_out: str) -> None:
        """Raises `CommandFailed` unless the folder of the notes is there; `way_out` ends the message."""
        storage = self.config.of(StorageConfig)
        if storage.notes_folder.is_dir():
            return
        if storage.vault is not None:
            raise CommandFailed(_NO_VAULT.format(storage.vault))
        raise CommandFailed(
            f"There are no notes in {storage.data_dir}: the folder {storage.knowledge_subdir} is missing. "
            f"Name the folder of your notes with --vault or the data directory with --data-dir, {way_out}"
        )


def check_places(storage: StorageConfig, *, makes_folder: bool = False) -> str | None:
    """Return the problem with the named folders and its fix, or None if they can be used.

    `makes_folder`: the command creates the folder of the vault if it is missing.
    """
    vault, data = storage.vault, storage.data_dir
    if vault is None:
        # A directory that has served before lost its notes, which is another matter.
        if storage.notes_folder.exists():
            return None
        found = find_own_notes(data)
        if found is None:
            return None
        return (
            f"{data} holds notes of your own ({found}), but no folder {storage.knowledge_subdir}, so it is "
            f"not a data directory of Lithos. To serve these notes in place, use --vault {data}. To start "
            "with an empty data directory, use another --data-dir."
        )
    if not vault.is_dir() and not makes_folder:
        return _NO_VAULT.format(vault)
    real = os.path.realpath(data)
    if (real + os.sep).startswith(os.path.realpath(vault).rstrip(os.sep) + os.sep):
        return (
            f"The data directory {data} is inside of the vault {vault}, where Lithos writes only notes. "
            "Choose another one with --data-dir."
        )
    return None


def load_session(invocation: Invocation) -> CommandSession:
    """Read the configuration and start logging on stderr; raises `CommandFailed` with exit code 2."""
    try:
        # A question at a terminal is not a server: only what is wrong is worth a line there.
        logs = read_log_settings("info" if invocation.command == "serve" else "error")
        named = find_vaults(invocation)
        session = _one_vault(invocation) if not named.configured else _several(invocation, named)
    except (ConfigError, VaultsOverlap) as error:
        raise CommandFailed(str(error), exit_code=2) from error
    folder = invocation.declared.folder
    looks = folder == "needed" or (folder != "unused" and not session.vaults)
    trouble = check_places(session.config.of(StorageConfig), makes_folder=folder == "made") if looks else None
    if trouble is not None:
        raise CommandFailed(trouble, exit_code=2)
    if invocation.command == "serve":
        sys.stderr = LossyStream(2)
    start_logging((session.config, *(vault.loaded.config for vault in session.vaults)), logs)
    for warning in session.warnings:
        get_logger("lithos.config").warning("setting ignored", reason=warning)
    return session


def overrides_of(invocation: Invocation) -> dict[str, Any]:
    """Return the settings that were typed, by their keys."""
    return {_SETTINGS[name]: value for name, value in invocation.typed.items() if name in _SETTINGS}


def find_vaults(invocation: Invocation, *, is_lenient: bool = False) -> ConfiguredVaults:
    """The vaults that have names, none where one without a name is meant. Raises as `load_vaults`."""
    overrides = overrides_of(invocation)
    overrides.pop("storage.vault", None)
    return load_vaults(
        typed=invocation.vaults,
        config_path=invocation.config,
        data_dir=invocation.data_dir,
        environment=os.environ,
        overrides=overrides,
        is_lenient=is_lenient,
    )


def load_one(invocation: Invocation, **more: Any) -> LoadedConfig:
    """Return the configuration for one vault without a name; `more` is passed to `load_config`."""
    return load_config(
        config_path=invocation.config,
        data_dir=invocation.data_dir,
        environment=os.environ,
        overrides=overrides_of(invocation),
        **more,
    )


def _one_vault(invocation: Invocation) -> CommandSession:
    loaded = load_one(invocation)
    return CommandSession(invocation, loaded.config, loaded.sources, loaded.warnings)


def _several(invocation: Invocation, named: ConfiguredVaults) -> CommandSession:
    """Return the session of the chosen vault, together with all others. Raises as `load_session`."""
    chosen = named.chosen
    if len(chosen) > 1 and not invocation.declared.takes_several:
        raise CommandFailed(
            f"{invocation.command} is about one vault, and --vault names {len(chosen)} "
            f"({', '.join(chosen)}); give one of them",
            exit_code=2,
        )
    check_vault_roots([(vault.name, vault.root, vault.data_dir) for vault in named.configured])
    meant = named.default if named.default in chosen or not chosen else chosen[0]
    loaded = named.named(str(meant)).loaded
    warnings = dict.fromkeys(text for vault in named.configured for text in vault.loaded.warnings)
    return CommandSession(invocation, loaded.config, loaded.sources, tuple(warnings), named, meant)


def read_log_settings(level: str) -> LogSettings:
    """Those of the environment, with a level unless it names one. Raises `ConfigError`."""
    return load_log_settings({"LITHOS_LOG_LEVEL": level, **os.environ})


def start_logging(configs: Iterable[Config], logs: LogSettings) -> None:
    """Log on stderr from now on, without the secrets of these configurations."""
    secrets = [token for each in configs if (token := each.of(ServerConfig).auth_token)]
    configure_logging(logs.level, logs.format, sys.stderr, secrets=secrets)
