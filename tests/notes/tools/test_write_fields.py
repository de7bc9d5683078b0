"""Fields of `lithos_write`: values that are kept, cleared, replaced, healed or refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from tests.servers import MISSING_ID, Clock, Lithos, put_note, refusal, serving


async def refused(lithos: Lithos, code: str = "invalid_input", **arguments: Any) -> str:
    """Return the message of a refused write, and check that the write left no file."""
    before = lithos.files()
    answer = await lithos.call(
        "lithos_write", **{"title": "Refused", "content": "x", "agent": "a"} | arguments
    )
    assert lithos.files() == before
    return refusal(answer, code)


async def test_unknown_frontmatter_keys_survive_an_update(tmp_path: Path) -> None:
    """behaviour 10"""
    put_note(
        tmp_path, "n.md", "---\ncssclass: wide  # by hand\nrating: 5\nnested: {a: [1, x]}\n---\n# N\n\nold\n"
    )
    async with serving(tmp_path) as lithos:
        note = (await lithos.call("lithos_read", path="n"))["id"]
        await lithos.write("N", "new", id=note, tags=["t"])
        text = (lithos.knowledge / "n.md").read_text()
        assert text.startswith("---\ncssclass: wide  # by hand\nrating: 5\nnested: {a: [1, x]}\n")
        extra = {"cssclass": "wide", "rating": 5, "nested": {"a": [1, "x"]}}
        assert (await lithos.read(note))["metadata"]["extra"] == extra
        (item,) = (await lithos.call("lithos_list"))["items"]
        assert item["metadata"] == extra


CONFIDENCES = {
    None: 1.0, "true": 1.0, ".nan": 1.0, ".inf": 1.0, "high": 1.0, "1.7": 1.0, "-1": 0.0, "0.25": 0.25,
    "'0.5'": 0.5, "[1]": 1.0,
}  # fmt: skip


async def test_invalid_stored_confidence_is_healed(tmp_path: Path) -> None:
    """behaviour 15"""
    for number, written in enumerate(CONFIDENCES):
        line = f"confidence: {written}\n" if written else ""
        put_note(tmp_path, f"{number}.md", f"---\ntags: []\n{line}---\n# N{number}\n")
    async with serving(tmp_path, settled=False) as lithos:
        read: dict[str | None, float] = {}
        for number, written in enumerate(CONFIDENCES):
            value = (await lithos.call("lithos_read", path=f"{number}"))["metadata"]["confidence"]
            assert type(value) is float, written
            read[written] = value
        assert read == CONFIDENCES


async def test_invalid_confidence_argument_is_refused(lithos: Lithos) -> None:
    """behaviour 16"""
    for bad in (1.01, -0.01, True, False, "high", "nan", math.nan, math.inf, [1], {}, "", 10**400):
        assert "confidence" in await refused(lithos, confidence=bad)
    note = await lithos.create(confidence=1)
    value = (await lithos.read(note))["metadata"]["confidence"]
    assert (value, type(value)) == (1.0, float)
    assert "\nconfidence: 1.0\n" in (lithos.knowledge / "a-note.md").read_text()
    text = await lithos.create("As text", confidence="0.5")
    assert (await lithos.read(text))["metadata"]["confidence"] == 0.5


async def test_every_update_increments_the_version_in_the_file(lithos: Lithos) -> None:
    """behaviour 17"""
    note = await lithos.create()
    for version in (2, 3, 4):
        assert (await lithos.write(id=note))["version"] == version
        assert (await lithos.read(note))["version"] == version
        assert f"\nversion: {version}\n" in (lithos.knowledge / "a-note.md").read_text()


async def test_times_are_stored_in_utc(lithos: Lithos) -> None:
    """behaviour 18"""
    note = await lithos.create()
    for given in (
        "2030-01-02T03:04:05",
        "2030-01-02T03:04:05Z",
        "2030-01-02T05:04:05+02:00",
        " 2030-01-01T22:04:05.000000-05:00 ",
    ):
        await lithos.write(id=note, expires_at="")
        await lithos.write(id=note, expires_at=given)
        stored = (await lithos.read(note))["metadata"]["expires_at"]
        assert stored == "2030-01-02T03:04:05.000000+00:00", given
        assert stored in (lithos.knowledge / "a-note.md").read_text()


async def test_note_is_valid_until_its_expiry_day_ends(lithos: Lithos) -> None:
    """behaviour 390: the day ends at midnight UTC. An invalid day is refused with the valid format."""
    note = await lithos.create()
    for given, stored in (("2030-01-02", "2030-01-02"), ("2030-02", "2030-02-28")):
        await lithos.write(id=note, expires_at=given)
        metadata = (await lithos.read(note))["metadata"]
        assert metadata["expires_at"] == f"{stored}T23:59:59.999999+00:00"
    for bad in ("2030-13", "2030-02-30", "tomorrow", "null"):
        answer = await lithos.call("lithos_write", id=note, agent="a", expires_at=bad)
        assert "expires_at is not a time" in refusal(answer, "invalid_input")


async def test_expiry_day_in_a_file_is_not_rewritten(tmp_path: Path) -> None:
    """behaviour 390"""
    put_note(tmp_path, "a.md", "---\ntitle: A\nexpires_at: 2030-01-02 # one week\n---\nText.")
    async with serving(tmp_path) as lithos:
        (row,) = (await lithos.call("lithos_list"))["items"]
        await lithos.write(id=row["id"], content="Other.")
        assert "\nexpires_at: 2030-01-02 # one week\n" in (lithos.knowledge / "a.md").read_text()


async def test_missing_keys_are_read_as_defaults(tmp_path: Path) -> None:
    """behaviour 19"""
    put_note(tmp_path, "root.md", "Just text.")
    put_note(tmp_path, "a/b/deep.md", "---\nauthor: me\n---\nText.")
    put_note(tmp_path, "a/explicit.md", "---\nnamespace: mine\n---\nText.")
    defaults = {
        "confidence": 1.0, "version": 1, "schema_version": 1, "access_scope": "shared",
        "note_type": "observation", "status": "active", "summaries": None, "entities": [],
        "entities_extractor": None, "source": None, "supersedes": None, "tags": [], "aliases": [],
        "contributors": [], "source_url": None, "derived_from_ids": [], "expires_at": None, "extra": {},
    }  # fmt: skip
    async with serving(tmp_path) as lithos:
        for path, namespace, author in (
            ("root", "default", "unknown"),
            ("a/b/deep", "a/b", "me"),
            ("a/explicit", "mine", "unknown"),
        ):
            read = await lithos.call("lithos_read", path=path)
            assert read["metadata"].items() >= defaults.items()
            assert (read["namespace"], read["metadata"]["author"]) == (namespace, author)
            assert read["metadata"]["namespace"] == namespace
            assert read["title"] == path.rpartition("/")[2]


async def test_update_adds_the_missing_keys_except_namespace(tmp_path: Path) -> None:
    """behaviour 20"""
    file = put_note(tmp_path, "folder/n.md", "---\ntags: [x]\n---\n# N\n\nold\n")
    async with serving(tmp_path) as lithos:
        note = (await lithos.call("lithos_read", path="folder/n"))["id"]
        await lithos.write("N", id=note)
        text = file.read_text()
        for line in (
            f"id: {note}",
            "access_scope: shared",
            "note_type: observation",
            "status: active",
            "version: 2",
        ):
            assert f"\n{line}\n" in text
        assert "namespace" not in text
        assert text.startswith("---\ntags: [x]\n")
        await lithos.write("N", id=note, namespace="explicit")
        assert "\nnamespace: explicit\n" in file.read_text()
        assert (await lithos.read(note))["namespace"] == "explicit"


async def test_summaries_accept_two_keys_with_text_values(lithos: Lithos) -> None:
    """behaviour 21"""
    note = await lithos.create(summaries={"short": "In brief."})
    assert (await lithos.read(note))["metadata"]["summaries"] == {"short": "In brief."}
    await lithos.write(id=note)
    assert (await lithos.read(note))["metadata"]["summaries"] == {"short": "In brief."}
    for bad in ({"medium": "x"}, {"short": 1}, {"long": None}, {"short": ["x"]}):
        assert "summaries" in await refused(lithos, summaries=bad)


async def test_omitted_tags_are_kept_and_an_empty_list_clears_tags(lithos: Lithos) -> None:
    """behaviour 29"""
    note = await lithos.create(tags=["b", "a", "b", " a ", " "])
    for change, tags in (
        ({}, ["b", "a"]),
        ({"tags": None}, ["b", "a"]),
        ({"tags": ["c"]}, ["c"]),
        ({"tags": []}, []),
    ):
        await lithos.write(id=note, **change)
        assert (await lithos.read(note))["metadata"]["tags"] == tags
        assert (await lithos.call("lithos_tags"))["tags"] == dict.fromkeys(sorted(tags), 1)


async def test_omitted_values_are_kept(lithos: Lithos) -> None:
    """behaviours 30, 31"""
    given: dict[str, Any] = {
        "confidence": 0.4, "expires_at": "2031-01-01T00:00:00.000000+00:00", "schema_version": 7,
        "namespace": "team/x", "access_scope": "agent_private", "note_type": "concept", "status": "archived",
        "summaries": {"short": "s", "long": "l"}, "source_url": "https://example.org/page",
        "derived_from_ids": [MISSING_ID],
    }  # fmt: skip
    note = await lithos.create(source_task="task-1", metadata={"k": 1}, **given)
    await lithos.write(id=note)
    read = (await lithos.read(note))["metadata"]
    assert read.items() >= given.items()
    assert (read["source"], read["extra"]) == ("task-1", {"k": 1})
    await lithos.write(id=note, expires_at="", source_task="", source_url="", derived_from_ids=[])
    read = (await lithos.read(note))["metadata"]
    assert [read[key] for key in ("expires_at", "source", "source_url", "derived_from_ids")] == [
        None,
        None,
        None,
        [],
    ]
    text = (lithos.knowledge / "a-note.md").read_text()
    assert "source_url" not in text
    assert "expires_at" not in text


async def test_ttl_and_expiry_cannot_be_combined(lithos: Lithos) -> None:
    """behaviour 32"""
    for expires in ("2031-01-01", "", "nonsense"):
        message = await refused(lithos, ttl_hours=1, expires_at=expires)
        assert message == "Provide either ttl_hours or expires_at, not both."


async def test_ttl_must_be_a_positive_number(lithos: Lithos, clock: Clock) -> None:
    """behaviour 33"""
    for bad in (0, -1, math.nan, math.inf, -math.inf, "nan", 1e300):
        assert "ttl_hours" in await refused(lithos, ttl_hours=bad)
    note = await lithos.create(ttl_hours="1.5")
    expected = Clock(clock.text)
    expected.advance(hours=1.5)
    assert (await lithos.read(note))["metadata"]["expires_at"] == expected.text
    for bad in ("tomorrow", "2030-13-01", " ", "0001-01-01T00:00:00+14:00"):
        assert "expires_at" in await refused(lithos, expires_at=bad)


async def test_note_with_task_scope_requires_a_source_task(lithos: Lithos) -> None:
    """behaviour 37"""
    for task in (None, "", "  "):
        assert "source_task" in await refused(lithos, access_scope="task", source_task=task)
    note = await lithos.create(source_task="t-1")
    await lithos.write(id=note, access_scope="task")
    assert (await lithos.read(note))["metadata"]["access_scope"] == "task"
    assert "source_task" in await refused(lithos, id=note, source_task="")
    bare = await lithos.create("Bare")
    assert "source_task" in await refused(lithos, id=bare, access_scope="task")
    assert (await lithos.read(bare))["version"] == 1


async def test_unknown_enumeration_values_are_refused(lithos: Lithos) -> None:
    """behaviour 38"""
    note = await lithos.create()
    for name in ("access_scope", "note_type", "status"):
        for bad in ("other", "SHARED", "active "):
            assert name in await refused(lithos, **{name: bad})
            assert name in await refused(lithos, id=note, **{name: bad})
    assert (await lithos.read(note))["version"] == 1


async def test_metadata_is_merged_key_by_key(lithos: Lithos) -> None:
    """behaviour 39"""
    note = await lithos.create(metadata={"a": 1, "b": [True, None, {"x": "y"}], "gone": None})
    steps: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {"a": 1, "b": [True, None, {"x": "y"}]}),
        ({"metadata": {"a": "2", "c": 0.5}}, {"a": "2", "b": [True, None, {"x": "y"}], "c": 0.5}),
        ({"metadata": {"b": None, "absent": None}}, {"a": "2", "c": 0.5}),
        ({"metadata": {}}, {}),
        ({"metadata": {"a": {"deep": 1}}}, {"a": {"deep": 1}}),
        ({"metadata": {"a": {"other": 2}}}, {"a": {"other": 2}}),
    ]
    for change, extra in steps:
        await lithos.write(id=note, **change)
        assert (await lithos.read(note))["metadata"]["extra"] == extra
    for owned in ("version", "tags", "id", "entities_extractor", "source"):
        assert owned in await refused(lithos, metadata={owned: 1})
    assert "blank" in await refused(lithos, metadata={" ": 1})


async def test_source_ids_are_normalised(lithos: Lithos) -> None:
    """behaviours 40, 41, 42"""
    source = await lithos.create("Source")
    first, second = "ffffffff-0000-4000-8000-00000000000a", MISSING_ID
    given = [f" {first.upper()} ", second, first, source]
    answer = await lithos.write("Derived", derived_from_ids=given)
    stored = sorted([first, second, source])
    assert answer["warnings"] == [
        f"derived_from_ids contains missing document: {missing}" for missing in stored if missing != source
    ]
    assert (await lithos.read(answer["id"]))["metadata"]["derived_from_ids"] == stored
    for bad in ("not-a-uuid", "Source", "source.md", "", " ", source[:5], "{" + source + "}"):
        assert "derived_from_ids" in await refused(lithos, derived_from_ids=[source, bad])
    assert "itself" in await refused(lithos, id=source, title="Source", derived_from_ids=[source.upper()])
    assert (await lithos.write("Derived", id=answer["id"]))["warnings"] == []


async def test_author_is_kept_and_other_agents_become_contributors(lithos: Lithos, clock: Clock) -> None:
    created, note = clock.text, await lithos.create(agent=" ann ")
    clock.advance(hours=1)
    for agent in ("ann", " ann ", "bob", "bob ", "cy"):
        await lithos.write(id=note, agent=agent)
    read = (await lithos.read(note))["metadata"]
    assert (read["author"], read["contributors"]) == ("ann", ["bob", "cy"])
    assert (read["created_at"], read["updated_at"]) == (created, clock.text)
    agents = (await lithos.call("lithos_agent_list"))["agents"]
    assert {agent["id"] for agent in agents} == {"ann", "bob", "cy"}


async def test_content_limit_is_counted_in_bytes(tmp_path: Path) -> None:
    """behaviour 36"""
    async with serving(tmp_path, storage={"max_content_size_bytes": 9}) as lithos:
        note = await lithos.create(content="日本語")
        assert "9" in await refused(lithos, "content_too_large", content="日本語.")
        assert "9" in await refused(lithos, "content_too_large", content="日本語.", id=note)
        assert (await lithos.read(note))["content"] == "日本語"
