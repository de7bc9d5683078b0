"""Access as a capability: tokens, and clients elsewhere."""

from __future__ import annotations

from lithos.access.settings import AgentsConfig
from lithos.config.catalogue import Config
from lithos.core.oauth.requests import RESOURCE_PATHS
from lithos.core.scopes import WriteScopes, check_globs, scopes_of_agents
from lithos.kernel.capability import Capability
from lithos.kernel.parts import Clock
from lithos.kernel.settings import StorageConfig
from lithos.server.settings import ServerConfig
from lithos.services.keyring import TokenRing
from lithos.services.oauth.authorization import AuthorizationServer


def make_keyring(config: Config, clock: Clock) -> TokenRing:
    """Make the ring of accepted tokens; the front has it follow their file."""
    return TokenRing(
        config.of(StorageConfig).data_dir / ".lithos",
        clock,
        config.of(ServerConfig).auth_token,
        asks_always=config.of(ServerConfig).public_url is not None,
    )


def make_scopes(config: Config, keyring: TokenRing) -> WriteScopes:
    """Make the rules of who may write where."""
    return WriteScopes(
        check_globs(config.of(StorageConfig).protected),
        scopes_of_agents(config.of(AgentsConfig).agents),
        of_token=keyring.scope_of,
    )


def make_authorization(config: Config, keyring: TokenRing, clock: Clock) -> AuthorizationServer | None:
    """Make what lets clients elsewhere in.

    None without `server.public_url`, and with somebody else's issuer, whose tokens the ring then takes.
    """
    address, oauth = config.of(ServerConfig).public_url, config.of(ServerConfig).oauth
    if address is None:
        return None
    if oauth.issuer is not None:
        from lithos.services.oauth.foreign import ForeignTokens  # noqa: PLC0415 - most do without

        own = tuple(f"{address}{path}" for path in RESOURCE_PATHS)
        audience = own if oauth.audience is None else (oauth.audience,)
        keyring.foreign = ForeignTokens(oauth.issuer, audience, oauth.rights_claim, oauth.rights, clock)
        return None
    return AuthorizationServer(address, config.of(StorageConfig).data_dir / ".lithos", keyring, clock)


ACCESS = Capability(name="access", makers=(make_keyring, make_scopes, make_authorization))
