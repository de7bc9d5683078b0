"""Documentation, which must match the code. The reference is generated, and no part may be missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from http import HTTPStatus
from itertools import groupby
from pathlib import Path

import attrs
import pytest

from docs.generate import ADVICE, FOLDER, find_differences, render_pages
from docs.interface import EVENTS, HTTP_REFUSALS, QUERY, list_errors
from lithos.app.capabilities import all_tools
from lithos.app.options import make_parser
from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.messages import Flush
from lithos.events.streams.frames import sse_frames
from lithos.kernel.configuration.catalogue import SETTINGS
from lithos.kernel.metrics import metric_names
from lithos.kernel.values.events import REINDEX_COMPLETE, Event, EventDraft
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.model.scopes import Scope, WriteScopes
from lithos.notes.writing.actor_writer import Writer
from lithos.proposals.model import TidyProposals
from lithos.search.tools import MODES, SearchTool
from tests.house import ROLES, modules, role_of
from tests.servers import Clock, Lithos, serving, until
from tests.test_layers import imports_within

ROOT = Path(__file__).parents[1]
DOCS = sorted(
    [
        *(ROOT / name for name in ("README.md", "CHANGELOG.md", "docs/llms.txt")),
        *(ROOT / "docs").rglob("*.md"),
    ]
)
#: Words that no page may contain.
OUT_OF_PLACE = re.compile(r"(?<![\w.~-])/(?:work|tmp|root|home)/|\b20\d\d-\d\d-\d\d\b(?!T)|py[p]i\.|np[m]js")


def page(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def undocumented(names: object, text: str) -> list[str]:
    assert isinstance(names, (set, frozenset, list, tuple))
    return [name for name in sorted(names) if f"`{name}`" not in text and f"## {name}" not in text]


@pytest.mark.needs("access", "attachments", "clients", "imports", "sessions", "upkeep.evaluation")
def test_reference_pages_match_the_code() -> None:
    assert find_differences() == [], ADVICE


def test_every_tool_setting_metric_error_and_command_is_documented() -> None:
    (commands,) = [action.choices for action in make_parser()._actions if action.dest == "command"]
    assert commands
    assert undocumented([tool.name for tool in all_tools()], page("tools.md")) == []
    assert undocumented(list(SETTINGS), page("configuration.md")) == []
    assert undocumented([setting.variable for setting in SETTINGS.values()], page("configuration.md")) == []
    assert undocumented(metric_names(), page("metrics.md")) == []
    assert undocumented({each.code for each in list_errors()}, page("errors.md")) == []
    assert undocumented([f"lithos {name}" for name in commands], page("commands.md")) == []


def test_global_options_are_listed_only_once() -> None:
    assert page("commands.md").count("`--vault PATH`") == 1


def texts_like(shape: str, *roles: str) -> set[str]:
    """Return the texts that match the group in `shape`, in modules of these roles or in all modules."""
    sources = [source for module, source in modules().items() if not roles or role_of(module) in roles]
    return {found for source in sources for found in re.findall(shape, source)}


def test_every_event_type_is_documented() -> None:
    in_answers = {path for tool in all_tools() for path in (*tool.paged.rows, *tool.paged.beside)}
    found = texts_like(r'"((?:note|task|finding|edge|agent|proposal)\.[a-z_]+|reindex_complete)"')
    assert found - in_answers == set(EVENTS)


@pytest.mark.needs("imports", "vaults")
def test_every_http_refusal_is_documented() -> None:
    by_status = {HTTPStatus(status).name.lower() for status in (404, 405)}
    documented = {code for _, code, _ in HTTP_REFUSALS}
    assert texts_like(r'(?:"error": |refuse\(\d+, )"(\w+)"', "front", "pages") | by_status == documented


async def emit_all(lithos: Lithos, clock: Clock) -> None:
    """Cause every event that tools and time can cause."""
    note = await lithos.create("A note")
    await lithos.write("A note", "Other text.", id=note)
    moved = await lithos.create("Moves")
    await lithos.call("lithos_edge_upsert", from_id=note, to_id=moved, type="a", weight=1, namespace="b")
    await lithos.call("lithos_delete", id=note, agent="ann")
    await lithos.call("lithos_agent_register", id="ann")
    by = {"agent": "ann"}
    for end in ("lithos_task_complete", "lithos_task_cancel"):
        task = (await lithos.call("lithos_task_create", title="T", **by))["task_id"]
        await lithos.call("lithos_task_update", task_id=task, title="U", **by)
        await lithos.call("lithos_task_claim", task_id=task, aspect="x", **by)
        await lithos.call("lithos_task_release", task_id=task, aspect="x", **by)
        await lithos.call("lithos_finding_post", task_id=task, summary="s", knowledge_id=moved, **by)
        await lithos.call(end, task_id=task, **by)
        await lithos.call("lithos_task_reopen", task_id=task, **by)
    for _ in range(3):  # the last failed attempt sets the task to failed
        await lithos.call("lithos_task_next", task_id=task, **by)
        await lithos.call("lithos_task_release", task_id=task, aspect="work", failed="boom", **by)
        clock.advance(minutes=5)
        await lithos.server.get(Coordinator).mailbox.ask(Flush())
    await lithos.call("lithos_task_reopen", task_id=task, **by)
    await lithos.call("lithos_task_next", **by)
    await emit_proposals(lithos, moved, clock)
    clock.advance(hours=1)
    await lithos.server.get(Coordinator).mailbox.ask(Flush())


async def emit_proposals(lithos: Lithos, note: str, clock: Clock) -> None:
    """Create proposals with every possible outcome."""
    lithos.server.get(Writer).scopes = WriteScopes(agents={"asks": Scope((), ("**",))})
    for end in ("approve", "reject", "withdraw", "expire"):
        made = await lithos.call("lithos_note_update", id=note, tags=[end], agent="asks")
        asked = {"id": made["proposal_id"], "agent": "asks"}
        if end == "withdraw":
            await lithos.call("lithos_proposal_withdraw", **asked)
        elif end == "expire":
            later = clock() + timedelta(days=31)
            await lithos.server.get(Coordinator).mailbox.ask(TidyProposals(now=later))
        else:
            await lithos.server.tools.call(
                "lithos_proposal_decide", {**asked, "decision": end, "by": "ann", "reason": "so"}
            )


async def test_event_payloads_have_exactly_the_documented_keys(tmp_path: Path) -> None:
    clock = Clock()
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        await emit_all(lithos, clock)
        told = lithos.events()
        last = lithos.server.get(Coordinator).head
    (tmp_path / "knowledge" / "moves.md").rename(tmp_path / "knowledge" / "moved.md")
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        lithos.first_seq = last
        await lithos.server.complete_reindex()
        told += lithos.events()
        journalled = [each.draft for each in lithos.server.get(Coordinator)._store.events_after(last)]
        told += [(each.type, each.payload) for each in journalled if each.type == REINDEX_COMPLETE]
        last = lithos.server.get(Coordinator).head
    async with serving(tmp_path, settled=False, server={"watch_files": True}) as lithos:
        moved, copy = (
            tmp_path / "knowledge" / name for name in ("moved.md", "moved.sync-conflict-20260304-050607.md")
        )
        copy.write_bytes(moved.read_bytes())
        await until(lambda: bool(list(lithos.server.get(Catalogue).copied())))
        lithos.first_seq = last
        await until(lambda: lithos.server.get(Coordinator).head > last)
        told += lithos.events()
    # Events of approved changes have additional keys.
    assert {kind: [key for key in payload if key != "approved_by"] for kind, payload in told} == {
        kind: list(keys) for kind, (_, keys) in EVENTS.items()
    }


def test_links_in_pages_have_targets_and_forbidden_words_are_absent() -> None:
    foul: dict[str, list[str]] = {}
    for path in DOCS:
        text = path.read_text(encoding="utf-8")
        targets = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", text)
        unquoted = re.sub(r"([`\"])\d{4}-\d\d-\d\d\1", "", text)  # these dates are names of protocol versions
        lost = [target for target in targets if not (path.parent / target).exists()]
        if found := lost + OUT_OF_PLACE.findall(unquoted):
            foul[path.relative_to(ROOT).as_posix()] = found
    assert len(DOCS) > 20
    assert foul == {}


def test_every_documentation_page_is_reachable_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")]
    # The specification has its own map. `docs/index.md` is the README of the website.
    pages = [name for name in pages if not re.match("docs/(index|spec/(?!README))", name)]
    assert [name for name in pages if f"({name})" not in readme] == []


DEVELOP = (ROOT / "docs" / "develop.md").read_text(encoding="utf-8")
EVERY_CALL = "Every call"


def named_files(text: str) -> list[str]:
    """Return the files that a page for contributors names, in order."""
    return re.findall(r"`([\w./-]+\.(?:py|yaml))`", text)


def missing_files(text: str) -> list[str]:
    return [
        name for name in named_files(text) if not any((ROOT / top / name).exists() for top in ("", "lithos"))
    ]


def walks_of(text: str) -> dict[str, str]:
    """Return the code walks by heading. A walk of a tool call begins with the steps that every call has."""
    walks = text.partition("\n## Walks\n")[2].partition("\n## ")[0]
    found = {part.partition("\n")[0]: part.partition("\n")[2] for part in walks.split("\n### ")[1:]}
    calls = {name: found[EVERY_CALL] + walk for name, walk in found.items() if "`lithos_" in name}
    return {**found, **calls}


def walk_fouls(files: Sequence[str]) -> list[str]:
    """Return files that a walk names twice, or whose role is above the previous role in the package."""
    found, lowest = [name for number, name in enumerate(files) if name in files[:number]], dict[str, int]()
    for name in files:
        package = name.partition("/")[0]
        role = role_of("lithos." + name.removesuffix(".py").replace("/", "."))
        if role is None:
            continue
        level = ROLES.index(role)
        if level > lowest.get(package, level):
            found.append(name)
        lowest[package] = level
    return found


@pytest.mark.needs("attachments", "vaults")
def test_every_file_named_to_contributors_exists() -> None:
    assert len(DEVELOP.splitlines()) <= 200
    assert len(named_files(DEVELOP)) > 50
    assert missing_files(DEVELOP) == []


def unjoined(files: Sequence[str]) -> list[str]:
    """Return files that no earlier file imports, unless they are passed on at the start or declare a tool."""
    graph = imports_within()
    reached = {
        target
        for module, targets in graph.items()
        if module.startswith("lithos.app.") or module.endswith((".front", ".capability"))
        for target in targets
    }
    reached |= {module for module, source in modules().items() if "\n@tool(" in source}
    found = []
    for module in ("lithos." + name.removesuffix(".py").replace("/", ".") for name in files):
        if module not in reached:
            found.append(module)
        reached |= graph[module]
    return found


def test_code_walks_follow_imports_down_and_name_files_once() -> None:
    walks = {name: named_files(walk) for name, walk in walks_of(DEVELOP).items()}
    assert walks
    assert [name for name, files in walks.items() if len(files) <= 5] == []
    assert {
        name: foul for name, files in walks.items() if (foul := walk_fouls(files) + unjoined(files))
    } == {}


def test_code_walks_of_calls_lead_from_port_to_storage() -> None:
    calls = [named_files(walk) for name, walk in walks_of(DEVELOP).items() if "`lithos_" in name]
    assert len(calls) == 3
    assert {walk[0] for walk in calls} == {"server/http/serve.py"}
    ends = {role_of("lithos." + walk[-1].removesuffix(".py").replace("/", ".")) for walk in calls}
    assert ends == {"model"}


def entered_again(files: Sequence[str]) -> list[str]:
    """Return the packages that a walk enters again after leaving them."""
    stays = [package for package, _ in groupby(name.partition("/")[0] for name in files)]
    return [package for number, package in enumerate(stays) if package in stays[:number]]


def test_code_walks_of_search_and_write_enter_each_package_once() -> None:
    """Only the walk of a claim returns to a package: the `events` coordinator calls the `tasks` board."""
    walks = walks_of(DEVELOP)
    again = {name: entered_again(named_files(walk)) for name, walk in walks.items() if "`lithos_" in name}
    assert {name: packages for name, packages in again.items() if packages} == {
        "A claim: `lithos_task_claim`": ["tasks"]
    }


def test_code_walk_that_leads_upwards_is_detected() -> None:
    back = "notes/service/knowledge.py"
    assert walk_fouls(["notes/tools.py", "notes/writing/actor_writer.py", back]) == [back]
    assert walk_fouls([back, "events/journal/coordinator.py", "tasks/service/coordination.py"]) == []


def test_documented_event_frame_matches_the_frame_of_the_server() -> None:
    """The keys are in the order in which they are sent.

    The `id` in `data` is the note's id, and the line `id` is the position.
    """
    payload = {"id": "<id>", "title": "Raft", "path": "raft.md"}
    draft = EventDraft(type="note.created", agent="ann", payload=payload, timestamp=Clock()())
    frame = sse_frames([Event(seq=1741064767001, draft=draft)]).decode().strip()
    assert re.sub(r'"timestamp":"[^"]+"', '"timestamp":"<time>"', frame) in render_pages()["events.md"]


#: A setting that is followed by its default, such as `search.lead_weight` up (0.5) or `lcma.receipts_kept`
#: (100,000).
DEFAULT = re.compile(r"`([a-z]+(?:\.[a-z_]+)+)`(?: up| down| up or down)? \(([\d.,]+)\)")


def wrong_defaults(text: str) -> list[str]:
    """Return the settings whose numeric defaults in a page differ from the code."""
    told = [(name, float(number.replace(",", ""))) for name, number in DEFAULT.findall(text)]
    return [f"{name} ({number:g})" for name, number in told if SETTINGS[name].default not in (None, number)]


def test_defaults_in_pages_match_the_settings() -> None:
    assert {path.name: wrong for path in DOCS if (wrong := wrong_defaults(path.read_text("utf-8")))} == {}


def test_default_search_mode_in_pages_matches_the_tool() -> None:
    """Tables and prose may call only `hybrid` the default."""
    default = attrs.fields_dict(SearchTool)["mode"].default
    shape = re.compile(rf"`({'|'.join(MODES)})` \((?:the )?default")
    called = {path.name: set(shape.findall(path.read_text(encoding="utf-8"))) - {default} for path in DOCS}
    assert {name: modes for name, modes in called.items() if modes} == {}


def test_every_page_with_examples_says_where_to_type_them() -> None:
    pages = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
    examples = {name: text for name, text in pages.items() if "<!-- run -->" in text}
    start = re.compile(r"\((?:\.\./README|index)\.md#quick-start\)")
    assert [name for name, text in examples.items() if not start.search(text)] == []


def test_website_index_shows_the_quick_start_of_the_readme() -> None:
    """`docs/index.md` is the start page of the website. Its commands are the tested commands of README.md."""
    first, readme = (path.read_text("utf-8") for path in (ROOT / "docs" / "index.md", ROOT / "README.md"))
    commands = re.findall(r"^```sh\n(.*?)^```$", first, re.DOTALL | re.MULTILINE)
    marked = re.findall(
        r"^<!-- (?:install|serve|run) -->\n```sh\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE
    )
    assert commands
    assert commands == marked[: len(commands)]


def test_every_query_parameter_of_event_streams_is_documented() -> None:
    reading = modules()["lithos.events.streams.frames"].partition("def read_query")[2]
    names = " ".join(re.findall(r"for name in (\(.+?\))", reading))
    assert set(QUERY) == {*re.findall(r'"(\w+)"', names), "access_token"}
    page = render_pages()["events.md"]
    assert all(f"| `{name}` |" in page for name in QUERY)
