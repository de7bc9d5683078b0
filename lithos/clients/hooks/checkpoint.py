"""The command `lithos checkpoint --hook`, which saves the given text, reminds the agent, or does nothing.

The hook fulfils the promise of `lithos.server.command.hook_failsafe`. It does not print the saved text.

Each session has one note with a section for each text, and no text is stored twice. The generator `storing`
yields tool calls and receives the answers. It neither calls the server nor waits, so both the hook (without
an event loop) and the command (with an event loop) can use it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Generator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lithos.clients.hooks.owner import HookOwner, find_hook_owner, in_project
from lithos.clients.hooks.payload import (
    Payload,
    agent_of,
    folder_of,
    is_first_answer,
    name_of,
    read_payload,
    repository_of,
    say,
)
from lithos.kernel.values.graphemes import beginning
from lithos.server.command.hook_failsafe import DEADLINE, FAILURES, deadline_after, printable

if TYPE_CHECKING:
    from lithos.server.command.declaring import Invocation

#: Maximum number of bytes that are read from a file or stdin. A longer text is not a checkpoint.
LARGEST_FILE: Final = 1_000_000


def read_file(path: Path) -> str:
    """Return the text of a file. At most `LARGEST_FILE` bytes are read. Raises `OSError`."""
    with path.open("rb") as file:
        return file.read(LARGEST_FILE).decode("utf-8", "replace").strip()


def checkpoint_of(text: str, typed: Mapping[str, Any], told: Payload) -> Checkpoint:
    """Return the checkpoint for a text.

    Options of the command take precedence over values from the client.
    """
    return Checkpoint(
        text=text,
        agent=agent_of(typed, os.environ, told.sender),
        session=typed.get("session") or told.session,
        project=name_of(repository_of(folder_of(told.cwd)).name),
        at=time.gmtime(),
    )


FOLDER: Final = "checkpoints"
#: Maximum number of characters in one text.
LONGEST_TEXT: Final = 16_000
#: Maximum number of checkpoints in one session. Its note therefore has at most 1 MB.
MOST: Final = 50
_TRIES: Final = 8
_LONGEST_SLUG: Final = 40
_LONGEST_PROJECT: Final = 100
_DIGEST: Final = 12
_HEADING: Final = re.compile(rf"\([0-9a-f]{{{_DIGEST}}}\)\Z")

ToolAnswer = Mapping[str, Any]
Calls = Generator[tuple[str, dict[str, Any]], ToolAnswer, "StoredCheckpoint"]


class StoredCheckpoint(NamedTuple):
    """The result of a checkpoint: `status` is `stored` or `unchanged`."""

    status: str
    id: str
    path: str
    version: int


class NotStored(Exception):
    """Raised if the server refused the text or the session's note is full.

    The message contains the next step.
    """


class Checkpoint(NamedTuple):
    """A text to save, with agent, session, project and time.

    The session None stands for the agent's note of the day.
    """

    text: str
    agent: str
    session: str | None
    project: str
    at: time.struct_time

    @property
    def path(self) -> str:
        """The path of the note that contains all checkpoints of the session."""
        key = self.session if self.session is not None else f"{self.agent} {self._day}"
        slug = re.sub(r"[^a-z0-9]+", "-", key.lower()[:_LONGEST_SLUG]).strip("-")
        # Without this digest, ids that begin alike or have unusual characters would share a file.
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        return f"{FOLDER}/{slug}-{digest}.md" if slug else f"{FOLDER}/{digest}.md"

    @property
    def digest(self) -> str:
        """A digest that identifies the text."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]

    @property
    def section(self) -> str:
        """The section to store: the text under a heading with its time and digest."""
        when = time.strftime("%Y-%m-%d %H:%M:%S UTC", self.at)
        return f"## {when} ({self.digest})\n\n{_lower_headings(self.text)}"

    @property
    def title(self) -> str:
        """The title of the note, which contains project, day and session."""
        which = self.agent if self.session is None else f"session {self.session[:8]}"
        return (
            f"Checkpoint of {beginning(self.project, _LONGEST_PROJECT) or 'a project'}, {self._day}, {which}"
        )

    @property
    def _day(self) -> str:
        return time.strftime("%Y-%m-%d", self.at)


def _lower_headings(text: str) -> str:
    """Return the text with all headings below the level of the section heading. Code blocks do not change."""
    lines, fence = [], ""
    for line in text.split("\n"):
        mark = line.lstrip()[:3]
        if mark in ("```", "~~~") and fence in ("", mark):
            fence = "" if fence else mark
        is_heading = not fence and re.match(r"#{1,6}(\s|$)", line)
        lines.append(f"{'#' * min(2, 6 - len(line) + len(line.lstrip('#')))}{line}" if is_heading else line)
    return "\n".join(lines)


def storing(checkpoint: Checkpoint) -> Calls:
    """Create the session's note, or append the text if the note does not contain it. Raises `NotStored`.

    Simultaneous checkpoints of one session do not overwrite one another: each append expects the version that
    was read, and a second new note at the same path is refused. After such a conflict, the procedure starts
    again.
    """
    refusal: ToolAnswer = {}
    for _ in range(_TRIES):
        known = yield "lithos_read", {"path": checkpoint.path, "outline": True, "agent_id": checkpoint.agent}
        if known.get("status") == "error":
            if known.get("code") != "doc_not_found":
                raise NotStored(str(known.get("message")))
            refusal = yield "lithos_write", _new_note(checkpoint)
            if refusal.get("status") == "created":
                return _stored("stored", refusal)
        else:
            texts = [row["section"] for row in known.get("outline", ()) if _HEADING.search(row["section"])]
            if any(title.endswith(f"({checkpoint.digest})") for title in texts):
                return _stored("unchanged", known)
            if len(texts) >= MOST:
                raise NotStored(
                    f"The note {checkpoint.path} of this session already has the maximum number "
                    f"of checkpoints, {MOST}. Write separate notes with lithos_write, or name "
                    "another --session."
                )
            refusal = yield (
                "lithos_note_edit",
                {
                    "path": checkpoint.path,
                    "op": "append",
                    "text": f"\n{checkpoint.section}\n",
                    "agent": checkpoint.agent,
                    "expected_version": known["version"],
                },
            )
            if refusal.get("status") == "updated":
                return _stored("stored", refusal)
        if refusal.get("code") not in ("version_conflict", "path_collision", "slug_collision"):
            break
    raise NotStored(
        str(refusal.get("message", "The server did not report whether the checkpoint was stored."))
    )


def _new_note(checkpoint: Checkpoint) -> dict[str, Any]:
    tags = ["checkpoint", *([beginning(checkpoint.project, _LONGEST_PROJECT)] if checkpoint.project else [])]
    session = {} if checkpoint.session is None else {"session": checkpoint.session}
    return {
        "title": checkpoint.title,
        "content": f"{checkpoint.section}\n",
        "agent": checkpoint.agent,
        "path": checkpoint.path,
        "tags": tags,
        "note_type": "summary",
        "metadata": session,
    }


def _stored(status: str, answer: ToolAnswer) -> StoredCheckpoint:
    metadata = answer.get("metadata", {})
    return StoredCheckpoint(
        status, str(answer.get("id", metadata.get("id", ""))), str(answer["path"]), int(answer["version"])
    )


_BEFORE: Final = """\
In the summary, keep a section "To store in Lithos" with everything that this session learned and has not
stored in Lithos yet: facts with their sources, decisions with their reasons, failed attempts. Also keep the
ids of notes and tasks in use, and the task id, aspect, fence and expiry of each claim. Write "nothing" if
there is nothing to keep.
"""
_AFTER: Final = """\
The conversation was shortened. The items that the summary lists under "To store in Lithos" are not stored
yet. Each topic has one note: lithos_note_edit changes a note that exists (lithos_search finds it), and
lithos_write creates one. Claims end unless lithos_task_renew renews them.
"""
_ANYTIME: Final = """\
Before this session's context is lost, store in Lithos what it learned and other agents will need, one note
per topic: use lithos_note_edit if the topic already has a note (check with lithos_search), otherwise
lithos_write. Post task results with lithos_finding_post.
"""


def reminder_for(told: Payload) -> str:
    """Return the reminder for an event. If the agent would not see a reminder, the result is empty."""
    if not told.is_shown or told.kind in ("prompt", "end") or told.event == "PostCompact":
        return ""
    if told.kind == "compaction":
        return _BEFORE
    if told.kind == "start":
        # Some clients run this hook at every start, because they ignore the matcher `compact`.
        return _AFTER if told.source in (None, "compact") else ""
    return _ANYTIME


def run_hook(invocation: Invocation) -> int:
    """Store the text, or print a reminder. Always return 0."""
    with suppress(*FAILURES):
        told = read_payload(invocation.typed)
        reminder = ""
        with suppress(NotStored, *FAILURES):
            reminder = _checkpoint(invocation, told)
        say(told, reminder)
    return 0


def _checkpoint(invocation: Invocation, told: Payload) -> str:
    """Store the text, or return a reminder. Raises `FAILURES` and `NotStored`."""
    text = "" if told.is_ignored else _text_of(invocation, told)
    words = "" if text else reminder_for(told)
    if not text and not words:
        return ""
    data, owner = find_hook_owner(invocation, deadline_after(DEADLINE))
    if text:
        _store(in_project(owner, told, invocation.typed), checkpoint_of(text, invocation.typed, told))
        return ""
    owner.check_health()
    if not is_first_answer(told, "checkpoint", data):
        return ""
    words = printable(words)
    return json.dumps({"text": words}) if invocation.as_json and told.dialect is None else words


def _text_of(invocation: Invocation, told: Payload) -> str:
    typed = invocation.typed
    if "text" in typed:
        text = str(typed["text"])
    elif typed.get("file", "-") != "-":
        with suppress(FileNotFoundError):
            return _shorten(read_file(Path(typed["file"])))
        return ""
    else:
        text = told.text or ""
    return _shorten(text.strip())


def _shorten(text: str) -> str:
    """Return the beginning of a text, with a remark that it was cut.

    In a hook, no person can shorten the text.
    """
    if len(text) <= LONGEST_TEXT:
        return text
    note = f"\n\n(Cut: the first {LONGEST_TEXT:,} of {len(text):,} characters.)"
    return beginning(text, LONGEST_TEXT - len(note)) + note


def _store(owner: HookOwner, checkpoint: Checkpoint) -> None:
    calls = storing(checkpoint)
    with suppress(StopIteration):
        tool, arguments = next(calls)
        while True:
            tool, arguments = calls.send(owner.call(tool, arguments))
