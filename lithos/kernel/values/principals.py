"""Principals: the name and rights of a token, and the agent to which it is bound.

Specified in docs/spec/integration.md §3.

This module also defines the names under which Lithos itself acts. Every write without a caller's name uses
one of these names, and `check_agent` prevents callers from using them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal
from unicodedata import category, normalize

from attrs import evolve, field, frozen

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.limits import NAME

#: Author of changes by other programs. The watcher or a server start detects these changes.
WATCHER_AGENT: Final = "watcher"
SCAN_AGENT: Final = "scan"
#: Author of undone changes, unless a person undoes them with another name.
UNDO_AGENT: Final = "undo"
#: Author of automatic merges of conflict copies, if `storage.conflict_copies` is `merge`.
MERGE_AGENT: Final = "merge"
#: Author of events and versions that enrichment creates.
ENRICH_AGENT: Final = "lithos-enrich"
#: Author of the `task.ready` events of timer gates.
TIMER_AGENT: Final = "timer"
#: Name of a person at a terminal, or of a person at the console who has not chosen a name.
CLI_AGENT: Final = "cli"
PERSON_AGENT: Final = "person"
#: Author of changes by `lithos import` without `--agent`, and by `lithos evaluate`.
IMPORT_AGENT: Final = "import"
EVALUATE_AGENT: Final = "evaluate"
#: Author of rows without a name, such as task edges, in tables of an older version.
MIGRATION_AGENT: Final = "migration"
#: Authors of changes to adopted memory files: moved lines, and merged writes of several sessions.
TRIM_AGENT: Final = "lithos-trim"
SESSIONS_AGENT: Final = "lithos-sessions"
#: Names that no caller may use. The name "enrich" could be mistaken for that of the enrich worker.
RESERVED: Final = frozenset({
    WATCHER_AGENT, SCAN_AGENT, UNDO_AGENT, MERGE_AGENT, ENRICH_AGENT, "enrich", TIMER_AGENT, CLI_AGENT,
    PERSON_AGENT, IMPORT_AGENT, EVALUATE_AGENT, MIGRATION_AGENT, TRIM_AGENT, SESSIONS_AGENT,
})  # fmt: skip
#: Name of callers without a name. It belongs to no agent, so every caller may use it.
UNKNOWN_AGENT: Final = "unknown"

Rights = Literal["metrics", "read", "write", "admin"]
#: Rights in ascending order. Each right includes all earlier rights.
RIGHTS: Final[tuple[Rights, ...]] = ("read", "write", "admin")
#: Rights that a remote client may request. They are the OAuth scopes.
REMOTE_RIGHTS: Final[tuple[Rights, ...]] = ("read", "write")
#: Rights of tokens, lowest first. `metrics` is the right to read `/metrics`. Of the other rights, only
#: `admin` includes it.
TOKEN_RIGHTS: Final[tuple[Rights, ...]] = ("metrics", *RIGHTS)


@frozen
class Principal:
    """The caller of a request. It never contains the caller's secret.

    `name` is the name of the token in `lithos token list`. `agent` is the agent to which the token is bound.
    If it is None, the caller may use any agent name.
    """

    name: str
    rights: Rights
    agent: str | None = None
    #: Whether a command or page of Lithos makes the call for a person. Such a call may use `RESERVED` names.
    is_own: bool = field(default=False, eq=False)
    #: Whether a person acts at the console. A person may choose any name (docs/spec/scopes.md §1).
    is_person: bool = field(default=False, eq=False)
    #: Mark that distinguishes a token from a later token with the same name, rights and agent. The mark is
    #: not secret.
    mark: str = field(default="", repr=False)
    #: Whether the client uses OAuth. Such a client may support only `search` and `fetch`
    #: (docs/spec/connectors.md §5).
    is_connector: bool = field(default=False, eq=False)
    #: Project from which the caller makes this request, and its client session, if it said so
    #: (docs/spec/projects.md §2).
    project: str | None = field(default=None, eq=False)
    session: str | None = field(default=None, eq=False)

    def may(self, needed: Rights) -> bool:
        """Return whether the rights of this principal include `needed`.

        The right to read notes does not include `/metrics`.
        """
        if "metrics" in (self.rights, needed):
            return needed == "metrics" and self.rights in ("metrics", "admin")
        return RIGHTS.index(self.rights) >= RIGHTS.index(needed)

    def coming_from(self, other: Principal) -> Principal:
        """Return this principal with the project and session of `other`, unless it has its own."""
        if other.project is None and other.session is None:
            return self
        return evolve(self, project=self.project or other.project, session=self.session or other.session)


#: The user who owns the server. Calls over stdio, through the bridge, and by commands and hooks of this user
#: have this principal.
OWNER: Final = Principal("owner", "admin")
#: Principal of all callers if no token is defined.
ANYONE: Final = Principal("anyone", "admin")
#: Principal of a command of the owner that calls the tools directly, without an agent.
COMMAND: Final = Principal("owner", "admin", is_own=True)
#: HTTP header that marks such a command. It is valid only with the owner's token.
OWN_CALL: Final = "lithos-own-call"


def fold_name(name: str) -> str:
    """Return a common form for names that look alike. Case, width and invisible characters are ignored."""
    if len(name) > NAME:  # A longer text cannot be a name.
        return name
    if not name.isascii():
        folded = normalize("NFKC", normalize("NFKC", name).casefold())
        name = "".join(each for each in folded if category(each) not in ("Cc", "Cf", "Mn", "Me"))
    return name.strip().casefold()


def is_reserved(name: str) -> bool:
    """Return whether a name looks like a name that Lithos itself uses."""
    return fold_name(name) in RESERVED


def check_agent(name: str, what: str = "agent") -> str:
    """Return the name that a caller uses for itself. Raises `InvalidInput` if the name is reserved."""
    if is_reserved(name):
        raise InvalidInput(
            f"{what} must not be {name.strip()[:60]!r}: Lithos itself acts under that name. "
            "Choose your own name, such as claude-code@laptop, and use it in every call."
        )
    return name


#: The caller for whom this task makes requests. Background work of Lithos, such as enrichment, has no caller.
#: Each request reads this variable when it is created, so that no endpoint can forget to pass the caller.
ACTING: Final[ContextVar[Principal | None]] = ContextVar("lithos_acting", default=None)


@contextmanager
def acting_as(principal: Principal) -> Iterator[None]:
    """Attribute the write requests in this block to this caller. This applies to the current task."""
    token = ACTING.set(principal)
    try:
        yield
    finally:
        ACTING.reset(token)
