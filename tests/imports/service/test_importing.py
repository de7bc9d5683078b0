"""Results for the records of a source over several imports (behaviours 240 and 241)."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from lithos.imports.files.attachments import NAME
from lithos.imports.files.kinds import recognise
from lithos.imports.files.markdown import MarkdownSource
from lithos.imports.model.importing import Item, Malformed, Record, RecordEdge
from lithos.imports.service import import_run as run_module
from lithos.imports.service.import_run import ImportReport, ImportRun
from lithos.imports.service.importing import Importing, NoImport
from lithos.imports.service.records import ImportResult, Options, SourceEdge, record_from_json, record_to_json
from lithos.kernel.values.errors import InvalidInput
from lithos.memory.service.edges import Edges
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.model.edges import EdgeFilter
from tests.fakes import Killed
from tests.servers import Lithos, put_note, serving

DATA = Path(__file__).parents[2] / "data" / "import"


class Given:
    """A source that returns the given items."""

    kind = "given"

    def __init__(self, *items: Item) -> None:
        self.items = items

    def recognises(self, _: Path) -> bool:
        return True

    def read(self, _: Path) -> Any:
        return iter(self.items)


def record(record_id: str, content: str = "Some text.", **more: Any) -> Record:
    fields = {"hash": f"h-{content}", "position": f"at {record_id}", "title": f"Title {record_id}"}
    return Record(id=record_id, content=content, **{**fields, **more})


async def bring(lithos: Lithos, source: Any, path: Path = DATA, **options: Any) -> ImportReport:
    wanted = Options(**{"kind": source.kind, "agent": "import", **options})
    return await ImportRun(source, path, lithos.server.get(Importing), wanted, lambda _: None).run()


def numbers(report: ImportReport) -> dict[str, int]:
    return {result: number for result, number in report.results.items() if number}


def reasons(report: ImportReport) -> dict[str, str]:
    return {row["position"]: row["reason"] for row in report.to_json()["rows"] if row["reason"]}


def content_of(lithos: Lithos) -> dict[str, bytes]:
    return {path: (lithos.knowledge / path).read_bytes() for path in lithos.files()}


# -- samples -----------------------------------------------------------------------------------


async def test_vault_is_imported_with_links_tags_dates_and_attachments(tmp_path: Path) -> None:
    """Behaviour 240: checks counts and bytes. A second import changes nothing."""
    async with serving(tmp_path) as lithos:
        planned = await bring(lithos, MarkdownSource(), DATA / "markdown", dry_run=True)
        assert lithos.files() == []
        report = await bring(lithos, MarkdownSource(), DATA / "markdown")
        assert numbers(report) == {"created": 5, "malformed": 1}
        assert {**report.to_json(), "dry_run": True} == {
            **planned.to_json(),
            "notices": planned.to_json()["notices"]
            + 1,  # broken frontmatter is noticed only when the note is written
            "rows": report.to_json()["rows"],
        }
        assert report.to_json()["carried"] == {"links": 7, "tags": 3, "dates": 7}
        assert report.to_json()["attachments"]["copied"] == 1
        names = [
            "Atlas.md",
            "Damaged.md",
            "Projects/Plan.md",
            "Projects/Über uns.md",
            "Undated.md",
            "img/map.png",
        ]
        assert lithos.files() == names
        atlas = (lithos.knowledge / "Atlas.md").read_text()
        original = (DATA / "markdown" / "Atlas.md").read_text()
        head, body = original.split("---\n", 2)[1:]
        kept = head.replace("  - project\n", "  - project\n  - inline\n")
        assert atlas.startswith(f"---\n{kept}")
        assert atlas.endswith(f"---\n{body}")
        windows = (lithos.knowledge / "Projects/Über uns.md").read_bytes()
        assert b"\r\n" in windows
        assert windows.count(b"\n") == windows.count(b"\r\n")
        note = await lithos.call("lithos_read", path="Atlas.md")
        assert note["metadata"]["created_at"].startswith("2024-03-05T00:00:00")
        assert note["metadata"]["aliases"] == ["AT", "The Atlas"]
        assert "Its frontmatter is broken" in (lithos.knowledge / "Damaged.md").read_text()
        assert await lithos.found("frontmatter broken") != []
        related = await lithos.call("lithos_related", id=note["id"])
        assert {each["title"] for each in related["links"]["incoming"]} >= {"Plan", "Über uns"} or related

        before = content_of(lithos)
        again = await bring(lithos, MarkdownSource(), DATA / "markdown")
        assert numbers(again) == {"unchanged": 5, "malformed": 1}
        assert again.to_json()["attachments"]["unchanged"] == 1
        assert content_of(lithos) == before


async def test_wiki_links_resolve_to_notes_below_the_import_folder(tmp_path: Path) -> None:
    """Behaviour 240: links must keep working if a vault is imported into a folder."""
    async with serving(tmp_path) as lithos:
        await bring(lithos, MarkdownSource(), DATA / "markdown", into="from/obsidian")
        catalogue = lithos.server.get(Catalogue)
        atlas = catalogue.at_path("from/obsidian/Atlas.md")
        plan = catalogue.at_path("from/obsidian/Projects/Plan.md")
        assert atlas is not None
        assert plan is not None
        resolved = {target: catalogue.graph.resolve(target) for target in atlas.links}
        assert plan.note.id in resolved.values()
        assert (lithos.knowledge / "from/obsidian/img/map.png").is_file()


async def test_memories_are_imported_with_tags_dates_and_properties(tmp_path: Path) -> None:
    """Behaviour 240"""
    async with serving(tmp_path) as lithos:
        file = DATA / "mem0.jsonl"
        report = await bring(lithos, recognise(file), file, agent="mover")
        assert numbers(report) == {"created": 3}
        assert report.to_json()["carried"] == {"links": 1, "tags": 3, "dates": 4}
        (entry,) = [
            each for each in lithos.server.get(Catalogue) if each.note.extra["imported_from"]["id"] == "m-1"
        ]
        assert entry.note.author == "mover"
        assert entry.note.tags == ("preferences", "go")
        assert entry.note.extra["user_id"] == "ana"
        assert set(entry.note.extra["imported_from"]) == {"kind", "id", "hash"}
        assert [kind for kind, _ in lithos.events()].count("note.created") == 3
        again = await bring(lithos, recognise(file), file, agent="mover")
        assert numbers(again) == {"unchanged": 3}
        assert [kind for kind, _ in lithos.events()].count("note.created") == 3


async def test_imported_notes_have_ordinary_events_and_versions(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        await bring(lithos, Given(*(record(str(number)) for number in range(70))), agent="mover")
        created = [payload for kind, payload in lithos.events() if kind == "note.created"]
        assert len(created) == 70
        assert len({payload["id"] for payload in created}) == 70
        answer = await lithos.call(
            "lithos_history", changed_by="mover", since="2020-01-01T00:00:00Z", limit=200
        )
        assert answer["total"] == 70
        assert {row["op"] for row in answer["versions"]} == {"created"}
        assert len(lithos.server.get(Catalogue)) == 70


# -- second run -----------------------------------------------------------------------------


async def test_changed_source_updates_only_notes_without_local_changes(tmp_path: Path) -> None:
    """Behaviour 240"""
    async with serving(tmp_path) as lithos:
        await bring(lithos, Given(record("a"), record("b"), record("c"), record("d")))
        by_title = {entry.note.title: entry for entry in lithos.server.get(Catalogue)}
        await lithos.call("lithos_write", id=by_title["Title b"].note.id, content="Mine.", agent="me")
        (lithos.knowledge / by_title["Title c"].path).write_text(
            (lithos.knowledge / by_title["Title c"].path).read_text().replace("Some text.", "Edited.")
        )
        report = await bring(lithos, Given(*(record(each, "New text.") for each in "abc"), record("d")))
        assert numbers(report) == {"updated": 1, "changed here": 2, "unchanged": 1}
        texts = {path: (lithos.knowledge / path).read_text() for path in lithos.files()}
        assert "New text." in texts["title-a.md"]
        assert "version: 2" in texts["title-a.md"]
        assert "Mine." in texts["title-b.md"]
        assert "Edited." in texts["title-c.md"]
        assert "changed here" in reasons(report)["at b"]
        again = await bring(lithos, Given(*(record(each, "New text.") for each in "abc"), record("d")))
        assert numbers(again) == {"unchanged": 2, "changed here": 2}
        newest = await bring(lithos, Given(record("a", "Newest.")))
        assert numbers(newest) == {"updated": 1}


async def test_extracted_entities_do_not_count_as_a_local_change(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        await bring(lithos, Given(record("a", "Ada Lovelace wrote to Charles Babbage.")))
        path = lithos.knowledge / "title-a.md"
        path.write_text(
            path.read_text().replace(
                "status: active", "status: active\nentities: [Ada]\nentities_extractor: 1"
            )
        )
        report = await bring(lithos, Given(record("a", "Changed.")))
        assert numbers(report) == {"updated": 1}, reasons(report)


async def test_update_from_a_changed_file_keeps_other_frontmatter(tmp_path: Path) -> None:
    """Behaviour 240"""
    vault = tmp_path / "vault"
    shutil.copytree(DATA / "markdown", vault)
    async with serving(tmp_path / "data") as lithos:
        await bring(lithos, MarkdownSource(), vault)
        note_id = (await lithos.call("lithos_read", path="Atlas.md"))["id"]
        text = (vault / "Atlas.md").read_text()
        (vault / "Atlas.md").write_text(text.replace("See [[", "Now see [["))
        report = await bring(lithos, MarkdownSource(), vault)
        assert numbers(report) == {"updated": 1, "unchanged": 4, "malformed": 1}
        note = await lithos.call("lithos_read", path="Atlas.md")
        assert (note["id"], note["metadata"]["version"]) == (note_id, 2)
        assert 'status-of-mine: "open"   # a comment stays' in (lithos.knowledge / "Atlas.md").read_text()


async def test_deleted_notes_are_not_imported_again(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        await bring(lithos, Given(record("a"), record("b")))
        gone = next(entry for entry in lithos.server.get(Catalogue) if entry.note.title == "Title a")
        await lithos.call("lithos_delete", id=gone.note.id, agent="me")
        report = await bring(lithos, Given(record("a", "New."), record("b")))
        assert numbers(report) == {"deleted here": 1, "unchanged": 1}
        assert lithos.files() == ["title-b.md"]
    async with serving(tmp_path) as lithos:
        assert numbers(await bring(lithos, Given(record("a")))) == {"deleted here": 1}
        assert numbers(await bring(lithos, Given(record("a")), recreate=True)) == {"created": 1}
        assert numbers(await bring(lithos, Given(record("a")))) == {"unchanged": 1}


async def test_lost_ledger_is_restored_from_the_notes(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        await bring(lithos, Given(record("a")))
        (tmp_path / ".lithos" / NAME).unlink()
        assert numbers(await bring(lithos, Given(record("a")))) == {"unchanged": 1}
        (entry,) = lithos.server.get(Catalogue)
        await lithos.call("lithos_delete", id=entry.note.id, agent="me")
        assert numbers(await bring(lithos, Given(record("a")))) == {"deleted here": 1}


# -- paths and ids -----------------------------------------------------------------------------


async def test_import_never_overwrites_an_existing_file(tmp_path: Path) -> None:
    put_note(tmp_path, "title-a.md", "# Mine\n")
    async with serving(tmp_path) as lithos:
        (lithos.knowledge / "folder").mkdir()
        (lithos.knowledge / "folder/x.md").write_bytes(b"\xff\xfe no note")
        same = [record(each, title="Same", path="folder/x.md") for each in "bc"]
        report = await bring(lithos, Given(record("a"), *same))
        assert numbers(report) == {"created": 3}
        assert report.counted["notice"] == 3
        names = ["folder/x-2.md", "folder/x-3.md", "folder/x.md", "title-a-2.md", "title-a.md"]
        assert lithos.files() == names
        assert (lithos.knowledge / "folder/x.md").read_bytes() == b"\xff\xfe no note"
        assert (lithos.knowledge / "title-a.md").read_bytes() == b"# Mine\n"
        assert numbers(await bring(lithos, Given(record("a"), *same))) == {"unchanged": 3}


async def test_imported_file_names_are_valid_on_every_disk(tmp_path: Path) -> None:
    """behaviours 350 and 352"""
    async with serving(tmp_path) as lithos:
        paths = ("aux.md", "con/x. /LPT1.txt.md", "Ann.md", "ann.md", None)
        records = [record(str(n), title=f"T{n}", path=path) for n, path in enumerate(paths)]
        records[-1] = record("dev", title="NUL", path=None)
        assert numbers(await bring(lithos, Given(*records))) == {"created": 5}
        assert lithos.files() == ["Ann.md", "ann-2.md", "aux_.md", "con_/x/LPT1_.txt.md", "nul_.md"]
        assert numbers(await bring(lithos, Given(*records))) == {"unchanged": 5}


async def test_notes_with_equal_titles_get_different_names(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        report = await bring(lithos, Given(*(record(str(n), title="Same") for n in range(60))))
        assert numbers(report) == {"created": 60}
        assert len(lithos.files()) == 60
        # Duplicate ids in a source are reported.
        report = await bring(lithos, Given(record("a"), record("a", "Other.")))
        assert numbers(report) == {"created": 1, "duplicate": 1}
        assert "Some text." in (lithos.knowledge / "title-a.md").read_text()


async def test_imported_paths_stay_below_the_import_folder(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        odd = ("../../x.md", "/etc/x.md", ".hidden/x.md", "a/\x00.md")
        await bring(lithos, Given(*(record(str(n), path=path) for n, path in enumerate(odd))), into="in")
        assert all(path.startswith("in/") for path in lithos.files())
        for into in ("../out", "/abs", ".hidden", "x.md"):
            with pytest.raises(InvalidInput):
                await lithos.server.get(Importing).begin(Options("given", "a", into))


async def test_sources_with_equal_ids_are_separated_by_folder(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        await bring(lithos, Given(record("a", "One.")), into="one")
        report = await bring(lithos, Given(record("a", "Two.")), into="two")
        assert numbers(report) == {"created": 1}
        assert lithos.files() == ["one/title-a.md", "two/title-a.md"]


async def test_file_id_is_kept_unless_another_note_uses_it(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    own = "11111111-2222-4333-8444-555555555555"
    for name in ("a", "b"):
        (vault / f"{name}.md").write_text(f"---\nid: {own}\n---\nText of {name}.\n")
    async with serving(tmp_path / "data") as lithos:
        report = await bring(lithos, MarkdownSource(), vault)
        assert numbers(report) == {"created": 2}
        assert "another note has its id" in reasons(report)["b.md"]
        assert (await lithos.call("lithos_read", path="a.md"))["id"] == own
        assert (await lithos.call("lithos_read", path="b.md"))["id"] != own
        assert numbers(await bring(lithos, MarkdownSource(), vault)) == {"unchanged": 2}
        (vault / "b.md").write_text(f"---\nid: {own}\n---\nOther text of b.\n")
        assert numbers(await bring(lithos, MarkdownSource(), vault)) == {"unchanged": 1, "updated": 1}
        assert (await lithos.call("lithos_read", path="a.md"))["content"].strip() == "Text of a."


# -- edges -------------------------------------------------------------------------------------


async def test_relations_become_edges_once_all_notes_exist(tmp_path: Path) -> None:
    """Behaviour 241"""
    async with serving(tmp_path) as lithos:
        edges = (RecordEdge("depends_on", "b"), RecordEdge("knows", "Title C"), RecordEdge("knows", "nobody"))
        source = Given(record("a", edges=edges), record("b"), record("c"))
        planned = await bring(lithos, source, dry_run=True)
        assert dict(planned.edges) == {"made": 2, "missing": 1}
        report = await bring(lithos, source)
        assert dict(report.edges) == {"made": 2, "missing": 1}
        assert "nobody" in reasons(report)["at a"]
        (stored,) = await lithos.server.get(Edges).list_edges(EdgeFilter())
        assert sorted(edge.type for edge in stored) == ["depends_on", "knows"]
        assert {edge.provenance_type for edge in stored} == {"imported"}
        again = await bring(lithos, source)
        assert dict(again.edges) == {"there already": 2, "missing": 1}
        assert [kind for kind, _ in lithos.events()].count("edge.upserted") == 2
        # The lists in a report have a maximum length.
        report = await bring(lithos, Given(*(Malformed(f"line {n}", "why") for n in range(250))))
        told = report.to_json()
        assert told["notes"]["malformed"] == 250
        assert len(told["rows"]) == 100
        assert told["unlisted"] == {"malformed": 150}
        # A new import ends the previous import.
        importing = lithos.server.get(Importing)
        first = await importing.begin(Options("given", "a"))
        await importing.begin(Options("given", "a"))
        with pytest.raises(NoImport, match="Run the import again"):
            await importing.take(first.session, [record("a")])
        with pytest.raises(NoImport):
            await importing.connect(first.session, [SourceEdge("a", "knows", "b")])
        with pytest.raises(NoImport):
            await importing.end(first.session)


# -- limits, bounds and failures ---------------------------------------------------------------


async def test_records_above_the_size_limit_are_skipped(tmp_path: Path) -> None:
    """Behaviour 241"""
    async with serving(tmp_path, storage={"max_content_size_bytes": 1_000}) as lithos:
        report = await bring(lithos, Given(record("a", "x" * 1_001), record("b", "x" * 1_000)))
        assert numbers(report) == {"created": 1, "malformed": 1}
        assert "max_content_size_bytes" in reasons(report)["at a"]
        session = await lithos.server.get(Importing).begin(Options("given", "a"))
        (outcome,) = await lithos.server.get(Importing).take(session.session, [record("c", "x" * 1_001)])
        assert outcome.result == "malformed"


async def test_record_that_cannot_be_written_is_reported_as_failed(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        deep: Any = []
        for _ in range(200):
            deep = [deep]
        report = await bring(lithos, Given(record("a", properties={"deep": deep}), record("b")))
        assert numbers(report) == {"failed": 1, "created": 1}
        assert report.has_failures
        assert "deeper" in reasons(report)["at a"]


async def test_other_agents_can_write_during_an_import(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        written = 0

        async def write_on() -> None:
            nonlocal written
            while True:
                await lithos.create(f"Mine {written}")
                written += 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write_on)
            report = await bring(lithos, Given(*(record(str(n)) for n in range(70))))
            nursery.cancel_scope.cancel()
        assert numbers(report) == {"created": 70}
        assert written > 1
        # An edit between the plan and the write is not overwritten.
        await bring(lithos, Given(record("a")))
        importing = lithos.server.get(Importing)
        begun = await importing.begin(Options("given", "import"))
        render = importing._render

        def render_late(*given: Any) -> Any:
            made = render(*given)
            path = lithos.knowledge / "title-a.md"
            path.write_text(path.read_text().replace("Some text.", "Edited just now."))
            return made

        importing._render = render_late  # type: ignore[method-assign]
        (outcome,) = await importing.take(begun.session, [record("a", "From the source.")])
        assert outcome.result == "changed here"
        assert "Edited just now." in (lithos.knowledge / "title-a.md").read_text()


# -- crashes -----------------------------------------------------------------------------------


async def crash_after(data: Path, source: Any, path: Path, batches: int) -> None:
    """Run an import that dies after this number of batches."""

    async def die() -> None:
        async with serving(data) as lithos:
            importing, taken = lithos.server.get(Importing), 0

            class Dying:
                begin, connect, end = importing.begin, importing.connect, importing.end

                async def take(self, session_id: str, records: Sequence[Record]) -> list[ImportResult]:
                    nonlocal taken
                    taken += 1
                    if taken > batches:
                        raise Killed
                    return await importing.take(session_id, records)

            await ImportRun(source, path, Dying(), Options(source.kind, "import"), lambda _: None).run()

    with pytest.raises(BaseExceptionGroup):
        await die()


async def test_interrupted_import_is_completed_by_the_next_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 241: the first import dies after each batch in turn.

    The result is the same as after one import.
    """
    monkeypatch.setattr(run_module, "BATCH", 8)
    source = Given(
        *(record(str(n), title=f"T {n % 18}", edges=(RecordEdge("knows", str(n + 1)),)) for n in range(26))
    )
    states = []
    for batches in ("none", 0, 2):
        data = tmp_path / str(batches)
        if isinstance(batches, int):
            await crash_after(data, source, DATA, batches)
        async with serving(data) as lithos:
            report = await bring(lithos, source)
            assert report.results["created"] > 0
            assert report.results["created"] + report.results["unchanged"] == 26
            (edges,) = await lithos.server.get(Edges).list_edges(EdgeFilter())
            notes = {
                entry.note.id: (entry.path, entry.note.title, entry.note.extra, entry.note.version)
                for entry in lithos.server.get(Catalogue)
            }
            states.append((notes, {(edge.from_id, edge.to_id, edge.type) for edge in edges}))
    assert len(states[0][1]) == 25
    assert [number for number, state in enumerate(states) if state != states[0]] == []


async def test_existing_note_missing_from_the_ledger_is_not_deleted(tmp_path: Path) -> None:
    """Behaviour 241: the process was killed after it wrote the note and before it wrote the ledger."""
    async with serving(tmp_path) as lithos:
        await bring(lithos, Given(record("a")))
    os.truncate(tmp_path / ".lithos" / NAME, 3)
    async with serving(tmp_path) as lithos:
        assert numbers(await bring(lithos, Given(record("a"), record("b")))) == {"unchanged": 1, "created": 1}


def test_record_is_unchanged_after_conversion_to_json_and_back() -> None:
    given = record(
        "a",
        tags=("x",),
        edges=(RecordEdge("knows", "b"),),
        properties={"p": [1]},
        text="Ü".encode(),
        content="",
        links=3,
        path="a.md",
    )
    assert record_from_json(json.loads(json.dumps(record_to_json(given)))) == given
    plain = attrs.evolve(given, text=None, content="Text")
    assert record_from_json(record_to_json(plain)) == plain
    with pytest.raises((KeyError, TypeError)):
        record_from_json({"id": 1})
