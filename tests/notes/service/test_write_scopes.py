"""Matrix of writing entry points, folders and operations (behaviours 278 and 279).

Each entry point requests a change in four folders. Its caller may write in the first folder, may only propose
in the second, and may do neither in the third. The fourth folder is protected. The entry points come from the
tool registry and the writer's requests.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any, Final, get_args

import attrs
import pytest
import trio
from attrs import frozen

from lithos.app.capabilities import all_tools, own_tools
from lithos.imports.model.importing import Record
from lithos.imports.service.importing import Importing
from lithos.imports.service.records import Options
from lithos.kernel.values.errors import Forbidden
from lithos.kernel.values.principals import ACTING, ANYONE, COMMAND, ENRICH_AGENT, OWNER, Principal, acting_as
from lithos.memory.enrich.entities import EntityExtraction
from lithos.memory.retrieve.feedback import Learning
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.model.scopes import Scope, WriteScopes
from lithos.notes.service.knowledge import Knowledge
from lithos.notes.writing import messages
from lithos.notes.writing.actor_writer import Writer
from lithos.proposals.model import PendingProposals
from lithos.proposals.service import Proposals
from lithos.search.indexing.indexer import FulltextIndexer
from tests.servers import Lithos, serving

#: One folder for each kind of access of a caller with a write scope.
PLACES: Final = {"write": "open", "propose": "ask", "outside": "shut", "protected": "law"}
SCOPE: Final = Scope(("open/**", "side/**"), ("ask/**",))
PROTECTED: Final = ("law/**",)
_NUMBERS = itertools.count()


@frozen
class Caller:
    """The caller that the server passes to the tools. If `by` is None, the caller is Lithos itself."""

    name: str
    by: Principal | None
    agent: str


AGENTS: Final = (
    Caller("a token with a scope", Principal("bound", "write", "bot"), "bot"),
    Caller("a connector", Principal("grant", "write", "bot", is_connector=True), "bot"),
    Caller("stdio, by the agent's name", OWNER, "named"),
    Caller("no token, by the agent's name", ANYONE, "named"),
    Caller("a command in an agent's name", COMMAND, "named"),
)
PERSONS: Final = (
    Caller("the console", attrs.evolve(ANYONE, is_own=True, is_person=True), "anna"),
    Caller("a command of the owner", COMMAND, "cli"),
    Caller("an admin token bound to nobody", Principal("boss", "admin"), "anna"),
)


@asynccontextmanager
async def limited(data: Path) -> AsyncIterator[Lithos]:
    """Start a server whose callers have a write scope."""
    async with serving(data) as lithos:
        lithos.server.get(Writer).scopes = WriteScopes(
            protected=PROTECTED,
            agents={"named": SCOPE, ENRICH_AGENT: SCOPE},
            of_token=lambda by: SCOPE if by.name in ("bound", "grant") else None,
        )
        yield lithos


async def own(lithos: Lithos, tool: str, **arguments: Any) -> Any:
    """Call a tool as the owner, and check that the call succeeds."""
    answer = await lithos.server.tools.call(tool, {"agent": "cli", **arguments})
    assert answer is not None
    assert "code" not in answer, answer
    return answer


async def make(lithos: Lithos, folder: str, content: str = "Some text.") -> str:
    """Create a note in a folder as the owner."""
    title = f"Note {next(_NUMBERS)}"
    return str((await own(lithos, "lithos_write", title=title, content=content, path=folder))["id"])


#: A prepared request to an entry point.
Ask = Callable[[Caller], Awaitable[Any]]


def by_tool(lithos: Lithos, tool: str, **arguments: Any) -> Ask:
    async def ask(caller: Caller) -> Any:
        assert caller.by is not None
        return await lithos.server.tools.call(tool, {"agent": caller.agent, **arguments}, caller.by)

    return ask


async def create(lithos: Lithos, folder: str) -> Ask:
    return by_tool(lithos, "lithos_write", title=f"Made {next(_NUMBERS)}", content="x", path=folder)


async def rewrite(lithos: Lithos, folder: str) -> Ask:
    return by_tool(lithos, "lithos_write", id=await make(lithos, folder), content="Other text.")


async def patch(lithos: Lithos, folder: str) -> Ask:
    return by_tool(lithos, "lithos_note_update", id=await make(lithos, folder), tags=["new"])


async def edit(lithos: Lithos, folder: str) -> Ask:
    return by_tool(lithos, "lithos_note_edit", id=await make(lithos, folder), op="append", text="More.")


async def delete(lithos: Lithos, folder: str) -> Ask:
    return by_tool(lithos, "lithos_delete", id=await make(lithos, folder))


async def restore(lithos: Lithos, folder: str) -> Ask:
    note_id = await make(lithos, folder)
    await own(lithos, "lithos_write", id=note_id, content="Since.")
    return by_tool(lithos, "lithos_restore", id=note_id, version=1)


async def undo(lithos: Lithos, folder: str) -> Ask:
    """Return a request that undoes version 2 of a note and keeps the later changes."""
    note_id = await make(lithos, folder, "One.\n\nTwo.\n\nThree.")
    for content in ("1.\n\nTwo.\n\nThree.", "1.\n\nTwo.\n\n3."):
        await own(lithos, "lithos_write", id=note_id, content=content)
    return by_tool(lithos, "lithos_restore", id=note_id, version=1, base=2)


async def bring_back(lithos: Lithos, folder: str) -> Ask:
    note_id = await make(lithos, folder)
    await own(lithos, "lithos_delete", id=note_id)
    return by_tool(lithos, "lithos_restore", id=note_id, version=1)


async def move_in(lithos: Lithos, folder: str) -> Ask:
    return by_tool(lithos, "lithos_note_move", id=await make(lithos, "side"), path=folder)


async def move_out(lithos: Lithos, folder: str) -> Ask:
    return by_tool(lithos, "lithos_note_move", id=await make(lithos, folder), path="side")


async def relink(lithos: Lithos, folder: str) -> Ask:
    """Return a request to move a note inside the scope, to which a note in `folder` links."""
    note_id = await make(lithos, "side/from")
    path = (await lithos.read(note_id))["path"]
    await make(lithos, folder, f"See [[{path.removesuffix('.md')}]].")
    return by_tool(lithos, "lithos_note_move", id=note_id, path="side/to")


async def quarantine(lithos: Lithos, folder: str) -> Ask:
    note_id = await make(lithos, folder)
    return by_tool(lithos, "lithos_impact", id=note_id, action="quarantine", reason="wrong")


async def supersede(lithos: Lithos, folder: str) -> Ask:
    winner, loser = await make(lithos, folder), await make(lithos, "side")
    ends = {"from_id": winner, "to_id": loser}
    edge = await own(lithos, "lithos_edge_upsert", **ends, type="contradicts", weight=1, namespace="x")
    resolving = {"edge_id": edge["edge_id"], "resolution": "superseded", "winner_id": winner}

    async def ask(caller: Caller) -> Any:
        assert caller.by is not None
        given = {**resolving, "resolver": caller.agent}
        return await lithos.server.tools.call("lithos_conflict_resolve", given, caller.by)

    return ask


def by_import(lithos: Lithos, folder: str, number: int, content: str) -> Ask:
    """Import one note in the same way as `POST /import` and the import command."""
    one = Record(
        id=f"r{number}",
        hash=f"{len(content):x}",
        position="line 1",
        title=f"Import {number}",
        content=content,
    )

    async def ask(caller: Caller) -> Any:
        with nullcontext() if caller.by is None else acting_as(caller.by):
            importing = lithos.server.get(Importing)
            agent = "import" if caller.agent == "cli" else caller.agent
            options = Options(kind="jsonl", agent=agent, into=folder)
            begun = await importing.begin(options)
            (outcome,) = await importing.take(begun.session, [one])
            await importing.end(begun.session)
        return {"status": outcome.result, "reason": outcome.reason}

    return ask


async def import_new(lithos: Lithos, folder: str) -> Ask:
    return by_import(lithos, folder, next(_NUMBERS), "First text.")


async def import_again(lithos: Lithos, folder: str) -> Ask:
    number = next(_NUMBERS)
    first = await by_import(lithos, folder, number, "First.")(Caller("owner", COMMAND, "import"))
    assert first["status"] == "created", first
    return by_import(lithos, folder, number, "Another, longer text.")


#: All operations. Each has the name of the tool that is its entry point, or None if it is not available as a
#: tool.
OPERATIONS: Final[Mapping[str, tuple[str | None, Callable[[Lithos, str], Awaitable[Ask]]]]] = {
    "create": ("lithos_write", create),
    "update": ("lithos_write", rewrite),
    "update some values": ("lithos_note_update", patch),
    "edit a place": ("lithos_note_edit", edit),
    "delete": ("lithos_delete", delete),
    "move in": ("lithos_note_move", move_in),
    "move out": ("lithos_note_move", move_out),
    "rewrite links of a move": ("lithos_note_move", relink),
    "restore": ("lithos_restore", restore),
    "bring back": ("lithos_restore", bring_back),
    "undo": ("lithos_restore", undo),
    "quarantine": ("lithos_impact", quarantine),
    "supersede": ("lithos_conflict_resolve", supersede),
    "import": (None, import_new),
    "import again": (None, import_again),
}
#: Writing tools that do not change notes.
NO_NOTE: Final = frozenset({
    "lithos_edge_upsert", "lithos_agent_register", "lithos_task_create", "lithos_task_update",
    "lithos_task_claim", "lithos_task_renew", "lithos_task_release", "lithos_task_cancel",
    "lithos_finding_post", "lithos_task_reopen", "lithos_task_edge_upsert", "lithos_task_spawn",
    "lithos_task_next", "lithos_proposal_withdraw", "lithos_care_tasks", "lithos_agent_archive",
    "lithos_task_edge_delete", "lithos_session_forget",
})  # fmt: skip
#: Tools that change notes through enrichment (tested below) or a person's decision (tested in
#: test_proposals).
ELSEWHERE: Final = frozenset({
    "lithos_task_complete", "lithos_proposal_decide",
    "lithos_conflict_copy_merge", "lithos_conflict_copy_keep",
})  # fmt: skip


def test_access_matrix_contains_every_writing_tool() -> None:
    writing = {tool.name for tool in (*all_tools(), *own_tools()) if "R" not in tool.hints}
    doors = {tool for tool, _ in OPERATIONS.values() if tool is not None}
    assert writing == doors | NO_NOTE | ELSEWHERE


def test_every_writer_request_names_its_caller() -> None:
    kinds = [kind for kind in get_args(messages.WriteRequest) if isinstance(kind, type)]
    assert len(kinds) == 8
    assert [kind.__name__ for kind in kinds if "by" not in attrs.fields_dict(kind)] == []
    assert ACTING.get() is None


def code_of(answer: Mapping[str, Any]) -> str:
    """Return the outcome of a change in a form that is the same for all entry points."""
    told = " ".join([str(answer.get("reason", "")), *map(str, answer.get("warnings") or ())])
    if answer.get("code") == "forbidden" or "may change" in told or "storage.protected" in told:
        return "forbidden"
    if answer.get("status") == "proposed" or "waits for approval" in told or "waits for a person" in told:
        return "proposed"
    return str(answer.get("code") or "done")


def look(lithos: Lithos) -> dict[str, tuple[int, int]]:
    """Return the size and time of every file."""
    walked = os.walk(lithos.knowledge)
    paths = (f"{folder}/{name}" for folder, _, names in walked for name in names if name.endswith(".md"))
    return {path: ((stat := os.stat(path)).st_size, stat.st_mtime_ns) for path in paths}


async def cell(lithos: Lithos, caller: Caller, place: str, operation: str) -> str:
    """Return a description of the unexpected outcome, or an empty string if the outcome is correct."""
    ask = await OPERATIONS[operation][1](lithos, PLACES[place])
    proposals = lithos.server.get(PendingProposals)
    before, waiting = look(lithos), len(proposals)
    answer = await ask(caller)
    allowed = caller in PERSONS or place == "write"
    wanted = "done" if allowed else "proposed" if place == "propose" else "forbidden"
    found = code_of(answer)
    if (operation, found) == ("quarantine", "done") and answer["status"] == "active":
        found = "proposed"  # The answer lists the dependents of the note, which is not quarantined yet.
    changed, kept = look(lithos) != before, len(proposals) - waiting
    for each in proposals.all():
        await lithos.server.get(Proposals).withdraw(each.id, each.agent)
    if (found, changed, kept) == (wanted, wanted == "done", int(wanted == "proposed")):
        return ""
    return f"{found}, not {wanted}; files changed: {changed}; kept: {kept}; {answer}"


@pytest.mark.slow
@pytest.mark.takes(8)
async def test_every_entry_point_respects_the_access_of_every_folder(tmp_path: Path) -> None:
    """behaviours 278 and 279."""
    wrong: dict[str, str] = {}
    cells = list(itertools.product((*AGENTS, *PERSONS), PLACES, OPERATIONS))
    async with limited(tmp_path) as lithos:
        for caller, place, operation in cells:
            trouble = await cell(lithos, caller, place, operation)
            if trouble:
                wrong[f"{caller.name} / {place} / {operation}"] = trouble
    assert wrong == {}
    assert len(cells) == 8 * 4 * 15


async def test_enrichment_writes_entities_only_where_allowed(tmp_path: Path) -> None:
    """behaviours 278 and 279: if the note file must not be changed, entities are stored outside the file."""
    async with limited(tmp_path) as lithos:
        server = lithos.server
        patching = EntityExtraction(
            server.get(Catalogue),
            server.get(EntityExtraction)._texts,
            server.get(Learning),
            patch=server.get(Knowledge).write,
            index=server.get(FulltextIndexer),
        )
        for place, folder in PLACES.items():
            note_id = await make(lithos, folder, "The Kubernetes cluster of Ada Lovelace in Vienna.")
            path = lithos.knowledge / (await lithos.read(note_id))["path"]
            before = path.read_bytes()
            assert await patching.refresh(note_id), place
            assert (path.read_bytes() != before) == (place == "write"), place
            assert (await lithos.read(note_id))["metadata"]["entities"], place
        assert len(server.get(PendingProposals)) == 0


async def test_scope_changed_before_the_write_is_respected(tmp_path: Path) -> None:
    """behaviour 278: the decision is made when the change is written, not when it is requested."""
    async with limited(tmp_path) as lithos:
        note_id, writer = await make(lithos, "open"), lithos.server.get(Writer)
        with acting_as(Principal("bound", "write", "bot")):
            request = messages.PatchNote(id=note_id, agent="bot", tags=("x",))
        writer.scopes = attrs.evolve(writer.scopes, of_token=lambda _: Scope(("side/**",)))
        with pytest.raises(Forbidden, match="outside of what bot may change"):
            await lithos.server.get(Knowledge).write(request)


async def test_refused_move_lists_the_notes_with_protected_links(tmp_path: Path) -> None:
    """behaviour 278: the whole move is refused."""
    async with limited(tmp_path) as lithos:
        note_id = await make(lithos, "side/from")
        path: str = (await lithos.read(note_id))["path"]
        linking = [await make(lithos, "shut", f"See [[{path.removesuffix('.md')}]].") for _ in range(3)]
        paths = {(await lithos.read(each))["path"] for each in linking}
        answer = await by_tool(lithos, "lithos_note_move", id=note_id, path="side/elsewhere")(AGENTS[0])
        assert (answer["code"], set(answer["paths"]), answer["total"]) == ("forbidden", paths, 3)
        assert (await lithos.read(note_id))["path"] == path
        kept = await by_tool(
            lithos, "lithos_note_move", id=note_id, path="side/elsewhere", update_links=False
        )(AGENTS[0])
        assert kept["path"].startswith("side/elsewhere/")


async def test_edits_of_two_agents_in_one_batch_are_checked_separately(tmp_path: Path) -> None:
    """behaviour 278: if several edits are written to one file at once, no edit uses another edit's rights."""
    async with limited(tmp_path) as lithos:
        note_id = await make(lithos, "shut")
        edit_by = {"id": note_id, "op": "append", "text": "More."}
        answers: list[Any] = []

        async def ask(caller: Caller) -> None:
            answers.append(code_of(await by_tool(lithos, "lithos_note_edit", **edit_by)(caller)))

        async with trio.open_nursery() as nursery:
            for caller in (PERSONS[1], AGENTS[0], PERSONS[1], AGENTS[2]):
                nursery.start_soon(ask, caller)
        assert sorted(answers) == ["done", "done", "forbidden", "forbidden"]
        assert (await lithos.read(note_id))["content"].count("More.") == 2
