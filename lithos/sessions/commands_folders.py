"""`lithos sessions add`, `remove` and `list`: the folders of transcripts that are indexed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio

from lithos.kernel.databases.lock import is_owned
from lithos.kernel.databases.sqlite import CorruptDatabase, DatabaseFailed
from lithos.kernel.settings import StorageConfig
from lithos.server.command.asking import ask_tool, asking, how_to_serve, require_owner
from lithos.server.command.output import tell
from lithos.server.command.session import CommandFailed, CommandSession
from lithos.sessions.commands_reading import search_sessions, show_session
from lithos.sessions.files.added_folders import (
    MOST_FOLDERS,
    AddedFolder,
    FoldersUnreadable,
    all_folders,
    client_folders,
    find_folder,
    read_added,
    write_added,
)
from lithos.sessions.files.opencode import survey_added
from lithos.sessions.files.surveying import FolderSurvey
from lithos.sessions.model.session import PREFIX
from lithos.sessions.rows.summary import StoredSummary, read_summary
from lithos.sessions.settings import SessionsConfig

#: Maximum number of transcripts with problems that `list` prints.
SHOWN: Final = 20


def run_sessions(session: CommandSession) -> int:
    """Add, remove or list folders. Raises `CommandFailed`."""
    try:
        return _ACTIONS[session.typed["action"]](session)
    except FoldersUnreadable as damage:
        raise CommandFailed(str(damage)) from damage
    except OSError as failure:
        place = failure.filename or session.private
        raise CommandFailed(
            f"{place} cannot be used: {failure.strerror}. Nothing was changed. Check its permissions."
        ) from failure


def _add(session: CommandSession) -> int:
    folder = find_folder(session.typed["name"], os.environ)
    _refuse_own(folder, session)
    survey = survey_added(folder)
    if survey.problem:
        known = ", ".join(client_folders(os.environ))
        raise CommandFailed(
            f"No transcripts of {folder.name} were found ({survey.problem}). Nothing was changed. "
            f"Give one of {known}, or the path of a folder or file of JSON lines.",
            2,
        )
    if any(each.name == folder.name for each in _all(session)):
        tell(session, _row(survey, 0), f"{folder.name} is already added.")
        return 0
    added = read_added(session.private)
    if len(added) >= MOST_FOLDERS:
        raise CommandFailed(f"{MOST_FOLDERS} folders are added already. Remove one of them first.")
    write_added(session.private, [*added, folder])
    tell(session, _row(survey, 0), _describe_added(session, survey))
    return 0


def _describe_added(session: CommandSession, survey: FolderSurvey) -> Iterator[str]:
    places = ", ".join(map(str, survey.folder.places))
    yield f"Added {survey.folder.name}: {_amount(survey)} in {places}."
    yield from _left_out(survey)
    if is_owned(session.private / "lock"):
        yield "The running server indexes them in the background. Secrets are masked."
    else:
        yield f"A server indexes them in the background. Start one with: {how_to_serve(session)}"


def _amount(survey: FolderSurvey) -> str:
    noun = "transcript" if len(survey.found) == 1 else "transcripts"
    return f"{len(survey.found):,} {noun} ({survey.bytes / 1e6:,.1f} MB)"


def _left_out(survey: FolderSurvey) -> Iterator[str]:
    for reason, count in survey.left_out.items():
        yield f"  Left out: {count:,} {reason}."


def _refuse_own(folder: AddedFolder, session: CommandSession) -> None:
    """Raise an error for a folder of Lithos itself, or one that contains it."""
    own = os.path.realpath(session.config.of(StorageConfig).data_dir)
    for place in folder.places:
        real = os.path.realpath(place)
        if _is_within(real, own) or _is_within(own, real):
            raise CommandFailed(
                f"{place} is, contains or is inside the data directory {own}. Nothing was changed. Give the "
                "folder of the transcripts themselves.",
                2,
            )


def _is_within(inner: str, outer: str) -> bool:
    return (inner + os.sep).startswith(outer.rstrip(os.sep) + os.sep)


def _remove(session: CommandSession) -> int:
    name = session.typed["name"]
    if name.startswith(PREFIX) and not os.path.exists(name):
        return _forget(session, name)
    wanted = {name, find_folder(name, os.environ).name, os.path.abspath(os.path.expanduser(name))}
    named = [each for each in _all(session) if wanted & {each.name, *map(str, each.places)}]
    if not named:
        known = ", ".join(each.name for each in _all(session)) or "none"
        raise CommandFailed(f"{name} is not added. Nothing was changed. Added folders: {known}.", 2)
    if named[0].is_setting:
        raise CommandFailed(
            f"{name} is in the setting sessions.folders. Nothing was changed. Remove it from the "
            "configuration, and restart the server.",
            2,
        )
    kept = [each for each in read_added(session.private) if each.name != named[0].name]
    write_added(session.private, kept)
    line = (
        f"Removed {named[0].name}. A running server removes its sessions from the index within a minute. The "
        "transcripts stay."
    )
    tell(session, {"removed": named[0].name}, line)
    return 0


def _forget(session: CommandSession, name: str) -> int:
    answer = trio.run(partial(_ask_to_forget, session, name))
    if not answer["removed"]:
        raise CommandFailed(f"There is no session {name}. Nothing was changed. See lithos sessions list.", 2)
    tell(session, answer, f"Removed {name} from the index. Its transcript stays, and is not indexed again.")
    return 0


async def _ask_to_forget(session: CommandSession, name: str) -> Mapping[str, Any]:
    owner = await require_owner(session, "only a running server can remove a session")
    return await ask_tool(owner, "lithos_session_forget", {"id": name})


def _list(session: CommandSession) -> int:
    surveys = [survey_added(folder) for folder in _all(session)]
    try:
        stored = read_summary(session.private, is_live=is_owned(session.private / "lock"))
    except (CorruptDatabase, DatabaseFailed) as failure:
        raise CommandFailed(
            f"The index of sessions cannot be read: {failure}. Run lithos doctor."
        ) from failure
    document = {
        "folders": [_row(each, stored.sessions.get(each.folder.name, 0)) for each in surveys],
        "turns": stored.turns,
        "problems": [{"path": each.path, "reasons": each.notices()} for each in stored.troubled],
    }
    tell(session, document, _describe(surveys, stored))
    return 0


def _describe(surveys: Sequence[FolderSurvey], stored: StoredSummary) -> Iterator[str]:
    if not surveys:
        yield "No transcripts are added. Add some with: lithos sessions add claude-code"
        return
    width = max(len(each.folder.name) for each in surveys)
    for each in surveys:
        count = stored.sessions.get(each.folder.name, 0)
        yield f"{each.folder.name:<{width}}  {_amount(each)}, {count:,} sessions indexed"
        if each.problem:
            yield f"  Not readable: {each.problem}."
        yield from _left_out(each)
    yield f"{sum(stored.sessions.values()):,} sessions with {stored.turns:,} turns are indexed."
    if stored.troubled:
        yield ""
        yield "Transcripts of which something could not be read:"
    for troubled in stored.troubled[:SHOWN]:
        yield f"  {troubled.path}"
        yield from (f"    {reason}" for reason in troubled.notices())
    if len(stored.troubled) > SHOWN:
        yield f"  and {len(stored.troubled) - SHOWN:,} more (--json lists them all)"


def _row(survey: FolderSurvey, sessions: int) -> dict[str, Any]:
    return {
        "name": survey.folder.name,
        "client": survey.folder.client,
        "places": [str(place) for place in survey.folder.places],
        "transcripts": len(survey.found),
        "bytes": survey.bytes,
        "sessions": sessions,
        "left_out": survey.left_out,
        "problem": survey.problem,
    }


def _all(session: CommandSession) -> list[AddedFolder]:
    return all_folders(Path(session.private), session.config.of(SessionsConfig).folders, os.environ)


_ACTIONS: Final[Mapping[str, Callable[[CommandSession], int]]] = {
    "add": _add,
    "remove": _remove,
    "list": _list,
    "search": asking(search_sessions),
    "show": asking(show_session),
}
