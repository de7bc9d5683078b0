"""`lithos checkpoint --hook`: keep the text that it is given, else remind the agent; or nothing at all.

The promise of `lithos.cli.hooks.silence` holds; what it stores it does not tell.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lithos.cli.hooks.owner import HookOwner, find_hook_owner
from lithos.cli.hooks.payload import Payload, read_payload
from lithos.cli.hooks.silence import DEADLINE, FAILURES, print_text, printable
from lithos.cli.hooks.storing import LONGEST_TEXT, Checkpoint, NotStored, checkpoint_of, read_file, storing

_BEFORE: Final = """\
Keep in the summary, under the heading "To store in Lithos", what this session learned and has not stored in
Lithos yet: facts with their sources, decisions with their reasons, what was tried and failed. Keep the ids of
notes and tasks in use, and of each claim its task id, aspect, fence and expiry. Write "nothing" where
there is nothing.
"""
_AFTER: Final = """\
The conversation was shortened. What the summary lists under "To store in Lithos", store now, before you go
on: one topic a note, with lithos_write, or with lithos_note_edit where a note of the topic exists (look
with lithos_search). Renew the claims you still need with lithos_task_renew.
"""
_ANYTIME: Final = """\
Before this session's context is lost, store in Lithos what it learned and others will need: one topic a note,
with lithos_write, or with lithos_note_edit where a note of the topic exists (look with lithos_search). Post
results of tasks with lithos_finding_post.
"""
#: By the name of the event; other clients have others.
_BY_EVENT: Final = {"PreCompact": _BEFORE, "SessionStart": _AFTER, "PostCompact": "", "SessionEnd": ""}


def reminder_for(event: str | None) -> str:
    """What to say; nothing where nobody would read it."""
    return _ANYTIME if event is None else _BY_EVENT.get(event, _ANYTIME)


if TYPE_CHECKING:
    from lithos.cli.options import Invocation


def run_hook(invocation: Invocation) -> int:
    """Keep or remind, and return 0 whatever comes of it."""
    with suppress(NotStored, *FAILURES):
        _checkpoint(invocation)
    return 0


def _checkpoint(invocation: Invocation) -> None:
    _, owner = find_hook_owner(invocation, time.monotonic() + DEADLINE)
    told = read_payload()
    text = _text_of(invocation, told)
    if text:
        _store(owner, checkpoint_of(text, invocation.typed, told.session, told.cwd))
        return
    words = reminder_for(told.event)
    if words:
        owner.check_health()
        words = printable(words)
        print_text(json.dumps({"text": words}) if invocation.as_json else words)


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
    """The beginning, with a word that it is one: nobody is there to make it shorter."""
    if len(text) <= LONGEST_TEXT:
        return text
    note = f"\n\n(Cut: the first {LONGEST_TEXT:,} of {len(text):,} characters.)"
    return text[: LONGEST_TEXT - len(note)] + note


def _store(owner: HookOwner, checkpoint: Checkpoint) -> None:
    calls = storing(checkpoint)
    with suppress(StopIteration):
        tool, arguments = next(calls)
        while True:
            tool, arguments = calls.send(owner.call(tool, arguments))
