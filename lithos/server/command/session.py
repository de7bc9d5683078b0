"""Setup of each command: its parsed arguments, configuration and logging."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.configuration.environment import without_blanks
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

#: Command options and the settings that they override.
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
_NO_VAULT = "The folder {} does not exist. Name the folder of your notes with --vault."


class CommandFailed(Exception):
    """Failure of a command, which ends with `exit_code`. The message says what to do."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@contextmanager
def refusing(*kinds: type[Exception], exit_code: int = 1) -> Iterator[None]:
    """End the command with the exception's message if the block raises one of these exceptions."""
    try:
        yield
    except kinds as refusal:
        raise CommandFailed(str(refusal), exit_code) from refusal


@frozen
class CommandSession:
    """One call of a command, with its configuration."""

    invocation: Invocation
    config: Config
    #: Source of each setting by key, and the error messages about ignored settings.
    sources: Mapping[str, str] = {}
    warnings: tuple[str, ...] = ()
    #: All named vaults. `config` belongs to the vault `default_vault`.
    named: ConfiguredVaults = ConfiguredVaults()
    #: Name of the vault of `config`, or None if the vault has no name.
    default_vault: str | None = None

    @property
    def vaults(self) -> tuple[NamedVault, ...]:
        """Return the vaults named by `--vault`. Without this option, return all named vaults.

        The result is empty if Lithos serves a single vault without a name.
        """
        names = self.named.chosen or [vault.name for vault in self.named.configured]
        return tuple(map(self.named.named, names))

    def about(self, vault: NamedVault) -> CommandSession:
        """Return this session with the configuration of one named vault."""
        loaded = vault.loaded
        return evolve(self, config=loaded.config, sources=loaded.sources, default_vault=vault.name)

    @property
    def typed(self) -> dict[str, Any]:
        """Return the options that the user gave."""
        return self.invocation.typed

    @property
    def as_json(self) -> bool:
        """Return whether the answer is a JSON document."""
        return self.invocation.as_json

    @property
    def private(self) -> Path:
        """Return the folder for data that Lithos stores in addition to the notes."""
        return self.config.of(StorageConfig).data_dir / ".lithos"

    @property
    def public_url(self) -> str | None:
        """Return `server.public_url`, or the public URL of the running server. May block. Raises `OSError`.

        If the server serves several vaults, this is the URL of the whole server.
        """
        lock = self.private / "lock"
        if self.config.of(ServerConfig).public_url is not None or not is_owned(lock):
            return self.config.of(ServerConfig).public_url
        owner = read_owner(lock)
        address = None if owner is None else owner.public_url
        return None if address is None else address.removesuffix(self.prefix)

    @property
    def prefix(self) -> str:
        """Return the URL path of this vault if a server has several vaults. A vault without a name has ""."""
        return "" if self.default_vault is None else f"/v/{self.default_vault}"

    def require_notes(self, way_out: str) -> None:
        """Raise `CommandFailed` if the notes folder is missing. `way_out` is the end of the error message."""
        storage = self.config.of(StorageConfig)
        if storage.notes_folder.is_dir():
            return
        if storage.vault is not None:
            raise CommandFailed(_NO_VAULT.format(storage.vault))
        raise CommandFailed(
            f"No notes found in {storage.data_dir}: the folder {storage.knowledge_subdir} is "
            "missing. Name the folder of your notes with --vault or the data directory with "
            f"--data-dir, {way_out}"
        )


def check_places(storage: StorageConfig, *, makes_folder: bool = False) -> str | None:
    """Return a message if the named folders cannot be used, otherwise None.

    The message describes the problem and its fix.

    With `makes_folder`, a missing vault folder is allowed, because the command creates it.
    """
    vault, data = storage.vault, storage.data_dir
    if vault is None:
        # If a used data directory has no notes, they have been lost. Another check reports that.
        if storage.notes_folder.exists():
            return None
        found = find_own_notes(data)
        if found is None:
            return None
        return (
            f"{data} contains notes of your own ({found}), but no folder "
            f"{storage.knowledge_subdir}, so it is not a data directory of Lithos. To serve these "
            f"notes in place, use --vault {data}. To start with an empty data directory, use "
            "another --data-dir."
        )
    if not vault.is_dir() and not makes_folder:
        return _NO_VAULT.format(vault)
    real = os.path.realpath(data)
    if (real + os.sep).startswith(os.path.realpath(vault).rstrip(os.sep) + os.sep):
        return (
            f"The data directory {data} is inside the vault {vault}, where Lithos writes only "
            "notes. Choose another data directory with --data-dir."
        )
    return None


def load_session(invocation: Invocation) -> CommandSession:
    """Read the configuration and start logging on stderr. Raises `CommandFailed` with exit code 2."""
    try:
        # A command at a terminal is not a server, so only errors are logged.
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
    """Return the settings that the user gave as options, by key."""
    return {_SETTINGS[name]: value for name, value in invocation.typed.items() if name in _SETTINGS}


def find_vaults(invocation: Invocation, *, is_lenient: bool = False) -> ConfiguredVaults:
    """Return the named vaults. The result has no vaults if the command uses a vault without a name.

    Raises the errors of `load_vaults`.
    """
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
    """Return the configuration of a vault without a name. `more` is passed to `load_config`."""
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
    """Return the session of the chosen vault.

    The session contains all named vaults. Raises the errors of `load_session`.
    """
    chosen = named.chosen
    if len(chosen) > 1 and not invocation.declared.takes_several:
        raise CommandFailed(
            f"{invocation.command} works on one vault, but --vault names {len(chosen)} "
            f"({', '.join(chosen)}). Name one of them.",
            exit_code=2,
        )
    check_vault_roots([(vault.name, vault.root, vault.data_dir) for vault in named.configured])
    meant = named.default if named.default in chosen or not chosen else chosen[0]
    loaded = named.named(str(meant)).loaded
    warnings = dict.fromkeys(text for vault in named.configured for text in vault.loaded.warnings)
    return CommandSession(invocation, loaded.config, loaded.sources, tuple(warnings), named, meant)


def read_log_settings(level: str) -> LogSettings:
    """Return the log settings from the environment variables.

    `level` is the default level. Raises `ConfigError`.
    """
    return load_log_settings({"LITHOS_LOG_LEVEL": level, **without_blanks(os.environ)})


def start_logging(configs: Iterable[Config], logs: LogSettings) -> None:
    """Start logging on stderr. The secrets of these configurations are masked."""
    secrets = [token for each in configs if (token := each.of(ServerConfig).auth_token)]
    configure_logging(logs.level, logs.format, sys.stderr, secrets=secrets)
