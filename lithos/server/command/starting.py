"""Command line for other programs that start Lithos for the same data directory."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from lithos.kernel.settings import StorageConfig
from lithos.server.command.session import CommandSession


def find_program() -> tuple[str, ...]:
    """Return the command with which another program can start Lithos from any folder."""
    beside = Path(sys.executable).with_name("lithos")
    found = str(beside) if beside.exists() else shutil.which("lithos")
    return (found,) if found else (sys.executable, "-m", "lithos")


def find_options(session: CommandSession) -> tuple[str, ...]:
    """Return the global options that select this data directory. They work from any folder.

    If the session has named vaults, the options select these vaults.
    """
    if session.vaults:
        return tuple(_names_of(session))
    storage = session.config.of(StorageConfig)
    options = ["--data-dir", str(storage.data_dir.absolute())]
    if storage.vault is not None:
        options += ["--vault", str(storage.vault)]
    if session.invocation.config is not None:
        options += ["--config", str(session.invocation.config.absolute())]
    return tuple(options)


def _names_of(session: CommandSession) -> Iterator[str]:
    named = session.named
    if named.is_typed:
        for vault in named.configured:
            yield from ("--vault", f"{vault.name}={vault.root}")
    # Pass on a configuration file that was found automatically, because another folder may contain a
    # different file.
    config = session.invocation.config or named.source
    if config is not None:
        yield from ("--config", str(config.absolute()))
    if not named.is_typed:
        for name in named.chosen:
            yield from ("--vault", name)
