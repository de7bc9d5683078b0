"""Briefings of a project. They show its notes and common notes, and mark strong matches of other projects."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve

from lithos.kernel.values.principals import OWNER
from lithos.memory.retrieve.feedback import Learning
from lithos.memory.settings import LcmaConfig
from lithos.search.service.search import Search
from tests.servers import Lithos, refusal, serving

SHOP, BLOG = "github.com/acme/shop", "github.com/acme/blog"
NOTES = (
    (SHOP, "Refund window", "Refunds are possible for 14 days after delivery, 30 days for members."),
    (SHOP, "Shop deploy", "The shop is deployed by a tag on main."),
    (SHOP, "Payment gateway", "The gateway closes idle connections after 55 seconds."),
    (BLOG, "Image pipeline", "Images of the blog are resized to three widths with libvips."),
    (BLOG, "Blog deploy", "The blog is deployed by a push to the branch live."),
    (BLOG, "Comment moderation", "Comments of the blog with two links wait for moderation."),
    ("", "Standup", "The standup is at nine on Mondays."),
    ("", "Vacation", "Vacation is entered in the calendar of the team."),
)
IMAGES, DEPLOY = "how are images resized", "how is it deployed"
OPENING = ["pinned", "work", "warnings", "notes", "activity"]


@define
class Session:
    """A server as an agent sees it that works in `project`."""

    lithos: Lithos
    project: str | None = SHOP

    async def call(self, tool: str, **arguments: Any) -> Any:
        return await self.lithos.server.tools.call(tool, arguments, evolve(OWNER, project=self.project))

    async def brief(self, query: str | None = None, **more: Any) -> Any:
        answer = await self.call("lithos_context", query=query, **more)
        assert "text" in answer, answer
        return answer

    async def shown(self, query: str, **more: Any) -> list[tuple[str, str | None]]:
        """Return title and mark of each excerpt."""
        answer = await self.brief(query, **more)
        return [(item["title"], item.get("project")) for item in answer["items"]]

    async def note(self, title: str, content: str, project: str = "", **more: Any) -> str:
        metadata = {"project": project} if project else None
        return await self.lithos.create(title, content, metadata=metadata, **more)

    async def task(self, title: str, project: str = "") -> str:
        metadata = {"project": project} if project else None
        answer = await self.lithos.call("lithos_task_create", title=title, agent="ben", metadata=metadata)
        return str(answer["task_id"])


@asynccontextmanager
async def session(tmp_path: Path, project: str | None = SHOP, **sections: Any) -> AsyncIterator[Session]:
    """Yield a session in a vault with notes of two projects and common notes."""
    async with serving(tmp_path, **sections) as lithos:
        of = Session(lithos, project)
        for owner, title, content in NOTES:
            await of.note(title, content, owner)
        yield of


async def test_briefing_shows_the_project_and_common_notes(tmp_path: Path) -> None:
    """behaviour 311"""
    async with session(tmp_path) as of:
        assert await of.shown(DEPLOY) == [("Shop deploy", None)]
        assert await of.shown("when is the standup") == [("Standup", None)]
        assert await of.shown("what is the capital of Peru") == []
        blog = Session(of.lithos, BLOG)
        assert await blog.shown(DEPLOY) == [("Blog deploy", None)]


async def test_strong_match_of_another_project_is_marked(tmp_path: Path) -> None:
    """behaviour 311"""
    async with session(tmp_path) as of:
        assert await of.shown(IMAGES) == [("Image pipeline", BLOG)]
        answer = await of.brief(IMAGES)
        assert f"### Image pipeline (image-pipeline.md, v1, (top), of project {BLOG})\n" in answer["text"]
        assert "belongs to another project" in answer["items"][0]["reason"]
        receipt = await of.lithos.server.get(Learning).receipt(answer["receipt_id"])
        assert receipt is not None
        assert [node.id for node in receipt.final_nodes] == [answer["items"][0]["id"]]


async def test_compact_briefing_marks_notes_of_other_projects(tmp_path: Path) -> None:
    """behaviour 311"""
    async with session(tmp_path, server={"answers": "compact"}) as of:
        answer = await of.brief(IMAGES, explain=True)
        assert f"### [1] Image pipeline (of project {BLOG})\n" in answer["text"]
        assert answer["items"][0]["project"] == BLOG


async def test_own_strong_match_keeps_other_projects_out(tmp_path: Path) -> None:
    """A note of the project that answers the question is enough, however good the other one is."""
    async with session(tmp_path) as of:
        await of.note("Product images", "Product images are resized by the upload service.", SHOP)
        assert await of.shown("how are product images resized") == [("Product images", None)]


async def test_other_projects_are_shown_when_asked_for(tmp_path: Path) -> None:
    """behaviour 311"""
    async with session(tmp_path) as of:
        assert {*await of.shown(DEPLOY, project="*")} == {("Shop deploy", None), ("Blog deploy", BLOG)}
        for key in (BLOG, "blog", "git@github.com:acme/Blog.git"):
            assert await of.shown(DEPLOY, project=key) == [("Blog deploy", None)]
        assert await of.shown("when is the standup", project=BLOG) == [("Standup", None)]
        assert await of.shown(DEPLOY, project="shop") == [("Shop deploy", None)]
        assert await of.shown(IMAGES, project="") == []
        assert await of.shown("when is the standup", project="") == [("Standup", None)]
        refused = await of.call("lithos_context", query=DEPLOY, project="a\nb")
        assert "is not a project" in refusal(refused, "invalid_input")


async def test_unknown_project_is_reported(tmp_path: Path) -> None:
    async with session(tmp_path) as of:
        answer = await of.brief("when is the standup", project="shpo")
        assert answer["message"].startswith("No note belongs to the project 'shpo'. Similar projects: ")
        assert "message" not in await of.brief("when is the standup", project="shop")
        assert "message" not in await Session(of.lithos, "github.com/acme/new").brief("when is the standup")


async def test_call_without_a_project_is_not_filtered_or_marked(tmp_path: Path) -> None:
    async with session(tmp_path, project=None) as of:
        answer = await of.brief(DEPLOY)
        assert {item["title"] for item in answer["items"]} == {"Shop deploy", "Blog deploy"}
        assert not [item for item in answer["items"] if "project" in item]
        assert "of project" not in answer["text"]
        again = await of.brief(DEPLOY, project="*")
        assert (again["text"], again["items"]) == (answer["text"], answer["items"])


async def test_other_projects_cost_one_ranking_and_only_on_weak_matches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    rank = Search.rank_hybrid

    async def counted(self: Search, query: str, *rest: Any) -> Any:
        asked.append(query)
        return await rank(self, query, *rest)

    monkeypatch.setattr(Search, "rank_hybrid", counted)
    async with session(tmp_path) as of:
        for query, project, rankings in ((IMAGES, None, 2), (DEPLOY, "*", 1), ("standup at nine", None, 1)):
            asked.clear()
            await of.brief(query, **({} if project is None else {"project": project}))
            assert len(asked) == rankings, query
        asked.clear()
        await Session(of.lithos, None).brief(IMAGES)
        assert len(asked) == 1


async def test_other_projects_are_marked_when_learning_is_off(tmp_path: Path) -> None:
    async with session(tmp_path, lcma=LcmaConfig(enabled=False)) as of:
        assert await of.shown(IMAGES) == [("Image pipeline", BLOG)]
        assert await of.shown(DEPLOY) == [("Shop deploy", None)]


async def test_warnings_and_activity_leave_out_other_projects(tmp_path: Path) -> None:
    """docs/spec/projects.md §5"""
    async with session(tmp_path) as of:
        await of.note("Old deploy", "The blog is deployed by hand.", BLOG, status="quarantined")
        mine, other = await of.task("Deploy the shop", SHOP), await of.task("Deploy the blog", BLOG)
        for task in (mine, other):
            await of.lithos.call("lithos_finding_post", task_id=task, agent="ben", summary="It is deployed.")
        text = (await of.brief(DEPLOY))["text"]
        assert "Deploy the shop" in text
        assert f"(`task_id={mine}`)" in text
        for word in ("Deploy the blog", other, "Blog deploy", "Old deploy"):
            assert word not in text
        everything = (await of.brief(DEPLOY, project="*"))["text"]
        assert "Old deploy" in everything
        assert other in everything


async def test_task_of_another_project_is_shown_when_named(tmp_path: Path) -> None:
    async with session(tmp_path) as of:
        task = await of.task("Deploy the blog", BLOG)
        answer = await of.brief(task_id=task)
        assert answer["text"].startswith("## Task: Deploy the blog")


async def test_opening_of_a_project_shows_only_its_notes_and_tasks(tmp_path: Path) -> None:
    """docs/spec/projects.md §5"""
    async with session(tmp_path) as of:
        await of.note("Shop rules", "Prices are in cents.", SHOP, tags=["pinned"])
        await of.note("Team rules", "Be kind.", tags=["pinned"])
        await of.note("Blog rules", "Write short posts.", BLOG, tags=["pinned"])
        await of.task("Deploy the shop", SHOP)
        await of.task("Book a room")
        await of.task("Deploy the blog", BLOG)
        text = (await of.brief(sections=OPENING, budget=1_500))["text"]
        assert re.findall(r"^### ([A-Z][a-z]+ rules)", text, re.MULTILINE) == ["Shop rules", "Team rules"]
        assert "- Deploy the shop: free" in text
        assert "- Book a room: free" in text
        assert not re.search("blog", text, re.IGNORECASE)
        assert "Refunds are possible" in text
        assert "standup" not in text
        everything = (await of.brief(sections=OPENING, budget=1_500, project="*"))["text"]
        assert f"### Blog rules (blog-rules.md, of project {BLOG})\nWrite short posts." in everything
        assert "- Deploy the blog: free" in everything


async def test_opening_of_a_new_project_shows_common_notes(tmp_path: Path) -> None:
    async with session(tmp_path, project="github.com/acme/new") as of:
        answer = await of.brief(sections=OPENING)
        assert {item["title"] for item in answer["items"]} == {"Standup", "Vacation"}


async def test_news_since_a_cursor_are_of_the_project(tmp_path: Path) -> None:
    """behaviour 311"""
    async with session(tmp_path) as of:
        since = (await of.brief(sections=OPENING))["cursor"]
        blog_task = await of.task("Write a post", BLOG)
        await of.lithos.call("lithos_task_complete", task_id=blog_task, agent="ben")
        await of.note("Blog colours", "The blog is grey.", BLOG)
        assert (await of.brief(sections=OPENING, since=since))["text"] == ""
        await of.note("Shop colours", "The shop is green.", SHOP)
        await of.note("Coffee", "Coffee is in the kitchen.")
        answer = await of.brief(sections=OPENING, since=since)
        assert [item["title"] for item in answer["items"]] == ["Shop colours", "Coffee"]
        assert "grey" not in answer["text"]
        assert "Write a post" not in answer["text"]


async def test_questions_since_a_cursor_find_strong_news_of_other_projects(tmp_path: Path) -> None:
    async with session(tmp_path) as of:
        since = (await of.brief(IMAGES))["cursor"]
        assert (await of.brief(IMAGES, since=since))["text"] == ""
        await of.note("Image formats", "Images are resized and stored as AVIF.", BLOG)
        assert await of.shown("how are images resized and stored", since=since) == [("Image formats", BLOG)]
