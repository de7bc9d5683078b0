"""The page `/console/` for several vaults: an overview of all vaults that a person's token opens.

Each vault has its own console below `/v/NAME/console/`. The person enters a token once and is logged in to
every vault that accepts the token. Each vault sets its own session cookie. The page reveals nothing about
vaults that the person may not use.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import trio
from attrs import frozen
from quart import Blueprint, Response, g, redirect, request
from quart_trio import QuartTrio

from lithos.kernel.actors.shared_value import Shared
from lithos.kernel.actors.threads import Threads
from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.principals import PERSON_AGENT
from lithos.server.console.console import Console, Form, PageRefused, WholePath
from lithos.server.console.formats import make_environment
from lithos.server.console.login import START, choose_agent, note_wrong_token, tell_if_bound
from lithos.server.console.page_layout import PLACE, STATIC, add_headers, digest_of, set_cookie, static_file
from lithos.server.console.sessions import COOKIE
from lithos.server.http.admissions import WrongTokens
from lithos.server.http.ports import base_of
from lithos.server.service_state import ServerState
from lithos.upkeep.checks.care import OverviewWarnings
from lithos.upkeep.console.summary import AGE, PATIENCE, HealthSummary, attempt, counted, health_of
from lithos.vaults.console.visits import Vaults, VaultView, Visit, Visits

#: Endpoints that do not need a login.
_OPEN_ENDPOINTS: Final = frozenset({"several.static_file", "several.login", "several.log_in"})
REVIEW: Final = "/console/review"
_NO_PAGE: Final = (
    "This page does not exist here, because each vault has its own console. Choose the vault on "
    "the overview, then open the page there."
)


@frozen
class Numbers:
    """Figures shown for one vault.

    A figure is None if it could not be read. `untold` lists the names of such figures.
    """

    health: HealthSummary | None
    notes: int | None
    open_tasks: int | None
    proposals: int
    #: Warnings as pairs of a count with its kind, and the URL of the page that lists the notes. None before
    #: the first check.
    concerns: Sequence[tuple[str, str]] | None
    untold: Sequence[str]


@frozen
class VaultRow:
    """One vault's row in the overview."""

    name: str
    address: str
    vault: VaultView
    #: The person's rights in the vault, or "" if the vault needs no token.
    rights: str
    numbers: Numbers | None


async def _look_up(console: Console) -> Numbers:
    """Read all figures of a vault concurrently.

    If several reads hang, they take at most `PATIENCE` in total.
    """
    parts, untold, found = console.parts, list[str](), dict[str, Any]()

    async def ask(what: str, asked: Awaitable[Any]) -> None:
        found[what] = await attempt(what, asked, untold)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, "the numbers", parts.get(ServerState).stats())
        nursery.start_soon(ask, "the state", parts.get(ServerState).report())
        nursery.start_soon(ask, "warnings", parts.get(OverviewWarnings).lately())
    numbers, report, concerns = found["the numbers"] or {}, found["the state"], found["warnings"]
    return Numbers(
        None if report is None else health_of(report[1]),
        numbers.get("documents"),
        numbers.get("active_tasks"),
        console.waiting().get(REVIEW, 0),
        None if concerns is None else counted(concerns),
        tuple(sorted(untold)),
    )


class SeveralConsole:
    """Web application for the vault overview, the joint login and the static files.

    `vaults` returns the current vaults and is called for each request. `wrong_tokens` counts wrong tokens of
    this login, of request headers and of the logins of single vaults.
    """

    def __init__(
        self, vaults: Vaults, version: str, clock: Callable[[], datetime], wrong_tokens: WrongTokens
    ) -> None:
        self._visits = Visits(vaults, clock)
        self._version = version
        self._clock = clock
        self._wrong_tokens = wrong_tokens
        self._environment = make_environment()
        self._rendering = Threads()
        self._static_key = digest_of(STATIC)
        self._kept: dict[str, tuple[Console, Shared[Numbers]]] = {}

    def add_routes(self, app: QuartTrio) -> None:
        """Add the routes of the overview, the login and the static files to the application."""
        blueprint = Blueprint("several", "lithos.server.console", url_prefix=PLACE, static_folder=None)
        blueprint.before_request(self._admit)
        blueprint.after_request(self._finish)
        blueprint.register_error_handler(PageRefused, self._explain)
        blueprint.get("/")(self.overview)
        blueprint.get("/state")(self.state)
        blueprint.get("/login")(self.login)
        blueprint.post("/login")(self.log_in)
        blueprint.post("/logout")(self.log_out)
        blueprint.get("/static/<path:name>", endpoint="static_file")(static_file)
        methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
        blueprint.route("/<whole:rest>", methods=methods, endpoint="missing")(self._miss)
        app.url_map.converters["whole"] = WholePath
        app.register_blueprint(blueprint)

        @app.get("/")
        @app.get(PLACE)
        async def to_overview() -> Any:
            return redirect(START, 302)

    # -- pages ----------------------------------------------------------------------------------

    async def overview(self) -> Response:
        """Return the overview page."""
        return await self._show("several.html", rows=await self._rows(), is_page=True)

    async def state(self) -> Any:
        """Return the overview's data for the script of the page."""
        if "partial" not in request.args:
            return redirect(START)
        return await self._show("several_vaults.html", rows=await self._rows())

    async def login(self) -> Any:
        """Return the login form, with a notice if the previous session has ended."""
        if g.visit is not None or not self._visits.needs_login:
            return redirect(START)
        return await self._show_login(ended=self._visits.why_ended(request.cookies.get(COOKIE)))

    async def log_in(self) -> Any:
        """Log in to every vault that accepts the entered token."""
        form: Form = await request.form
        if not self._visits.needs_login:
            return redirect(START, 303)
        given = form.get("agent", "").strip()
        try:
            chosen = choose_agent(given, PERSON_AGENT)
        except InvalidInput as refusal:
            return await self._show_login(400, message=refusal.message)
        visit = self._visits.begin(form.get("token", "").strip().encode(), chosen or None)
        if visit is None:
            wrong = note_wrong_token(self._wrong_tokens)
            return wrong.slowing(await self._show_login(wrong.status, message=wrong.message))
        if g.visit is not None:
            self._visits.end(g.visit)
        g.visit = g.fresh_visit = visit
        g.begun = self._visits.enter(visit)
        for session in g.begun.values() if chosen else ():
            tell_if_bound(session, chosen)
        return redirect(START, 303)

    async def log_out(self) -> Any:
        """Log out of every vault."""
        form: Form = await request.form
        visit: Visit = g.visit
        if not visit.owns(form.get("csrf", "")):
            raise PageRefused("This form is not from a page of your session. Load the page again.", 403)
        self._visits.end(visit)
        response = redirect("/console/login" if self._visits.needs_login else START, 303)
        for place in (PLACE, *(base_of(name) + PLACE for name in visit.entered)):
            response.delete_cookie(COOKIE, path=place)
        return response

    async def _miss(self, rest: str) -> Response:
        raise PageRefused(_NO_PAGE, 404)

    # -- serving --------------------------------------------------------------------------------

    async def _admit(self) -> Any:
        """Find the visit of this request. Show the login form if a token is needed and there is no visit."""
        visit = g.visit = self._visits.find(request.cookies.get(COOKIE))
        if visit is not None:
            g.begun = self._visits.enter(visit)  # Other vaults may have started since the login.
            return None
        is_open = request.endpoint in _OPEN_ENDPOINTS
        if is_open or (not self._visits.needs_login and request.endpoint != "several.log_out"):
            return None
        if request.method == "GET" and "partial" not in request.args:
            return redirect("/console/login", 302)
        raise PageRefused("Your session has ended. Nothing was changed. Log in again.", 401)

    async def _finish(self, response: Response) -> Response:
        fresh: Visit | None = g.get("fresh_visit")
        if fresh is not None:
            set_cookie(response, fresh.id)
        for name, session in g.get("begun", {}).items():
            set_cookie(response, session.id, base_of(name) + PLACE)
        return add_headers(response)

    async def _explain(self, refusal: Exception) -> Response:
        assert isinstance(refusal, PageRefused)
        title = HTTPStatus(refusal.status).phrase
        told = {"message": refusal.message, "http_status": refusal.status, "title": title}
        return await self._show("error.html", refusal.status, **told)

    async def _rows(self) -> list[VaultRow]:
        """Return a row for each vault that the person may use. All vaults are read concurrently."""
        found: dict[str, Numbers] = {}

        async def look(name: str, console: Console) -> None:
            known, numbers = self._kept.get(name, (None, None))
            if known is not console or numbers is None:
                numbers = Shared(partial(_look_up, console), AGE)
                self._kept[name] = console, numbers
            # Another request may already be reading this vault. A vault that hangs must not delay the others.
            with trio.move_on_after(2 * PATIENCE):
                found[name] = await numbers.latest()

        allowed = self._visits.allowed(g.visit)
        async with trio.open_nursery() as nursery:
            for name, (vault, _) in allowed.items():
                if vault.console is not None:
                    nursery.start_soon(look, name, vault.console)
        return [
            VaultRow(
                name,
                base_of(name) + START,
                vault,
                "" if vault.ring.is_open else principal.rights,
                found.get(name),
            )
            for name, (vault, principal) in allowed.items()
        ]

    async def _show_login(self, status: int = 200, **told: Any) -> Response:
        return await self._show("login.html", status, next=START, agent=PERSON_AGENT, **told)

    async def _show(self, template: str, status: int = 200, **context: Any) -> Response:
        """Render a template in a worker thread and return the response."""
        visit: Visit | None = g.get("visit")
        shared = {
            "now": self._clock(),
            "version": self._version,
            "static_key": self._static_key,
            "path": request.path,
            # With a form token, the page frame would show the navigation of a single vault.
            "csrf": "",
            "own_csrf": "" if visit is None else visit.csrf,
            "token": "" if visit is None else next(iter(visit.principals.values())).name,
        }
        page = self._environment.get_template(template)
        text = await self._rendering.run(partial(page.render, shared | context))
        response = Response(text, status, content_type="text/html; charset=utf-8")
        response.headers["Cache-Control"] = "no-store"
        return response
