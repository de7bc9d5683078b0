"""The projects of tasks (behaviour 312, docs/spec/projects.md §6)."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from lithos.kernel.values.principals import OWNER, Principal
from lithos.tasks.model.task_project import name_in
from lithos.tasks.service.board import BoardFilter, BoardReading
from tests.servers import Lithos, refusal

SHOP, API = "github.com/acme/shop", "github.com/acme/api"
IN_SHOP = evolve(OWNER, project=SHOP)


async def call(lithos: Lithos, tool: str, by: Principal = IN_SHOP, **arguments: Any) -> Any:
    """Call a tool as a caller in a project."""
    return await lithos.server.tools.call(tool, arguments, by)


async def create(lithos: Lithos, title: str = "T", by: Principal = IN_SHOP, **arguments: Any) -> str:
    answer = await call(lithos, "lithos_task_create", by, title=title, agent="ann", **arguments)
    return str(answer["task_id"])


async def metadata_of(lithos: Lithos, task_id: str) -> Any:
    return (await lithos.call("lithos_task_get", task_id=task_id))["task"]["metadata"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, {"project": SHOP}),
        ({"metadata": {"priority": 1}}, {"priority": 1, "project": SHOP}),
        ({"metadata": {}}, {"project": SHOP}),
        ({"project": ""}, {}),
        ({"project": "git@github.com:acme/api.git"}, {"project": API}),
        ({"project": "shop"}, {"project": SHOP}),
        ({"metadata": {"project": "mine"}}, {"project": "mine"}),
        ({"metadata": {"project": "mine"}, "project": API}, {"project": "mine"}),
        ({"metadata": {"project": None}}, {}),
        ({"task_type": "epic"}, {"project": SHOP}),
    ],
)
async def test_new_task_gets_project_of_session(
    lithos: Lithos, arguments: dict[str, Any], expected: dict[str, Any]
) -> None:
    """A project in the metadata has priority (behaviour 312)."""
    assert await metadata_of(lithos, await create(lithos, **arguments)) == expected


async def test_new_task_without_session_project_is_common(lithos: Lithos) -> None:
    assert await metadata_of(lithos, await create(lithos, by=OWNER)) == {}


@pytest.mark.parametrize("given", ["*", "a\nb", "https://github.com/"])
async def test_task_for_invalid_project_is_refused(lithos: Lithos, given: str) -> None:
    answer = await call(lithos, "lithos_task_create", title="T", agent="ann", project=given)
    assert "project" in refusal(answer, "invalid_input")
    assert (await lithos.call("lithos_task_list"))["tasks"] == []


@pytest.mark.parametrize(
    ("source", "arguments", "expected"),
    [
        ({"project": API}, {}, API),
        ({}, {}, SHOP),
        ({"project": API}, {"inherit_project": False}, SHOP),
        ({"project": API}, {"metadata": {"project": "mine"}}, "mine"),
        ({}, {"metadata": {"project": None}}, None),
    ],
)
async def test_follow_up_task_inherits_project_before_session(
    lithos: Lithos, source: dict[str, Any], arguments: dict[str, Any], expected: str | None
) -> None:
    task = await create(lithos, by=OWNER, metadata=source)
    answer = await call(
        lithos, "lithos_task_spawn", source_task_id=task, title="More", agent="ann", **arguments
    )
    assert (await metadata_of(lithos, answer["task_id"])).get("project") == expected


#: Values of `metadata.project` by the title of a task.
STORED: dict[str, object] = {
    "key": SHOP,
    "upper": "GitHub.com/Acme/Shop",
    "name": "shop",
    "capital": "Shop",
    "url": "https://github.com/acme/shop.git",
    "list": ["api", "shop"],
    "other": "github.com/other/shop",
    "longer": "shopping",
    "number": 7,
    "umlaut": "Läden",
    "quoted": 'say "shop"',
    "words": "Shop: relaunch 2",
    "dots": "..",
}
EVERYWHERE = {"key", "upper", "name", "capital", "url", "list"}
WISHES: list[tuple[str, Principal, set[str]]] = [
    (SHOP, OWNER, EVERYWHERE),
    ("https://GITHUB.com/acme/shop", OWNER, EVERYWHERE),
    ("shop", OWNER, EVERYWHERE | {"other"}),
    ("SHOP", OWNER, EVERYWHERE | {"other"}),
    ("shop", IN_SHOP, EVERYWHERE),
    ("shopping", OWNER, {"longer"}),
    ("7", OWNER, set()),
    ("läden", OWNER, {"umlaut"}),
    ('say "shop"', OWNER, {"quoted"}),
    ("Shop: relaunch 2", OWNER, {"words"}),
    ("..", OWNER, {"dots"}),
    ("nothing", OWNER, set()),
    ("*", IN_SHOP, {*STORED, "none"}),
    ("", IN_SHOP, {*STORED, "none"}),
]


@pytest.mark.parametrize(("wish", "by", "expected"), WISHES)
async def test_lists_filter_by_project(lithos: Lithos, wish: str, by: Principal, expected: set[str]) -> None:
    """Every list and the board use the same rule. Equal texts match as before projects had keys."""
    for title, value in STORED.items():
        await create(lithos, title, OWNER, metadata={"project": value})
    gate = await create(lithos, "gate", OWNER, task_type="gate", metadata={"gate_type": "human"})
    await create(lithos, "none", OWNER)
    for tool in ("lithos_task_list", "lithos_task_ready"):
        answer = await call(lithos, tool, by, project=wish)
        assert {task["title"] for task in answer["tasks"]} - {"gate"} == expected, tool
    if wish not in ("", "*"):
        columns = await lithos.server.get(BoardReading).columns(BoardFilter(project=wish), 100)
        shown = {card.task.title for column in columns.values() for card in column.cards}
        assert shown == (expected | ({"other"} if by is IN_SHOP else set()))
    given = set()
    while (found := await call(lithos, "lithos_task_next", by, agent="ann", project=wish))["task"]:
        given.add(found["task"]["title"])
    assert given == expected
    assert gate


async def test_blocked_tasks_are_filtered_by_project(lithos: Lithos) -> None:
    first = await create(lithos, "first", OWNER)
    await create(lithos, "mine", depends_on=[first])
    await create(lithos, "common", OWNER, depends_on=[first])
    answer = await call(lithos, "lithos_task_blocked", project="shop")
    assert [task["title"] for task in answer["tasks"]] == ["mine"]
    found = await call(lithos, "lithos_task_next", agent="ann", project="shop")
    assert (found["task"], found["waiting"], found["blocked"]) == (None, 0, 1)


@pytest.mark.parametrize(
    ("project", "text"),
    [
        (SHOP, "shop"),
        ("Shop.git", "shop"),
        ("läden", None),
        ("..", None),
        ("a b", None),
        ("Straße", "strasse"),
    ],
)
def test_name_in_metadata_is_known_only_for_plain_names(project: str, text: str | None) -> None:
    """A wrong text would hide tasks from the filter."""
    assert name_in(project) == text
