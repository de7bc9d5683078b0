"""`lithos token create`, `list`, `revoke` and `off`: what is typed, what is printed.

The token itself is printed once, alone on a line of stdout, so that a script can take it; everything else
that is said goes to stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from lithos.cli.output import print_json, print_line
from lithos.cli.printable import make_printable
from lithos.cli.session import CommandFailed, Session
from lithos.core.principals import Rights
from lithos.core.times import format_time
from lithos.stores.tokens import Token, TokenRefused, TokenStore, TokensUnreadable, read_tokens


def run_token(session: Session) -> int:
    """Change or show the tokens. Raises `CommandFailed`."""
    try:
        return _ACTIONS[session.invocation.typed["action"]](session)
    except (TokenRefused, TokensUnreadable) as refusal:
        raise CommandFailed(f"{str(refusal).rstrip('.')}.") from refusal
    except OSError as failure:
        place = failure.filename or _private(session)
        raise CommandFailed(
            f"The tokens cannot be changed: {failure.strerror} ({place}). Run this as the user who runs the "
            "server."
        ) from failure


def _create(session: Session) -> int:
    typed = session.invocation.typed
    now = datetime.now(UTC)
    rights: Rights = typed.get("rights", "write")
    expires_at = _expiry(now, typed.get("expires"))
    token, secret = _store(session).create(typed["name"], rights, typed.get("agent"), now, expires_at)
    if session.invocation.as_json:
        print_json({**_row(token, now), "token": secret})
    else:
        print_line(secret)
    who = "any agent" if token.agent is None else f"the agent '{token.agent}' alone"
    end = "" if expires_at is None else f", until {expires_at:%Y-%m-%d %H:%M} UTC"
    _tell(session, f"The token '{token.name}' may {_MAY[token.rights]} as {who}{end}. It is not shown again.")
    _tell(session, "Clients send it as a header: Authorization: Bearer TOKEN")
    if session.config.server.auth_token is None and _count(session) == 1:
        _tell(session, "From now on nobody uses this server without a token, but this user's commands.")
    return 0


def _list(session: Session) -> int:
    now = datetime.now(UTC)
    tokens = read_tokens(_private(session))
    if session.invocation.as_json:
        print_json({"tokens": [_row(token, now) for token in tokens or ()], "required": tokens is not None})
        return 0
    if not tokens:
        print_line("No named tokens are defined." if tokens is None else _NONE_LEFT)
    for token in tokens or ():
        agent = "any agent" if token.agent is None else token.agent
        end = "never expires"
        if token.expires_at is not None:
            word = "expired" if token.has_expired(now) else "expires"
            end = f"{word} {token.expires_at:%Y-%m-%d %H:%M} UTC"
        since = f"since {token.created_at:%Y-%m-%d}"
        print_line(f"{token.name:<24}  {token.rights:<5}  {agent:<24}  {since}  {end}")
    return 0


def _revoke(session: Session) -> int:
    token, left = _store(session).revoke(session.invocation.typed["name"])
    if session.invocation.as_json:
        print_json({"revoked": token.name, "left": left})
    else:
        print_line(f"The token '{token.name}' is revoked. A running server ends its streams within 2 s.")
    if not left:
        _tell(session, _NONE_LEFT)
    return 0


def _off(session: Session) -> int:
    _store(session).stop_asking()
    if session.invocation.as_json:
        print_json({"required": False})
    else:
        print_line("Named tokens are not asked for any more.")
    if session.config.server.auth_token is None:
        _tell(session, "Everyone who can reach this server can now read and change all notes.")
    return 0


_NONE_LEFT: Final = (
    "No named token is left, and the server stays closed to all but this user's own commands. Create another "
    "one, or open it to everyone who can reach it: lithos token off"
)
_MAY: Final[Mapping[Rights, str]] = {
    "read": "read",
    "write": "read and write",
    "admin": "do everything",
}
_ACTIONS: Final[Mapping[str, Callable[[Session], int]]] = {
    "create": _create,
    "list": _list,
    "revoke": _revoke,
    "off": _off,
}


def _store(session: Session) -> TokenStore:
    return TokenStore(_private(session))


def _private(session: Session) -> Path:
    return session.config.storage.data_dir / ".lithos"


def _count(session: Session) -> int:
    return len(read_tokens(_private(session)) or ())


def _expiry(now: datetime, days: float | None) -> datetime | None:
    return None if days is None else now + timedelta(days=days)


def _row(token: Token, now: datetime) -> dict[str, Any]:
    return {
        "name": token.name,
        "rights": token.rights,
        "agent": token.agent,
        "created_at": format_time(token.created_at),
        "expires_at": None if token.expires_at is None else format_time(token.expires_at),
        "expired": token.has_expired(now),
    }


def _tell(session: Session, text: str) -> None:
    """A hint for a person."""
    if not session.invocation.as_json:
        print(make_printable(text), file=sys.stderr)
