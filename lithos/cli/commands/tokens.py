"""`lithos token create`, `list`, `revoke` and `off`: what is typed, what is printed.

The token itself is printed once, alone on a line of stdout, so that a script can take it; everything else
that is said goes to stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from secrets import token_urlsafe
from typing import Any, Final

from lithos.cli.output import tell
from lithos.cli.session import CommandFailed, Session, refusing
from lithos.cli.streams import make_printable
from lithos.core.oauth.clients import OWN_PREFIX, Client, read_name
from lithos.core.oauth.redirects import check_redirects
from lithos.core.principals import Rights
from lithos.core.scopes import Scope, check_typed, make_scope
from lithos.core.times import format_time
from lithos.stores.oauth.clients import MOST_CLIENTS, ClientsFull, ClientStore
from lithos.stores.oauth.login_links import LoginLinks
from lithos.stores.oauth.private_file import FileBusy
from lithos.stores.tokens import Token, TokenRefused, TokenStore, TokensUnreadable, read_tokens


def run_token(session: Session) -> int:
    """Change or show the tokens. Raises `CommandFailed`."""
    try:
        return _ACTIONS[session.typed["action"]](session)
    except (TokenRefused, TokensUnreadable) as refusal:
        raise CommandFailed(f"{str(refusal).rstrip('.')}.") from refusal
    except OSError as failure:
        place = failure.filename or session.private
        raise CommandFailed(
            f"The tokens cannot be changed: {failure.strerror} ({place}). Run this as the user who runs the "
            "server."
        ) from failure


def _create(session: Session) -> int:
    typed = session.typed
    now = datetime.now(UTC)
    rights: Rights = typed.get("rights", "write")
    store, agent = TokenStore(session.private), typed.get("agent")
    scope = _scope_of(typed)
    expires_at = now + timedelta(days=typed["expires"]) if "expires" in typed else None
    token, secret = store.create(typed["name"], rights, agent, now, expires_at, scope)
    tell(session, {**_row(token, now), "token": secret}, secret)
    who = "any agent" if token.agent is None else f"the agent '{token.agent}' alone"
    end = "" if expires_at is None else f", until {expires_at:%Y-%m-%d %H:%M} UTC"
    _hint(session, f"The token '{token.name}' may {_MAY[token.rights]} as {who}{end}. It is not shown again.")
    if token.scope is not None:
        _hint(session, _limits_of(token.scope))
    _hint(session, "Clients send it as a header: Authorization: Bearer TOKEN")
    if session.config.server.auth_token is None and len(read_tokens(session.private) or ()) == 1:
        _hint(session, "From now on nobody uses this server without a token, but this user's commands.")
    return 0


def _scope_of(typed: Mapping[str, Any]) -> Scope | None:
    """What was typed of patterns. Raises `CommandFailed` for one that cannot be used."""
    try:
        lists = {name: check_typed(typed[name]) for name in ("write", "propose") if name in typed}
    except ValueError as problem:
        raise CommandFailed(f"This cannot be: {problem}.", exit_code=2) from problem
    return make_scope(lists.get("write"), lists.get("propose"))


def _limits_of(scope: Scope) -> str:
    """A scope in words."""
    parts = []
    if scope.write:
        parts.append(f"It changes notes at {', '.join(scope.write)} at once.")
    if scope.propose:
        parts.append(f"Its changes at {', '.join(scope.propose)} wait for a person (lithos proposals).")
    return " ".join([*parts, "All else it only reads."])


def _list(session: Session) -> int:
    now = datetime.now(UTC)
    tokens = read_tokens(session.private)
    shown = [token for token in tokens or () if not token.is_pending]
    rows = [_row(token, now) for token in shown]
    lines = [_describe(token, now) for token in shown]
    none = "No named tokens are defined." if tokens is None else _NONE_LEFT
    tell(session, {"tokens": rows, "required": tokens is not None}, lines or none)
    return 0


def _describe(token: Token, now: datetime) -> str:
    agent = "any agent" if token.agent is None else token.agent
    end = "never expires"
    if token.expires_at is not None:
        word = "expired" if token.has_expired(now) else "expires"
        end = f"{word} {token.expires_at:%Y-%m-%d %H:%M} UTC"
    client = "" if token.grant is None else f"  for {token.grant.client_name}"
    limits = "" if token.scope is None else f"  {token.scope}"
    return (
        f"{token.name:<24}  {token.rights:<5}  {agent:<24}  since {token.created_at:%Y-%m-%d}  {end}"
        f"{client}{limits}"
    )


def _revoke(session: Session) -> int:
    token, left = TokenStore(session.private).revoke(session.typed["name"])
    line = f"The token '{token.name}' is revoked. A running server ends its streams within 2 s."
    tell(session, {"revoked": token.name, "left": left}, line)
    if not left:
        _hint(session, _NONE_LEFT)
    return 0


def _off(session: Session) -> int:
    TokenStore(session.private).stop_asking()
    tell(session, {"required": False}, "Named tokens are not asked for any more.")
    if session.config.server.auth_token is None:
        _hint(session, "Everyone who can reach this server can now read and change all notes.")
    return 0


def run_login(session: Session) -> int:
    """Print a link by which the console lets who runs the server in, once. Raises `CommandFailed`."""
    with refusing(OSError, FileBusy):
        address = session.public_url
        if address is None:
            raise CommandFailed(
                "No server with an address for clients elsewhere runs on these notes, and without one the "
                "console takes tokens alone (lithos token create). Start it with serve --public-url, or set "
                "server.public_url."
            )
        secret = LoginLinks(session.private).make(datetime.now(UTC))
    link = f"{address}/console/link?key={secret}"
    tell(session, {"link": link}, link)
    _hint(session, "Open it in your browser within ten minutes. It is good once, and gives every right.")
    return 0


def _change_clients(session: Session) -> int:
    """`lithos token client add|list|remove`."""
    typed, store = session.typed, ClientStore(session.private)
    with refusing(FileBusy):
        if typed["client_action"] == "add":
            return _add_client(session, store)
        if typed["client_action"] == "remove":
            if not store.remove(typed["client"]):
                raise CommandFailed("There is no client with this id: lithos token client list shows all.")
            tell(
                session,
                {"removed": typed["client"]},
                "The client is forgotten.",
            )
            return 0
        clients = store.read()
    rows = [
        {
            "client_id": each.id,
            "name": each.name,
            "redirect_uris": list(each.redirect_uris),
            "added": each.is_added,
        }
        for each in clients
    ]
    lines = [f"{each.id}  {make_printable(each.name)}  {' '.join(each.redirect_uris)}" for each in clients]
    tell(session, {"clients": rows}, lines or "No client is registered.")
    return 0


def _add_client(session: Session, store: ClientStore) -> int:
    now = datetime.now(UTC)
    try:
        uris = check_redirects(list(session.typed["redirect"]))
    except ValueError as problem:
        raise CommandFailed(f"This cannot be: {problem}.", exit_code=2) from problem
    client = Client(
        f"{OWN_PREFIX}{token_urlsafe(16)}", read_name(session.typed["name"]), uris, now, is_added=True
    )
    in_use = {
        token.grant.client_id for token in read_tokens(session.private) or () if token.grant is not None
    }
    try:
        store.add(client, in_use, now)
    except ClientsFull:
        raise CommandFailed(f"There are {MOST_CLIENTS} clients, the most there may be. Remove one.") from None
    tell(session, {"client_id": client.id, "redirect_uris": list(uris)}, client.id)
    _hint(session, "Enter it in the client as its client id; it has no secret.")
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
    "client": _change_clients,
}


def _row(token: Token, now: datetime) -> dict[str, Any]:
    grant = token.grant
    client = {} if grant is None else {"client": grant.client_name, "used_at": format_time(grant.used_at)}
    return {
        "name": token.name,
        "rights": token.rights,
        "agent": token.agent,
        "created_at": format_time(token.created_at),
        "expires_at": None if token.expires_at is None else format_time(token.expires_at),
        "expired": token.has_expired(now),
        **({} if token.scope is None else {name: list(globs) for name, globs in token.scope.lists}),
        **client,
    }


def _hint(session: Session, text: str) -> None:
    """A hint for a person."""
    if not session.as_json:
        print(make_printable(text), file=sys.stderr)
