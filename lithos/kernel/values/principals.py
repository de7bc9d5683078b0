"""Who calls: the name of a token, what it may do, and the agent that it is bound to.

Specified in docs/spec/integration.md §3.

And the names under which Lithos itself acts: whatever writes an agent that is no caller's takes its name from
here, so that no caller can give it (`check_agent`).
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

#: What other programs did, as the watcher notices it and as a start finds it.
WATCHER_AGENT: Final = "watcher"
SCAN_AGENT: Final = "scan"
#: Takes changes back, unless a person does it under another name.
UNDO_AGENT: Final = "undo"
#: Merges conflict copies by itself, where `storage.conflict_copies` is `merge`.
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
#: What the tables of an older version said without a name, as edges of tasks.
MIGRATION_AGENT: Final = "migration"
#: What no caller may call itself; "enrich" would be taken for the worker.
RESERVED: Final = frozenset({
    WATCHER_AGENT, SCAN_AGENT, UNDO_AGENT, MERGE_AGENT, ENRICH_AGENT, "enrich", TIMER_AGENT, CLI_AGENT,
    PERSON_AGENT, IMPORT_AGENT, EVALUATE_AGENT, MIGRATION_AGENT,
})  # fmt: skip
#: Whoever gave no name: nobody's, so that everybody may be called so.
UNKNOWN_AGENT: Final = "unknown"

Rights = Literal["metrics", "read", "write", "admin"]
#: From the fewest to the most: each may do what those before it may.
RIGHTS: Final[tuple[Rights, ...]] = ("read", "write", "admin")
#: The rights that a remote client may ask for: the scopes of OAuth.
REMOTE_RIGHTS: Final[tuple[Rights, ...]] = ("read", "write")
#: Those of tokens, from the fewest: besides them the one to see `/metrics`, which only `admin` includes.
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
    #: A command or a page of Lithos asks, for a person: it may act under `RESERVED` names.
    is_own: bool = field(default=False, eq=False)
    #: A person asks at the console, whatever name that chose (docs/spec/scopes.md §1).
    is_person: bool = field(default=False, eq=False)
    #: Tells a token from a later one of the same name, rights and agent; no secret.
    mark: str = field(default="", repr=False)
    #: Came by OAuth, so that it may know `search` and `fetch` only (docs/spec/connectors.md §5).
    is_connector: bool = field(default=False, eq=False)

    def may(self, needed: Rights) -> bool:
        """Whether these rights include `needed`. The one to see `/metrics` is no part of reading notes."""
        if "metrics" in (self.rights, needed):
            return needed == "metrics" and self.rights in ("metrics", "admin")
        return RIGHTS.index(self.rights) >= RIGHTS.index(needed)


#: The user who owns the server: stdio, the bridge, commands and hooks of the same user.
OWNER: Final = Principal("owner", "admin")
#: Everybody, where no token is defined; valid only for as long as that lasts.
ANYONE: Final = Principal("anyone", "admin")
#: A command of the owner, as it calls the tools itself; no agent speaks through it.
COMMAND: Final = Principal("owner", "admin", is_own=True)
#: The HTTP header by which a command says so; it counts beside the owner's token alone.
OWN_CALL: Final = "lithos-own-call"


def fold_name(name: str) -> str:
    """What names that read the same have in common, whatever their case, width and invisible characters."""
    if len(name) > NAME:  # too long for any name
        return name
    if not name.isascii():
        folded = normalize("NFKC", normalize("NFKC", name).casefold())
        name = "".join(each for each in folded if category(each) not in ("Cc", "Cf", "Mn", "Me"))
    return name.strip().casefold()


def is_reserved(name: str) -> bool:
    """Whether a name reads as one of Lithos's own."""
    return fold_name(name) in RESERVED


def check_agent(name: str, what: str = "agent") -> str:
    """The name, for a caller who says who it is. Raises `InvalidInput` for a reserved one."""
    if is_reserved(name):
        raise InvalidInput(
            f"{what} must not be {name.strip()[:60]!r}: Lithos itself acts under that name. Use one of your "
            "own, the same in every call, such as claude-code@laptop."
        )
    return name


#: On whose behalf the requests of this task are made; what Lithos does by itself, as enrichment, acts for
#: nobody. Each request takes it when it is made, so that no endpoint can forget to say it.
ACTING: Final[ContextVar[Principal | None]] = ContextVar("lithos_acting", default=None)


@contextmanager
def acting_as(principal: Principal) -> Iterator[None]:
    """Have the write requests that the block makes, in this task, count as those of this caller."""
    token = ACTING.set(principal)
    try:
        yield
    finally:
        ACTING.reset(token)
