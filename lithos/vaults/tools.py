"""Tools that query all vaults at once (`vault: "*"`) and return one merged, limited and paged answer.

Specified in docs/spec/vaults.md §2. Each row names its `vault`. Vaults that could not respond are listed in
`failed_vaults`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from attrs import evolve

from lithos.kernel.parts import Parts
from lithos.kernel.values.errors import InvalidInput, LithosError
from lithos.kernel.values.projects import ProjectFilter, asked_project
from lithos.memory.tools.context import ContextTool, about_row, item_row, left_out_row, place_row, trouble_row
from lithos.memory.tools.memory import RetrieveTool, retrieve_row
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.service.ports import PastSessions
from lithos.notes.service.row_kinds import (
    ALL_KINDS,
    ATTACHMENT,
    KINDS,
    NOTE,
    SESSION,
    SESSIONS_OFF,
    read_kinds,
)
from lithos.notes.tools_rows import add_projects, warn
from lithos.search.service.other_files import BESIDE, OtherHit, OtherHits, mix_rows, standings_of
from lithos.search.service.search import Hit, SearchRequest
from lithos.search.settings import SearchConfig, room_of_rows
from lithos.search.tools import SearchTool
from lithos.search.tools_rows import search_row
from lithos.server.settings import ServerConfig
from lithos.server.tools.compacting import CompactForm, compact
from lithos.server.tools.declaring import Answer
from lithos.server.tools.serialization import row_of
from lithos.tasks.service.coordination import Coordination, PageBounds, TaskFilter
from lithos.tasks.tools import TaskNextTool
from lithos.text.words.list_filters import most_written, tag_key
from lithos.vaults.service.briefing import JointContext, split_id
from lithos.vaults.service.retrieving import JointRetrieve
from lithos.vaults.service.searching import JointSearch
from lithos.vaults.tools_dispatch import VAULT, Joint, QueriedVault

Arguments = Mapping[str, Any]
Row = dict[str, Any]
#: Maximum share of a compact briefing's token budget for its text. Sources and warnings get the rest.
TEXT_SHARE: Final = 0.7
#: Maximum number of a vault's ready tasks to search for the oldest task.
MOST_READY: Final = 100_000


def _services(asked: Sequence[QueriedVault]) -> dict[str, Parts]:
    return {each.name: each.services for each in asked}


def _read(asked: Sequence[QueriedVault], name: str, arguments: Arguments) -> Any:
    """Parse the arguments in the first vault. Every vault must accept them."""
    given = [each.tools.read(name, arguments, each.principal) for each in asked]
    return given[0]


def _room(asked: Sequence[QueriedVault], limit: int) -> int:
    return room_of_rows(asked[0].services.get(ServerConfig), limit)


async def _mark(
    asked: Sequence[QueriedVault], hits: Sequence[tuple[str, Hit]], rows: Sequence[Row], *, explain: bool
) -> None:
    """Add to each row the warnings and the project that its vault knows."""
    for each in asked:
        own = [(hit.entry, row) for (name, hit), row in zip(hits, rows, strict=True) if name == each.name]
        await warn(each.services, ((row["id"], row) for _, row in own))
        add_projects(each.services, own, is_asked=explain)


def _missing(asked: Sequence[QueriedVault], wanted: ProjectFilter | None) -> str:
    """Return a sentence if no vault has notes of the requested project, or "".

    The longest sentence names similar projects.
    """
    told = [each.services.get(Catalogue).projects.missing(wanted) for each in asked]
    return max(told, key=len) if all(told) else ""


async def search(asked: Sequence[QueriedVault], arguments: Arguments) -> Answer:
    """Return the rows of one search across all vaults."""
    given: SearchTool = _read(asked, "lithos_search", arguments)
    kinds = KINDS if given.kinds is None else read_kinds(given.kinds, known=ALL_KINDS)
    services = _services(asked)
    if SESSION in kinds:
        return await _search_sessions(services, given, kinds)
    request = given.request(_room(asked, given.limit))
    limit = max(1, min(given.limit, asked[0].services.get(SearchConfig).max_results))
    hits: list[tuple[str, OtherHit]] = []
    if ATTACHMENT in kinds:
        most = BESIDE if NOTE in kinds else given.offset + limit
        hits = await _attachments(services, given, request, most)
    if NOTE not in kinds:
        shown = hits[given.offset : given.offset + limit]
        return {"results": [_hit_row(services, name, hit, hit.score) for name, hit in shown]}
    answer = await JointSearch(services).search(request)
    now = asked[0].services.clock()
    mixed: list[Row] = [search_row(hit, now) | {VAULT: name} for name, hit in answer.rows]
    await _mark(asked, answer.rows, mixed, explain=given.explain)
    if hits and not given.offset:
        owners = {id(hit): name for name, hit in hits}
        mixed = [
            _hit_row(services, owners[id(row)], row, score) if isinstance(row, OtherHit) else row
            for row, score in mix_rows(
                mixed, standings_of([hit for _, hit in answer.rows]), [hit for _, hit in hits], limit
            )
        ]
    result: dict[str, Any] = {"results": mixed}
    if answer.lacking:
        result |= {
            "degraded": True,
            "failed_backends": sorted({one for each in answer.lacking.values() for one in each}),
        }
    if answer.failed:
        result["failed_vaults"] = dict(answer.failed)
    message = answer.message or ("" if mixed else _missing(asked, request.filters.project))
    return result | ({"message": message} if message else {})


async def _search_sessions(
    services: Mapping[str, Parts], given: SearchTool, kinds: Collection[str]
) -> Answer:
    """Return the turns of past sessions of all vaults, best first. No other kind can be asked for with it."""
    if len(kinds) > 1:
        raise InvalidInput(
            "A search of all vaults for sessions cannot return other kinds. Ask for kinds=['session'] alone, "
            "or name one vault."
        )
    past = {name: each.find(PastSessions) for name, each in services.items()}
    most, wanted = given.offset + max(1, given.limit), asked_project(given.project)
    rows = [
        row | {VAULT: name}
        for name, each in past.items()
        if each is not None and each.is_enabled
        for row in await each.search_rows(given.query, wanted, 0, most, given.agent_id)
    ]
    rows.sort(key=lambda row: -float(row["score"]))
    answer: dict[str, Any] = {"results": rows[given.offset : most]}
    is_there = any(each is not None and each.is_enabled for each in past.values())
    return answer if is_there else answer | {"message": SESSIONS_OFF}


async def _attachments(
    services: Mapping[str, Parts], given: SearchTool, request: SearchRequest, most: int
) -> list[tuple[str, OtherHit]]:
    """Return matching passages in attachments of all vaults, best first."""
    found: list[tuple[str, OtherHit]] = []
    for name, each in services.items():
        others = each.find(OtherHits)
        if others is not None and others.has_any(request.filters):
            query = given.other_query(each, request, most)
            found += [(name, hit) for hit in await others.beside(query)]
    found.sort(key=lambda each: (-(each[1].judged.chance if each[1].judged else 0.0), -each[1].score))
    return found


def _hit_row(services: Mapping[str, Parts], name: str, hit: OtherHit, score: float) -> dict[str, Any]:
    return services[name].get(OtherHits).row(hit, score) | {VAULT: name}


async def retrieve(asked: Sequence[QueriedVault], arguments: Arguments) -> Answer:
    """Return the rows of one retrieval across all vaults. Each vault stores its own receipt."""
    given: RetrieveTool = _read(asked, "lithos_retrieve", arguments)
    services = _services(asked)
    request = given.request(_room(asked, given.limit))
    answer = await JointRetrieve(services).retrieve(request)
    now = asked[0].services.clock()
    shown = answer.rows[given.offset : given.offset + max(1, given.limit)]
    rows: list[Row] = [retrieve_row(result, now) | {VAULT: name} for name, result in shown]
    await _mark(asked, [(name, result.hit) for name, result in shown], rows, explain=given.explain)
    every = list(answer.answers.values())
    result: dict[str, Any] = {
        "results": rows,
        "temperature": every[0].receipt.temperature,
        "terrace_reached": max(each.receipt.terrace_reached for each in every),
        "receipts": {name: each.receipt.id for name, each in answer.answers.items()},
        "degraded": any(each.degraded for each in every),
        "failed_scouts": sorted({scout for each in every for scout in each.failed_scouts}),
    }
    if given.surface_conflicts:
        result["conflicts"] = [
            row_of(conflict) | {VAULT: name}
            for name, each in answer.answers.items()
            for conflict in each.conflicts or ()
        ]
    if not rows and (message := _missing(asked, request.filters.project)):
        result["message"] = message
    return result | ({"failed_vaults": dict(answer.failed)} if answer.failed else {})


async def context(asked: Sequence[QueriedVault], arguments: Arguments) -> Answer:
    """Return one briefing about all vaults."""
    given: ContextTool = _read(asked, "lithos_context", arguments)
    request, is_compact = given.request(), asked[0].services.get(ServerConfig).answers_compactly
    if is_compact:
        request = evolve(request, budget=max(1, int(request.budget * TEXT_SHARE)))
    joint = await JointContext(_services(asked)).brief(request)
    briefing, answers = joint.briefing, joint.answers
    places = {f"{name}:{key}": place for name, each in answers.items() for key, place in each.places.items()}
    troubles = [
        trouble_row(kind, f"{name}: {reason}") | {VAULT: name}
        for name, each in answers.items()
        for kind, reason in each.troubles
    ]
    result: dict[str, Any] = {
        "text": briefing.text,
        "tokens": briefing.tokens,
        "budget": given.budget,
        "items": [
            item_row(each) | place_row(places.get(each.id)) | _owned("id", each.id) for each in briefing.items
        ],
        "dropped": [left_out_row(each) | _owned("id", each.id) for each in briefing.dropped],
        "warnings": [
            *troubles,
            *(about_row(each) | _owned("note_id", each.note_id) for each in briefing.warnings),
        ],
        "cursor": joint.cursor,
        "receipts": {name: each.receipt_id for name, each in answers.items()},
        "degraded": any(each.degraded for each in answers.values()),
    }
    if given.project and (message := _missing(asked, request.filters.project)):
        result["message"] = message
    result |= {"failed_vaults": dict(joint.failed)} if joint.failed else {}
    return _compact_briefing(result, given) if is_compact else result


def _compact_briefing(result: dict[str, Any], given: ContextTool) -> dict[str, Any]:
    """Return a joint compact briefing in the format of a single vault, with `sources` instead of items."""
    unsaid = ["budget"] if given.explain else ["budget", "items", "dropped"]
    if not given.has_cursor:
        unsaid.append("cursor")
    sources = dict.fromkeys(f"{row[VAULT]} {row['id']} {row['path']}" for row in result["items"])
    told = {"text": result["text"], "sources": list(sources), **result}
    return compact(told, CompactForm(always=("text",), unsaid=unsaid), given)


def _owned(key: str, qualified: str) -> dict[str, str]:
    name, own = split_id(qualified)
    return {key: own, VAULT: name}


async def _each(
    asked: Sequence[QueriedVault], name: str, arguments: Arguments
) -> tuple[dict[str, Mapping[str, Any]], dict[str, str]]:
    """Return the complete answers by vault name, and the errors of vaults that failed.

    If every vault fails, raises the error of the first one.
    """
    answers: dict[str, Mapping[str, Any]] = {}
    refusals: dict[str, LithosError] = {}
    for each in asked:
        try:
            answers[each.name] = await each.answer(name, arguments)
        except LithosError as refusal:
            refusals[each.name] = refusal
    if not answers:
        raise next(iter(refusals.values()))
    return answers, {vault: refusal.message for vault, refusal in refusals.items()}


def _rows(answers: Mapping[str, Mapping[str, Any]], key: str) -> list[dict[str, Any]]:
    return [row | {VAULT: name} for name, answer in answers.items() for row in answer[key]]


def _told(answer: dict[str, Any], failed: Mapping[str, str]) -> dict[str, Any]:
    return answer | ({"failed_vaults": dict(failed)} if failed else {})


async def list_notes(asked: Sequence[QueriedVault], arguments: Arguments) -> Answer:
    """Return one page of the notes of all vaults. With a `content_query`, rows of the vaults alternate."""
    name = "lithos_list"
    given = _read(asked, name, arguments)
    offset, limit = max(0, given.offset), max(0, given.limit)
    answers, failed = await _each(asked, name, {**arguments, "offset": 0, "limit": offset + limit})
    rows = _rows(answers, "items")  # by vault, because each vault sorts by discovery time
    if given.content_query:  # Each vault sorts its matches by relevance, but returns no scores to compare.
        turns = [[row | {VAULT: vault} for row in answer["items"]] for vault, answer in answers.items()]
        longest = max(map(len, turns))
        rows = [turn[place] for place in range(longest) for turn in turns if place < len(turn)]
    total = sum(answer["total"] for answer in answers.values())
    messages = {answer["message"]: None for answer in answers.values() if "message" in answer}
    if given.project is not None:  # A vault without notes of the project says so, but another may have some.
        told = "" if total else _missing(asked, asked_project(given.project))
        messages = {told: None} if told else {}
    page = {"items": rows[offset : offset + limit], "total": total}
    return _told(page | ({"message": "; ".join(messages)} if messages else {}), failed)


async def tags(asked: Sequence[QueriedVault], arguments: Arguments) -> Answer:
    """Return the number of notes per tag across all vaults."""
    answers, failed = await _each(asked, "lithos_tags", arguments)
    spelled: dict[str, dict[str, int]] = {}
    for answer in answers.values():
        for tag, count in answer["tags"].items():
            spellings = spelled.setdefault(tag_key(tag), {})
            spellings[tag] = spellings.get(tag, 0) + count
    counts = {most_written(each): sum(each.values()) for each in spelled.values()}
    return _told({"tags": {tag: counts[tag] for tag in sorted(counts)}}, failed)


async def stats(asked: Sequence[QueriedVault], arguments: Arguments) -> Answer:
    """Return totals across all vaults, and each vault's own figures under `vaults`."""
    answers, failed = await _each(asked, "lithos_stats", arguments)
    keys = dict.fromkeys(key for answer in answers.values() for key in answer)
    whole = {key: _together([answer[key] for answer in answers.values() if key in answer]) for key in keys}
    return _told(whole | {"vaults": {name: dict(answer) for name, answer in answers.items()}}, failed)


def _together(values: Sequence[Any]) -> Any:
    """Return the sum of numbers, the "or" of booleans, or the last text, such as the latest time."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    if all(isinstance(value, bool) for value in known):
        return any(known)
    if all(isinstance(value, int | float) for value in known):
        return sum(known)
    return max(map(str, known))


async def task_list(asked: Sequence[QueriedVault], arguments: Arguments) -> Answer:
    """Return the tasks of all vaults, newest first."""
    answers, failed = await _each(asked, "lithos_task_list", arguments)
    rows = sorted(_rows(answers, "tasks"), key=lambda row: str(row["created_at"]), reverse=True)
    return _told({"tasks": rows}, failed)


async def task_next(asked: Sequence[QueriedVault], arguments: Arguments) -> Answer:
    """Claim the oldest free task of all vaults. If no task is free, return the number of waiting tasks."""
    name = "lithos_task_next"
    given: TaskNextTool = _read(asked, name, arguments)
    ages = {each.name: await _oldest(each.services, given) for each in asked}
    waiting = blocked = 0
    failed: dict[str, str] = {}
    for each in sorted(asked, key=lambda one: ages[one.name]):
        try:
            answer = await each.answer(name, arguments)
        except InvalidInput:
            raise
        except LithosError as refusal:
            failed[each.name] = refusal.message
            continue
        if answer["task"] is not None:
            return _told({**answer, VAULT: each.name}, failed)
        waiting, blocked = waiting + answer["waiting"], blocked + answer["blocked"]
    return _told({"task": None, "waiting": waiting, "blocked": blocked}, failed)


async def _oldest(services: Parts, given: TaskNextTool) -> datetime:
    """Return the creation time of a vault's oldest free task.

    If no task is free, return the latest possible time.
    """
    wanted = TaskFilter(tags=given.tags, metadata_match=given.metadata_match, project=given.project)
    views, _ = await services.get(Coordination).ready(wanted, PageBounds(limit=MOST_READY), with_claims=True)
    free = [view for view in views if all(claim.aspect != given.aspect for claim in view.claims or ())]
    return free[-1].task.created_at if free else datetime.max.replace(tzinfo=UTC)


async def finding_list(asked: Sequence[QueriedVault], arguments: Arguments) -> Answer:
    """Return the findings of a task, oldest first, from the vault that has the task."""
    answers, _ = await _each(asked, "lithos_finding_list", arguments)
    return {"findings": sorted(_rows(answers, "findings"), key=lambda row: str(row["created_at"]))}


def _fitting(name: str, joint: Callable[[Sequence[QueriedVault], Arguments], Any]) -> Joint:
    """Wrap a joint tool so that its answer does not exceed the size limit of the first vault.

    Pages already have the offset applied.
    """

    async def answer(asked: Sequence[QueriedVault], arguments: Arguments) -> Answer:
        whole = await joint(asked, arguments)
        return asked[0].tools.fitted(name, whole, arguments, asked[0].principal)

    return answer


#: Implementations of the tools for all vaults, by tool name.
JOINT: Final[Mapping[str, Joint]] = {
    name: _fitting(name, joint)
    for name, joint in {
        "lithos_search": search,
        "lithos_retrieve": retrieve,
        "lithos_context": context,
        "lithos_list": list_notes,
        "lithos_tags": tags,
        "lithos_stats": stats,
        "lithos_task_list": task_list,
        "lithos_task_next": task_next,
        "lithos_finding_list": finding_list,
    }.items()
}
