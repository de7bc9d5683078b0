"""The commands `lithos backup`, `restore` and `export`."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import trio

from lithos.kernel.configuration.vaults import NamedVault
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.findings import name_some
from lithos.server.command.asking import local_servers
from lithos.server.command.failures import explained_failures
from lithos.server.command.output import print_json, print_line, tell, warn
from lithos.server.command.progress import counted, progress_bars
from lithos.server.command.session import CommandFailed, CommandSession, check_places, load_session, refusing
from lithos.upkeep.files.backup import BackupIndex, BackupRefused
from lithos.upkeep.maintenance.backup import RestoredBackup, back_up, back_up_to_tar, restore
from lithos.upkeep.maintenance.export import export_objects
from lithos.upkeep.maintenance.maintenance import ReindexResult, reindex

#: File name that stands for stdout.
STDOUT = "-"


def run_backup(session: CommandSession) -> int:
    """Back up to a directory. Print the number of copied files.

    Each of several vaults is written to a folder with its name. A single chosen vault is written directly to
    the directory.
    """
    target = Path(session.typed["directory"])
    if not session.vaults:
        _back_up_one(session, target, None)
        return 0
    if len(session.named.chosen) == 1:
        _back_up_one(_about(session, session.vaults[0]), target, session.vaults[0].name)
        return 0
    if target.is_dir() and any(target.iterdir()):
        raise CommandFailed(f"{target} is not empty. Choose an empty or a new folder, or a single vault.")
    failed: list[str] = []
    for vault in session.vaults:
        if not session.as_json:
            print_line(f"{vault.name}: {vault.root}")
        try:
            with explained_failures():
                _back_up_one(_about(session, vault), target / vault.name, vault.name)
        except CommandFailed as failure:
            failed.append(vault.name)
            warn(f"{vault.name}: {failure}")
            if session.as_json:
                print_json({"vault": vault.name, "error": str(failure)})
    if failed:
        done = len(session.vaults) - len(failed)
        raise CommandFailed(
            f"Not backed up: {', '.join(failed)}. The backups of the other vaults ({done}) are in "
            f"{target}. Fix the errors above, then back up each failed vault separately: lithos "
            "--vault NAME backup DIR"
        )
    return 0


def _about(session: CommandSession, vault: NamedVault) -> CommandSession:
    """Return the session of one vault. Raises `CommandFailed` if the vault's folders are unusable."""
    trouble = check_places(vault.loaded.config.of(StorageConfig))
    if trouble is not None:
        raise CommandFailed(trouble, exit_code=2)
    return session.about(vault)


def _back_up_one(session: CommandSession, target: Path, vault: str | None) -> None:
    with refusing(BackupRefused), counted(session, "files copied", "files") as told:
        index = back_up(session.config, target, told=told)
    _tell_backup(session, target, index, vault)


def run_export(session: CommandSession) -> int:
    """Write all notes and coordination data as JSON lines, or write a backup as one archive."""
    typed = session.typed
    file: str | None = typed.get("file")
    if typed.get("format", "jsonl") == "tar":
        if file is None:
            raise CommandFailed(
                "--format tar needs a file, or - for stdout. Example: lithos export notes.tar --format tar", 2
            )
        if file == STDOUT:
            return _write_tar(session)
        with refusing(BackupRefused), counted(session, "files copied", "files") as told:
            index = back_up_to_tar(session.config, Path(file), told=told)
        _tell_backup(session, Path(file), index, session.default_vault)
        return 0
    objects = export_objects(session.config)
    if file is None or file == STDOUT:
        return _write_lines(objects, sys.stdout.write)
    with Path(file).open("x", encoding="utf-8") as stream:
        code = _write_lines(objects, stream.write)
    tell(session, {"file": file}, f"Exported to {file}")
    return code


def _write_tar(session: CommandSession) -> int:
    """Write the archive to stdout, and messages to stderr.

    The archive is completed before its first byte is written.
    """
    if sys.stdout.isatty():
        raise CommandFailed(
            "An archive cannot be written to a terminal. Redirect the output: "
            "lithos export - --format tar > notes.tar",
            2,
        )
    with tempfile.TemporaryDirectory(prefix="lithos-export-") as folder:
        archive = Path(folder) / "export.tar"
        with refusing(BackupRefused), counted(session, "files copied", "files") as told:
            index = back_up_to_tar(session.config, archive, told=told)
        with archive.open("rb") as made:
            shutil.copyfileobj(made, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    counts = index.counts
    print(f"Exported {counts['notes']} notes, {counts['files']} files", file=sys.stderr)
    return 0


def _write_lines(objects: Iterator[dict[str, Any]], write: Callable[[str], object]) -> int:
    code = 0
    for item in objects:
        # Whatever characters file names contain and the terminal supports, the output is pure ASCII.
        write(json.dumps(item) + "\n")
        if item["kind"] == "problem":
            warn(f"{item['path']} could not be read: {item['reason']}")
            code = 1
    return code


def run_restore(session: CommandSession) -> int:
    """Restore a backup, build the indexes and print a summary. Return 1 if building an index failed."""
    typed = session.typed
    source, force = Path(typed["source"]), typed.get("force", False)
    with refusing(BackupRefused):
        with counted(session, "files verified", "files") as told:
            restored = restore(session.config, source, force=force, told=told)
        with progress_bars(session, "notes") as progress:
            config = load_session(session.invocation).config  # the backup may contain another configuration
            run = local_servers(session).run
            indexed = trio.run(partial(reindex, config, run, clear=False, progress=progress))
    _tell_restored(session, restored, indexed)
    return 1 if indexed.failures else 0


def _tell_backup(session: CommandSession, target: Path, index: BackupIndex, vault: str | None) -> None:
    counts = index.counts
    told = f"{counts['notes']} notes, {counts['files']} files, {counts['bytes']} bytes"
    lines = [f"Backed up {told} to {target}"]
    if index.links:
        lines.append(f"Symbolic links among the notes: {len(index.links)}, kept as links")
    if index.left_out:
        lines.append(
            f"Not part of the backup: {name_some(index.left_out)}, which link to other folders. "
            "Lithos does not read these folders. Back them up separately, or copy them into the "
            "notes folder."
        )
    described = attrs.asdict(index, filter=attrs.filters.exclude("files"))
    name = {} if vault is None else {"vault": vault}
    tell(session, {**name, "target": str(target), **described}, lines)


def _tell_restored(session: CommandSession, restored: RestoredBackup, indexed: ReindexResult) -> None:
    data, vault, index = (
        session.config.of(StorageConfig).data_dir,
        session.config.of(StorageConfig).vault,
        restored.index,
    )
    lines = [f"Restored {index.counts['notes']} notes, {index.counts['files']} files to {data}"]
    if vault is not None:
        lines.append(f"The notes are in {vault}")
    lines.append(f"The backup was started at {index.started_at} by Lithos {index.version}")
    lines.append(f"Indexed {indexed.indexed} documents")
    if restored.aside:
        lines.append(f"The previous files are in {restored.aside}")
    document = {
        "data_dir": str(data),
        "vault": None if vault is None else str(vault),
        "backup": {"version": index.version, "started_at": index.started_at},
        "counts": dict(index.counts),
        "indexed": indexed.indexed,
        "failures": list(indexed.failures),
        "former_content": str(restored.aside) if restored.aside else None,
    }
    tell(session, document, lines)
    for failure in () if session.as_json else indexed.failures:
        warn(failure)
