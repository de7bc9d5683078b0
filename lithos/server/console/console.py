"""Web console below `/console/`: its routes, sessions, changes, rendering, error pages and headers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial, wraps
from http import HTTPStatus
from importlib import import_module
from secrets import token_urlsafe
from typing import Any, Final, TypeVar
from urllib.parse import quote

import attrs
from quart import Blueprint, Response, g, redirect, request
from quart_trio import QuartTrio
from werkzeug.datastructures import MultiDict
from werkzeug.routing import PathConverter

from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.actors.threads import Threads
from lithos.kernel.capability import Pages
from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.log import get_logger
from lithos.kernel.metrics import Metrics
from lithos.kernel.parts import Parts
from lithos.kernel.values.errors import LithosError
from lithos.kernel.values.limits import Newest
from lithos.kernel.values.principals import ANYONE, RIGHTS, Principal, Rights
from lithos.server.console.formats import make_environment, readable, whole
from lithos.server.console.page_layout import (
    STATIC,
    add_headers,
    digest_of,
    sent_address,
    set_cookie,
    static_file,
)
from lithos.server.console.sessions import COOKIE, BrowserSession, Sessions
from lithos.server.http.admissions import WrongTokens
from lithos.server.http.ports import FrontSettings, SharedToolBox, ToolBox, VaultLink
from lithos.server.settings import ServerConfig
from lithos.server.tools.arguments import ArgumentFault
from lithos.server.tools.ports import NotePorts, TaskIds

V = TypeVar("V")

log = get_logger("lithos.console")

#: Maximum size of a page in bytes.
LARGEST: Final = 200_000
#: Module with the login pages, which belong to the console itself.
LOGIN: Final = "lithos.server.console.login"
#: HTTP status of a refusal by error code. Other error codes get status 400.
_STATUSES: Final[Mapping[str, int]] = {
    "doc_not_found": 404, "note_not_found": 404, "task_not_found": 404, "version_not_found": 404,
    "receipt_not_found": 404, "proposal_not_found": 404, "not_found": 404, "version_conflict": 409,
    "proposal_closed": 409, "claim_failed": 409,
    "forbidden": 403, "internal_error": 503, "search_backend_error": 503, "lcma_disabled": 409,
    "history_disabled": 409,
}  # fmt: skip

Form = MultiDict[str, str]
#: Async function that answers a request with a value that Quart accepts as a response.
View = Callable[..., Awaitable[Any]]
#: Async function that carries out a submitted form. It returns the address of the page with the outcome.
FormHandler = Callable[..., Awaitable[str]]


#: Async function that adds values to a page of another capability. Its argument is the object on the page.
Panel = Callable[[Any], Awaitable[Mapping[str, Any]]]


class PageRefused(Exception):
    """Refusal of a page or change. `message` says what was refused, why, and what to do next."""

    def __init__(self, message: str, status: int = 400, code: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code


class WholePath(PathConverter):
    """URL converter for the rest of an address, which may contain line breaks."""

    regex = r"[^/](?s:.*?)"


class Console:
    """Web console. `parts` contains the services. The live feed uses the same `sessions`.

    `pages` are the pages of all capabilities. Changes are recorded under `own_agent` unless the user chooses
    another name. `wrong_tokens` counts wrong tokens per address, at the login and in request headers.
    """

    def __init__(
        self,
        parts: Parts,
        tools: SharedToolBox,
        settings: FrontSettings,
        sessions: Sessions,
        wrong_tokens: WrongTokens,
        pages: Pages,
    ) -> None:
        self.parts = parts
        self._tools = tools
        self.settings = settings
        self.sessions = sessions
        self.wrong_tokens = wrong_tokens
        self.pages = pages
        self.own_agent = parts.get(ServerConfig).console_agent
        #: Called with the reason when a request is refused for a missing session or right.
        self.rejected = partial(parts.get(Metrics).count, "http_rejected")
        #: Jinja environment with the templates, filters and globals.
        self.environment = make_environment()
        self._rendering = Threads()
        self._static_key = digest_of(STATIC)
        self._panels: dict[str, list[Panel]] = {}  # bounded: those that capabilities register
        #: Endpoints that need no session.
        self._open = {"console.static_file"}  # bounded: those that capabilities register
        #: Values for the templates of all pages.
        self.shared: dict[str, Any] = {
            "note_tabs": [(tab.label, tab.address) for tab in pages.tabs]
        }  # bounded: those that capabilities register

    # -- used by pages ---------------------------------------------------------------------------

    @property
    def tools(self) -> ToolBox:
        """Return the tools with the rights of the current user.

        The returned tools include the tools of Lithos's own pages.
        """
        return self._tools.acting_as(attrs.evolve(self.principal, is_own=True, is_person=True))

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return the answer that an agent would get.

        Arguments with the value None are left out. Raises `PageRefused` if the tool refuses.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        try:
            answer = await self.tools.call(tool, given)
        except ArgumentFault as fault:
            raise PageRefused(str(fault)) from fault
        if answer is None:
            raise PageRefused("The requested object does not exist.", 404)
        code = answer.get("code")
        if isinstance(code, str) and "message" in answer:
            raise PageRefused(str(answer["message"]), _STATUSES.get(code, 400), code)
        return dict(answer)

    async def show(self, template: str, status: int = 200, **context: Any) -> Response:
        """Return a page. A worker thread renders it."""
        session: BrowserSession | None = g.get("session")
        shared = self.shared | {
            "now": self.parts.clock(),
            "version": self.settings.version,
            "static_key": self._static_key,
            "navigation": self.pages.links,
            "waiting": self.waiting(),
            "path": request.path,
            "args": request.args.to_dict(),
            "agent": session.agent if session else self.own_agent,
            "csrf": session.csrf if session else "",
            "me": session.principal if session else None,
            "vaults": self._vaults(session),
            "lacks": {right: self.lacks(right) if session else "" for right in RIGHTS},
            "once": token_urlsafe(12),
            "has_login": session is not None and session.principal != ANYONE,
            "is_early": session is not None and not self.parts.get(Opening).known.is_set(),
            "notices": session.take_notices() if session and "partial" not in request.args else (),
        }
        page = self.environment.get_template(template)
        text = await self._rendering.run(lambda: page.render(shared | context))
        response = Response(text, status, content_type="text/html; charset=utf-8")
        response.headers["Cache-Control"] = "no-store"
        return response

    async def show_within(self, template: str, name: str, values: Iterable[int], **context: Any) -> Response:
        """Return a page that has at most `LARGEST` bytes, if possible.

        The page is rendered with each of `values` for `name` until it is small enough.
        """
        for value in values:
            response = await self.show(template, **{name: value}, **context)
            if (response.content_length or 0) <= LARGEST:
                break
        return response

    def change(self, act: FormHandler, needs: Rights = "write") -> View:
        """Return a POST view that checks rights and the form's token, and runs `act(form, **values)` once.

        If the form changes an object, `act` must check its owner with `demand_of`.
        """

        @wraps(act)
        async def view(**values: Any) -> Any:
            self.demand(needs)
            form: Form = await request.form
            session: BrowserSession = g.session
            key = form.get("once", "")
            if not session.owns(form.get("csrf", "")) or not key:
                raise PageRefused(
                    "Nothing was changed, because this form is not from a page of your session. "
                    "Load the page again, and submit its form.",
                    403,
                )
            return redirect(await session.once(key, partial(act, form, **values)), 303)

        return view

    def asking(self, app: Blueprint, path: str, ask: View, act: FormHandler, needs: Rights = "write") -> None:
        """Add a form that asks the user before a change. `ask` shows the form, and `act` carries it out."""
        app.get(path, endpoint=f"ask {path}")(self.only(needs, ask))
        app.post(path, endpoint=f"do {path}")(self.change(act, needs))

    def only(self, needs: Rights, view: View) -> View:
        """Return a GET view for a page that requires a right other than `read`."""

        @wraps(view)
        async def guarded(**values: Any) -> Any:
            self.demand(needs)
            return await view(**values)

        return guarded

    def _vaults(self, session: BrowserSession | None) -> Sequence[VaultLink]:
        """Return the vaults that the user can switch between.

        The list is empty if there is only one vault.
        """
        links = self.settings.vaults(session.principal) if session and self.settings.vaults else ()
        return links if len(links) > 1 else ()

    def lacks(self, needed: Rights) -> str:
        """Return why the user lacks a right, or an empty text if the user has it."""
        mine = self.principal
        if mine.may(needed):
            return ""
        return f"This needs the right {needed}; you have {mine.rights} (token {mine.name})."

    def demand(self, needed: Rights) -> None:
        """Raise `PageRefused` if the user lacks a right."""
        if reason := self.lacks(needed):
            raise PageRefused(reason, 403, "forbidden")

    def demand_of(self, owner: str | None) -> None:
        """Raise `PageRefused` if the user may not change objects of `owner`.

        Changes to objects of other agents require `admin`.
        """
        self.demand("write")
        if owner != self.agent and (reason := self.lacks("admin")):
            whose = f"The object belongs to {readable(owner, 60)}, and you are {readable(self.agent, 60)}."
            raise PageRefused(f"{reason} {whose}", 403, "forbidden")

    def sees_all_of(self, agent: str | None) -> bool:
        """Return whether the user may see the audit log of an agent.

        The log of another agent requires `admin`.
        """
        return agent == self.agent or self.principal.may("admin")

    @property
    def principal(self) -> Principal:
        """Return the principal of the token with which the user logged in."""
        principal: Principal = g.session.principal
        return principal

    @property
    def agent(self) -> str:
        """Return the agent name of the current user."""
        return str(g.session.agent)

    def waiting(self) -> dict[str, int]:
        """Return the number of items that wait for the user.

        The keys are the addresses of the pages that list them.
        """
        found = ((each, self.parts.find(each.kind)) for each in self.pages.waiting)
        return {each.address: each.count(part) for each, part in found if part is not None}

    async def panels(self, page: str, shown: Any = None) -> dict[str, Any]:
        """Return the values that other capabilities add to a page."""
        added: dict[str, Any] = {}
        for panel in self._panels.get(page, ()):
            added |= await panel(shown)
        return added

    def tell(self, notice: str) -> None:
        """Show a sentence on the next page of the current session."""
        g.session.tell(notice)

    # -- registered by capabilities -----------------------------------------------------------------

    def add_panel(self, page: str, panel: Panel) -> None:
        """Register a panel that adds values to a page of another capability."""
        self._panels.setdefault(page, []).append(panel)

    def open(self, *endpoints: str) -> None:
        """Allow access to pages without a session."""
        self._open |= {f"console.{endpoint}" for endpoint in endpoints}

    # -- serving --------------------------------------------------------------------------------

    def add_routes(self, app: QuartTrio) -> None:
        """Add the pages, the static files and the error pages to `app`."""
        blueprint = Blueprint("console", "lithos.server.console", url_prefix="/console", static_folder=None)
        blueprint.before_request(self._admit)
        blueprint.after_request(self._add_headers)
        for kind in (PageRefused, LithosError, DatabaseFailed):
            blueprint.register_error_handler(kind, self._explain)
        for module in (LOGIN, *self.pages.modules):
            import_module(module).add_routes(self, blueprint)

        blueprint.get("/static/<path:name>", endpoint="static_file")(static_file)

        @blueprint.route("/<whole:rest>", methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
        async def missing(rest: str) -> Response:
            raise AssertionError("no request is admitted to this endpoint")

        app.url_map.converters["whole"] = WholePath
        app.register_blueprint(blueprint)

        @app.get("/")
        @app.get("/console")
        async def to_overview() -> Any:
            return redirect("/console/", 302)

    async def _admit(self) -> Any:
        """Find or create the session of a request.

        If a token is needed and there is no session, show the login page.
        """
        session_id = request.cookies.get(COOKIE)
        session = self.sessions.find(session_id)
        if not _is_page():
            g.session = session
            raise PageRefused("Unknown page address. Use the navigation or the search to find the page.", 404)
        if session is None and not self.sessions.needs_login:
            session = self.begin_session()
        g.session = session
        if session is not None or request.endpoint in self._open:
            await self._complete_ids()
            return None
        if request.method == "GET" and "partial" not in request.args:
            return redirect(f"/console/login?next={quote(sent_address())}", 302)
        why = self.sessions.why_ended(session_id) or "Your session has ended."
        raise PageRefused(f"{why} Nothing was changed. Log in again.", 401)

    async def _complete_ids(self) -> None:
        """Replace the beginning of an id in the page address by the id."""
        arguments = request.view_args or {}
        if "note_id" in arguments:
            arguments["note_id"] = await self.note_id(arguments["note_id"])
        if "task_id" in arguments:
            arguments["task_id"] = await self.task_id(arguments["task_id"])

    async def note_id(self, text: str) -> str:
        """Return the id of the note that a text names by its id or its beginning, else the text."""
        return await self.parts.get(NotePorts).identify(text)

    async def task_id(self, text: str) -> str:
        """Return the id of the task that a text names by its id or its beginning, else the text."""
        return await self.parts.get(TaskIds).identify(text)

    def begin_session(self, agent: str | None = None, principal: Principal = ANYONE) -> BrowserSession:
        """Create a session for the current request. The response sets its cookie."""
        session: BrowserSession = self.sessions.begin(agent, principal)
        g.session = g.fresh_session = session
        return session

    async def _add_headers(self, response: Response) -> Response:
        fresh: BrowserSession | None = g.get("fresh_session")
        if fresh is not None:
            set_cookie(response, fresh.id)
        return add_headers(response)

    async def _explain(self, failure: Exception) -> Response:
        """Return the error page for a refusal or a failure."""
        if isinstance(failure, PageRefused):
            status, message = failure.status, failure.message
            if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                self.rejected("unauthorized" if status == HTTPStatus.UNAUTHORIZED else "forbidden")
        elif isinstance(failure, LithosError):
            status, message = _STATUSES.get(failure.code, 400), failure.message
        else:
            log.warning("page not shown", path=request.path, reason=str(failure))
            status = HTTPStatus.SERVICE_UNAVAILABLE
            message = (
                f"A database does not answer: {failure}. Try again in a moment. The System page has details."
            )
        return await self.show(
            "error.html", status, message=message, http_status=status, title=HTTPStatus(status).phrase
        )


def keep(kept: Newest[str, V], value: V) -> str:
    """Store a value for a later page and return its key. The page uses the key to find the value."""
    key = token_urlsafe(12)
    kept[key] = value
    return key


def given(name: str, most: int = 1_000) -> str:
    """Return a value of the query string, stripped and cut at `most` characters. A missing value is ""."""
    return request.args.get(name, "").strip()[:most]


def given_offset(total: int = 10_000_000) -> int:
    """Return the number of the first row to show, from the query string.

    `total` is the number of rows in the list.
    """
    return min(whole(request.args.get("offset")) or 0, max(total - 1, 0))


def _is_page() -> bool:
    """Return whether a page has exactly this address. An encoded slash belongs to a value."""
    rule, path = request.url_rule, sent_address().partition("?")[0]
    if rule is None or rule.endpoint == "console.missing":
        return False
    if "<path:" in rule.rule:
        return "%2F" not in path
    return path.count("/") == rule.rule.count("/")
