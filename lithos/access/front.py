"""Access for a front: its tokens, and the OAuth endpoints for remote clients."""

from __future__ import annotations

from lithos.access.pages_oauth import OAuthEndpoints, resource_apps
from lithos.access.service.authorization import AuthorizationServer
from lithos.access.service.keyring import TokenRing
from lithos.kernel.metrics import Metrics
from lithos.server.http.front import Front
from lithos.server.settings import ServerConfig


async def add_to(front: Front) -> None:
    """Make the tokens follow their file, and add the endpoints that `server.public_url` needs."""
    ring, address = front.parts.get(TokenRing), front.settings.public_url
    if front.settings.auth_token is not None:
        ring.accept(front.settings.auth_token)
    if front.keyring_runs:
        await front.nursery.start(ring.run)
    if address is None:
        return
    front.oauth |= resource_apps(address, front.parts.get(ServerConfig).oauth.issuer or address)
    authorization = front.parts.find(AuthorizationServer)
    if authorization is not None:  # without it, another server is the issuer
        front.parts.get(Metrics).begin("http_rejected", "oauth")
        front.oauth |= OAuthEndpoints(authorization, front.wrong_tokens, front.rejected).apps
