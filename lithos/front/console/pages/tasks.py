"""`/console/tasks`: the board of tasks, and the form for a new one."""

from __future__ import annotations

from collections import OrderedDict
from secrets import token_urlsafe
from typing import Any, Final

from attrs import define, field
from quart import Blueprint, request

from lithos.core.tasks.graph import GATE_TYPES
from lithos.core.tasks.model import TASK_TYPES
from lithos.front.console.console import Console, Form, Refused, given, given_offset
from lithos.services.tasks.board import (
    BLOCKED,
    CLAIMED,
    COLUMNS,
    DONE,
    EPICS,
    GATES,
    READY,
    BoardFilter,
)

#: Cards of a column beside others, and alone.
CARDS: Final = 25
CARDS_ALONE: Final = 100
#: Forms that were refused and wait to be shown again; and characters of each that are kept.
MOST_DRAFTS: Final = 20
LONGEST_DRAFT: Final = 200_000
#: Name, what stands on it, and what to do where nothing does.
TITLES: Final = {
    READY: ("Ready", "Can start, and nobody is on it.", "Nothing can start that is not taken already."),
    BLOCKED: ("Blocked", "Waits for something else.", "Nothing waits for anything."),
    CLAIMED: ("Claimed", "An agent is on it.", "No agent holds a task now."),
    DONE: ("Done", "Completed or cancelled, the latest first.", "Nothing is done yet."),
    GATES: ("Gates", "Hold tasks back until something outside has happened.", "No gate is open."),
    EPICS: ("Epics", "Made of other tasks.", "No epic is open."),
}


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the board and the form for a new task."""
    pages = BoardPages(console)
    app.get("/tasks")(pages.board)
    console.asking(app, "/tasks/new", pages.new, pages.create)


@define(eq=False)
class BoardPages:
    """The pages about all tasks."""

    _console: Console
    #: Forms that the server refused, so that nobody types them again.
    _drafts: OrderedDict[str, dict[str, str]] = field(factory=OrderedDict)

    async def board(self) -> Any:
        """All columns, or one of them in pages."""
        filters = {name: text for name in ("project", "tags", "agent") if (text := given(name))}
        wanted = BoardFilter(
            project=filters.get("project"), tag=filters.get("tags"), agent=filters.get("agent")
        )
        only = request.args.get("column")
        if only is not None and only not in COLUMNS:
            raise Refused(f"The board has the columns {', '.join(COLUMNS)}. Choose one of them.", 404)
        offset = given_offset() if only else 0
        limit = CARDS_ALONE if only else CARDS
        columns = await self._console.parts.board.columns(wanted, limit, only=only, offset=offset)
        return await self._console.show(
            "tasks.html",
            columns=columns,
            titles=TITLES,
            only=only,
            offset=offset,
            limit=limit,
            filters=filters,
            is_empty=wanted.is_empty and not any(column.total for column in columns.values()),
        )

    async def new(self) -> Any:
        """The form for a new task."""
        draft = self._drafts.get(request.args.get("draft", ""), {})
        return await self._console.show(
            "task_new.html", draft=draft, kinds=TASK_TYPES, gates=GATE_TYPES, parent=given("parent")
        )

    async def create(self, form: Form) -> str:
        """Create a task in the name of the person; a refused form is shown again with what was typed."""
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
        except Refused as refusal:
            return self._keep(form, refusal.message)
        self._console.tell("The task is there. Agents get it by lithos_task_next once nothing holds it back.")
        return f"/console/tasks/{answer['task_id']}"

    def _keep(self, form: Form, message: str) -> str:
        key = token_urlsafe(12)
        kept = {name: value[:LONGEST_DRAFT] for name, value in form.items() if name not in ("csrf", "once")}
        self._drafts[key] = {**kept, "message": message}
        while len(self._drafts) > MOST_DRAFTS:
            self._drafts.popitem(last=False)
        return f"/console/tasks/new?draft={key}"
