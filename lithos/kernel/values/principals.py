"""Principals: the name of a token, its rights, and the agent that it is bound to.

Specified in docs/spec/integration.md §3.

Also the names under which Lithos itself acts: every write under a name that is not a caller's takes the name
from here, so that no caller can use it (`check_agent`).
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

#: Changes of other programs, which the watcher or a start notices.
WATCHER_AGENT: Final = "watcher"
SCAN_AGENT: Final = "scan"
#: Takes changes back, unless a person does it under another name.
UNDO_AGENT: Final = "undo"
#: Merges conflict copies automatically, if `storage.conflict_copies` is `merge`.
MERGE_AGENT: Final = "merge"
#: Events and versions made by enrichment.
ENRICH_AGENT: Final = "lithos-enrich"
#: `task.ready` when a timer gate opened.
TIMER_AGENT: Final = "timer"
#: A person at a terminal, and one at the console who chose no name.
CLI_AGENT: Final = "cli"
PERSON_AGENT: Final = "person"
#: `lithos import` without `--agent`, and `lithos evaluate`.
IMPORT_AGENT: Final = "import"
EVALUATE_AGENT: Final = "evaluate"
#: Author of rows without a name in the tables of an older version, such as edges of tasks.
MIGRATION_AGENT: Final = "migration"
#: Names that no caller may use; "enrich" would be mistaken for the worker.
RESERVED: Final = frozenset({
    WATCHER_AGENT, SCAN_AGENT, UNDO_AGENT, MERGE_AGENT, ENRICH_AGENT, "enrich", TIMER_AGENT, CLI_AGENT,
    PERSON_AGENT, IMPORT_AGENT, EVALUATE_AGENT, MIGRATION_AGENT,
})  # fmt: skip
#: The name of callers that gave none. It belongs to no agent, so every caller may use it.
UNKNOWN_AGENT: Final = "unknown"

Rights = Literal["metrics", "read", "write", "admin"]
#: From the fewest to the most: each may do what those before it may.
RIGHTS: Final[tuple[Rights, ...]] = ("read", "write", "admin")
#: The rights that a remote client may ask for: the scopes of OAuth.
REMOTE_RIGHTS: Final[tuple[Rights, ...]] = ("read", "write")
#: Rights of tokens, from the fewest: also the right to see `/metrics`, which only `admin` includes.
TOKEN_RIGHTS: Final[tuple[Rights, ...]] = ("metrics", *RIGHTS)


@frozen
class Principal:
    """The caller of a request: never the secret itself.

    `name` is the token's name as `lithos token list` shows it. `agent` is the identity that the token is
    bound to; None lets the caller name any agent.
    """

    name: str
    rights: Rights
    agent: str | None = None
    #: A command or a page of Lithos calls, for a person: it may act under `RESERVED` names.
    is_own: bool = field(default=False, eq=False)
    #: A person acts at the console, under whatever chosen name (docs/spec/scopes.md §1).
    is_person: bool = field(default=False, eq=False)
    #: Distinguishes a token from a later one of the same name, rights and agent; not a secret.
    mark: str = field(default="", repr=False)
    #: Came by OAuth, so that it may know `search` and `fetch` only (docs/spec/connectors.md §5).
    is_connector: bool = field(default=False, eq=False)

    def may(self, needed: Rights) -> bool:
        """Return whether these rights include `needed`. Reading notes does not include `/metrics`."""
        if "metrics" in (self.rights, needed):
            return needed == "metrics" and self.rights in ("metrics", "admin")
        return RIGHTS.index(self.rights) >= RIGHTS.index(needed)


#: The user who owns the server: stdio, the bridge, commands and hooks of the same user.
OWNER: Final = Principal("owner", "admin")
#: All callers, if no token is defined; valid only as long as that lasts.
ANYONE: Final = Principal("anyone", "admin")
#: A command of the owner that calls the tools itself, without an agent.
COMMAND: Final = Principal("owner", "admin", is_own=True)
#: The HTTP header by which a command says so; it counts only together with the owner's token.
OWN_CALL: Final = "lithos-own-call"


def fold_name(name: str) -> str:
    """Return the common form of names that read the same, ignoring case, width and invisible characters."""
    if len(name) > NAME:  # too long for any name
        return name
    if not name.isascii():
        folded = normalize("NFKC", normalize("NFKC", name).casefold())
        name = "".join(each for each in folded if category(each) not in ("Cc", "Cf", "Mn", "Me"))
    return name.strip().casefold()


def is_reserved(name: str) -> bool:
    """Return whether a name reads like one of Lithos's own names."""
    return fold_name(name) in RESERVED


def check_agent(name: str, what: str = "agent") -> str:
    """Return the name, for a caller that gives its own name. Raises `InvalidInput` for a reserved one."""
    if is_reserved(name):
        raise InvalidInput(
            f"{what} must not be {name.strip()[:60]!r}: Lithos itself acts under that name. Use one of your "
            "own, the same in every call, such as claude-code@laptop."
        )
    return name


#: The caller for whom the requests of this task are made; background work of Lithos, such as enrichment, has
#: no caller. Each request takes it when it is made, so that no endpoint can forget to pass it.
ACTING: Final[ContextVar[Principal | None]] = ContextVar("lithos_acting", default=None)


@contextmanager
def acting_as(principal: Principal) -> Iterator[None]:
    """Attribute the write requests that the block makes, in this task, to this caller."""
    token = ACTING.set(principal)
    try:
        yield
    finally:
        ACTING.reset(token)
