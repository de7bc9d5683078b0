"""Who calls: the name of a token, what it may do, and the agent that it is bound to (integration spec, 3)."""

from __future__ import annotations

from typing import Final, Literal, Protocol

from attrs import field, frozen

Rights = Literal["read", "write", "admin"]
#: From the fewest to the most: each may do what those before it may.
RIGHTS: Final[tuple[Rights, ...]] = ("read", "write", "admin")


@frozen
class Principal:
    """The caller of a request: never the secret itself.

    `name` is the token's name as `lithos token list` shows it. `agent` is the identity that the token is
    bound to; None lets the caller name any agent.
    """

    name: str
    rights: Rights
    agent: str | None = None
    #: Tells a token from a later one of the same name, rights and agent; no secret.
    mark: str = field(default="", repr=False)

    def may(self, needed: Rights) -> bool:
        """Whether these rights include `needed`."""
        return RIGHTS.index(self.rights) >= RIGHTS.index(needed)


#: The user who owns the server: stdio, the bridge, commands and hooks of the same user.
OWNER: Final = Principal("owner", "admin")
#: Everybody, where no token is defined; valid only for as long as that lasts.
ANYONE: Final = Principal("anyone", "admin")


class Keyring(Protocol):
    """The tokens that are valid now: `server.auth_token`, the named ones, the owner's own."""

    @property
    def is_open(self) -> bool:
        """Whether no token is defined, and everybody the owner; not where a token file is unreadable."""
        ...

    def find(self, secret: bytes) -> Principal | None:
        """The principal of a token, compared in constant time over all; None for a wrong or expired one."""
        ...

    def is_valid(self, principal: Principal) -> bool:
        """Whether the token of this principal is still there, unexpired, with the same rights and agent."""
        ...

    async def wait_changed(self) -> None:
        """Wait until a principal may have become invalid: a token was revoked, changed, or has expired."""
        ...
