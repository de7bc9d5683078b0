"""`/console/tasks/ID`: one task, and what people may do with it: cancel, resolve a gate, release a claim."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final
from urllib.parse import quote

from attrs import frozen
from markupsafe import Markup
from quart import Blueprint, request

from lithos.core.errors import ClaimNotFound, StaleFence
from lithos.core.tasks.commands import ReleaseClaim
from lithos.core.tasks.model import Finding, Task, aspect_key
from lithos.front.console.console import Console, Form, Refused
from lithos.front.console.formats import ago, as_json, readable
from lithos.front.console.markdown import Links, render_markdown
from lithos.services.tasks.dossier import Dossier, Effects
from lithos.stores.coordination.board_rows import HeldClaim, Told

#: Characters of a description, of one finding in the list, and of a finding alone.
LONGEST_TEXT: Final = 40_000
LONGEST_FINDING: Final = 1_500
LONGEST_METADATA: Final = 4_000
#: Findings of a page; events and receipts that are listed.
FINDINGS: Final = 50
MOST_RECEIPTS: Final = 50
MOST_EVENTS: Final = 100
#: Rows of a list of consequences.
MOST_LISTED: Final = 50
_WIKI: Final = re.compile(r"\[\[([^\[\]\n|#]{1,500})")


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the page of a task and its changes."""
    pages = TaskPages(console)
    app.get("/tasks/<task_id>")(pages.task)
    app.get("/tasks/<task_id>/cancel")(console.only("write", pages.ask_cancel))
    app.post("/tasks/<task_id>/cancel")(console.change(pages.cancel))
    app.get("/tasks/<task_id>/resolve")(console.only("write", pages.ask_resolve))
    app.post("/tasks/<task_id>/resolve")(console.change(pages.resolve))
    app.get("/tasks/<task_id>/release")(console.only("write", pages.ask_release))
    app.post("/tasks/<task_id>/release")(console.change(pages.release))


@frozen
class Cited:
    """What a completion said of notes: `helped` and `misled` are pairs of id and title."""

    helped: Sequence[tuple[str, str]]
    misled: Sequence[tuple[str, str]]
    receipt_id: str | None


@frozen
class ShownFinding:
    """A finding with its text as HTML, made when the page is rendered; `note` is a pair of id and title."""

    finding: Finding
    render: Callable[[], Markup]
    is_cut: bool
    note: tuple[str, str] | None


@frozen
class TaskPages:
    """The pages about one task."""

    _console: Console

    async def task(self, task_id: str) -> Any:
        """All that belongs to a task."""
        found = await self._console.parts.dossiers.read(task_id)
        alone = request.args.get("finding")
        findings = [one for one in found.findings if alone is None or one.id == alone]
        if alone is not None and not findings:
            raise Refused("There is no such finding. Look for it among those of the task.", 404)
        total = len(findings)
        offset = _offset(total)
        newest_first = findings[::-1][offset : offset + FINDINGS]
        receipts = await self._console.parts.learning.read(
            lambda tables: tables.receipts.of_task(task_id, MOST_RECEIPTS)
        )
        named = [one.knowledge_id for one in newest_first if one.knowledge_id is not None]
        done = _completion(found)
        titles = await self._console.parts.timelines.titles([*named, *_cited_by(done)])
        description, is_cut = _cut(found.task.description or "", LONGEST_TEXT)
        return await self._console.show(
            "one_task.html",
            task=found.task,
            found=found,
            description=self._renderer(description),
            is_cut=is_cut,
            findings=[self._show(one, titles, is_alone=alone is not None) for one in newest_first],
            findings_total=total,
            findings_limit=FINDINGS,
            offset=offset,
            alone=alone,
            history=[_tell(event) for event in found.events[:MOST_EVENTS]],
            history_total=len(found.events),
            receipts=receipts,
            cited=None if done is None else self._cited(done, titles),
            metadata=_metadata(found.task),
            warning=_warning_of(found),
        )

    def _show(self, finding: Finding, titles: Mapping[str, str], *, is_alone: bool) -> ShownFinding:
        text, is_cut = _cut(finding.summary, LONGEST_TEXT if is_alone else LONGEST_FINDING)
        note = finding.knowledge_id
        return ShownFinding(
            finding, self._renderer(text), is_cut, None if note is None else (note, self._title(note, titles))
        )

    def _renderer(self, text: str) -> Callable[[], Markup]:
        """Renders a text later, in a worker thread; its links are looked up now."""
        graph = self._console.parts.catalogue.graph
        known = {name.strip(): graph.resolve(name.strip()) for name in set(_WIKI.findall(text))}
        return lambda: render_markdown(text, Links(known.get))

    def _title(self, note_id: str, titles: Mapping[str, str]) -> str:
        """The title of a note; `titles` are those of deleted ones."""
        entry = self._console.parts.catalogue.get(note_id)
        return titles.get(note_id, note_id) if entry is None else entry.note.title

    def _cited(self, done: Told, titles: Mapping[str, str]) -> Cited:
        """What a completion cited."""
        helped, misled = (
            [(note, self._title(note, titles)) for note in _texts(done.payload.get(key))]
            for key in ("cited_nodes", "misleading_nodes")
        )
        receipt = _value(done.payload.get("receipt_id"))
        return Cited(helped, misled, receipt if isinstance(receipt, str) else None)

    # -- cancelling ----------------------------------------------------------------------------

    async def ask_cancel(self, task_id: str) -> Any:
        """What cancelling would do."""
        effects = await self._own(task_id)
        task, now = effects.task, self._console.parts.clock()
        never = [
            _item(one, "can never start" + (f"; it also waits for {_names(others)}" if others else ""))
            for one, others in effects.direct
        ]
        parts = [
            _part("Can never start any more", never, "No open task waits for it."),
            _part(
                "Wait behind those, and will never start either",
                [_item(one, "") for one in effects.behind],
                "",
            ),
            _part(
                "Agents that lose their claim", _claim_items(effects.claims, now), "Nobody is working on it."
            ),
            _part(
                "Its open children stay open",
                [_item(one, one.task_type) for one in effects.children],
                "It has no open children.",
            ),
        ]
        return await self._console.show(
            "task_close.html",
            title=f"Cancel “{readable(task.title, 80)}”?",
            about="A cancelled task counts as given up: its claims end, and what waits for it cannot start.",
            action=f"/console/tasks/{task.id}/cancel",
            button="Cancel the task",
            danger=True,
            cancel=f"/console/tasks/{task.id}",
            fields={"seen": _digest(effects)},
            consequences=[part for part in parts if part["items"] or part["empty"]],
            field=("reason", "Why (goes into the event that agents see)"),
        )

    async def cancel(self, form: Form, task_id: str) -> str:
        """Cancel a task in the name of the person."""
        await self._check(form, task_id)
        reason = form.get("reason", "").strip() or None
        await self._close("lithos_task_cancel", task_id, reason=reason)
        self._console.tell("The task is cancelled.")
        return f"/console/tasks/{task_id}"

    # -- gates ---------------------------------------------------------------------------------

    async def ask_resolve(self, task_id: str) -> Any:
        """What resolving a gate would do."""
        effects = await self._own(task_id)
        task, now = _gate(effects.task), self._console.parts.clock()
        ready = [_item(one, one.task_type) for one, others in effects.direct if not others]
        waiting = [
            _item(one, f"still waits for {_names(others)}") for one, others in effects.direct if others
        ]
        parts = [
            _part("Can start", ready, "No open task waits for this gate alone."),
            _part("Still wait for something else", waiting, ""),
            _part("Agents that lose their claim", _claim_items(effects.claims, now), ""),
        ]
        return await self._console.show(
            "task_close.html",
            title=f"Resolve the gate “{readable(task.title, 80)}”?",
            about="It counts as passed from then on, and agents hear of the tasks that can start.",
            action=f"/console/tasks/{task.id}/resolve",
            button="Resolve the gate",
            danger=False,
            cancel=f"/console/tasks/{task.id}",
            fields={"seen": _digest(effects)},
            consequences=[part for part in parts if part["items"] or part["empty"]],
            field=("outcome", "Outcome (what was decided or has happened)"),
        )

    async def resolve(self, form: Form, task_id: str) -> str:
        """Complete a gate in the name of the person."""
        _gate((await self._check(form, task_id)).task)
        outcome = form.get("outcome", "").strip() or None
        answer = await self._close("lithos_task_complete", task_id, outcome=outcome)
        count = len(answer.get("unblocked", ()))
        told = {0: "No task can start by it alone.", 1: "1 task can start now."}
        self._console.tell(f"The gate is resolved. {told.get(count, f'{count} tasks can start now.')}")
        return f"/console/tasks/{task_id}"

    # -- claims --------------------------------------------------------------------------------

    async def ask_release(self, task_id: str) -> Any:
        """Whose work a release would stop."""
        aspect = request.args.get("aspect", "")
        effects = await self._console.parts.dossiers.effects(task_id)
        held = _held(effects.claims, aspect)
        if held is None:
            raise Refused("Nobody holds this aspect any more: the claim was released or has expired.", 409)
        self._console.demand_of(held.claim.agent)
        claim, now = held.claim, self._console.parts.clock()
        since = "" if held.claimed_at is None else f" since {ago(held.claimed_at, now)}"
        parts = [
            _part(
                "Stops",
                [
                    {
                        "text": claim.agent,
                        "href": f"/console/agents/{_quoted(claim.agent)}",
                        "note": f"holds “{readable(claim.aspect, 60)}”{since}, and until "
                        f"{_exact(claim.expires_at)} (fence {claim.fence})",
                    }
                ],
                "",
            ),
            _part(
                "What the agent notices",
                [
                    {
                        "text": "Its next renewal is refused, as is work under its fence. The aspect is free "
                        "for whoever claims it first."
                    }
                ],
                "",
            ),
        ]
        return await self._console.show(
            "confirm.html",
            title=f"Release the claim of {readable(claim.agent, 60)}?",
            about=f"On “{readable(effects.task.title, 120)}”.",
            action=f"/console/tasks/{task_id}/release",
            button="Release the claim",
            danger=True,
            cancel=f"/console/tasks/{task_id}",
            fields={"aspect": claim.aspect, "agent": claim.agent, "fence": str(claim.fence)},
            consequences=parts,
        )

    async def release(self, form: Form, task_id: str) -> str:
        """Release the claim that was shown, and no later one: its fence is compared."""
        fence, holder = form.get("fence", ""), form.get("agent", "")
        if not fence.isdecimal() or len(fence) > 18 or not holder:
            raise Refused("This form does not name a claim. Begin at the page of the task.")
        self._console.demand_of(holder)
        command = ReleaseClaim(
            agent=self._console.agent,
            task_id=task_id,
            aspect=form.get("aspect", ""),
            fence=int(fence),
            held_by=holder,
        )
        try:
            await self._console.parts.coordination.run(command)
        except (StaleFence, ClaimNotFound) as refusal:
            raise Refused(
                f"Nothing was released: {readable(holder)} does not hold this claim any more. Look at the "
                "task again: somebody else may hold it now.",
                409,
            ) from refusal
        self._console.tell(f"{readable(holder, 60)} holds the aspect no longer.")
        return f"/console/tasks/{task_id}"

    # -- what all changes need -----------------------------------------------------------------

    async def _open(self, task_id: str) -> Effects:
        effects = await self._console.parts.dossiers.effects(task_id)
        if not effects.task.is_open:
            raise Refused(f"The task is {effects.task.status} already; nothing was changed.", 409)
        return effects

    async def _own(self, task_id: str) -> Effects:
        """The effects of closing a task that the person may close: their own, or any as `admin`."""
        effects = await self._open(task_id)
        self._console.demand_of(effects.task.created_by)
        return effects

    async def _check(self, form: Form, task_id: str) -> Effects:
        """The effects now. Raises `Refused` unless they are those that were shown."""
        effects = await self._own(task_id)
        if form.get("seen") != _digest(effects):
            raise Refused(
                "Nothing was changed: what this would do has changed since you looked, as somebody claimed, "
                "closed or linked a task. Begin again at the page of the task.",
                409,
            )
        return effects

    async def _close(self, tool: str, task_id: str, **more: Any) -> dict[str, Any]:
        try:
            return await self._console.call(tool, task_id=task_id, agent=self._console.agent, **more)
        except Refused as refusal:
            if refusal.code != "task_not_found":
                raise
            raise Refused(f"Nothing was changed. {refusal.message}", 409, refusal.code) from refusal


def _completion(found: Dossier) -> Told | None:
    """The event of the latest completion, where the journal still has it."""
    return next((event for event in found.events if event.type == "task.completed"), None)


def _cited_by(done: Told | None) -> list[str]:
    keys = ("cited_nodes", "misleading_nodes")
    return [] if done is None else [note for key in keys for note in _texts(done.payload.get(key))]


def _gate(task: Task) -> Task:
    if task.task_type != "gate":
        raise Refused("This task is no gate: it is done by the agent that works on it.")
    return task


def _held(claims: Iterable[HeldClaim], aspect: str) -> HeldClaim | None:
    wanted = aspect_key(aspect)
    return next((held for held in claims if aspect_key(held.claim.aspect) == wanted), None)


def _digest(effects: Effects) -> str:
    """A short hash of all consequences that are shown."""
    seen = [
        effects.task.status,
        sorted(held.claim.fence for held in effects.claims),
        sorted((one.id, [other.id for other in others]) for one, others in effects.direct),
        sorted(one.id for one in effects.behind),
        sorted(one.id for one in effects.children),
    ]
    return blake2b(json.dumps(seen).encode(), digest_size=9).hexdigest()


def _item(task: Task, note: str) -> dict[str, str]:
    return {"text": task.title, "href": f"/console/tasks/{_quoted(task.id)}", "note": note}


def _claim_items(claims: Sequence[HeldClaim], now: datetime) -> list[dict[str, str]]:
    return [
        {
            "text": held.claim.agent,
            "href": f"/console/agents/{_quoted(held.claim.agent)}",
            "note": f"holds “{readable(held.claim.aspect, 60)}”"
            + ("" if held.claimed_at is None else f", claimed {ago(held.claimed_at, now)}"),
        }
        for held in claims
    ]


def _part(title: str, items: Sequence[dict[str, str]], empty: str) -> dict[str, Any]:
    shown = list(items[:MOST_LISTED])
    if len(items) > len(shown):
        shown.append({"text": f"and {len(items) - len(shown):,} more"})
    return {"title": title, "items": shown, "empty": empty}


def _names(tasks: Sequence[Task]) -> str:
    named = [f"“{readable(task.title, 60)}”" for task in tasks[:3]]
    return ", ".join(named) + (f" and {len(tasks) - 3} more" if len(tasks) > 3 else "")


def _quoted(text: str) -> str:
    return quote(text, safe="")


def _exact(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M UTC")


def _cut(text: str, most: int) -> tuple[str, bool]:
    return (text, False) if len(text) <= most else (text[:most], True)


def _value(text: object) -> object:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _texts(text: object) -> list[str]:
    value = _value(text)
    return [each for each in value if isinstance(each, str)][:MOST_LISTED] if isinstance(value, list) else []


def _metadata(task: Task) -> str:
    """What else is kept of a task, as JSON; empty where there is nothing."""
    rest = {key: value for key, value in task.metadata.items() if key not in ("project", "gate_type")}
    return as_json(rest, LONGEST_METADATA) if rest else ""


def _warning_of(found: Dossier) -> str:
    if any(blocker.kind == "blocker_unsatisfiable" for blocker in found.blockers):
        return (
            "It can never start as it is: something it waits for was cancelled. Cancel it, or create another."
        )
    if any(blocker.kind == "cycle" for blocker in found.blockers):
        return "It can never start as it is: the tasks wait for each other."
    return ""


_DETAILS: Final = ("aspect", "fence", "outcome", "reason", "prior_status", "summary")
_VERBS: Final = {
    "task.created": "created it",
    "task.updated": "changed it",
    "task.claimed": "claimed",
    "task.released": "released",
    "task.claim_expired": "let the claim expire on",
    "task.ready": "made it ready",
    "task.completed": "completed it",
    "task.cancelled": "cancelled it",
    "task.reopened": "reopened it",
    "finding.posted": "reported",
}


def _tell(event: Told) -> dict[str, Any]:
    """An event as a line: who, what, and its details."""
    payload = event.payload
    whose = payload.get("agent")
    is_taken = event.type == "task.released" and isinstance(whose, str) and whose != event.agent
    return {
        "at": event.at,
        "agent": event.agent,
        "verb": "released the claim of" if is_taken else _VERBS.get(event.type, event.type),
        "whose": whose if is_taken else None,
        "details": [(key, str(payload[key])) for key in _DETAILS if payload.get(key) is not None],
    }


def _offset(total: int) -> int:
    text = request.args.get("offset", "0")
    return min(int(text), max(total - 1, 0)) if text.isdecimal() and len(text) <= 9 else 0
