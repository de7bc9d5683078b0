"""Login with a token, logout, and the agent name for a user's changes."""

from __future__ import annotations

from math import ceil
from typing import Any, Final

import trio
from attrs import frozen
from quart import Blueprint, Response, g, redirect, request

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.principals import Principal, check_agent
from lithos.server.console.console import Console, Form, PageRefused
from lithos.server.console.formats import readable
from lithos.server.console.page_layout import PLACE
from lithos.server.console.sessions import COOKIE, LONGEST_NAME, BrowserSession
from lithos.server.http.admissions import WrongTokens

START: Final = "/console/"
INVALID: Final = (
    "This token is not valid, because it is unknown, was revoked or has expired. Log in with "
    "server.auth_token or with a named token (lithos token list shows their names)."
)
TOO_MANY: Final = (
    "Too many wrong tokens came from your address. Wait for a minute. A valid token still works."
)


def add_routes(console: Console, app: Blueprint) -> None:
    """Add `/login`, `/logout` and `/identity`."""
    pages = LoginPages(console)
    console.open("login", "log_in")
    app.get("/login")(pages.login)
    app.post("/login")(pages.log_in)
    app.post("/logout")(pages.log_out)
    app.get("/identity")(pages.identity)
    app.post("/identity")(console.change(pages.rename))


@frozen
class LoginPages:
    """Pages for login, logout and the agent name of the user."""

    _console: Console

    async def login(self) -> Any:
        """Return the login form. If a session has ended, the form shows the reason."""
        sessions = self._console.sessions
        target = _inside(request.args.get("next", ""))
        if g.session is not None or not sessions.needs_login:
            return redirect(target)
        return await self._console.show(
            "login.html",
            next=target,
            ended=sessions.why_ended(request.cookies.get(COOKIE)),
        )

    async def log_in(self) -> Any:
        """Begin a session for a visitor who sends a valid token."""
        form: Form = await request.form
        target = _inside(form.get("next", ""))
        if not self._console.sessions.needs_login:
            return redirect(target, 303)
        principal = self._console.sessions.keyring.find(form.get("token", "").strip().encode())
        if principal is None:
            return await self._refuse(target)
        if not principal.may("read"):
            message = f"The token {principal.name} may only see /metrics. Log in with a token that may read."
            return await self._console.show("login.html", 403, next=target, message=message)
        try:
            chosen = choose_agent(form.get("agent", ""), self._console.own_agent, self._console.own_agent)
        except InvalidInput as refusal:
            return await self._console.show("login.html", 400, next=target, message=refusal.message)
        session = self._console.begin_session(chosen, principal)
        if form.get("agent", "").strip():
            tell_if_bound(session, chosen)
        return redirect(target, 303)

    async def _refuse(self, target: str) -> Response:
        """Return the login form after a wrong token, with status 401.

        The status is 429 after too many wrong tokens from one address.
        """
        console = self._console
        wrong = note_wrong_token(console.wrong_tokens)
        console.rejected("too_many_wrong_tokens" if wrong.seconds else "unauthorized")
        page = await console.show("login.html", wrong.status, next=target, message=wrong.message)
        return wrong.slowing(page)

    async def log_out(self) -> Any:
        """End the current session."""
        form: Form = await request.form
        if not g.session.owns(form.get("csrf", "")):
            raise PageRefused("This form is not from a page of your session. Load the page again.", 403)
        self._console.sessions.end(g.session)
        response = redirect("/console/login" if self._console.sessions.needs_login else START, 303)
        response.delete_cookie(COOKIE, path=PLACE)
        return response

    async def identity(self) -> Any:
        """Return a form for the agent name of the user's changes.

        If the name is fixed, show the reason instead.
        """
        return await self._console.show("identity.html", fixed=self._fixed())

    async def rename(self, form: Form) -> str:
        """Change the agent name for the changes of this session."""
        if fixed := self._fixed():
            raise PageRefused(fixed, 403, "forbidden")
        name = choose_agent(form.get("agent", ""), self._console.own_agent)
        if not name:
            raise PageRefused("The name is blank. Enter the name under which your changes will be recorded.")
        g.session.agent = name
        self._console.tell(f"Your changes are recorded as {name}.")
        return START

    def _fixed(self) -> str:
        """Return why the agent name of the user's changes is fixed.

        The text is empty if the name is not fixed.
        """
        principal = self._console.principal
        if principal.agent is None:
            return self._console.lacks("write")
        return (
            f"{_why_bound(principal)}. Your changes are recorded under that name. To choose a "
            "name, log in with a token that is not bound to an agent."
        )


@frozen
class WrongToken:
    """Response to a wrong token.

    After too many wrong tokens, `seconds` is the time for which wrong tokens get status 429.
    """

    status: int
    message: str
    seconds: float

    def slowing(self, page: Response) -> Response:
        """Return the page. If `seconds` is not 0, its `Retry-After` header contains the wait."""
        if self.seconds:
            page.headers["Retry-After"] = str(ceil(self.seconds))
        return page


def note_wrong_token(wrong_tokens: WrongTokens) -> WrongToken:
    """Count the wrong token of this request.

    Return 401, or 429 if the address has sent too many wrong tokens.
    """
    address, *_ = request.scope.get("client") or ("",)
    seconds = wrong_tokens.note(str(address), trio.current_time())
    return WrongToken(429, TOO_MANY, seconds) if seconds else WrongToken(401, INVALID, 0.0)


def choose_agent(given: str, own_agent: str, otherwise: str = "") -> str:
    """Return a valid agent name, or `otherwise` if `given` is blank. Raises `InvalidInput`.

    `own_agent` is one of Lithos's own names. It may still be chosen, because the console's user has this
    name.
    """
    name = " ".join(given.split())[:LONGEST_NAME]
    return name if name == own_agent else check_agent(name, "name") or otherwise


def tell_if_bound(session: BrowserSession, chosen: str) -> None:
    """Show a notice on the next page if the token is bound to an agent and the chosen name was not used."""
    if session.agent != chosen:
        why = _why_bound(session.principal)
        session.tell(f"{why}, so your changes are not recorded as {readable(chosen)}.")


def _why_bound(principal: Principal) -> str:
    return f"The token {principal.name} is bound to the agent {readable(principal.agent, 60)}"


def _inside(location: str) -> str:
    """Return `location` if it is a console page, otherwise the start page.

    A login must not redirect to another site.
    """
    is_inside = location.startswith("/console/") and "\\" not in location and location.isprintable()
    return location if is_inside else START
