"""Principals: the name and the rights of a token, and the agent that it is bound to.

Specified in docs/spec/integration.md §3.

This module also defines the names under which Lithos itself acts. Every write that is not made under a
caller's name takes its name from here, so that no caller can use such a name (`check_agent`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal
from unicodedata import category, normalize

from attrs import field, frozen

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.limits import NAME

#: Author of changes by other programs, which the watcher or a start detects.
WATCHER_AGENT: Final = "watcher"
SCAN_AGENT: Final = "scan"
#: Author of undone changes, unless a person undoes them under another name.
UNDO_AGENT: Final = "undo"
#: Author of automatic merges of conflict copies, if `storage.conflict_copies` is `merge`.
MERGE_AGENT: Final = "merge"
#: Author of events and versions that enrichment creates.
ENRICH_AGENT: Final = "lithos-enrich"
#: Author of `task.ready` events of timer gates.
TIMER_AGENT: Final = "timer"
#: Name of a person at a terminal, or at the console without a chosen name.
CLI_AGENT: Final = "cli"
PERSON_AGENT: Final = "person"
#: Author for `lithos import` without `--agent`, and for `lithos evaluate`.
IMPORT_AGENT: Final = "import"
EVALUATE_AGENT: Final = "evaluate"
#: Author of rows without a name in tables of an older version, such as task edges.
MIGRATION_AGENT: Final = "migration"
#: Names that no caller may use. The name "enrich" could be mistaken for the enrich worker.
RESERVED: Final = frozenset({
    WATCHER_AGENT, SCAN_AGENT, UNDO_AGENT, MERGE_AGENT, ENRICH_AGENT, "enrich", TIMER_AGENT, CLI_AGENT,
    PERSON_AGENT, IMPORT_AGENT, EVALUATE_AGENT, MIGRATION_AGENT,
})  # fmt: skip
#: Name of callers that gave no name. It belongs to no agent, so every caller may use it.
UNKNOWN_AGENT: Final = "unknown"

Rights = Literal["metrics", "read", "write", "admin"]
#: Rights in ascending order: each includes all earlier rights.
RIGHTS: Final[tuple[Rights, ...]] = ("read", "write", "admin")
#: Rights that a remote client may request, which are the scopes of OAuth.
REMOTE_RIGHTS: Final[tuple[Rights, ...]] = ("read", "write")
#: Rights of tokens, fewest first. `metrics` is the right to see `/metrics`. Of the other rights, only `admin`
#: includes it.
TOKEN_RIGHTS: Final[tuple[Rights, ...]] = ("metrics", *RIGHTS)


@frozen
class Principal:
    """The caller of a request, never with its secret.

    `name` is the token's name in `lithos token list`. `agent` is the agent that the token is bound to. If it
    is None, the caller may name any agent.
    """

    name: str
    rights: Rights
    agent: str | None = None
    #: Whether a command or page of Lithos makes the call for a person. It may act under `RESERVED` names.
    is_own: bool = field(default=False, eq=False)
    #: Whether a person acts at the console, under any chosen name (docs/spec/scopes.md §1).
    is_person: bool = field(default=False, eq=False)
    #: Mark that distinguishes a token from a later token with the same name, rights and agent. Not a secret.
    mark: str = field(default="", repr=False)
    #: Whether the client came by OAuth and may therefore know only `search` and `fetch`
    #: (docs/spec/connectors.md §5).
    is_connector: bool = field(default=False, eq=False)

    def may(self, needed: Rights) -> bool:
        """Return whether these rights include `needed`.

        The right to read notes does not include `/metrics`.
        """
        if "metrics" in (self.rights, needed):
            return needed == "metrics" and self.rights in ("metrics", "admin")
        return RIGHTS.index(self.rights) >= RIGHTS.index(needed)


#: The user who owns the server: stdio, the bridge, and commands and hooks of the same user.
OWNER: Final = Principal("owner", "admin")
#: Principal of all callers while no token is defined.
ANYONE: Final = Principal("anyone", "admin")
#: Principal of an owner's command that calls the tools itself, without an agent.
COMMAND: Final = Principal("owner", "admin", is_own=True)
#: HTTP header that marks such a command. It is only valid with the owner's token.
OWN_CALL: Final = "lithos-own-call"


def fold_name(name: str) -> str:
    """Return a common form for names that look the same. Ignores case, width and invisible characters."""
    if len(name) > NAME:  # The text is too long for a name.
        return name
    if not name.isascii():
        folded = normalize("NFKC", normalize("NFKC", name).casefold())
        name = "".join(each for each in folded if category(each) not in ("Cc", "Cf", "Mn", "Me"))
    return name.strip().casefold()


def is_reserved(name: str) -> bool:
    """Return whether a name looks like one of Lithos's own names."""
    return fold_name(name) in RESERVED


def check_agent(name: str, what: str = "agent") -> str:
    """Return the name that a caller gave for itself. Raises `InvalidInput` if it is reserved."""
    if is_reserved(name):
        raise InvalidInput(
            f"{what} must not be {name.strip()[:60]!r}: Lithos itself acts under that name. "
            "Choose your own name, such as claude-code@laptop, and use it in every call."
        )
    return name


#: The caller on whose behalf this task makes requests. Lithos's own background work, such as enrichment, has
#: no caller. Each request reads this when it is created, so that no endpoint can forget to pass it.
ACTING: Final[ContextVar[Principal | None]] = ContextVar("lithos_acting", default=None)


@contextmanager
def acting_as(principal: Principal) -> Iterator[None]:
    """Attribute the write requests that the block makes in this task to this caller."""
    token = ACTING.set(principal)
    try:
        yield
    finally:
        ACTING.reset(token)
