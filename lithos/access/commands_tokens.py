"""`lithos token create`, `list`, `revoke` and `off`: their arguments and output.

The token itself is printed once, alone on a line of stdout, so that a script can take it; all other output is
on stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_urlsafe
from typing import Any, Final

from attrs import evolve

from lithos.access.files.clients import MOST_CLIENTS, ClientsFull, ClientStore
from lithos.access.files.login_links import LoginLinks
from lithos.access.files.private_file import LockTimeout
from lithos.access.files.tokens import (
    Token,
    TokenRefused,
    TokenStore,
    TokensUnreadable,
    make_token,
    read_tokens,
)
from lithos.access.model.clients import OWN_PREFIX, OAuthClient, read_name
from lithos.access.model.redirects import check_redirects
from lithos.access.service.vault_tokens import find_tokens, insert_token, open_all, revoke_token
from lithos.kernel.values.principals import Rights
from lithos.kernel.values.times import format_time
from lithos.notes.model.scopes import Scope, check_typed, make_scope
from lithos.server.command.output import tell, warn
from lithos.server.command.session import CommandFailed, CommandSession, refusing
from lithos.server.command.streams import make_printable
from lithos.server.settings import ServerConfig


def run_token(session: CommandSession) -> int:
    """Change or show the tokens. Raises `CommandFailed`."""
    try:
        return _ACTIONS[session.typed["action"]](session)
    except (TokenRefused, TokensUnreadable) as refusal:
        raise CommandFailed(f"{str(refusal).rstrip('.')}.") from refusal
    except OSError as failure:
        place = failure.filename or session.private
        raise CommandFailed(
            f"The tokens cannot be changed: {failure.strerror} ({place}). Run this as the operator of the "
            "server."
        ) from failure


def _create(session: CommandSession) -> int:
    typed = session.typed
    now = datetime.now(UTC)
    rights: Rights = typed.get("rights", "write")
    scope = _scope_of(typed)
    expires_at = now + timedelta(days=typed["expires"]) if "expires" in typed else None
    if typed.get("add"):
        return _add(session, scope, expires_at, now)
    every = session.named.is_every
    made = make_token(typed["name"], rights, typed.get("agent"), now, expires_at, scope, every_vault=every)
    token, secret = made
    if session.vaults:
        chosen = _chosen(session)
        _refuse_known(session, token.name, chosen)
        insert_token(token, _privates(session, chosen), _privates(session, _others(session, chosen)))
    else:
        chosen = ()
        TokenStore(session.private).insert(token)
    tell(session, {**_row(token, now, chosen), "token": secret}, secret)
    _hint(session, f"The token '{token.name}' {_describe_reach(token, chosen)}. It is not shown again.")
    if token.scope is not None:
        _hint(session, _limits_of(token.scope))
    _hint(session, "Clients send it as a header: Authorization: Bearer TOKEN")
    if (
        session.config.of(ServerConfig).auth_token is None
        and len(read_tokens(_first(session, chosen)) or ()) == 1
    ):
        these = "any of these vaults" if session.vaults else "this server"
        _hint(session, f"From now on no caller uses {these} without a token, but this user's commands.")
    return 0


def _first(session: CommandSession, chosen: tuple[str, ...]) -> Path:
    return next(iter(_privates(session, chosen).values()), session.private)


def _chosen(session: CommandSession) -> tuple[str, ...]:
    """The vaults that a token is for: those that are named, else the default one."""
    return session.named.chosen or (str(session.named.default),)


def _others(session: CommandSession, chosen: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(vault.name for vault in session.named.configured if vault.name not in chosen)


def _privates(session: CommandSession, names: tuple[str, ...]) -> dict[str, Path]:
    """The private folders of vaults, by their names."""
    return {name: session.named.named(name).data_dir / ".lithos" for name in names}


def _all_privates(session: CommandSession) -> dict[str, Path]:
    return _privates(session, tuple(vault.name for vault in session.named.configured))


def _describe_reach(token: Token, chosen: tuple[str, ...]) -> str:
    """Describe a token: its rights, agent, paths and end."""
    who = "any agent" if token.agent is None else f"the agent '{token.agent}' alone"
    where = ""
    if chosen:
        where = " in every vault, later ones too" if token.every_vault else f" in {', '.join(chosen)} alone"
    end = "" if token.expires_at is None else f", until {token.expires_at:%Y-%m-%d %H:%M} UTC"
    return f"may {_MAY[token.rights]} as {who}{where}{end}"


def _refuse_known(session: CommandSession, name: str, chosen: tuple[str, ...]) -> None:
    """One name is one secret, whatever vault. Raises `TokenRefused`."""
    known = [each for each in find_tokens(_all_privates(session)).tokens if each.token.name == name]
    vaults = list(dict.fromkeys(vault for each in known for vault in each.vaults))
    if not vaults:
        return
    wanted = " ".join(f"--vault {vault}" for vault in chosen if vault not in vaults)
    add = f" To let it into more vaults: lithos token create {name} {wanted} --add" if wanted else ""
    raise TokenRefused(
        f"There is a token '{name}' already, in {', '.join(vaults)}, and its secret cannot be shown again. "
        f"Choose another name, or revoke it first: lithos token revoke {name}.{add}"
    )


def _add(session: CommandSession, scope: Scope | None, expires_at: datetime | None, now: datetime) -> int:
    """Add a known token to further vaults; its secret does not change."""
    typed, chosen = session.typed, session.named.chosen
    name = typed["name"]
    if not chosen or session.named.is_every:
        raise CommandFailed("--add needs the names of the vaults to add: --vault NAME for each.", exit_code=2)
    found = [each for each in find_tokens(_all_privates(session)).tokens if each.token.name == name]
    if not found:
        raise TokenRefused("There is no token of that name in any vault. Create it without --add.")
    known = found[0].token
    if known.grant is not None or len({each.token.digest for each in found}) > 1:
        raise TokenRefused(
            f"'{name}' is not one token with a secret of its own, so nothing is added to it. Create another."
        )
    doubled = [vault for each in found for vault in each.vaults if vault in chosen]
    if doubled:
        raise TokenRefused(
            f"The token '{name}' is let into {', '.join(doubled)} already. To change what it may do there, "
            f"revoke it there first: lithos token revoke {name} --vault {doubled[0]}"
        )
    rights: Rights = typed.get("rights", known.rights)
    if known.scope is not None and scope is None and rights != "read":
        raise TokenRefused(
            f"'{name}' changes only some notes elsewhere ({known.scope}); say what it may change in "
            f"{', '.join(chosen)}: --write or --propose with patterns, or --rights read"
        )
    agent = typed.get("agent", known.agent)
    end = known.expires_at if expires_at is None else expires_at
    # The arguments are checked by making a token; its secret is thrown away.
    checked, _ = make_token(name, rights, agent, now, end, scope)
    token = evolve(checked, digest=known.digest)
    insert_token(token, _privates(session, chosen), {})
    line = f"The token '{name}' {_describe_reach(token, chosen)}, besides what it could before."
    tell(session, _row(token, now, chosen), line.replace(" alone, besides", ", besides"))
    return 0


def _scope_of(typed: Mapping[str, Any]) -> Scope | None:
    """Parse the patterns of the command line. Raises `CommandFailed` for one that cannot be used."""
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


def _list(session: CommandSession) -> int:
    now = datetime.now(UTC)
    if session.vaults:
        found = find_tokens({vault.name: vault.data_dir / ".lithos" for vault in session.vaults})
        for vault, trouble in found.troubles.items():
            warn(f"{vault}: {trouble}.")
        listed, is_required = [(each.token, each.vaults) for each in found.tokens], found.is_required
    else:
        tokens = read_tokens(session.private)
        listed, is_required = [(token, ()) for token in tokens or ()], tokens is not None
    shown = [(token, vaults) for token, vaults in listed if not token.is_pending]
    rows = [_row(token, now, vaults) for token, vaults in shown]
    lines = [_describe(token, now, vaults) for token, vaults in shown]
    none = "No named tokens are defined." if not is_required else _NONE_LEFT
    tell(session, {"tokens": rows, "required": is_required}, lines or none)
    return 1 if session.vaults and found.troubles else 0


def _describe(token: Token, now: datetime, vaults: tuple[str, ...]) -> str:
    agent = "any agent" if token.agent is None else token.agent
    end = "never expires"
    if token.expires_at is not None:
        word = "expired" if token.has_expired(now) else "expires"
        end = f"{word} {token.expires_at:%Y-%m-%d %H:%M} UTC"
    client = "" if token.grant is None else f"  for {token.grant.client_name}"
    limits = "" if token.scope is None else f"  {token.scope}"
    where = f"{'every vault' if token.every_vault else ', '.join(vaults):<16}  " if vaults else ""
    return (
        f"{token.name:<24}  {token.rights:<5}  {agent:<24}  {where}since {token.created_at:%Y-%m-%d}  {end}"
        f"{client}{limits}"
    )


def _revoke(session: CommandSession) -> int:
    if session.vaults:
        return _revoke_in_vaults(session)
    token, left = TokenStore(session.private).revoke(session.typed["name"])
    line = f"The token '{token.name}' is revoked. A running server ends its streams within 2 s."
    tell(session, {"revoked": token.name, "left": left}, line)
    if not left:
        _hint(session, _NONE_LEFT)
    return 0


def _revoke_in_vaults(session: CommandSession) -> int:
    name, privates = session.typed["name"], _all_privates(session)
    chosen = session.named.chosen
    found = [each.token for each in find_tokens(privates).tokens if each.token.name == name]
    if chosen and not session.named.is_every and any(token.every_vault for token in found):
        raise TokenRefused(
            f"The token '{name}' is one of every vault, so it is revoked for all of them: leave --vault out"
        )
    revoked, troubles = revoke_token(name, _privates(session, chosen) if chosen else privates)
    left = len({each.token.name for each in find_tokens(privates).tokens})
    line = f"The token '{name}' is revoked in {', '.join(revoked)}. A running server ends its streams in 2 s."
    document = {"revoked": name, "left": left, "vaults": list(revoked), "troubles": troubles}
    tell(session, document, line if revoked else ())
    if troubles:
        told = " ".join(f"{vault}: {trouble}" for vault, trouble in troubles.items())
        raise CommandFailed(f"It may still be let into {', '.join(troubles)}. {told} Then revoke it again.")
    if not left:
        _hint(session, _NONE_LEFT)
    return 0


def _off(session: CommandSession) -> int:
    if session.named.chosen:
        raise CommandFailed("All vaults ask for tokens, or none does: give off without --vault.", exit_code=2)
    if session.vaults:
        open_all(_all_privates(session))
    else:
        TokenStore(session.private).stop_asking()
    tell(session, {"required": False}, "Named tokens are not asked for any more.")
    if session.config.of(ServerConfig).auth_token is None:
        _hint(session, "Everyone who can reach this server can now read and change all notes.")
    return 0


def run_login(session: CommandSession) -> int:
    """Print a link by which the operator logs in to the console, once. Raises `CommandFailed`."""
    with refusing(OSError, LockTimeout):
        address = session.public_url
        if address is None:
            raise CommandFailed(
                "No server with an address for remote clients runs on these notes, and without one the "
                "console takes tokens alone (lithos token create). Start it with serve --public-url, or set "
                "server.public_url."
            )
        secret = LoginLinks(session.private).make(datetime.now(UTC))
    # The link is good for the vault in whose data directory it is.
    link = f"{address}{session.prefix}/console/link?key={secret}"
    tell(session, {"link": link}, link)
    _hint(session, "Open it in your browser within ten minutes. It is good once, and gives every right.")
    return 0


def _change_clients(session: CommandSession) -> int:
    """`lithos token client add|list|remove`."""
    typed, store = session.typed, ClientStore(session.private)
    with refusing(LockTimeout):
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


def _add_client(session: CommandSession, store: ClientStore) -> int:
    now = datetime.now(UTC)
    try:
        uris = check_redirects(list(session.typed["redirect"]))
    except ValueError as problem:
        raise CommandFailed(f"This cannot be: {problem}.", exit_code=2) from problem
    client = OAuthClient(
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
    "metrics": "see /metrics alone",
    "read": "read",
    "write": "read and write",
    "admin": "do everything",
}
_ACTIONS: Final[Mapping[str, Callable[[CommandSession], int]]] = {
    "create": _create,
    "list": _list,
    "revoke": _revoke,
    "off": _off,
    "client": _change_clients,
}


def _row(token: Token, now: datetime, vaults: tuple[str, ...] = ()) -> dict[str, Any]:
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
        **({"vaults": list(vaults), "every_vault": token.every_vault} if vaults else {}),
    }


def _hint(session: CommandSession, text: str) -> None:
    """A hint for a person."""
    if not session.as_json:
        print(make_printable(text), file=sys.stderr)
