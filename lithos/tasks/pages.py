"""The console pages `/console/tasks` (task board and new task form) and `/console/tasks/ID` (one task).

On these pages, people can cancel a task, resolve a gate or release a claim.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from hashlib import blake2b
from typing import Any, Final

from attrs import define, field, frozen
from markupsafe import Markup
from quart import Blueprint, request

from lithos.history.service.history import NoteHistory
from lithos.kernel.values.errors import ClaimNotFound, StaleFence
from lithos.kernel.values.graphemes import beginning
from lithos.kernel.values.limits import Newest
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.console.markdown import render_markdown
from lithos.server.console.console import Console, Form, PageRefused, given, given_offset, keep
from lithos.server.console.formats import as_json, readable, told, told_ids, whole
from lithos.tasks.model.graph import GATE_TYPES
from lithos.tasks.model.task import TASK_TYPES, aspect_key
from lithos.tasks.model.task_commands import ReleaseClaim
from lithos.tasks.rows.board_rows import HeldClaim
from lithos.tasks.service.board import COLUMNS, BoardFilter, BoardReading, Effects
from lithos.tasks.service.coordination import Coordination

#: Maximum number of cards in a column of the board, and on the page of a single column.
CARDS: Final = 25
CARDS_ALONE: Final = 100
#: Maximum number of refused forms to store for correction, and maximum characters stored per form.
MOST_DRAFTS: Final = 20
LONGEST_DRAFT: Final = 200_000


@define(eq=False)
class BoardPages:
    """The console pages about all tasks."""

    _console: Console
    #: Refused forms. They are stored so that people need not type the input again.
    _drafts: Newest[str, dict[str, str]] = field(factory=lambda: Newest(MOST_DRAFTS))

    async def board(self) -> Any:
        """Show all columns, or one column with several pages."""
        filters = {name: text for name in ("project", "tags", "agent") if (text := given(name))}
        wanted = BoardFilter(
            project=filters.get("project"), tag=filters.get("tags"), agent=filters.get("agent")
        )
        only = request.args.get("column")
        if only is not None and only not in COLUMNS:
            raise PageRefused(f"Unknown board column. Choose one of {', '.join(COLUMNS)}.", 404)
        offset = given_offset() if only else 0
        limit = CARDS_ALONE if only else CARDS
        columns = await self._console.parts.get(BoardReading).columns(wanted, limit, only=only, offset=offset)
        return await self._console.show(
            "tasks.html",
            columns=columns,
            only=only,
            offset=offset,
            limit=limit,
            filters=filters,
            is_empty=wanted.is_empty and not any(column.total for column in columns.values()),
        )

    async def new(self) -> Any:
        """Show the form for a new task."""
        draft = self._drafts.get(request.args.get("draft", ""), {})
        return await self._console.show(
            "task_new.html", draft=draft, kinds=TASK_TYPES, gates=GATE_TYPES, parent=given("parent")
        )

    async def create(self, form: Form) -> str:
        """Create a task in the name of the person.

        If the form is refused, it is shown again with the input.
        """
        kind = form.get("task_type", "task")
        fields = {"project": form.get("project", "")}
        if kind == "gate":
            fields |= {"gate_type": form.get("gate_type", "human"), "ready_at": form.get("ready_at", "")}
        try:
            answer = await self._console.call(
                "lithos_task_create",
                agent=self._console.agent,
                title=form.get("title", ""),
                description=form.get("description", "").replace("\r\n", "\n") or None,
                tags=[tag for each in form.get("tags", "").split(",") if (tag := each.strip())],
                task_type=kind,
                metadata={name: text.strip() for name, text in fields.items() if text.strip()},
                parent_task_id=form.get("parent_task_id", "").strip() or None,
                depends_on=form.get("depends_on", "").replace(",", " ").split() or None,
            )
        except PageRefused as refusal:
            return self._keep(form, refusal.message)
        self._console.tell(
            "The task was created. Agents get it with lithos_task_next once it is not blocked."
        )
        return f"/console/tasks/{answer['task_id']}"

    def _keep(self, form: Form, message: str) -> str:
        kept = {name: value[:LONGEST_DRAFT] for name, value in form.items() if name not in ("csrf", "once")}
        return f"/console/tasks/new?draft={keep(self._drafts, {**kept, 'message': message})}"


#: Maximum characters of a description or finding on its own page, of a finding in the list, and of metadata.
LONGEST_TEXT: Final = 40_000
LONGEST_FINDING: Final = 1_500
LONGEST_METADATA: Final = 4_000
#: Maximum number of findings on a page, and of listed events.
FINDINGS: Final = 50
MOST_EVENTS: Final = 100
#: Maximum number of rows in a list of effects.
MOST_LISTED: Final = 50
_WIKI: Final = re.compile(r"\[\[([^\[\]\n|#]{1,500})")


@frozen
class Closing:
    """A way to close a task: its button label, question, tool and success message.

    The form field `field` is passed to the tool under the same name. `task_asked.html` shows the result.
    """

    question: str
    button: str
    tool: str
    field: str
    done: Callable[[Mapping[str, Any]], str]
    is_for_gates: bool = False


def _started(answer: Mapping[str, Any]) -> str:
    count = len(answer.get("unblocked", ()))
    tasks = {0: "This alone unblocks no task.", 1: "1 task can start now."}
    return f"The gate was resolved. {tasks.get(count, f'{count} tasks can start now.')}"


CLOSINGS: Final[Mapping[str, Closing]] = {
    "cancel": Closing(
        "Cancel “{}”?",
        "Cancel the task",
        "lithos_task_cancel",
        "reason",
        lambda answer: "The task was cancelled.",
    ),
    "resolve": Closing(
        "Resolve the gate “{}”?",
        "Resolve the gate",
        "lithos_task_complete",
        "outcome",
        _started,
        is_for_gates=True,
    ),
}


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the routes of the board, the new task form, the task page and the actions on a task."""
    board, pages = BoardPages(console), TaskPages(console)
    app.get("/tasks")(board.board)
    console.asking(app, "/tasks/new", board.new, board.create)
    app.get("/tasks/<task_id>")(pages.task)
    for name in CLOSINGS:
        ask, close = partial(pages.ask_closing, name), partial(pages.close, name)
        console.asking(app, f"/tasks/<task_id>/{name}", ask, close)
    console.asking(app, "/tasks/<task_id>/release", pages.ask_release, pages.release)


@frozen
class TaskPages:
    """The console pages about one task."""

    _console: Console

    async def task(self, task_id: str) -> Any:
        """Show a task with its claims, findings, edges and events."""
        found = await self._console.parts.get(BoardReading).read(task_id)
        alone = request.args.get("finding")
        findings = [one for one in found.findings if alone is None or one.id == alone]
        if alone is not None and not findings:
            raise PageRefused("This finding does not exist. Choose a finding on the task page.", 404)
        offset = given_offset(len(findings))
        shown = findings[::-1][offset : offset + FINDINGS]
        longest = LONGEST_FINDING if alone is None else LONGEST_TEXT
        done = next((event.payload for event in found.events if event.type == "task.completed"), None)
        helped, misled = (
            (told_ids(done.get(key)) or [])[:MOST_LISTED] if done else []
            for key in ("cited_nodes", "misleading_nodes")
        )
        rest = {k: v for k, v in found.task.metadata.items() if k not in ("project", "gate_type")}
        named = [one.knowledge_id for one in shown if one.knowledge_id is not None]
        return await self._console.show(
            "one_task.html",
            task=found.task,
            found=found,
            description=self._renderer(found.task.description or "", LONGEST_TEXT),
            longest_text=LONGEST_TEXT,
            findings=shown,
            summaries={one.id: self._renderer(one.summary, longest) for one in shown},
            longest_finding=longest,
            findings_total=len(findings),
            findings_limit=FINDINGS,
            offset=offset,
            alone=alone,
            most_events=MOST_EVENTS,
            **await self._console.panels("task", task_id),
            is_completed=done is not None,
            helped=helped,
            misled=misled,
            cited_receipt=told(done.get("receipt_id")) if done else None,
            titles=await self._console.parts.get(NoteHistory).titles([*named, *helped, *misled]),
            metadata=as_json(rest, LONGEST_METADATA),
        )

    def _renderer(self, text: str, most: int) -> Callable[[], Markup]:
        """Return a function that renders this text in a worker thread. Links are looked up before."""
        text, graph = beginning(text, most), self._console.parts.get(Catalogue).graph
        known = {name.strip(): graph.resolve(name.strip()) for name in set(_WIKI.findall(text))}
        return lambda: render_markdown(text, known.get)

    async def _ask(self, effects: Effects, kind: str, **context: Any) -> Any:
        return await self._console.show(
            "task_asked.html", kind=kind, effects=effects, task=effects.task, most=MOST_LISTED, **context
        )

    async def ask_closing(self, name: str, task_id: str) -> Any:
        """Show the effects of closing a task, and ask the person to confirm."""
        effects, closing = await self._closable(name, task_id), CLOSINGS[name]
        return await self._ask(
            effects,
            name,
            title=closing.question.format(readable(effects.task.title, 80)),
            button=closing.button,
            field=closing.field,
            fields={"seen": _digest(effects)},
        )

    async def close(self, name: str, form: Form, task_id: str) -> str:
        """Close a task in the name of the person.

        Raises `PageRefused` if the effects are no longer the displayed effects.
        """
        closing = CLOSINGS[name]
        if form.get("seen") != _digest(await self._closable(name, task_id)):
            raise PageRefused(
                "Nothing was changed. The effects of this action have changed since you opened "
                "the page, because an agent claimed, closed or linked a task. Start again on the "
                "task page.",
                409,
            )
        given = {closing.field: form.get(closing.field, "").strip() or None}
        try:
            answer = await self._console.call(
                closing.tool, task_id=task_id, agent=self._console.agent, **given
            )
        except PageRefused as refusal:
            if refusal.code != "task_not_found":
                raise
            raise PageRefused(f"Nothing was changed. {refusal.message}", 409, refusal.code) from refusal
        self._console.tell(closing.done(answer))
        return f"/console/tasks/{task_id}"

    async def _closable(self, name: str, task_id: str) -> Effects:
        """Return the effects of closing a task. The person must own the task or have the right `admin`."""
        effects = await self._console.parts.get(BoardReading).effects(task_id)
        if not effects.task.is_open:
            raise PageRefused(f"Nothing was changed. The task is already {effects.task.status}.", 409)
        self._console.demand_of(effects.task.created_by)
        if CLOSINGS[name].is_for_gates and effects.task.task_type != "gate":
            raise PageRefused("This task is not a gate. The agent that works on it completes it.")
        return effects

    async def ask_release(self, task_id: str) -> Any:
        """Show which agent a release would interrupt, and ask the person to confirm."""
        effects = await self._console.parts.get(BoardReading).effects(task_id)
        held = _held(effects.claims, request.args.get("aspect", ""))
        if held is None:
            raise PageRefused(
                "No agent holds this aspect any more. The claim was released or has expired.", 409
            )
        claim = held.claim
        self._console.demand_of(claim.agent)
        return await self._ask(
            effects,
            "release",
            held=held,
            title=f"Release the claim of {readable(claim.agent, 60)}?",
            button="Release the claim",
            fields={"aspect": claim.aspect, "agent": claim.agent, "fence": str(claim.fence)},
        )

    async def release(self, form: Form, task_id: str) -> str:
        """Release the displayed claim. The fence must match, so that a later claim is never released."""
        fence, holder = whole(form.get("fence"), 18), form.get("agent", "")
        if fence is None or not holder:
            raise PageRefused("This form does not name a claim. Start on the task page.")
        self._console.demand_of(holder)
        command = ReleaseClaim(
            agent=self._console.agent,
            task_id=task_id,
            aspect=form.get("aspect", ""),
            fence=fence,
            held_by=holder,
        )
        try:
            await self._console.parts.get(Coordination).run(command)
        except (StaleFence, ClaimNotFound) as refusal:
            raise PageRefused(
                f"Nothing was released. {readable(holder)} does not hold this claim any more. "
                "Open the task page again, because another agent may hold the claim now.",
                409,
            ) from refusal
        self._console.tell(f"{readable(holder, 60)} no longer holds the aspect.")
        return f"/console/tasks/{task_id}"


def _held(claims: Iterable[HeldClaim], aspect: str) -> HeldClaim | None:
    wanted = aspect_key(aspect)
    return next((held for held in claims if aspect_key(held.claim.aspect) == wanted), None)


def _digest(effects: Effects) -> str:
    """Return a short hash of all displayed effects."""
    seen = [
        effects.task.status,
        sorted(held.claim.fence for held in effects.claims),
        sorted((one.id, [other.id for other in others]) for one, others in effects.direct),
        sorted(one.id for one in effects.behind),
        sorted(one.id for one in effects.children),
    ]
    return blake2b(json.dumps(seen).encode(), digest_size=9).hexdigest()
