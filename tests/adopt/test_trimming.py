"""Trimming of an index: the moved lines, their topic file, and the event."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithos.adopt.files_adopting import Adoption
from lithos.adopt.files_memory import MemoryFolder
from lithos.adopt.model_clients import CLIENTS, client_of, is_slug_of, name_in_path
from lithos.adopt.model_trimming import blocks_of, link_to, plan_trimming
from lithos.adopt.settings import MemoryConfig
from lithos.kernel.settings import StorageConfig
from lithos.notes.catalogue.catalogue import Catalogue
from tests.servers import serving, until

pytestmark = pytest.mark.needs("adopt")

CLAUDE = CLIENTS["claude-code"]
PREFIX = "memory/claude-code/shop"


def lines(number: int) -> list[str]:
    return [f"- fact {each}" for each in range(number)]


def unused(block: object) -> tuple[int, int]:
    return 0, 0


def test_index_within_the_limits_stays():
    assert plan_trimming("\n".join(lines(199)), b"\n", CLAUDE, "older-entries", unused) is None
    assert CLAUDE.excess(("\n".join(lines(200)) + "\n").encode()) == ""
    assert CLAUDE.excess("\n".join(lines(201)).encode()) == "201 lines of at most 200"
    assert CLAUDE.excess(b"x" * 25_001) == "25,001 bytes of at most 25,000"


def test_last_lines_move_if_nothing_is_known_about_them():
    """Behaviour 325."""
    plan = plan_trimming("\n".join(lines(300)), b"# Memory\n\n\n", CLAUDE, "older-entries", unused)
    assert plan is not None
    kept = plan.content.split("\n")
    assert kept[-1] == link_to("older-entries", CLAUDE)
    assert (*kept[:-1], *plan.moved) == tuple(lines(300))
    assert not CLAUDE.excess(b"# Memory\n\n\n" + plan.content.encode())


def test_oldest_and_least_read_lines_move_first():
    """Behaviour 325."""
    uses = {0: (5, 9), 1: (0, 1), 2: (0, 9)}
    plan = plan_trimming(
        "\n".join(lines(203)), b"", CLAUDE, "older-entries", lambda block: uses.get(block.start, (9, 0))
    )
    assert plan is not None
    assert {"- fact 2", "- fact 1", "- fact 0"} <= set(plan.moved)
    few = plan_trimming(
        "\n".join(["x" * 24_000, *lines(3), "y" * 1_000]), b"", CLAUDE, "older-entries",
        lambda block: (0, 9) if block.start == 4 else (9, 0),
    )  # fmt: skip
    assert few is not None
    assert few.moved[-1] == "y" * 1_000


def test_headings_code_and_the_link_stay_and_continuations_move_along():
    text = (
        "## Deploy\n\n- one\n  more of one\n\n```\ncode\n```\n- [Older entries](older-entries.md): x\nplain"
    )
    assert [block.text for block in blocks_of(text)] == ["- one\n  more of one", "plain"]


@pytest.mark.parametrize("trims", [True, False])
async def test_long_index_is_trimmed_only_on_request(tmp_path: Path, trims: bool):
    """Behaviour 325: the lines are in the topic file, and an event reports them."""
    memory, data = tmp_path / "memory", tmp_path / "data"
    memory.mkdir()
    (memory / "MEMORY.md").write_text("# Memory\n\n" + "\n".join(lines(20)) + "\n")
    Adoption.of(StorageConfig(data_dir=data)).adopt("claude-code", [MemoryFolder(memory, "shop")])
    whole = "# Memory\n\n" + "\n".join(lines(260)) + "\n"
    async with serving(data, server={"watch_files": True}, memory=MemoryConfig(trim=trims)) as lithos:
        catalogue = lithos.server.get(Catalogue)
        (memory / "MEMORY.md").write_text("# Memory\n\n" + "\n".join(lines(21)) + "\n")
        await until(lambda: catalogue.at_path(f"{PREFIX}/MEMORY.md").note.version == 2)
        (memory / "MEMORY.md").write_text(whole)
        if not trims:
            await until(lambda: catalogue.at_path(f"{PREFIX}/MEMORY.md").note.version == 3)
            assert (memory / "MEMORY.md").read_text() == whole
            assert [path.name for path in memory.iterdir()] == ["MEMORY.md"]
            return
        await until(lambda: "note.trimmed" in [kind for kind, _ in lithos.events()])
        [told] = [told for kind, told in lithos.events() if kind == "note.trimmed"]
        index = (memory / "MEMORY.md").read_text()
        topic = (memory / "older-entries.md").read_text()
        assert not CLAUDE.excess(index.encode())
        assert "](older-entries.md)" in index
        assert {*lines(260)} <= {*index.split("\n"), *topic.split("\n")}
        assert (told["path"], told["topic_path"]) == (f"{PREFIX}/MEMORY.md", f"{PREFIX}/older-entries.md")
        assert told["lines"] == sum(line in topic.split("\n") for line in lines(260))
        assert (await lithos.read(told["topic_id"]))["path"] == f"{PREFIX}/older-entries.md"
        # The lines that were in the index before are the oldest, so they moved.
        assert "- fact 0" in topic.split("\n")


def test_clients_are_known_by_their_agent_names():
    assert client_of("claude-code@laptop") == "claude-code"
    assert client_of("codex") == "codex"
    assert client_of("ada") is None
    assert client_of(None) is None


@pytest.mark.parametrize(
    ("project", "name"),
    [
        ("github.com/acme/shop", "shop"),
        ("../..", "project"),
        (".hidden", "hidden"),
        ("Büro Nord", "Büro-Nord"),
    ],
)
def test_project_has_a_usable_name_in_paths(project: str, name: str):
    assert name_in_path(project) == name


def test_slug_of_claude_code_replaces_all_but_letters_and_digits():
    assert is_slug_of("-home-me-my-shop-v2", "/home/me/my.shop_v2")
    assert is_slug_of("-" + "a" * 199 + "-1x2y", "/" + "a" * 300)
    assert not is_slug_of("-home-me-shop", "/home/me/shop2")
