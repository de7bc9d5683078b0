"""The documentation says what the code has: the reference is written from it, and nothing is left out."""

from __future__ import annotations

import re
from http import HTTPStatus
from pathlib import Path

import pytest

from docs.generate import ADVICE, FOLDER, PAGES, find_differences
from docs.interface import EVENTS, HTTP_REFUSALS, list_errors, list_tools
from lithos.cli.options import make_parser
from lithos.config import SETTINGS
from lithos.metrics import metric_names
from lithos.tools.order import ORDER
from tests.servers import Lithos, serving

ROOT = Path(__file__).parents[1]
DOCS = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
#: What nobody who reads a page should find there.
OUT_OF_PLACE = re.compile(r"(?<![\w.~-])/(?:work|tmp|root|home)/|\b20\d\d-\d\d-\d\d\b(?!T)|py[p]i\.|np[m]js")


def page(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def undocumented(names: object, text: str) -> list[str]:
    assert isinstance(names, (set, frozenset, list, tuple))
    return [name for name in sorted(names) if f"`{name}`" not in text and f"## {name}" not in text]


def test_the_reference_is_what_the_code_says() -> None:
    assert find_differences() == [], ADVICE


def test_a_page_that_differs_or_that_nothing_writes_is_found(tmp_path: Path) -> None:
    for name in PAGES:
        (tmp_path / name).write_text(page(name), encoding="utf-8")
    (tmp_path / "tools.md").write_text(page("tools.md").replace("lithos_write", "lithos_wrote"))
    (tmp_path / "other.md").write_text("left over")
    assert find_differences(tmp_path) == ["other.md", "tools.md"]


def test_every_tool_setting_metric_error_and_command_is_documented() -> None:
    (commands,) = [action.choices for action in make_parser()._actions if action.dest == "command"]
    assert commands
    assert [tool.name for tool, _ in list_tools()] == list(ORDER)
    assert undocumented(list(ORDER), page("tools.md")) == []
    assert undocumented(list(SETTINGS), page("configuration.md")) == []
    assert undocumented([setting.variable for setting in SETTINGS.values()], page("configuration.md")) == []
    assert undocumented(metric_names(), page("metrics.md")) == []
    assert undocumented({each.code for each in list_errors()}, page("errors.md")) == []
    assert undocumented([f"lithos {name}" for name in commands], page("commands.md")) == []


def texts_like(shape: str, folder: str) -> set[str]:
    """What the group of `shape` matches in the source below `folder`."""
    files = (ROOT / "lithos" / folder).rglob("*.py")
    return {found for path in files for found in re.findall(shape, path.read_text(encoding="utf-8"))}


def test_every_event_type_of_the_code_is_documented() -> None:
    assert texts_like(r'"((?:note|task|finding|edge|agent)\.[a-z]+)"', "") == set(EVENTS)


def test_every_refusal_of_the_http_port_is_documented() -> None:
    by_status = {HTTPStatus(status).name.lower() for status in (404, 405)}
    documented = {code for _, code, _ in HTTP_REFUSALS}
    assert texts_like(r'"error": "(\w+)"', "front") | by_status == documented


async def emit_all(lithos: Lithos) -> None:
    """Make every event that tools can make."""
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


async def test_events_carry_exactly_the_documented_payload(tmp_path: Path) -> None:
    async with serving(tmp_path, settled=False) as lithos:
        await emit_all(lithos)
        told = lithos.events()
        last = lithos.server.coordinator.head
    (tmp_path / "knowledge" / "moves.md").rename(tmp_path / "knowledge" / "moved.md")
    async with serving(tmp_path, settled=False) as lithos:
        lithos.first_seq = last
        told += lithos.events()
    assert {kind: list(payload) for kind, payload in told} == {
        kind: list(keys) for kind, (_, keys) in EVENTS.items()
    }


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere_and_nothing_is_out_of_place(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", text)
    assert [target for target in targets if not (path.parent / target).exists()] == []
    assert OUT_OF_PLACE.findall(text) == []


def test_every_page_of_the_documentation_is_reached_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert [name for name in pages if f"({name})" not in readme] == []


@pytest.mark.parametrize(
    "text", ["see /work/main/x", "on 2026-01-02 we", "from /tmp/x", "look at https://py{}i.org/x".format("p")]
)
def test_what_is_out_of_place_is_seen(text: str) -> None:
    assert OUT_OF_PLACE.search(text)
