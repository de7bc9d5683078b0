"""`lithos token create`, `list`, `revoke` and `off`: their arguments and output.

The token itself is printed once, alone on a line of stdout, so that scripts can read it. All other output
is printed to stderr.
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
    """Change or list the tokens. Raises `CommandFailed`."""
    try:
        return _ACTIONS[session.typed["action"]](session)
    except (TokenRefused, TokensUnreadable) as refusal:
        raise CommandFailed(f"{str(refusal).rstrip('.')}.") from refusal
    except OSError as failure:
        place = failure.filename or session.private
        raise CommandFailed(
            f"The tokens in {place} cannot be changed: {failure.strerror}. Run this command as "
            "the operator of the server."
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
    _hint(
        session, f"The token '{token.name}' {_describe_reach(token, chosen)}. The token is not shown again."
    )
    if token.scope is not None:
        _hint(session, _limits_of(token.scope))
    _hint(session, "Clients send it as a header: Authorization: Bearer TOKEN")
    if (
        session.config.of(ServerConfig).auth_token is None
        and len(read_tokens(_first(session, chosen)) or ()) == 1
    ):
        these = "any of these vaults" if session.vaults else "this server"
        _hint(session, f"From now on, {these} can be used only with a token or by this user's own commands.")
    return 0


def _first(session: CommandSession, chosen: tuple[str, ...]) -> Path:
    return next(iter(_privates(session, chosen).values()), session.private)


def _chosen(session: CommandSession) -> tuple[str, ...]:
    """Return the vaults of a token: the vaults that the user named, or the default vault."""
    return session.named.chosen or (str(session.named.default),)


def _others(session: CommandSession, chosen: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(vault.name for vault in session.named.configured if vault.name not in chosen)


def _privates(session: CommandSession, names: tuple[str, ...]) -> dict[str, Path]:
    """Return the private folder of each named vault."""
    return {name: session.named.named(name).data_dir / ".lithos" for name in names}


def _all_privates(session: CommandSession) -> dict[str, Path]:
    return _privates(session, tuple(vault.name for vault in session.named.configured))


def _describe_reach(token: Token, chosen: tuple[str, ...]) -> str:
    """Describe a token: its rights, agent, vaults and expiry."""
    who = "any agent" if token.agent is None else f"only the agent '{token.agent}'"
    where = ""
    if chosen:
        where = (
            " in every vault, including future ones"
            if token.every_vault
            else f" in {', '.join(chosen)} alone"
        )
    end = "" if token.expires_at is None else f", until {token.expires_at:%Y-%m-%d %H:%M} UTC"
    return f"may {_MAY[token.rights]} as {who}{where}{end}"


def _refuse_known(session: CommandSession, name: str, chosen: tuple[str, ...]) -> None:
    """Raise `TokenRefused` if a token in any vault already has this name and a secret."""
    known = [each for each in find_tokens(_all_privates(session)).tokens if each.token.name == name]
    vaults = list(dict.fromkeys(vault for each in known for vault in each.vaults))
    if not vaults:
        return
    wanted = " ".join(f"--vault {vault}" for vault in chosen if vault not in vaults)
    add = (
        f" To give the token access to more vaults: lithos token create {name} {wanted} --add"
        if wanted
        else ""
    )
    raise TokenRefused(
        f"The token '{name}' already exists in {', '.join(vaults)}, and its secret cannot be "
        "shown again. Choose another name, or revoke the token first: lithos token revoke "
        f"{name}.{add}"
    )


def _add(session: CommandSession, scope: Scope | None, expires_at: datetime | None, now: datetime) -> int:
    """Give an existing token access to more vaults. Its secret does not change."""
    typed, chosen = session.typed, session.named.chosen
    name = typed["name"]
    if not chosen or session.named.is_every:
        raise CommandFailed(
            "--add needs the names of the vaults: pass --vault NAME for each vault.", exit_code=2
        )
    found = [each for each in find_tokens(_all_privates(session)).tokens if each.token.name == name]
    if not found:
        raise TokenRefused("No vault has a token of that name. Create the token without --add.")
    known = found[0].token
    if known.grant is not None or len({each.token.digest for each in found}) > 1:
        raise TokenRefused(
            f"'{name}' is not a single token with its own secret, so no vaults can be added. "
            "Create another token."
        )
    doubled = [vault for each in found for vault in each.vaults if vault in chosen]
    if doubled:
        raise TokenRefused(
            f"The token '{name}' already has access to {', '.join(doubled)}. To change its rights "
            f"there, revoke it there first: lithos token revoke {name} --vault {doubled[0]}"
        )
    rights: Rights = typed.get("rights", known.rights)
    if known.scope is not None and scope is None and rights != "read":
        raise TokenRefused(
            f"'{name}' can change only some notes in other vaults ({known.scope}). Name the notes "
            f"that it can change in {', '.join(chosen)}: --write or --propose with patterns, or "
            "--rights read"
        )
    agent = typed.get("agent", known.agent)
    end = known.expires_at if expires_at is None else expires_at
    # The token is only made to check the arguments. Its secret is discarded.
    checked, _ = make_token(name, rights, agent, now, end, scope)
    token = evolve(checked, digest=known.digest)
    insert_token(token, _privates(session, chosen), {})
    line = f"The token '{name}' {_describe_reach(token, chosen)}, in addition to its previous access."
    tell(session, _row(token, now, chosen), line.replace(" alone, in addition", ", in addition"))
    return 0


def _scope_of(typed: Mapping[str, Any]) -> Scope | None:
    """Parse the patterns on the command line. Raises `CommandFailed` if a pattern is invalid."""
    try:
        lists = {name: check_typed(typed[name]) for name in ("write", "propose") if name in typed}
    except ValueError as problem:
        raise CommandFailed(f"Invalid pattern: {problem}.", exit_code=2) from problem
    return make_scope(lists.get("write"), lists.get("propose"))


def _limits_of(scope: Scope) -> str:
    """Describe a scope in sentences."""
    parts = []
    if scope.write:
        parts.append(f"The token changes notes at {', '.join(scope.write)} directly.")
    if scope.propose:
        parts.append(
            f"Its changes at {', '.join(scope.propose)} wait for approval by a person (lithos proposals)."
        )
    return " ".join([*parts, "All other notes are read-only for the token."])


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
    line = f"The token '{token.name}' is revoked. A running server ends the token's streams within 2 s."
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
            f"The token '{name}' is valid in every vault, so it can be revoked only for all "
            "vaults: omit --vault"
        )
    revoked, troubles = revoke_token(name, _privates(session, chosen) if chosen else privates)
    left = len({each.token.name for each in find_tokens(privates).tokens})
    line = (
        f"The token '{name}' is revoked in {', '.join(revoked)}. A running server ends the "
        "token's streams within 2 s."
    )
    document = {"revoked": name, "left": left, "vaults": list(revoked), "troubles": troubles}
    tell(session, document, line if revoked else ())
    if troubles:
        told = " ".join(f"{vault}: {trouble}" for vault, trouble in troubles.items())
        raise CommandFailed(
            f"The token may still have access to {', '.join(troubles)}. {told} Then revoke the token again."
        )
    if not left:
        _hint(session, _NONE_LEFT)
    return 0


def _off(session: CommandSession) -> int:
    if session.named.chosen:
        raise CommandFailed(
            "Tokens can be switched off only for all vaults together. Run off without --vault.", exit_code=2
        )
    if session.vaults:
        open_all(_all_privates(session))
    else:
        TokenStore(session.private).stop_asking()
    tell(session, {"required": False}, "Named tokens are no longer required.")
    if session.config.of(ServerConfig).auth_token is None:
        _hint(session, "Everyone who can reach this server can now read and change all notes.")
    return 0


def run_login(session: CommandSession) -> int:
    """Print a link with which the operator can log in to the console once. Raises `CommandFailed`."""
    with refusing(OSError, LockTimeout):
        address = session.public_url
        if address is None:
            raise CommandFailed(
                "No server with a public address serves these notes. Without a public address, "
                "the console accepts only tokens (lithos token create). Start the server with "
                "serve --public-url, or set server.public_url."
            )
        secret = LoginLinks(session.private).make(datetime.now(UTC))
    # The link is valid only for the vault with the data directory that stores it.
    link = f"{address}{session.prefix}/console/link?key={secret}"
    tell(session, {"link": link}, link)
    _hint(
        session,
        "Open the link in your browser within ten minutes. The link works once and gives full access.",
    )
    return 0


def _change_clients(session: CommandSession) -> int:
    """Run `lithos token client add|list|remove`."""
    typed, store = session.typed, ClientStore(session.private)
    with refusing(LockTimeout):
        if typed["client_action"] == "add":
            return _add_client(session, store)
        if typed["client_action"] == "remove":
            if not store.remove(typed["client"]):
                raise CommandFailed("Unknown client id. List the clients with: lithos token client list")
            tell(
                session,
                {"removed": typed["client"]},
                "The client is removed.",
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
        raise CommandFailed(f"The client cannot be added: {problem}.", exit_code=2) from problem
    client = OAuthClient(
        f"{OWN_PREFIX}{token_urlsafe(16)}", read_name(session.typed["name"]), uris, now, is_added=True
    )
    in_use = {
        token.grant.client_id for token in read_tokens(session.private) or () if token.grant is not None
    }
    try:
        store.add(client, in_use, now)
    except ClientsFull:
        raise CommandFailed(
            f"The limit of {MOST_CLIENTS} clients is reached. Remove a client first."
        ) from None
    tell(session, {"client_id": client.id, "redirect_uris": list(uris)}, client.id)
    _hint(session, "Enter the printed client id in the client. The client has no secret.")
    return 0


_NONE_LEFT: Final = (
    "No named token is left, and the server still refuses all callers except this user's own "
    "commands. Create another token, or open the server to everyone who can reach it: lithos "
    "token off"
)
_MAY: Final[Mapping[Rights, str]] = {
    "metrics": "read only /metrics",
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
    """Print a hint for a person."""
    if not session.as_json:
        print(make_printable(text), file=sys.stderr)
