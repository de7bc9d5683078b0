"""Location of a new note: path, slug and title (docs/spec/notes.md §6 and §7)."""

from __future__ import annotations

from pathlib import Path

import trio

from tests.servers import MISSING_ID, Clock, Lithos, put_note, refusal, serving


async def test_note_without_path_is_created_in_the_root_by_slug(lithos: Lithos) -> None:
    """behaviours 4, 23"""
    answer = await lithos.call("lithos_write", title="Python: Tips & Tricks!", content="x", agent="a")
    assert list(answer) == ["status", "id", "path", "version", "warnings"]
    assert answer | {"id": ""} == {
        "status": "created",
        "id": "",
        "path": "python-tips-tricks.md",
        "version": 1,
        "warnings": [],
    }
    assert lithos.files() == ["python-tips-tricks.md"]


async def test_path_may_name_a_file_or_a_folder(tmp_path: Path) -> None:
    """behaviours 5, 9"""
    async with serving(tmp_path) as lithos:
        exact = await lithos.write("One title", path="guides/How To.md")
        root = await lithos.write("Other title", path="root-file.md")
        folder = await lithos.write("In a folder", path="procedures/deep/")
        assert [answer["path"] for answer in (exact, root, folder)] == [
            "guides/How To.md",
            "root-file.md",
            "procedures/deep/in-a-folder.md",
        ]
        for path in ("guides/How To.md", "guides/How To"):
            assert (await lithos.call("lithos_read", path=path))["id"] == exact["id"]
        for path in ("root-file", "root-file.md"):
            assert (await lithos.call("lithos_read", path=path))["id"] == root["id"]
    async with serving(tmp_path) as lithos:
        assert (await lithos.call("lithos_read", path="guides/How To"))["id"] == exact["id"]
        assert (await lithos.read(root["id"]))["path"] == "root-file.md"


async def test_folder_name_that_looks_like_a_note_is_refused(lithos: Lithos) -> None:
    """behaviour 6"""
    for path in ("a.md/b", "a.md/b.md", "a.md/"):
        refusal(
            await lithos.call("lithos_write", title="T", content="x", agent="a", path=path), "invalid_input"
        )
    assert lithos.files() == []


async def test_existing_note_file_is_never_overwritten(lithos: Lithos) -> None:
    """behaviours 7, 127"""
    first = await lithos.create("First", "The old content.", path="notes/second.md")
    before = (lithos.knowledge / "notes/second.md").read_bytes()
    events = lithos.events()
    for arguments in ({"path": "notes/second.md", "title": "Third"}, {"path": "notes", "title": "Second"}):
        answer = await lithos.call("lithos_write", content="new", agent="a", **arguments)
        assert "exists" in refusal(answer, "path_collision")
        assert list(answer)[3:] == ["existing_id", "warnings"]
        assert (answer["existing_id"], answer["warnings"]) == (first, [])
    assert (lithos.knowledge / "notes/second.md").read_bytes() == before
    assert lithos.events() == events
    assert (await lithos.call("lithos_stats"))["documents"] == 1


async def test_existing_file_that_is_not_a_note_is_not_overwritten(tmp_path: Path) -> None:
    """behaviour 7"""
    put_note(tmp_path, "broken.md", b"\x00\x01 binary")
    put_note(tmp_path, "plain", "a file where a folder is wanted")
    async with serving(tmp_path) as lithos:
        answer = await lithos.call("lithos_write", title="Broken", content="x", agent="a")
        refusal(answer, "path_collision")
        assert answer["existing_id"] is None
        for path in ("plain", "plain/deeper"):
            answer = await lithos.call("lithos_write", title="T", content="x", agent="a", path=path)
            assert "another path" in refusal(answer, "invalid_input")
        assert lithos.files() == ["broken.md", "plain"]


OUTSIDE = (
    "../x.md", "a/../../x", "/etc/passwd", "/x.md", "..", "a/..", ".hidden/x.md", "a/.b.md", "a\\..\\b",
    "C:\\x", "./a",
)  # fmt: skip


async def test_path_traversal_and_absolute_paths_are_refused(tmp_path: Path, lithos: Lithos) -> None:
    """behaviour 8"""
    (tmp_path / "x.md").write_text("outside")
    for path in OUTSIDE:
        for answer in (
            await lithos.call("lithos_write", title="T", content="x", agent="a", path=path),
            await lithos.call("lithos_read", path=path),
        ):
            assert "within knowledge directory" in refusal(answer, "invalid_input"), path
    assert lithos.files() == []


async def test_symlink_that_leads_outside_is_refused(tmp_path: Path) -> None:
    """behaviour 8"""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("# Secret\n")
    put_note(tmp_path, "inside/x.md", "# X\n")
    (tmp_path / "knowledge" / "link").symlink_to(outside)
    (tmp_path / "knowledge" / "file.md").symlink_to(outside / "secret.md")
    async with serving(tmp_path) as lithos:
        for path in ("link", "link/new.md", "link/deep/er"):
            answer = await lithos.call("lithos_write", title="T", content="x", agent="a", path=path)
            assert "within knowledge directory" in refusal(answer, "invalid_input")
        for path in ("link/secret.md", "file.md"):
            refusal(await lithos.call("lithos_read", path=path), "doc_not_found")
        refusal(
            await lithos.call("lithos_write", title="T", content="x", agent="a", path="file.md"),
            "invalid_input",
        )
    assert [path.name for path in outside.iterdir()] == ["secret.md"]
    assert (outside / "secret.md").read_text() == "# Secret\n"


async def test_slug_collision_on_creation_leaves_no_file(lithos: Lithos) -> None:
    """behaviours 12, 127"""
    first = await lithos.create("The Title")
    events = lithos.events()
    answer = await lithos.call(
        "lithos_write",
        title="the title?",
        content="zebra",
        agent="a",
        path="x/y.md",
        source_url="https://e.org",
    )
    assert "The Title" in refusal(answer, "slug_collision")
    assert list(answer)[3:] == ["existing_id", "slug_collision_existing_id", "warnings"]
    assert answer["existing_id"] == answer["slug_collision_existing_id"] == first
    assert answer["warnings"] == []
    assert lithos.files() == ["the-title.md"]
    assert await lithos.found("zebra") == []
    assert lithos.events() == events
    await lithos.create("Other", source_url="https://e.org")


async def test_slug_collision_on_update_leaves_the_note_unchanged(lithos: Lithos) -> None:
    """behaviours 13, 127"""
    taken = await lithos.create("Taken")
    note = await lithos.create("Mine", "old words", source_url="https://example.org/mine")
    before, events = await lithos.read(note), lithos.events()
    file = (lithos.knowledge / "mine.md").read_bytes()
    answer = await lithos.call(
        "lithos_write", id=note, title="Taken", content="new", agent="b", source_url="https://example.org/new"
    )
    refusal(answer, "slug_collision")
    assert answer["existing_id"] == taken
    after = await lithos.read(note)
    assert after == before | {"retrieval_count": 2}
    assert (lithos.knowledge / "mine.md").read_bytes() == file
    assert lithos.events() == events
    await lithos.create("Free address", source_url="https://example.org/new")
    duplicate = await lithos.call(
        "lithos_write", title="Z", content="x", agent="a", source_url="https://example.org/mine"
    )
    assert duplicate["duplicate_of"]["id"] == note


async def test_one_of_several_concurrent_notes_with_one_slug_is_created(lithos: Lithos) -> None:
    """behaviour 12"""
    answers: list[dict[str, object]] = []

    async def create(path: str) -> None:
        answers.append(await lithos.call("lithos_write", title="Same", content=path, agent="a", path=path))

    async with trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(create, f"folder-{number}")
    assert sorted(str(answer["status"]) for answer in answers) == ["created"] + ["error"] * 9
    assert len(lithos.files()) == 1


async def test_write_checks_run_in_the_documented_order(tmp_path: Path) -> None:
    """Each request violates one rule and all later rules.

    The answer names the first violated rule (docs/spec/tools.md §3).
    """
    clock = Clock()
    async with serving(tmp_path, clock=clock, storage={"max_content_size_bytes": 10}) as lithos:
        await lithos.create("Taken", "x", source_url="https://example.org/taken", path="taken.md")
        mine = await lithos.create("Mine", "x")
        broken: list[tuple[str, dict[str, object], dict[str, object]]] = [
            ("ttl_hours or expires_at", {"ttl_hours": -1, "expires_at": "bad"}, {"ttl_hours": None}),
            ("access_scope", {"access_scope": "bad"}, {"access_scope": "task"}),
            ("note_type", {"note_type": "bad"}, {"note_type": None}),
            ("status", {"status": "bad"}, {"status": None}),
            ("summaries", {"summaries": {"bad": 1}}, {"summaries": None}),
            ("metadata", {"metadata": {"version": 1}}, {"metadata": None}),
            ("source_task", {}, {"source_task": "t"}),
            ("expires_at", {}, {"expires_at": None}),
            ("content", {"content": "x" * 11}, {"content": "x"}),
            ("confidence", {"confidence": 2}, {"confidence": None}),
            ("source_url", {"source_url": "https://example.org/taken"}, {"source_url": None}),
            ("slug", {"title": "Taken"}, {"title": "Free"}),
            ("path", {"path": "taken.md"}, {"path": None}),
            ("derived_from_ids", {"derived_from_ids": ["bad"]}, {"derived_from_ids": None}),
        ]
        request: dict[str, object] = {"title": "T", "content": "", "agent": "a"}
        for _, bad, _ in broken:
            request |= bad
        for word, _, mended in broken:
            message = (await lithos.call("lithos_write", **request))["message"]
            assert word in message, (word, message)
            request |= mended
        assert (await lithos.call("lithos_write", **request))["status"] == "created"
        # The checks of the next request apply only to updates, not to creations.
        request = {
            "title": "Taken", "content": "x" * 11, "agent": "a", "id": MISSING_ID, "confidence": True,
            "expected_version": 9, "source_url": "https://example.org/taken",
        }  # fmt: skip
        for code, mended in (
            ("content_too_large", {"content": "x"}),
            ("invalid_input", {"confidence": 1}),
            ("doc_not_found", {"id": mine}),
            ("version_conflict", {"expected_version": 1}),
            ("duplicate", {"source_url": "https://example.org/mine"}),
            ("slug_collision", {"title": "Mine"}),
        ):
            assert (await lithos.call("lithos_write", **request))["code"] == code
            request |= mended
        assert (await lithos.call("lithos_write", **request))["status"] == "updated"
