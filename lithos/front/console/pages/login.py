"""Login (with a token), logout, and the name under which a person makes changes."""

from __future__ import annotations

import hmac
from typing import Any, Final

from attrs import frozen
from quart import Blueprint, g, redirect, request

from lithos.front.console.console import Console, Form, Refused
from lithos.front.console.sessions import COOKIE, LONGEST_NAME

START: Final = "/console/"


def add_routes(console: Console, app: Blueprint) -> None:
    """Add `/login`, `/logout` and `/identity`."""
    pages = LoginPages(console)
    app.get("/login")(pages.login)
    app.post("/login")(pages.log_in)
    app.post("/logout")(pages.log_out)
    app.get("/identity")(pages.identity)
    app.post("/identity")(console.change(pages.rename))


@frozen
class LoginPages:
    """The pages about who is there."""

    _console: Console

    async def login(self) -> Any:
        """The form that asks for the token."""
        if g.session is not None or self._console.parts.auth_token is None:
            return redirect(START)
        return await self._console.show("login.html", next=_inside(request.args.get("next", "")))

    async def log_in(self) -> Any:
        """Begin a session for whoever has the token; it is compared in constant time."""
        form: Form = await request.form
        parts, target = self._console.parts, _inside(form.get("next", ""))
        if parts.auth_token is None:
            return redirect(target, 303)
        if not hmac.compare_digest(form.get("token", "").strip().encode(), parts.auth_token.encode()):
            message = "This is not the token: it is server.auth_token of the configuration."
            return await self._console.show("login.html", 401, next=target, message=message)
        self._console.begin_session(_name(form.get("agent", ""), parts.agent))
        return redirect(target, 303)

    async def log_out(self) -> Any:
        """End the session."""
        form: Form = await request.form
        if not g.session.owns(form.get("csrf", "")):
            raise Refused("This form is not from a page of your session. Load the page again.", 403)
        self._console.sessions.end(g.session)
        response = redirect("/console/login" if self._console.parts.auth_token else START, 303)
        response.delete_cookie(COOKIE, path="/console")
        return response

    async def identity(self) -> Any:
        """The form that asks for the name of one's changes."""
        return await self._console.show("identity.html")

    async def rename(self, form: Form) -> str:
        """Record this session's changes under another name."""
        name = _name(form.get("agent", ""), "")
        if not name:
            raise Refused("The name is blank. Give the name under which your changes shall be recorded.")
        g.session.agent = name
        self._console.tell(f"Your changes are recorded as {name}.")
        return START


def _name(given: str, otherwise: str) -> str:
    """A name as it is recorded, or `otherwise` where it is blank."""
    return " ".join(given.split())[:LONGEST_NAME] or otherwise


def _inside(location: str) -> str:
    """A location of the console; anything else is its start, so that a login leads nowhere else."""
    is_inside = location.startswith("/console/") and "\\" not in location and location.isprintable()
    return location if is_inside else START
