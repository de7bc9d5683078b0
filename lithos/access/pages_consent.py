"""`/console/consent`: a remote client asks for access, and a person decides its agent, rights and duration.

The request is in the address and is read again when the form is sent; a seal in the form ties that to what
the person was shown. `/console/grants` ends the access of a client; `/console/link` logs in by a link of
`lithos login`.
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

#: How long a grant may last, in days and in words; the last is the one without an end.
LIVES: Final = (("7", "a week"), ("30", "a month"), ("365", "a year"), ("", "until it is revoked"))
#: Where a client writes, and where its changes wait: patterns, one a line.
_PATTERNS: Final = ("write", "propose")
DENIED: Final = OAuthRefused("access_denied", "The person refused.")


def add_routes(console: Console, app: Blueprint, server: AuthorizationServer) -> None:
    """Add the pages."""
    pages = ConsentPages(console, server)
    app.get("/consent")(pages.consent)
    app.post("/consent")(pages.decide)
    app.post("/grants/revoke")(console.change(pages.throw_out, "admin"))
    app.get("/link")(pages.link)
    app.post("/link", endpoint="link_in")(pages.log_in)


@frozen
class ConsentPages:
    """The pages about who is let in."""

    _console: Console
    _server: AuthorizationServer

    async def consent(self) -> Any:
        """Show the client, its request, and the form to allow or refuse it."""
        self._console.demand("admin")
        query = _query()
        asked = await self._examine(_read(query))
        return await self._show(asked, query) if isinstance(asked, ConsentRequest) else asked

    async def _examine(self, given: Mapping[str, str]) -> Any:
        """Return the request, or refuse a client that may not make it. Raises `PageRefused`."""
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
        # Browsers hold the answer to a form, where it redirects, to the policy of its page.
        policy = HEADERS["Content-Security-Policy"]
        response.headers["Content-Security-Policy"] = policy.replace(
            "form-action 'self'", f"form-action 'self' {place}"
        )
        return response

    async def decide(self) -> Any:
        """Carry out the person's decision; the client gets its code, or a refusal."""
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
        """Parse the person's choices. Raises `InvalidInput`."""
        agent = " ".join(form.get("agent", "").split())
        if not agent or len(agent) > LONGEST_NAME or not agent.isprintable():
            raise InvalidInput(f"Give the client an agent name of at most {LONGEST_NAME} characters.")
        rights: Rights = "write" if form.get("rights") == "write" else "read"
        days = form.get("days", "7")
        if days not in dict(LIVES):
            raise InvalidInput("Choose for how long from the list.")
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
        """End a grant."""
        name = form.get("name", "")
        try:
            was_there = await self._server.throw_out(name)
        except OAuthRefused as refusal:
            raise PageRefused(refusal.description, refusal.status) from refusal
        if not was_there:
            raise PageRefused("There is no such grant: it was revoked before, or has ended.", 404)
        self._console.tell(f"{name} is thrown out: its calls are refused from now on, and its streams end.")
        return "/console/agents#grants"

    async def link(self) -> Any:
        """A button: a link alone changes nothing, as programs look at links before people do."""
        return await self._console.show("login_link.html", secret=request.args.get("key", "")[:100])

    async def log_in(self) -> Any:
        """Begin a session of the operator; each link works once."""
        form: Form = await request.form
        try:
            is_good = await self._server.take_link(form.get("key", ""))
        except OAuthRefused as refusal:
            raise PageRefused(refusal.description, refusal.status) from refusal
        if not is_good:
            address, *_ = request.scope.get("client") or ("",)
            self._console.wrong_tokens.note(str(address), trio.current_time())
            raise PageRefused(
                "This link is not good: it was used, or is older than ten minutes. Run lithos login again.",
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
        "Nothing was allowed: this form is not from the page that you were shown. Start again in the client.",
        403,
    )


def _agent_of(name: str) -> str:
    """An agent name to begin with, as it would be typed."""
    signs = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in name.lower())
    return "-".join(filter(None, signs.split("-")))[:60] or "connector"


def _going_to(location: str) -> Response:
    response = Response("", 303)
    response.headers["Location"] = location
    response.headers["Cache-Control"] = "no-store"
    return response
