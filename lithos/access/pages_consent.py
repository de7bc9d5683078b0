"""`/console/consent`: a remote client requests access, and a person chooses its agent, rights and duration.

The request is part of the address and is parsed again when the form is sent. A seal in the form ties the
decision to the displayed request. On `/console/grants` a person ends the access of a client. `/console/link`
accepts a login link from `lithos login`.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final

import attrs
import trio
from attrs import frozen
from quart import Blueprint, Response, g, request

from lithos.access.model.redirects import place_of
from lithos.access.model.requests import OAuthRefused, read_parameters
from lithos.access.service.authorization import Allowed, AuthorizationServer, ConsentRequest, Unanswerable
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.principals import OWNER, Rights, check_agent
from lithos.notes.model.scopes import chosen_scope
from lithos.server.console.console import Console, Form, PageRefused
from lithos.server.console.page_layout import HEADERS
from lithos.server.console.sessions import LONGEST_NAME

log = get_logger("lithos.oauth")

#: Durations of a grant, as a number of days and in words. The last entry never ends.
LIVES: Final = (("7", "a week"), ("30", "a month"), ("365", "a year"), ("", "until it is revoked"))
#: Form fields with patterns, one per line. `write` lists notes that a client changes directly, and `propose`
#: lists notes for which its changes need approval.
_PATTERNS: Final = ("write", "propose")
DENIED: Final = OAuthRefused("access_denied", "The person refused.")


def add_routes(console: Console, app: Blueprint, server: AuthorizationServer) -> None:
    """Add the consent pages."""
    pages = ConsentPages(console, server)
    app.get("/consent")(pages.consent)
    app.post("/consent")(pages.decide)
    app.post("/grants/revoke")(console.change(pages.throw_out, "admin"))
    app.get("/link")(pages.link)
    app.post("/link", endpoint="link_in")(pages.log_in)


@frozen
class ConsentPages:
    """The console pages about access by remote clients."""

    _console: Console
    _server: AuthorizationServer

    async def consent(self) -> Any:
        """Show the client, its request, and the form to allow or refuse it."""
        self._console.demand("admin")
        query = _query()
        asked = await self._examine(_read(query))
        return await self._show(asked, query) if isinstance(asked, ConsentRequest) else asked

    async def _examine(self, given: Mapping[str, str]) -> Any:
        """Return the request. Refuse it if the client may not make this request. Raises `PageRefused`."""
        try:
            return await self._server.examine(given)
        except OAuthRefused as refusal:
            return self._answer_with(self._server.refuse(given, refusal), refusal)
        except Unanswerable as trouble:
            raise self._unanswerable(trouble) from trouble

    async def _show(
        self, asked: ConsentRequest, query: str, message: str = "", form: Form | None = None
    ) -> Response:
        names = ("agent", "rights", "days", *_PATTERNS)
        typed = {name: "" if form is None else form.get(name, "") for name in names}
        place = place_of(asked.request.redirect_uri)
        response = await self._console.show(
            "consent.html",
            400 if message else 200,
            client=asked.client,
            place=place,
            asks_write="write" in asked.request.scopes,
            query=query,
            seal=_seal(asked, query),
            lives=LIVES,
            suggested=typed["agent"][:LONGEST_NAME] or _agent_of(asked.client.name),
            typed=typed,
            message=message,
        )
        # Browsers also apply the policy of a page to the redirect after a form.
        policy = HEADERS["Content-Security-Policy"]
        response.headers["Content-Security-Policy"] = policy.replace(
            "form-action 'self'", f"form-action 'self' {place}"
        )
        return response

    async def decide(self) -> Any:
        """Carry out the decision of the person. The client gets its code, or a refusal."""
        self._console.demand("admin")
        form: Form = await request.form
        query = _query()
        given = _read(query)
        if not g.session.owns(form.get("csrf", "")) or not form.get("once"):
            raise _not_yours()
        asked = await self._examine(given)
        if not isinstance(asked, ConsentRequest):
            return asked
        if not hmac.compare_digest(form.get("seal", "").encode(), _seal(asked, query).encode()):
            raise _not_yours()
        if form.get("answer") != "allow":
            return self._answer_with(self._server.refuse(given, DENIED), DENIED)
        try:
            allowed = self._read_allowed(form)
        except InvalidInput as trouble:
            return await self._show(asked, query, trouble.message, form)
        location = await g.session.once(form["once"], partial(self._allow, asked, allowed))
        return _going_to(location)

    async def _allow(self, asked: ConsentRequest, allowed: Allowed) -> str:
        try:
            return await self._server.allow(asked, allowed)
        except OAuthRefused as refusal:
            raise PageRefused(refusal.description, refusal.status) from refusal

    def _read_allowed(self, form: Form) -> Allowed:
        """Parse the choices of the person. Raises `InvalidInput`."""
        agent = " ".join(form.get("agent", "").split())
        if not agent or len(agent) > LONGEST_NAME or not agent.isprintable():
            raise InvalidInput(f"Enter an agent name of at most {LONGEST_NAME} characters for the client.")
        rights: Rights = "write" if form.get("rights") == "write" else "read"
        days = form.get("days", "7")
        if days not in dict(LIVES):
            raise InvalidInput("Choose a duration from the list.")
        until = self._console.parts.clock() + timedelta(days=int(days)) if days else None
        try:
            scope = chosen_scope(*(_lines_of(form.get(name, "")) for name in _PATTERNS))
        except ValueError as problem:
            raise InvalidInput(f"Nothing was allowed: {problem}.") from problem
        return Allowed(check_agent(agent), rights, until, scope)

    def _answer_with(self, location: str, refusal: OAuthRefused) -> Response:
        self._console.rejected("oauth")
        log.warning("oauth refused", at="/oauth/authorize", error=refusal.error, reason=refusal.description)
        return _going_to(location)

    def _unanswerable(self, trouble: Unanswerable) -> PageRefused:
        self._console.rejected("oauth")
        log.warning("oauth refused", at="/oauth/authorize", error="not_answered", reason=trouble.message)
        return PageRefused(f"{trouble.message} Nothing was allowed, and the client got no answer.", 400)

    async def throw_out(self, form: Form) -> str:
        """End the grant of a client."""
        name = form.get("name", "")
        try:
            was_there = await self._server.throw_out(name)
        except OAuthRefused as refusal:
            raise PageRefused(refusal.description, refusal.status) from refusal
        if not was_there:
            raise PageRefused("The grant does not exist: it was revoked before, or has ended.", 404)
        self._console.tell(
            f"The access of {name} has ended: its calls are refused from now on, and its streams end."
        )
        return "/console/agents#grants"

    async def link(self) -> Any:
        """Show the login button.

        The link alone must not log in, because programs may open links before people do.
        """
        return await self._console.show("login_link.html", secret=request.args.get("key", "")[:100])

    async def log_in(self) -> Any:
        """Start a session of the operator. Each link works once."""
        form: Form = await request.form
        try:
            is_good = await self._server.take_link(form.get("key", ""))
        except OAuthRefused as refusal:
            raise PageRefused(refusal.description, refusal.status) from refusal
        if not is_good:
            address, *_ = request.scope.get("client") or ("",)
            self._console.wrong_tokens.note(str(address), trio.current_time())
            raise PageRefused(
                "This link is not valid: it was used, or is older than ten minutes. Run lithos login again.",
                401,
            )
        self._console.begin_session(None, OWNER)
        response = Response("", 303)
        response.headers["Location"] = "/console/"
        return response


def _lines_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _query() -> str:
    scope: Any = request.scope
    return str(scope["query_string"].decode("latin-1"))


def _read(query: str) -> Mapping[str, str]:
    try:
        return read_parameters(query)
    except OAuthRefused as refusal:
        raise PageRefused(
            f"{refusal.description} Nothing was allowed, and the client got no answer.", 400
        ) from refusal


def _seal(asked: ConsentRequest, query: str) -> str:
    """Return a seal that ties a form to this session, this request and the shown text about the client."""
    shown = attrs.astuple(asked.client)[:2]
    return hmac.new(g.session.csrf.encode(), repr((shown, query)).encode(), hashlib.sha256).hexdigest()


def _not_yours() -> PageRefused:
    return PageRefused(
        "Nothing was allowed: this form does not belong to the page that you were shown. Start "
        "again in the client.",
        403,
    )


def _agent_of(name: str) -> str:
    """Return a suggested agent name that people can type."""
    signs = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in name.lower())
    return "-".join(filter(None, signs.split("-")))[:60] or "connector"


def _going_to(location: str) -> Response:
    response = Response("", 303)
    response.headers["Location"] = location
    response.headers["Cache-Control"] = "no-store"
    return response
