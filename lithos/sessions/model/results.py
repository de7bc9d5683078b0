"""Results of the service `Sessions`: hits, pages, excerpts of a session, and the state of the index."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal

from attrs import field, frozen

from lithos.sessions.model.session import Session, Turn

#: The same values as in `lithos.search.ranking.match_strength`.
Strength = Literal["strong", "fair", "weak"]
#: Returns whether the caller may see the sessions of a project. None means sessions without a project.
Reach = Callable[[str | None], bool]


def everything(_: str | None) -> bool:
    """Let the caller see all sessions. For callers without a limited scope."""
    return True


#: Number of neighbours before and after a turn that `Sessions.turns` returns if `span` is not given.
SPAN: Final = 2
#: Maximum number of turns of one excerpt, of hits of one search, and of rows of one page.
MOST_SHOWN: Final = 100
MOST_HITS: Final = 100
MOST_ROWS: Final = 500


@frozen(kw_only=True)
class SessionHit:
    """A turn that a search found. `score` is 0..1, and `strength` says whether it probably answers.

    Hits are ordered by score. Only the first three can be `strong` or `fair`. `snippet` is masked, like
    everything that is stored.
    """

    id: str
    number: int
    score: float
    strength: Strength
    snippet: str
    session: Session
    turn: Turn


@frozen(kw_only=True)
class SessionPart:
    """Consecutive turns of a session, and the number of all its turns."""

    session: Session
    turns: Sequence[Turn]
    total: int


@frozen(kw_only=True)
class SessionPage:
    """Sessions, the newest first, and the number of all that match."""

    sessions: Sequence[Session]
    total: int


@frozen(kw_only=True)
class TranscriptProblem:
    """A transcript of which something could not be read. `reasons` are sentences."""

    path: str
    reasons: tuple[str, ...]


@frozen(kw_only=True)
class FolderStatus:
    """An added folder: its client or path, its transcripts, and why it cannot be read (or "")."""

    name: str
    client: str
    path: str
    files: int
    bytes: int
    sessions: int
    problem: str = ""


@frozen(kw_only=True)
class SessionsStatus:
    """The state of the index of sessions.

    `waiting` is the number of transcripts that are known and not yet read to their end. `trouble` is the
    reason why nothing is indexed now, or None.
    """

    is_enabled: bool
    folders: Sequence[FolderStatus] = ()
    sessions: int = 0
    turns: int = 0
    waiting: int = 0
    #: Number of turns with vectors of the current model.
    embedded: int = 0
    problems: Sequence[TranscriptProblem] = ()
    #: Number of all transcripts with problems. `problems` has the first of them.
    problem_count: int = 0
    skipped: Mapping[str, int] = field(factory=dict)
    surveyed_at: datetime | None = None
    trouble: str | None = None
