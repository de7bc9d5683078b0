"""Tools that query all vaults at once (docs/spec/vaults.md §2)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from attrs import evolve

from lithos.app.capabilities import CAPABILITIES, holders
from lithos.kernel.values.principals import OWNER, Principal
from lithos.memory.retrieve.feedback import Learning
from lithos.notes.settings import AgentsConfig
from lithos.vaults.service.joint import JointPrincipal
from tests.vaults.apart.hosting import Hosted, config_of, hosting, let_in, put

TOKEN = ""
OF_SHOP = "Lithos-Project: acme/shop"


@asynccontextmanager
async def two(tmp_path: Path) -> AsyncIterator[Hosted]:
    """Serve the vaults `work` and `home`.

    The two vaults have a note at the same path and therefore with the same id.
    """
    put(tmp_path / "work", {"readme.md": "# Readme\n\nAt work the boiler is serviced in May.\n"})
    put(tmp_path / "home", {"readme.md": "# Readme\n\nAt home the boiler is serviced in June.\n"})
    configs = {name: config_of(tmp_path / name, tmp_path / f"{name}-data") for name in ("work", "home")}
    async with hosting(configs) as hosted:
        for name in configs:
            await hosted.server(name).searchable()
        yield hosted


async def test_briefing_names_the_vault_of_excerpts_with_equal_ids(tmp_path):
    async with two(tmp_path) as hosted:
        answer = await hosted.ask(
            "/mcp", TOKEN, "lithos_context", query="boiler service", vault="*", explain=True
        )
        assert {item["vault"] for item in answer["items"]} == {"work", "home"}
        assert len({item["id"] for item in answer["items"]}) == 1
        assert "in May" in answer["text"]
        assert "in June" in answer["text"]
        assert set(answer["receipts"]) == {"work", "home"}
        for name, receipt in answer["receipts"].items():
            kept = await hosted.server(name).get(Learning).receipt(receipt)
            assert kept is not None
            assert [node.id for node in kept.final_nodes] == [answer["items"][0]["id"]]
        again = await hosted.ask(
            "/mcp", TOKEN, "lithos_context", query="boiler", vault="*", since=answer["cursor"]
        )
        assert "items" not in again
        assert "sources" not in again
        plain = await hosted.ask("/mcp", TOKEN, "lithos_context", query="boiler service", vault="*")
        assert set(plain) == {"text", "sources", "tokens", "receipts"}
        note = answer["items"][0]["id"]
        assert {f"{name} {note} readme.md" for name in ("work", "home")} == set(plain["sources"])


async def test_tasks_of_all_vaults_are_claimed_oldest_first(tmp_path):
    async with two(tmp_path) as hosted:
        for vault in ("home", "work"):
            await hosted.ask(
                "/mcp", TOKEN, "lithos_task_create", title=f"Of {vault}", agent="ann", vault=vault
            )
        given = [
            await hosted.ask("/mcp", TOKEN, "lithos_task_next", agent="ann", vault="*") for _ in range(3)
        ]
        assert [(each["task"] or {}).get("title") for each in given] == ["Of home", "Of work", None]
        assert given[0]["vault"] == "home"
        stats = await hosted.ask("/mcp", TOKEN, "lithos_stats", vault="*")
        assert (stats["documents"], stats["active_tasks"]) == (2, 2)
        assert stats["vaults"]["work"]["documents"] == 1


async def test_call_reaches_only_the_vault_of_its_task(tmp_path):
    async with two(tmp_path) as hosted:
        made = await hosted.ask("/mcp", TOKEN, "lithos_task_create", title="Water", agent="ann", vault="home")
        seen = await hosted.ask("/mcp", TOKEN, "lithos_task_status", task_id=made["task_id"])
        assert seen["vault"] == "home"
        refused = await hosted.ask(
            "/mcp", TOKEN, "lithos_write", title="All", content="x", agent="ann", vault="*"
        )
        assert refused["code"] == "invalid_input"
        nowhere = await hosted.ask("/mcp", TOKEN, "lithos_list", vault="nowhere")
        assert "work, home" in nowhere["message"]


async def test_beginning_of_an_id_selects_the_only_vault_that_has_it(tmp_path):
    """behaviour 335"""
    async with two(tmp_path) as hosted:
        ask = partial(hosted.ask, "/mcp", TOKEN)
        made = await ask("lithos_task_create", title="Of home", agent="ann", vault="home")
        shown = await ask("lithos_task_status", task_id=made["task_id"][:8])
        assert (shown["vault"], shown["tasks"][0]["title"]) == ("home", "Of home")
        note = (await ask("lithos_list", vault="home"))["items"][0]["id"]
        refused = await ask("lithos_read", id=note[:8])
        assert refused["code"] == "ambiguous_id_prefix"
        assert refused["candidates"] == [{"vault": "work"}, {"vault": "home"}]
        assert "June" in (await ask("lithos_read", id=note[:8], vault="home"))["content"]


async def test_tool_moves_a_note_to_another_vault(tmp_path):
    """behaviour 297"""
    async with two(tmp_path) as hosted:
        note = await hosted.ask(
            "/mcp", TOKEN, "lithos_write", title="Seeds", content="Basil.", agent="ann", vault="home"
        )
        moved = await hosted.ask(
            "/mcp", TOKEN, "lithos_note_move", id=note["id"], agent="ann", to_vault="work"
        )
        assert (moved["from_vault"], moved["vault"], moved["versions"]) == ("home", "work", 1)
        read = await hosted.ask("/mcp", TOKEN, "lithos_read", id=note["id"])
        assert (read["vault"], read["content"].strip()) == ("work", "Basil.")
        kept = await hosted.ask("/mcp", TOKEN, "lithos_history", id=note["id"], vault="work")
        assert len(kept["versions"]) == 2


async def test_each_kind_of_id_is_found_only_in_its_vault(tmp_path):
    """Each call uses the ids to find the vault that contains the object."""
    async with two(tmp_path) as hosted:
        ask = partial(hosted.ask, "/mcp", TOKEN, vault="home")
        server = hosted.server("home")
        note = await ask("lithos_write", title="Pump", content="x", agent="ann")
        other = await ask("lithos_write", title="Tank", content="y", agent="ann")
        task = await ask("lithos_task_create", title="Water", agent="ann")
        ends = {"from_id": note["id"], "to_id": other["id"]}
        edge = await ask("lithos_edge_upsert", type="supports", weight=1.0, namespace="default", **ends)
        used = await ask("lithos_retrieve", query="boiler")
        for name, thing in (
            ("notes", note["id"]),
            ("tasks", task["task_id"]),
            ("memory", edge["edge_id"]),
            ("memory", used["receipt_id"]),
        ):
            found = [each.name for each in CAPABILITIES if each.holds and await each.holds(server, thing)]
            assert found == [name], thing
        unknown = "33333333-3333-4333-8333-333333333333"
        assert not [holds for holds in holders() if await holds(server, unknown)]


PROJECTS = {
    "work": {
        "shop/refunds.md": "# Refunds\n\nRefunds are possible for 14 days after delivery.\n",
        "shop/gateway.md": "# Gateway\n\nThe gateway closes idle connections after 55 seconds.\n",
        "standup.md": "# Standup\n\nThe standup is at nine on Mondays.\n",
    },
    "home": {
        "blog/images.md": "# Images\n\nImages of the blog are resized to three widths.\n",
        "blog/rules.md": "---\ntags: [pinned]\n---\n# Rules\n\nWrite short posts.\n",
        "garden.md": "# Garden\n\nTomatoes are watered in the evening.\n",
        "pins.md": "---\ntags: [pinned]\n---\n# Pins\n\nBe kind.\n",
    },
}


async def test_briefing_of_all_vaults_keeps_projects_apart(tmp_path):
    """behaviour 311"""
    configs = {}
    for name, files in PROJECTS.items():
        put(tmp_path / name, files)
        let_in(tmp_path / f"{name}-data", "secret")
        folders = AgentsConfig(projects={"shop": "acme/shop", "blog": "acme/blog"})
        configs[name] = config_of(tmp_path / name, tmp_path / f"{name}-data", agents=folders)
    async with hosting(configs) as hosted:
        for name in configs:
            await hosted.server(name).searchable()

        async def brief(**more):
            given = {"vault": "*", "explain": True} | more
            sent = await hosted.ask("/mcp", "secret", "lithos_context", fields=(OF_SHOP,), **given)
            return sent, [(each["title"], each.get("project")) for each in sent.get("items", [])]

        assert (await brief(query="how long are refunds possible"))[1] == [("refunds", None)]
        assert (await brief(query="when are tomatoes watered"))[1] == [("garden", None)]
        answer, shown = await brief(query="how are images resized")
        assert shown == [("images", "acme/blog")]
        assert "### images (blog/images.md, v1, Images, of project acme/blog)" in answer["text"]
        assert ("images", None) in (await brief(query="how are images resized", project="blog"))[1]
        assert (await brief(query="how are images resized", project=""))[1] == []
        unknown = (await brief(query="how are images resized", project="bloog"))[0]["message"]
        assert unknown.startswith("No note belongs to the project 'bloog'.")
        opening = (await brief(sections=["pinned", "work", "notes"]))[0]["text"]
        assert "### pins (home: pins.md)\nBe kind." in opening
        assert "Write short posts." not in opening
        one = await hosted.ask(
            "/mcp", "secret", "lithos_context", fields=(OF_SHOP,), vault="home", query="write short posts"
        )
        assert "of project acme/blog)" in one["text"]


async def test_project_filters_and_marks_rows_of_all_vaults(tmp_path):
    """Behaviours 418 and 320, with one project in both vaults and one only at home."""
    shop, blog = "github.com/acme/shop", "github.com/acme/blog"
    for vault, project in (("work", shop), ("home", blog)):
        text = "---\nproject: {}\n---\n\nThe boiler has a valve.\n"
        notes = {f"shop at {vault}.md": text.format(shop), f"{vault}.md": text.format(project)}
        put(tmp_path / vault, notes)
    async with two(tmp_path) as hosted:
        token = JointPrincipal("ci", "read", project=shop, parts=(("work", Principal("ci", "read")),))
        assert [who.project for _, who in hosted.vaults.set.allowed(token)] == [shop]
        for tool, key, query in (
            ("lithos_search", "results", {"query": "boiler"}),
            ("lithos_retrieve", "results", {"query": "boiler"}),
            ("lithos_list", "items", {}),
        ):
            acting = hosted.vaults.tools.acting_as(evolve(OWNER, project=shop))
            answer = await acting.call(tool, {**query, "vault": "*", "project": blog})
            assert [(row["title"], row["vault"]) for row in answer[key]] == [("home", "home")]
            assert "message" not in answer
            answer = await acting.call(tool, {**query, "vault": "*", "project": "shop"})
            assert {row["title"] for row in answer[key]} == {"shop at work", "shop at home", "work"}
            answer = await acting.call(tool, {**query, "vault": "*"})
            assert {row["title"]: row["project"] for row in answer[key] if "project" in row} == {"home": blog}
            answer = await acting.call(tool, {**query, "vault": "*", "project": "blogg"})
            assert answer[key] == []
            assert answer["message"].startswith("No note belongs to the project 'blogg'.")
            assert blog in answer["message"]
