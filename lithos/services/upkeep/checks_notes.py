"""Checks of `lithos doctor` on the notes and the derived indexes; `run_check` isolates and bounds each check.

They change nothing but for dot-named probe files, which they remove. They cover: readable files, unique ids,
vanished files, the embedding model, the indexes, whether edits by other programs are noticed at once, how
well saves by other programs are protected from being overwritten, and displaced texts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, TypeVar

import trio

from lithos.actors.blocking import Threads
from lithos.actors.watching.guard import WAY_OUT
from lithos.actors.watching.listening import PROBE_BOUND, Listening, ListeningFailed, Probe
from lithos.core.attachments.kinds import kind_of
from lithos.core.findings import Action, CheckResult, Finding, fail, name_some, ok, warn
from lithos.core.times import format_time
from lithos.services.upkeep.reconcile import reconcile_graph
from lithos.services.upkeep.reconcile_indices import IndexSettings, find_index_faults
from lithos.services.upkeep.validation import Survey
from lithos.stores.attachments.survey import survey_attachments
from lithos.stores.indexes.embedder import Embedder, EmbedderUnavailable, is_at_hand
from lithos.stores.indexes.transformer import INSTALL, find_trouble, is_installed
from lithos.stores.notes.displaced import DISPLACED, Displaced
from lithos.stores.notes.files import NoteFiles
from lithos.stores.notes.protection import Protection, file_system_of, remote_file_system
from lithos.stores.sqlite import CorruptDatabase, DatabaseFailed
from lithos.telemetry import get_logger

log = get_logger("lithos.doctor")
T = TypeVar("T")

Look = Callable[[], Awaitable[Iterable[Finding]]]

_EXPECTED = (CorruptDatabase, DatabaseFailed, OSError)


async def run_check(name: str, look: Look, bound: float) -> CheckResult:
    """Run a check with a deadline of `bound` seconds; a crash or timeout becomes its result."""
    try:
        with trio.fail_after(bound):
            return CheckResult(name, tuple(await look()))
    except trio.TooSlowError:
        finding = fail(
            f"This check was not done after {bound:g} seconds.",
            "The disk or the network may hang: look at the log of the system, then run doctor again.",
        )
    except _EXPECTED as failure:
        finding = fail(
            f"This check could not look: {failure}.",
            "Check that the files of the data directory are there and readable.",
        )
    except Exception as failure:
        log.error("check failed", check=name, reason=repr(failure), exc_info=True)
        finding = fail(
            f"This check itself is broken: {type(failure).__name__}: {failure}.",
            "Report it with the log on stderr; the other checks are not affected.",
        )
    return CheckResult(name, (finding,))


async def look_aside(call: Callable[[], T]) -> T:
    """Run a blocking check in a worker thread that is abandoned at the deadline.

    A disk that hangs would otherwise hold the doctor for ever; a look has nothing to finish.
    """
    return await trio.to_thread.run_sync(call, abandon_on_cancel=True)


class _Aside:
    """A `Blocking` that abandons its threads on cancellation: a hung disk cannot hang the doctor."""

    async def run(self, call: Callable[[], T]) -> T:
        return await look_aside(call)


async def check_watching(folder: Path, mode: Literal["auto", "native", "poll", "off"]) -> list[Finding]:
    """Write a dot-named file into the folder of the notes, which has to be noticed; it is removed."""
    if mode == "off":
        return [ok("Switched off (server.watch_files); outside edits are seen at the next start.")]
    if mode == "poll":
        return [ok("The folder is compared every second (index.watch_mode poll).")]
    try:
        trouble = None if await _is_noticed(folder) else f"nothing was noticed within {PROBE_BOUND:g} seconds"
    except* ListeningFailed as failures:
        trouble = str(failures.exceptions[0])
    if trouble is None:
        return [ok("Changes are noticed at once.")]
    cause = f"The file system does not tell of changes in {folder}: {trouble}."
    if mode == "native":
        return [fail(cause, "Set index.watch_mode to auto or poll: the folder is compared every second.")]
    return [
        warn(
            cause,
            "The server compares the folder every second instead. On a network or container mount that is "
            "all that can be had; else raise fs.inotify.max_user_watches.",
        )
    ]


def check_vault_watching(folder: Path, mode: Literal["auto", "native", "poll", "off"]) -> list[Finding]:
    """What the kind of a vault's file system says, for nothing is made in it; blocks."""
    if mode == "off":
        return [ok("Switched off (server.watch_files); outside edits are seen at the next start.")]
    kind = remote_file_system(str(folder))
    if mode == "poll" or (mode == "auto" and kind is not None):
        return [ok("The folder is compared every second.")]
    if kind is None:
        return [ok("The vault is on a local file system, which tells of changes at once.")]
    return [
        warn(
            f"{folder} is on {kind}, which tells only of changes made on this machine.",
            "Set index.watch_mode to auto or poll: the folder is compared every second.",
        )
    ]


async def _is_noticed(folder: Path) -> bool:
    """Raises `ListeningFailed`, in groups."""
    files = NoteFiles(folder)
    # A watch that is left to itself cannot be closed; it ends within a second when told to.
    listening, probe = Listening(files, Threads()), Probe(files, _Aside())

    async def listen() -> None:
        async with aclosing(listening.notices()) as notices:
            async for noticed in notices:
                probe.look_for_it(noticed)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        try:
            return await probe.is_noticed()
        finally:
            listening.stop()


_LOCAL: Final = (
    "A local Linux file system such as ext4, xfs or btrfs has all of it; the notes may stay here too."
)


def check_protection(notes: Path) -> Iterator[Finding]:
    """Try out, with dot-named files that are removed, what keeps an agent and an editor from overwriting."""
    if not notes.is_dir():
        yield ok("There are no notes yet.")
        return
    kind = file_system_of(str(notes)) or "this file system"
    try:
        found = NoteFiles(notes).protection
    except OSError as failure:
        yield warn(
            f"It cannot be tried out: {failure.strerror or failure}.", "See the check of the data directory."
        )
        return
    if not found.can_place:
        yield fail(
            f"{notes.absolute()} ({kind}) can neither rename without overwriting nor link, so no note is "
            "written: a file that another program saves at that moment would be overwritten.",
            "Move the notes to another file system.",
        )
        return
    yield from _lacks(found, kind)
    yield ok(
        f"{kind} exchanges files in one step and tells who has one open: no save of another program is lost."
    )


def check_vault_files(vault: Path, private: Path) -> Iterator[Finding]:
    """What writes of agents do to the files of people, told without trying anything out there."""
    try:
        is_near = vault.stat().st_dev == private.stat().st_dev
    except OSError as failure:
        yield warn(
            f"It cannot be told: {failure.strerror or failure}.", "See the check of the data directory."
        )
        return
    where = (
        "a replaced file leaves the vault at once"
        if is_near
        else "a replaced file stays beside its note as .lithos-….swap for up to a minute, as the data "
        "directory is on another volume"
    )
    yield ok(
        f"A write of an agent puts a new file in the place of the old one: {where}, and the birth time that "
        "Obsidian and Dataview show is that of the write. Lithos remembers created_at; a property `created` "
        "in a note tells it to all programs."
    )


def check_attachments(files: NoteFiles) -> Iterator[Finding]:
    """Whether the PDF files of the folder can be read, and how they could be."""
    found = survey_attachments(files)
    papers = [path for path in found if kind_of(path) == "pdf"]
    if papers and find_spec("pypdfium2") is None:
        yield warn(
            f"{len(papers)} PDF files are listed, but not read: their library is not installed.",
            "pip install 'lithos-server[pdf]', then restart the server.",
        )
    yield ok(f"{len(found)} files beside the notes are found and read where they lie.")


def _lacks(found: Protection, kind: str) -> Iterator[Finding]:
    if not found.exchange:
        yield warn(
            f"{kind} cannot exchange two files, so that a note's name is missing for some microseconds "
            "while it is replaced; nothing is lost.",
            _LOCAL,
        )
    if not found.leases:
        yield warn(
            f"{kind} does not tell who has a file open. A program that pauses for more than a minute in the "
            "middle of one save, while an agent writes the same note, loses what it writes after the pause.",
            _LOCAL,
        )


def check_displaced(private: Path) -> Iterator[Finding]:
    """Whether there are texts that another program saved and that are in no note."""
    files = Displaced(private / DISPLACED).list()
    if files:
        newest, names = files[-1], name_some([file.path.name for file in files])
        yield warn(
            f"{len(files)} texts that were saved by other programs, or replaced before anybody was told of "
            f"them, lie in {(private / DISPLACED).absolute()}: {names}. "
            f"The newest is of {newest.note}, {format_time(newest.time)}.",
            "Compare each with its note, named in the .json beside it, and copy what is missing there back "
            "into the note. A text stays for 7 days, the newest 100 MB of them.",
        )
    yield ok("No text was displaced.")


#: What is told of each fault of an index; only a damaged one stops searches.
_FAULTS: Final = {
    "schema_mismatch": "has another format ({detail})",
    "embedder_mismatch": "is of another embedding model: {detail}",
    "check_failed": "is damaged ({detail})",
    "doc_set_mismatch": "is not in line with the notes ({missing} missing or changed, {surplus} too many)",
}
_MEND: Final = "The notes are not affected. Run `lithos reconcile`, or start the server, which mends it."
_FOLDERS: Final = {"fulltext": ".tantivy", "vectors": ".usearch"}


def check_notes(survey: Survey) -> Iterator[Finding]:
    """Whether all files can be read as notes."""
    unreadable = {path: each for path, each in survey.catalogue.skipped.items() if each.note_id is None}
    if unreadable:
        path, first = next(iter(sorted(unreadable.items())))
        yield warn(
            f"{len(unreadable)} files are no notes that can be read: {path}: {first.reason}.",
            "Correct them; `lithos validate` lists them all.",
        )
    broken = sorted(
        (each.path, problem)
        for each in survey.catalogue
        if (problem := each.note.frontmatter_problem) is not None
    )
    if broken:
        path, problem = broken[0]
        yield warn(
            f"{len(broken)} notes have a frontmatter that cannot be read and are served without it: "
            f"{path}: {problem}.",
            "Correct them; `lithos validate` lists them all.",
        )
    yield ok(f"{len(survey.catalogue)} notes can be read.")


def missing_notes(data: Path, folder: Path, vault: Path | None) -> Finding:
    """That the folder of the notes is not there."""
    if vault is not None and not (data / ".lithos" / "manifest.db").exists():
        return fail(f"There is no folder {vault}.", "Name the folder of your notes with --vault.")
    if not (data / ".lithos" / "manifest.db").exists():
        return warn(
            f"There is no folder {folder.relative_to(data)} in {data.absolute()} yet.",
            "The first `lithos serve` makes it.",
        )
    return fail(
        f"The folder {folder.absolute()} has vanished with all notes; nothing was removed.",
        f"Look whether its disk is mounted, then {WAY_OUT}.",
    )


def check_duplicates(survey: Survey) -> Iterator[Finding]:
    """Whether every file has an id of its own."""
    skipped = survey.catalogue.skipped.items()
    seconds = {path: each for path, each in skipped if each.note_id is not None and each.copy is None}
    if seconds:
        path, first = next(iter(sorted(seconds.items())))
        yield warn(
            f"{len(seconds)} files have the id of another file and are not indexed: {path} ({first.reason}).",
            "Run `lithos validate --fix ids` to give them new ids, or move the copies out of the folder.",
        )
    yield ok("Every note has an id of its own.")


def check_copies(survey: Survey) -> Iterator[Finding]:
    """Whether programs that synchronise folders left other versions of notes, or git conflicts in them."""
    copies = survey.copies
    if copies:
        path, original = next(iter(sorted(copies.items())))
        yield warn(
            f"{len(copies)} files are what another machine wrote of a note: {path} of {original}.",
            "Run `lithos conflicts`, or open the console's page Copies: both show what merging makes of it. "
            "`lithos conflicts keep PATH` makes a file a note of its own.",
        )
    marked = sorted(entry.path for entry in survey.catalogue if entry.note.has_conflict_markers)
    if marked:
        yield warn(
            f"{len(marked)} notes have a conflict of git in their text: {name_some(marked)}.",
            "Keep one side of each, or both, and take the lines <<<<<<<, ======= and >>>>>>> out.",
        )
    yield ok("No note has a conflict copy, and none a conflict of git.")


def check_vanished(survey: Survey) -> Iterator[Finding]:
    """Whether the guard holds notes whose files have vanished."""
    catalogue = survey.catalogue
    paths = sorted(
        entry.path
        for entry in catalogue
        if entry.serial in survey.unreadable and entry.path not in catalogue.skipped
    )
    if paths:
        yield fail(
            f"The files of {len(paths)} notes have vanished ({name_some(paths)}); nothing was removed.",
            f"{WAY_OUT[0].upper()}{WAY_OUT[1:]}.",
        )
    yield ok("No files are missing.")


def check_embedder(
    model: str, load: Callable[[str], Embedder], keep: Callable[[Embedder], None]
) -> Iterator[Finding]:
    """Whether the model loads; `keep` gets it. Nothing is downloaded."""
    if not is_at_hand(model):
        yield warn(
            f"The embedding model {model!r} is not on this machine yet.",
            "The next start downloads it; until then searches go by words alone. "
            "Or set search.embedding_model to 'builtin'.",
        )
        return
    try:
        embedder = load(model)
    except EmbedderUnavailable as failure:
        yield fail(
            f"The embedding model {model!r} cannot be loaded: {failure.reason}.",
            "Searches go by words alone. Set search.embedding_model to 'builtin', to the directory of a "
            "model2vec model, or to the Hugging Face name of one that can be reached.",
        )
        return
    keep(embedder)
    yield ok(f"{model} loads, {embedder.identity.dims} dimensions.")


def check_accurate(tier: str) -> Iterator[Finding]:
    """Whether the accurate tier can be used; not installed is no fault unless it is asked for."""
    if tier == "static":
        yield ok("The accurate tier is switched off (search.tier).")
        return
    trouble = find_trouble()
    if trouble is None:
        yield ok("The accurate tier can be used.")
    elif tier == "auto" and not is_installed():
        yield ok(f"Searches would find more by meaning with the accurate tier: {INSTALL}")
    else:
        yield warn(
            f"The accurate tier cannot be used, the static one answers: {trouble}.",
            f"Run {INSTALL} and restart the server, or set search.tier to static.",
        )


def check_indexes(survey: Survey, settings: IndexSettings) -> Iterator[Finding]:
    """Whether the indexes can be used and hold exactly the notes.

    A running server answers for their content: what it holds in memory is not on disk yet.
    """
    faults = [fault for fault in find_index_faults(survey, settings) if _matters(survey, fault)]
    for fault in faults:
        name = "full-text index" if fault.details["index"] == "fulltext" else "vector index"
        cause = f"The {name} {_FAULTS[fault.reason].format(**fault.details)}."
        yield fail(cause, _MEND) if fault.reason == "check_failed" else warn(cause, _MEND)
    if not survey.is_live:
        yield from _check_graph(survey)
    missing = [folder for folder in _FOLDERS.values() if not (survey.data / folder).exists()]
    if missing:
        yield ok(f"There is no {' and no '.join(missing)} yet; the next start makes it.")
    else:
        yield ok("Formats are known." if survey.is_live else "They hold exactly the notes.")


def _matters(survey: Survey, fault: Action) -> bool:
    if survey.is_live:
        return fault.reason in ("schema_mismatch", "check_failed")
    return (survey.data / _FOLDERS[fault.details["index"]]).exists()


def _check_graph(survey: Survey) -> Iterator[Finding]:
    for action in reconcile_graph(survey, dry_run=True).actions:
        if action.reason == "cache_unreadable":
            yield warn("The link graph cache cannot be read.", _MEND)
        elif action.is_repair and action.reason != "cache_missing":
            yield warn("The link graph cache is not in line with the notes.", _MEND)
            return
