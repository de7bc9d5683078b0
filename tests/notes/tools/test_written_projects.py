"""The projects of the notes that agents write (behaviour 312, docs/spec/projects.md §6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from lithos.kernel.values.principals import OWNER, Principal
from lithos.notes.model.scopes import Scope
from lithos.notes.settings import AgentsConfig, IndexConfig
from lithos.notes.writing.actor_writer import Writer
from tests.servers import Lithos, put_note, refusal, serving, take_up

SHOP, API = "github.com/acme/shop", "github.com/acme/api"
IN_SHOP = evolve(OWNER, project=SHOP)


async def write_in(lithos: Lithos, by: Principal = IN_SHOP, **arguments: Any) -> Any:
    """Write a note as a caller in a project. Return the answer."""
    given = {"title": "A note", "content": "Some text.", "agent": "ann"} | arguments
    if "id" in arguments:
        del given["title"]
    return await lithos.server.tools.call("lithos_write", given, by)


async def project_of(lithos: Lithos, note_id: str) -> object:
    metadata = (await lithos.read(note_id))["metadata"]
    return metadata.get("project", "nothing")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, SHOP),
        ({"project": ""}, "nothing"),
        ({"project": "https://ann@GitHub.com/acme/api.git"}, API),
        ({"project": "SHOP"}, SHOP),
        ({"metadata": {"project": "mine"}}, "mine"),
        ({"metadata": {"project": ["a", "b"], "mood": "good"}}, ["a", "b"]),
        ({"metadata": {"project": None}}, "nothing"),
        ({"metadata": {}}, SHOP),
        ({"metadata": {"mood": "good"}}, SHOP),
        ({"metadata": {"project": "mine"}, "project": API}, "mine"),
        ({"metadata": {"project": "mine"}, "project": ""}, "mine"),
        ({"content": "---\nproject: mine\n---\nText."}, "mine"),
        ({"content": '---\nproject: "[[Shop]]"\n---\nText.', "project": API}, API),
        ({"content": "---\nproject:\n---\nText."}, "nothing"),
        ({"content": "---\nmood: good\n---\nText."}, SHOP),
    ],
)
async def test_new_note_gets_project_of_session(
    lithos: Lithos, arguments: dict[str, Any], expected: object
) -> None:
    """A value that the caller gives has priority (behaviour 312)."""
    answer = await write_in(lithos, **arguments)
    assert answer["status"] == "created"
    assert await project_of(lithos, answer["id"]) in (expected, None if expected == "nothing" else expected)


async def test_new_note_without_session_project_has_no_property(lithos: Lithos) -> None:
    answer = await write_in(lithos, OWNER)
    assert await project_of(lithos, answer["id"]) == "nothing"
    assert "project" not in (lithos.knowledge / answer["path"]).read_text()


@pytest.mark.parametrize("given", ["*", " * "])
async def test_project_of_all_notes_is_refused(lithos: Lithos, given: str) -> None:
    answer = await write_in(lithos, project=given)
    assert "only reads" in refusal(answer, "invalid_input")
    assert not lithos.files()


@pytest.mark.parametrize("given", ["a\nb", "x" * 400, "https://github.com/"])
async def test_invalid_project_is_refused(lithos: Lithos, given: str) -> None:
    assert "project" in refusal(await write_in(lithos, project=given), "invalid_input")
    assert not lithos.files()


async def test_property_is_readable_in_the_file(lithos: Lithos) -> None:
    """People see the key in their editor."""
    answer = await write_in(lithos)
    assert f"project: {SHOP}" in (lithos.knowledge / answer["path"]).read_text().splitlines()


PEOPLE = ("shop", '"[[Shop]]"', "[shop, api]", "3", "{name: shop}", "")


@pytest.mark.parametrize("value", PEOPLE)
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("lithos_write", {"content": "Other text."}),
        ("lithos_write", {"metadata": {"mood": "good"}}),
        ("lithos_note_update", {"tags": ["x"]}),
        ("lithos_note_edit", {"op": "append", "text": "More."}),
    ],
)
async def test_update_never_changes_property(
    tmp_path: Path, value: str, tool: str, arguments: dict[str, Any]
) -> None:
    """The value of a person stays byte for byte, in a session of another project (behaviour 312)."""
    path = put_note(tmp_path, "n.md", f"---\nproject: {value}\n---\nText.\n")
    async with serving(tmp_path) as lithos:
        note_id = (await lithos.call("lithos_read", path="n.md"))["id"]
        given = {"id": note_id, "agent": "ann", "replace_all": True} | arguments
        if tool != "lithos_write":
            del given["replace_all"]
        answer = await lithos.server.tools.call(tool, given, evolve(OWNER, project=API))
        assert answer is not None
        assert answer["status"] == "updated", answer
        assert f"project: {value}".rstrip() in (line.rstrip() for line in path.read_text().splitlines())


@pytest.mark.parametrize(
    ("value", "given", "expected"),
    [
        ("shop", API, f"project: {API}"),
        ("shop", SHOP, "project: shop"),
        ('"[[Shop]]"', "shop", 'project: "[[Shop]]"'),
        ("[shop, api]", API, f"project: {API}"),
        ("[shop, api]", "", None),
        ("shop", "", None),
        ("", API, f"project: {API}"),
        ("[[Shop]]", API, f"project: {API}"),
        ("[[Shop]]", SHOP, "project: [[Shop]]"),
        ("[[Shop]]", "", None),
    ],
)
async def test_explicit_project_replaces_property(
    tmp_path: Path, value: str, given: str, expected: str | None
) -> None:
    path = put_note(tmp_path, "n.md", f"---\nproject: {value}\nmood: good  # today\n---\nText.\n")
    async with serving(tmp_path) as lithos:
        note_id = (await lithos.call("lithos_read", path="n.md"))["id"]
        answer = await write_in(lithos, OWNER, id=note_id, project=given, replace_all=True)
        assert answer["status"] == "updated", answer
        lines = path.read_text().splitlines()
        assert "mood: good  # today" in lines
        assert [line.rstrip() for line in lines if line.startswith("project")] == (
            [expected] if expected else []
        )


@pytest.mark.parametrize("value", ["3", "{name: shop}", "[shop, 3]", "true"])
@pytest.mark.parametrize("given", ["", API])
async def test_property_for_something_else_is_not_replaced(tmp_path: Path, value: str, given: str) -> None:
    path = put_note(tmp_path, "n.md", f"---\nproject: {value}\n---\nText.\n")
    async with serving(tmp_path) as lithos:
        before = path.read_bytes()
        note_id = (await lithos.call("lithos_read", path="n.md"))["id"]
        answer = await write_in(lithos, OWNER, id=note_id, project=given, replace_all=True)
        assert "something else" in refusal(answer, "invalid_input")
        assert path.read_bytes() == before


async def test_persons_edit_of_property_survives_update(lithos: Lithos) -> None:
    """A person changes the property in an editor while an agent changes the text."""
    answer = await write_in(lithos)
    path = lithos.knowledge / answer["path"]
    path.write_text(path.read_text().replace(f"project: {SHOP}", "project: [mine, shop]  # both"))
    updated = await write_in(lithos, id=answer["id"], content="Other text.", replace_all=True)
    assert updated["status"] == "updated"
    text = path.read_text()
    assert "project: [mine, shop]  # both" in text
    assert "Other text." in text


async def test_merge_keeps_projects_of_both_sides(lithos: Lithos) -> None:
    """The agent sets the project from an outdated version, and a person has changed the text meanwhile."""
    answer = await write_in(lithos, OWNER, content="First.\n\nSecond.\n")
    path = lithos.knowledge / answer["path"]
    path.write_text(path.read_text().replace("Second.", "Second, by a person."))
    await take_up(lithos, answer["path"])
    merged = await write_in(
        lithos,
        id=answer["id"],
        content="First, by an agent.\n\nSecond.\n",
        project=API,
        expected_version=1,
        on_conflict="merge",
    )
    assert merged["status"] == "updated", merged
    text = path.read_text()
    assert f"project: {API}" in text
    assert "First, by an agent." in text
    assert "Second, by a person." in text


FOLDERS = AgentsConfig(projects={"work/shop": SHOP, "work": "acme"})


@pytest.mark.parametrize(
    ("path", "arguments", "expected"),
    [
        ("work/shop", {}, "nothing"),
        ("work/shop/deep/n.md", {"project": SHOP}, "nothing"),
        ("work/shop", {"project": "shop"}, "nothing"),
        ("work/shop", {"project": API}, API),
        ("work/shop", {"project": ""}, "nothing"),
        ("work", {}, "nothing"),
        ("work", {"project": "shop"}, SHOP),
        ("workshop", {}, SHOP),
        ("", {}, SHOP),
    ],
)
async def test_folder_with_project_needs_no_property(
    tmp_path: Path, path: str, arguments: dict[str, Any], expected: object
) -> None:
    """The setting `projects` names the project, also if an agent of another project writes there."""
    async with serving(tmp_path, folders=FOLDERS) as lithos:
        answer = await write_in(lithos, path=path, **arguments)
        assert answer["status"] == "created"
        assert await project_of(lithos, answer["id"]) == expected


async def test_update_in_folder_with_project_needs_no_property(tmp_path: Path) -> None:
    async with serving(tmp_path, folders=FOLDERS) as lithos:
        note = (await write_in(lithos, path="work/shop"))["id"]
        await write_in(lithos, id=note, project=SHOP, replace_all=True)
        assert await project_of(lithos, note) == "nothing"
        await write_in(lithos, id=note, project=API, replace_all=True)
        assert await project_of(lithos, note) == API
        await write_in(lithos, id=note, project="", replace_all=True)
        assert await project_of(lithos, note) == "nothing"


async def test_project_is_stored_under_configured_property(tmp_path: Path) -> None:
    async with serving(tmp_path, index=IndexConfig(project_property="repo")) as lithos:
        for title, given in (("Plain", {}), ("Book", {"project": "a book"})):
            answer = await write_in(lithos, title=title, metadata=given)
            metadata = (await lithos.read(answer["id"]))["metadata"]
            assert (metadata["repo"], metadata.get("project")) == (SHOP, given.get("project"))
        answer = await write_in(lithos, title="Mine", metadata={"repo": "mine"})
        assert (await lithos.read(answer["id"]))["metadata"]["repo"] == "mine"


async def test_project_is_refused_if_notes_have_no_property(tmp_path: Path) -> None:
    """The default is left out, because the caller did not ask for it."""
    async with serving(tmp_path, index=IndexConfig(project_property="")) as lithos:
        answer = await write_in(lithos)
        assert await project_of(lithos, answer["id"]) == "nothing"
        assert "index.project_property" in refusal(
            await write_in(lithos, title="Other", project=API), "invalid_input"
        )
        await write_in(lithos, id=answer["id"], project="", replace_all=True)
        assert (await lithos.read(answer["id"]))["metadata"]["version"] == 2


async def test_repeated_call_creates_one_note_with_project(lithos: Lithos) -> None:
    first = await write_in(lithos, request_id="r1")
    again = await write_in(lithos, request_id="r1")
    assert again["id"] == first["id"]
    assert await project_of(lithos, first["id"]) == SHOP


@pytest.mark.needs("proposals")
async def test_proposed_note_carries_project(lithos: Lithos) -> None:
    """The approval writes the file as the agent proposed it (behaviour 312)."""
    writer = lithos.server.get(Writer)
    writer.scopes = evolve(writer.scopes, agents={"ann": Scope((), ("**",))})
    answer = await write_in(lithos)
    assert answer["status"] == "proposed"
    decision = {"id": answer["proposal_id"], "decision": "approve", "by": "ben"}
    await lithos.server.tools.call("lithos_proposal_decide", decision)
    assert f"project: {SHOP}" in (lithos.knowledge / answer["path"]).read_text()
