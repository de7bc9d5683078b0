"""The access capability: tokens and remote clients."""

from __future__ import annotations

from lithos.access.model.requests import RESOURCE_PATHS
from lithos.access.service.authorization import AuthorizationServer
from lithos.access.service.keyring import TokenRing
from lithos.kernel.capability import Capability, Pages
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.parts import Clock
from lithos.kernel.server_ports import OwnToken
from lithos.kernel.settings import StorageConfig
from lithos.kernel.state import Component, HealthCheck
from lithos.notes.model.scopes import ScopeOfToken
from lithos.server.command.serve_ports import StartupNotice
from lithos.server.settings import ServerConfig
from lithos.server.tools.token_ports import Keyring


def make_keyring(config: Config, clock: Clock) -> TokenRing:
    """Return the ring of accepted tokens. The front later makes the ring follow the token file."""
    return TokenRing(
        config.of(StorageConfig).data_dir / ".lithos",
        clock,
        config.of(ServerConfig).auth_token,
        asks_always=config.of(ServerConfig).public_url is not None,
    )


def share_keyring(ring: TokenRing) -> Keyring:
    """Return the token ring as the keyring of the front."""
    return ring


def make_scope_of_token(keyring: TokenRing) -> ScopeOfToken:
    """Return the function that looks up which paths a named token may change."""
    return keyring.scope_of


def make_own_token(keyring: TokenRing) -> OwnToken:
    """Return the token that local commands use."""
    return keyring


def share_announcement(ring: TokenRing) -> StartupNotice:
    """Return the startup notice about named tokens."""
    return ring


def make_authorization(config: Config, keyring: TokenRing, clock: Clock) -> AuthorizationServer | None:
    """Return the authorization server for remote clients.

    Return None if `server.public_url` is not set. Also return None for a foreign issuer, because the ring
    then accepts the tokens of that issuer.
    """
    address, oauth = config.of(ServerConfig).public_url, config.of(ServerConfig).oauth
    if address is None:
        return None
    if oauth.issuer is not None:
        from lithos.access.service.foreign import ForeignTokens  # noqa: PLC0415 - most do without

        own = tuple(f"{address}{path}" for path in RESOURCE_PATHS)
        audience = own if oauth.audience is None else (oauth.audience,)
        keyring.foreign = ForeignTokens(oauth.issuer, audience, oauth.rights_claim, oauth.rights, clock)
        return None
    return AuthorizationServer(address, config.of(StorageConfig).data_dir / ".lithos", keyring, clock)


def look_at_tokens(keyring: TokenRing) -> Component | None:
    """Report the state of tokens only if there is an error, because `/health` is open to all callers."""
    trouble = keyring.trouble
    return None if trouble is None else Component("degraded", trouble)


ACCESS = Capability(
    name="access",
    makers=(
        make_keyring,
        share_keyring,
        share_announcement,
        make_own_token,
        make_scope_of_token,
        make_authorization,
    ),
    pages=Pages(modules=("lithos.access.pages",)),
    front="lithos.access.front",
    checks=("lithos.access.checks", "lithos.access.public_address"),
    health=(HealthCheck("tokens", 13, look_at_tokens),),
)
