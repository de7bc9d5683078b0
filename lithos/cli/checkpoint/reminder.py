"""What a hook says to the model when it was given nothing to keep, by where its words reach the model.

Of Claude Code's hooks plain stdout of `SessionStart` becomes context, that of `PreCompact` joins the
instructions of the summary, and that of `SessionEnd` reaches nobody. JSON would be refused before a
compaction (`hookSpecificOutput` knows no such event), so all of it is plain text.
"""

from __future__ import annotations

from typing import Final

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
