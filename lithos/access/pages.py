"""Console pages about access: consent for remote clients, their grants, and the tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen
from quart import Blueprint

from lithos.access.service.authorization import AuthorizationServer
from lithos.access.service.keyring import TokenRing
from lithos.server.console.console import Console

#: Maximum number of grants on the Agents page. The newest grants are shown.
MOST_GRANTS: Final = 100


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the panels. If the server admits remote clients, also add the pages for them."""
    panels, server = AccessPanels(console), console.parts.find(AuthorizationServer)
    console.add_panel("agents", panels.grants)
    console.add_panel("system", panels.tokens)
    console.shared["has_links"] = server is not None
    if server is not None and console.settings.public_url is not None:
        from lithos.access import pages_consent as consent  # noqa: PLC0415 - most do without

        console.open("link", "link_in")
        consent.add_routes(console, app, server)


@frozen
class AccessPanels:
    """Panels about access on other console pages."""

    _console: Console

    async def grants(self, _: None) -> Mapping[str, Any]:
        """Return the grants of remote clients, if the person may revoke them."""
        server = self._console.parts.find(AuthorizationServer)
        if server is None or self._console.lacks("admin"):
            return {}
        return {"grants": server.grants[::-1][:MOST_GRANTS]}

    async def tokens(self, _: None) -> Mapping[str, Any]:
        """Return the named tokens, if the person is an administrator."""
        may_see = self._console.principal.may("admin")
        return {"tokens": self._console.parts.get(TokenRing).named if may_see else ()}
