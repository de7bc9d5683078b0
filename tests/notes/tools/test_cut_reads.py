"""A partial read that is written back must not replace the whole note (docs/spec/tools.md §3)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.servers import Lithos, put_note, refusal, serving

PARAGRAPHS: Final = [f"Paragraph {i} with words of its own, number {i * 7919}." for i in range(2000)]
LONG: Final = "\n\n".join(PARAGRAPHS)
SECTIONS: Final = "".join(
    f"## Part {part}\n\n" + "".join(f"- item {part}.{i}\n" for i in range(40)) + "\n" for part in range(4)
)


@asynccontextmanager
async def serving_big(tmp_path: Path) -> AsyncIterator[tuple[Lithos, str]]:
    """Start a server with one long note, and return the note's id."""
    put_note(tmp_path, "big.md", f"# Big\n\n{LONG}\n\nTHE END\n")
    async with serving(tmp_path) as lithos:
        listed = await lithos.call("lithos_list")
        yield lithos, listed["items"][0]["id"]


async def overwrite(lithos: Lithos, note: str, content: str, **more: Any) -> dict[str, Any]:
    answer = await lithos.call("lithos_write", id=note, content=content, **{"agent": "ann"} | more)
    assert isinstance(answer, dict)
    return answer


async def test_writing_back_a_cut_read_is_refused_unless_replace_all(tmp_path: Path) -> None:
    """behaviour 366: every kind of cut read is refused, with and without the version that was read."""
    async with serving_big(tmp_path) as (lithos, note):
        for more in ({}, {"max_length": 3_000}, {"max_length": 100}, {"max_length": 777, "agent_id": "ann"}):
            read = await lithos.read(note, **more)
            assert read["truncated"]
            for expected in ({}, {"expected_version": read["version"]}):
                message = refusal(await overwrite(lithos, note, read["content"], **expected), "invalid_input")
                assert "lithos_note_edit" in message
                assert "replace_all" in message
        assert "THE END" in (lithos.knowledge / "big.md").read_text()
        answer = await overwrite(lithos, note, read["content"], replace_all=True)
        assert answer["status"] == "updated"
        assert (await lithos.read(note))["content"] == read["content"]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text + "\n",
        lambda text: text + "\n\nOne paragraph more, by the agent.",
        lambda text: text.replace("Paragraph 3 with", "Paragraph three, with"),
        lambda text: "An introduction.\n\n" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\n".join(text.split("\n")[:-1]),
        lambda text: f"---\ntags: [a]\n---\n{text}",
    ],
)
async def test_slightly_changed_cut_read_is_refused(tmp_path: Path, change: Any) -> None:
    """behaviour 366"""
    async with serving_big(tmp_path) as (lithos, note):
        read = await lithos.read(note, max_length=5_000)
        refusal(await overwrite(lithos, note, change(read["content"])), "invalid_input")


async def test_cut_paragraph_is_recognised_by_its_first_words(tmp_path: Path) -> None:
    """behaviour 366: a text without line breaks is cut within a sentence."""
    put_note(tmp_path, "a.md", "# A\n\n" + " ".join(f"word{i}" for i in range(5_000)) + " END\n")
    async with serving(tmp_path) as lithos:
        note = (await lithos.call("lithos_read", path="a.md", max_length=400))["id"]
        content = (await lithos.read(note, max_length=400))["content"]
        assert content.endswith("...")
        for text in (content, content.removesuffix("..."), content + " And so on."):
            refusal(await overwrite(lithos, note, text), "invalid_input")


async def test_writing_back_other_partial_reads_is_refused(tmp_path: Path) -> None:
    """behaviour 366: partial reads are reads from an offset or of a section, and cache lookup answers."""
    put_note(tmp_path, "a.md", f"# A\n\n{SECTIONS}")
    async with serving(tmp_path) as lithos:
        first = await lithos.call("lithos_read", path="a.md", max_length=300)
        note = first["id"]
        end = await lithos.read(note, offset=first["next_offset"])
        assert not end["truncated"]
        refusal(await overwrite(lithos, note, end["content"]), "invalid_input")
        refusal(await overwrite(lithos, note, first["content"]), "invalid_input")
        section = await lithos.read(note, section="Part 2")
        refusal(await overwrite(lithos, note, section["content"]), "invalid_input")
        url = "https://example.com/a"
        await lithos.call("lithos_write", id=note, source_url=url, agent="ann")
        found = await lithos.call("lithos_cache_lookup", query="x", source_url=url, max_length=200)
        refusal(await overwrite(lithos, note, found["document"]["content"]), "invalid_input")
        assert len((await lithos.read(note))["content"]) == len(SECTIONS.strip())


async def test_cut_section_does_not_replace_the_whole_section(tmp_path: Path) -> None:
    """behaviour 366"""
    put_note(tmp_path, "a.md", f"# A\n\n{SECTIONS}")
    async with serving(tmp_path) as lithos:
        read = await lithos.call("lithos_read", path="a.md", section="Part 1", max_length=100)
        edit = {"id": read["id"], "op": "replace", "section": "Part 1", "agent": "ann"}
        answer = await lithos.call("lithos_note_edit", text=read["content"], **edit)
        assert "next_offset" in refusal(answer, "invalid_input")
        whole = await lithos.read(read["id"], section="Part 1")
        answer = await lithos.call("lithos_note_edit", text=whole["content"], **edit)
        assert answer["status"] == "updated"


@pytest.mark.parametrize(
    "content",
    [
        "A summary.",
        "\n\n".join(PARAGRAPHS[:700]),  # An agent that read the whole note leaves out the second half.
        "\n\n".join(PARAGRAPHS[5:1_500]),
        LONG.replace("words", "Words"),
    ],
)
async def test_intended_rewrite_after_a_complete_read_is_not_refused(tmp_path: Path, content: str) -> None:
    """behaviour 366: the agent has read the whole note, even if another agent read only a part."""
    async with serving_big(tmp_path) as (lithos, note):
        await lithos.read(note, max_length=2_000, agent_id="bob")
        part = await lithos.read(note, max_length=20_000, agent_id="ann")
        while "next_offset" in part:
            part = await lithos.read(note, offset=part["next_offset"], agent_id="ann")
        assert (await overwrite(lithos, note, content))["status"] == "updated"


async def test_partial_read_does_not_affect_writes_by_other_agents(tmp_path: Path) -> None:
    """behaviour 366"""
    async with serving_big(tmp_path) as (lithos, note):
        read = await lithos.read(note, max_length=2_000, agent_id="bob")
        refusal(await overwrite(lithos, note, read["content"], agent="bob"), "invalid_input")
        assert (await overwrite(lithos, note, read["content"]))["status"] == "updated"


async def test_text_that_has_become_the_whole_note_is_accepted(tmp_path: Path) -> None:
    """behaviour 366"""
    async with serving_big(tmp_path) as (lithos, note):
        read = await lithos.read(note, max_length=2_000)
        await overwrite(lithos, note, read["content"], replace_all=True)
        assert (await overwrite(lithos, note, read["content"]))["status"] == "updated"
        await overwrite(lithos, note, "Other text, which is short.")
        assert (await overwrite(lithos, note, read["content"]))["status"] == "updated"
