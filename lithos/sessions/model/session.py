"""A session with an AI client, and its turns (docs/spec/sessions.md §2)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import datetime
from typing import Final, Literal

from attrs import field, frozen

#: Maximum number of characters of one turn's text that are stored. The rest is counted in `Turn.cut`.
MOST_TEXT: Final = 64_000
#: Number of characters of a tool's output that are stored, and maximum number of outputs of one turn.
MOST_OUTPUT: Final = 300
MOST_OUTPUTS: Final = 20
#: Maximum number of tools and of files that one turn names, and maximum length of each name.
MOST_TOOLS: Final = 50
MOST_FILES: Final = 50
LONGEST_NAME: Final = 300
#: Maximum number of turns of one session, and of all their characters. Later turns are not read.
MOST_TURNS: Final = 20_000
MOST_OF_SESSION: Final = 16_000_000
#: Maximum number of characters of a title.
LONGEST_TITLE: Final = 200
#: Clients whose own session ids are also accepted in an address of a session.
CLIENT_NAMES: Final = ("claude-code", "codex", "gemini", "opencode")
#: Beginning of every session id.
PREFIX: Final = "ses_"

#: `user` is the person, `assistant` is the client. `agent` is another agent that gives a sub-agent its
#: prompt.
Who = Literal["user", "agent", "assistant"]


@frozen
class Turn:
    """One prompt, or one answer with the tool calls after it. Numbers begin at 1.

    All texts are masked. `outputs` has the first characters of the tools' outputs. `key` is the client's own
    id of the message, if it has one. `cut` is the number of characters that were not stored.
    """

    number: int
    who: Who
    when: datetime | None
    text: str
    tools: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    key: str = ""
    cut: int = 0

    def parts(self) -> Iterator[str]:
        """Yield the texts that are indexed."""
        yield self.text
        yield from self.outputs
        names = " ".join((*self.tools, *self.files))
        if names:
            yield names

    @property
    def size(self) -> int:
        """Return the number of stored characters."""
        return sum(map(len, self.parts()))


@frozen(kw_only=True)
class Session:
    """A session. `id` is stable as long as the client calls the session by the same name.

    `agent` is the client's name, for a transcript of a sub-agent with the sub-agent's name after a slash.
    `project` is the key of docs/spec/projects.md §1. `path` is the transcript. `gone_at` is the time at which
    the transcript was found missing; its text is kept for `sessions.keep_days` from then on. `notices` says
    in sentences which parts could not be read.
    """

    id: str
    client: str
    agent: str
    project: str | None
    title: str
    begun: datetime | None
    ended: datetime | None
    turns: int
    path: str = ""
    gone_at: datetime | None = None
    notices: tuple[str, ...] = field(default=())


def session_id(client: str, native: str) -> str:
    """Return the id of a session from the client's name and the client's own id of it."""
    digest = hashlib.blake2b(f"{client}\0{native}".encode("utf-8", "surrogatepass"), digest_size=8)
    return PREFIX + digest.hexdigest()


def title_of(prompt: str) -> str:
    """Return the first lines of a prompt as one line, at most `LONGEST_TITLE` characters."""
    line = " ".join(prompt[: 4 * LONGEST_TITLE].split())
    return line if len(line) <= LONGEST_TITLE else f"{line[: LONGEST_TITLE - 1].rstrip()}…"
