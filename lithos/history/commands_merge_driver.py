"""`lithos conflicts` and `lithos merge-driver`: merge conflict copies, and notes for git."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lithos.history.model.conflict_markers import MARKER_SIZE, Markers
from lithos.history.model.file_merge import FileMerge, merge_files
from lithos.kernel.databases.private_files import open_regular, replace_file
from lithos.server.command.ask_ports import ToolClient
from lithos.server.command.asking import ask_pages, ask_tool, asking, person
from lithos.server.command.declaring import Invocation
from lithos.server.command.output import print_json, print_line, tell, warn
from lithos.server.command.session import CommandFailed, CommandSession
from lithos.server.command.streams import make_printable

#: Exit code above 128. It makes git stop instead of recording a conflict in a file that lacks one side.
_BROKEN: Final = 129
#: Maximum length of a marker in characters.
_LONGEST_MARKER: Final = 1_000


def run_merge_driver(invocation: Invocation) -> int:
    """Merge the other side into the file of our side.

    The result is 1 if conflicts remain. Raises `CommandFailed`.
    """
    typed = invocation.typed
    markers = Markers(
        ours=_label(typed.get("ours_name"), "ours"),
        theirs=_label(typed.get("theirs_name"), "theirs"),
        size=min(typed.get("marker_size", MARKER_SIZE), _LONGEST_MARKER),
    )
    ours: Path = typed["ours"]
    name = typed.get("path") or str(ours)
    try:
        base, mine, theirs = (_read(path) for path in (typed["base"], ours, typed["theirs"]))
        merged = merge_files(base, mine, theirs, markers)
        if merged.data is not None and merged.data != mine:
            _write(ours, merged.data)
    except OSError as failure:
        raise CommandFailed(
            f"{name} was not merged: {failure}. Check that the files are readable and their folder writable, "
            "then merge again.",
            _BROKEN,
        ) from failure
    if invocation.as_json:
        print_json({"path": name, "conflicts": merged.conflicts, "binary": merged.data is None})
    elif merged.conflicts:
        warn(_tell(name, merged))
    return 1 if merged.conflicts else 0


def _label(name: str | None, usual: str) -> str:
    """Return a branch name without line breaks. If git passed an empty name, return `usual`."""
    return " ".join(name.split()) if name and name.strip() else usual


def _read(path: Path) -> bytes:
    with open_regular(path) as file:
        return file.read()


def _write(path: Path, data: bytes) -> None:
    mode = path.stat().st_mode & 0o777
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        replace_file(path, data, temporary, mode)
    finally:
        temporary.unlink(missing_ok=True)


def _tell(name: str, merged: FileMerge) -> str:
    if merged.data is None:
        return (
            f"{name} is a binary file and was not merged. It still has our version. Choose a "
            "version, then git add it."
        )
    several = f"{merged.conflicts} conflicts" if merged.conflicts > 1 else "a conflict"
    return f"{name} has {several}. Choose between the markers, then git add it."


LIST: Final = "list"
_ACTIONS: Final = (LIST, "show", "merge", "keep")


async def conflicts(session: CommandSession, asker: ToolClient) -> int:
    """List, show, merge or keep conflict copies. Return 1 if a copy could not be merged or kept."""
    typed = session.typed
    action, paths = typed.get("action", LIST), list(typed.get("paths", ()))
    if action not in _ACTIONS:
        raise CommandFailed(f"Unknown action {action!r}. Use one of: {', '.join(_ACTIONS)}.", 2)
    if action == LIST and paths:
        raise CommandFailed("list takes no paths. To see one copy, run: lithos conflicts show PATH", 2)
    if action != LIST and bool(paths) == (action == "merge" and bool(typed.get("all"))):
        either = " or --all" if action == "merge" else ""
        raise CommandFailed(f"No copy was given. Run: lithos conflicts {action} PATH...{either}", 2)
    if action == "show":
        return await _show(session, asker, paths)
    if action == "keep":
        return await _keep(session, asker, paths)
    rows = await ask_pages(asker, "lithos_conflict_copies", {}, "copies") if not paths else []
    if action == LIST:
        tell(session, {"copies": rows}, _rows(rows) if rows else "No note has a conflict copy.")
        return 0
    left = [row for row in rows if row["named_only"]]
    sure = [row["path"] for row in rows if not row["named_only"]]
    return await _merge(session, asker, paths or sure, left)


def _rows(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        same = "" if row["differs"] else "  (same text)"
        yield make_printable(f"{row['path']}  of {row['note_path']}{same}")
    if any(row["named_only"] for row in rows):
        yield _BY_NAME


#: Hint for copies that have names which a person may have chosen.
_BY_NAME: Final = (
    "People also give names such as NAME 2, NAME-HOST and NAME (1): merge these copies one by one, by path. "
    "If a file is a separate note, run: lithos conflicts keep PATH"
)


async def _keep(session: CommandSession, asker: ToolClient, paths: Sequence[str]) -> int:
    """Keep files as separate notes, one by one, and print every outcome."""
    done: list[Mapping[str, Any]] = []
    for path in paths:
        answer = await asker.call("lithos_conflict_copy_keep", {"path": path}) or {}
        done.append({"path": path, **answer})
        if answer.get("status") == "error":
            if not session.as_json:
                warn(make_printable(f"{path}: {answer['message']}"))
        elif not session.as_json:
            has_id = ", with a new id" if answer["new_id"] else ""
            print_line(make_printable(f"{path}: kept as a separate note{has_id}"))
    if session.as_json:
        tell(session, {"copies": done}, "")
    return 1 if any(answer.get("status") == "error" for answer in done) else 0


async def _show(session: CommandSession, asker: ToolClient, paths: Sequence[str]) -> int:
    shown = [await ask_tool(asker, "lithos_conflict_copies", {"path": each}) for each in paths]
    if session.as_json:
        tell(session, {"copies": shown}, "")
        return 0
    for each in shown:
        print_line(make_printable(f"{each['copy']['path']} of {each['copy']['note_path']}: {_about(each)}"))
        for line in (each["merged"] or "").split("\n"):
            print_line(make_printable(line))
    return 0


def _about(shown: Mapping[str, Any]) -> str:
    if shown["merged"] is None:
        return "one of the two files is not text; keep one of them"
    number = len(shown["conflicts"])
    if number:
        said = "1 place" if number == 1 else f"{number} places"
        return f"both sides changed {said}; choose a side with --keep, or on the Copies page of the console"
    if shown["adds_nothing"]:
        return "the note already contains the whole copy"
    if shown["changes_nothing"]:
        return "merging changes nothing, because the note was made from this text and has lost lines since"
    return "can be merged automatically, to this text"


async def _merge(
    session: CommandSession, asker: ToolClient, paths: Sequence[str], left: Sequence[Mapping[str, Any]]
) -> int:
    """Merge copies one by one. Continue after a refusal.

    Every outcome is printed. The copies in `left` were skipped and are printed too.
    """
    done: list[Mapping[str, Any]] = []
    for path in paths:
        answer = await _merge_one(session, asker, path)
        done.append({"path": path, **answer})
        if session.as_json:
            continue
        if answer["status"] == "error":
            warn(make_printable(f"{path}: {answer['message']}"))
        else:
            what = "merged into" if answer["changed"] else "changed nothing in"
            print_line(make_printable(f"{path}: {what} {answer['note_path']}, version {answer['version']}"))
    if session.as_json:
        tell(session, {"copies": done, "left": left}, "")
    elif left and session.typed.get("all"):
        for row in left:
            print_line(make_printable(f"{row['path']}: not merged (copy of {row['note_path']})"))
        print_line(_BY_NAME)
    elif not paths:
        print_line("No note has a conflict copy.")
    return 1 if any(answer["status"] == "error" for answer in done) else 0


async def _merge_one(session: CommandSession, asker: ToolClient, path: str) -> Mapping[str, Any]:
    given: dict[str, Any] = {"path": path, "by": session.typed.get("by") or person()}
    if "keep" in session.typed:
        shown = await asker.call("lithos_conflict_copies", {"path": path}) or {}
        if shown.get("status") == "error":
            return shown
        given |= {"keep": [session.typed["keep"]], "seal": shown["seal"]} if shown["conflicts"] else {}
    return await asker.call("lithos_conflict_copy_merge", given) or {}


run_conflicts = asking(conflicts)
