"""`/console/notes/ID`: one note, what stands around it, its versions; and what a person may change of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from attrs import asdict, frozen
from quart import Blueprint, Response, redirect, request

from lithos.actors.blocking import Threads, slices
from lithos.catalogue.catalogue import Entry
from lithos.core.errors import DocNotFound
from lithos.core.notes.model import Note
from lithos.core.times import format_time
from lithos.front.console.console import Console, Form, Refused
from lithos.front.console.diffs import Difference, read_diff
from lithos.front.console.note_standing import reasons
from lithos.front.console.note_text import Draft, Shown, draft, finish, place_of
from lithos.services.notes.knowledge import ReadNote
from lithos.tools.contract.rows import metadata_row

#: Rows of the lists around a text: the most, and fewer.
BESIDE: Final = (25, 8, 2)
#: Bytes of a page.
LARGEST: Final = 200_000
#: Versions of one table.
VERSIONS: Final = 25
#: Link targets of a note that are looked at for whether they lead anywhere.
MOST_TARGETS: Final = 2_000
#: Keys of the frontmatter that are shown, and characters of a value.
MOST_FACTS: Final = 60
LONGEST_FACT: Final = 400
#: Facts that the page shows elsewhere.
_TOLD: Final = frozenset({"title", "tags", "status", "version", "derived_from_ids", "extra"})
_LARGEST: Final = 2**53


def add_routes(console: Console, app: Blueprint) -> None:
    """Add `/notes/ID` and what is below it."""
    pages = NotePages(console, Threads(2))
    app.get("/notes/by-path")(pages.by_path)
    app.get("/notes/<note_id>")(pages.note)
    app.get("/notes/<note_id>/diff")(pages.diff)
    app.get("/notes/<note_id>/restore")(console.only("write", pages.restore))
    app.post("/notes/<note_id>/restore")(console.change(pages.do_restore))
    app.get("/notes/<note_id>/quarantine")(console.only("write", pages.quarantine))
    app.post("/notes/<note_id>/quarantine")(console.change(pages.do_quarantine))
    app.get("/notes/<note_id>/clear")(console.only("write", pages.clear))
    app.post("/notes/<note_id>/clear")(console.change(pages.do_clear))


@frozen
class NotePages:
    """Pages about one note."""

    _console: Console
    _reading: Threads

    async def by_path(self) -> Any:
        """The page of the note in a file."""
        path = request.args.get("path", "")[:4_096]
        entry = self._console.parts.catalogue.at_path(path)
        if entry is None:
            raise Refused("No note is in a file of this path. Find it under Notes.", 404)
        return redirect(_address(entry.note.id), 302)

    # -- looking -------------------------------------------------------------------------------------

    async def note(self, note_id: str) -> Response:
        """A note, or an earlier version of it; a deleted one with what can be brought back."""
        version = _number(request.args.get("version"))
        if version is None and note_id not in self._console.parts.catalogue:
            return await self._missing(note_id)
        read = await self._read(note_id, version)
        shown = await self._shown(read)
        note = read.document.note
        around: dict[str, Any] = {}
        await self._look_around(around, note_id, read)
        await self._look_back(around, note_id)
        warnings: Sequence[Mapping[str, Any]] = around["warnings"]
        versions = around["versions"]
        around |= {
            "note": note,
            "path_of_note": read.entry.path,
            "folders": _folders(read.entry.path),
            "text": shown,
            "facts": _facts(note, read.entry.namespace),
            "old": _old(read),
            "reasons": reasons(
                note.id, around["stats"], warnings, versions["versions"], self._console.parts.clock()
            ),
        }
        for beside in BESIDE:  # fewer where names are so long that the page would be too large
            response = await self._console.show("note_page.html", beside=beside, **around)
            if (response.content_length or 0) <= LARGEST:
                break
        return response

    async def _read(self, note_id: str, version: int | None) -> ReadNote:
        return await self._console.parts.knowledge.read(
            note_id=note_id, path=None, max_length=None, agent_id=self._console.agent, version=version
        )

    async def _shown(self, read: ReadNote) -> Shown:
        """The part of the text that the address names: `from` a character, or `section`."""
        text, path = read.content, read.entry.path
        start = _number(request.args.get("from")) or 0
        section = request.args.get("section", "")[:1_000]

        def begin() -> Draft:
            place = place_of(text, section) if section else None
            return draft(text, path, start if place is None else place)

        made = await self._reading.run(begin)
        found = await self._resolve(made.targets)
        return await self._reading.run(lambda: finish(text, path, made, found))

    async def _resolve(self, targets: Sequence[str] | frozenset[str]) -> dict[str, str | None]:
        graph = self._console.parts.catalogue.graph
        found: dict[str, str | None] = {}
        async for some in slices(list(targets), 100):
            found.update({target: graph.resolve(target) for target in some})
        return found

    async def _look_around(self, around: dict[str, Any], note_id: str, read: ReadNote) -> None:
        """What links here and where this leads, what it rests on and what rests on it, what was learned."""
        console = self._console
        parts = console.parts
        entry = parts.catalogue.get(note_id)
        is_here = entry is not None
        around["related"] = await console.call("lithos_related", id=note_id) if is_here else None
        around["impact"] = await console.call("lithos_impact", id=note_id) if is_here else None
        around["stats"] = await console.call("lithos_node_stats", node_id=note_id) if is_here else None
        around["sources"] = await parts.browsing.sources(note_id) if is_here else ()
        found = await parts.browsing.warnings([entry]) if entry is not None else {}
        around["warnings"] = [asdict(warning) for warning in found.get(note_id, ())]
        around["broken"] = await self._broken(read)
        around["titles"] = _titles(parts.catalogue, around["related"])

    async def _broken(self, read: ReadNote) -> list[str]:
        """The targets of links that lead nowhere."""
        targets = list(dict.fromkeys(link.target for link in read.links[:MOST_TARGETS]))
        found = await self._resolve(targets)
        files = self._console.parts.catalogue.files
        return [target for target in targets if found[target] is None and target not in files][: BESIDE[0]]

    async def _look_back(self, around: dict[str, Any], note_id: str) -> None:
        """The versions that are kept; without a history none, and why."""
        before = _number(request.args.get("before"))
        try:
            around["versions"] = await self._console.call(
                "lithos_history", id=note_id, limit=VERSIONS, before=before
            )
            around["no_history"] = ""
        except Refused as refusal:
            around["versions"] = {"versions": [], "total": 0}
            around["no_history"] = refusal.message

    async def _missing(self, note_id: str) -> Response:
        """A deleted note, with its versions; else what to do about an id that no note has."""
        try:
            versions = await self._console.call("lithos_history", id=note_id[:200], limit=VERSIONS)
        except Refused:
            versions = {"versions": [], "total": 0}
        if versions["versions"]:
            return await self._console.show(
                "note_deleted.html", id=note_id, versions=versions, last=versions["versions"][0]
            )
        return await self._console.show("note_missing.html", 404, wanted=note_id)

    async def diff(self, note_id: str) -> Response:
        """What changed from one version to another; to the current one unless told otherwise."""
        first, last = _number(request.args.get("from")), _number(request.args.get("to"))
        versions = await self._console.call("lithos_history", id=note_id, limit=VERSIONS)
        if not versions["versions"]:
            raise Refused("No version of this note is kept yet. Look again in a moment.", 404)
        if last is None:
            entry = self._console.parts.catalogue.get(note_id)
            last = entry.note.version if entry is not None else versions["versions"][0]["version"]
        span = str(last) if first is None else f"{first}..{last}"
        found = await self._console.call("lithos_history", id=note_id, diff=span)
        return await self._console.show(
            "note_diff.html",
            id=note_id,
            title=self._title(note_id, versions),
            diff=await self._compare(found),
            first=found["from"],
            last=found["to"],
            versions=versions,
        )

    async def _compare(self, found: Mapping[str, Any]) -> Difference:
        return await self._reading.run(lambda: read_diff(found["diff"], is_cut=found["truncated"]))

    def _title(self, note_id: str, versions: Mapping[str, Any]) -> str:
        entry = self._console.parts.catalogue.get(note_id)
        rows = versions["versions"]
        return entry.note.title if entry is not None else rows[0]["title"] if rows else note_id

    # -- bringing back -------------------------------------------------------------------------------

    async def restore(self, note_id: str) -> Response:
        """What bringing a version back would do."""
        version = _number(request.args.get("version"))
        if version is None:
            raise Refused("Say which version to bring back: choose one in the table of versions.")
        entry = self._console.parts.catalogue.get(note_id)
        planned = await self._console.call(
            "lithos_restore", id=note_id, version=version, agent=self._console.agent, dry_run=True
        )
        versions = await self._console.call("lithos_history", id=note_id, limit=VERSIONS)
        current = entry.note.version if entry is not None else None
        wanted = await self._console.call("lithos_history", id=note_id, limit=1, before=version + 1)
        difference = None
        if current is not None and current != version:
            found = await self._console.call("lithos_history", id=note_id, diff=f"{current}..{version}")
            difference = await self._compare(found)
        return await self._console.show(
            "note_restore.html",
            id=note_id,
            title=self._title(note_id, versions),
            version=version,
            wanted=wanted["versions"][0] if wanted["versions"] else None,
            current=current,
            planned=planned,
            since=[row for row in versions["versions"] if row["version"] > version],
            diff=difference,
        )

    async def do_restore(self, form: Form, note_id: str) -> str:
        """Bring a version back under the person's name, unless the note was changed meanwhile."""
        version = _number(form.get("version"))
        if version is None:
            raise Refused("Nothing was restored: the form names no version. Choose one in the table.")
        again = f"{_address(note_id)}/restore?version={version}"
        expected = _number(form.get("expected"))
        entry = self._console.parts.catalogue.get(note_id)
        if (entry is None) != (expected is None):
            now = "was deleted" if entry is None else "came back"
            self._console.tell(
                f"Nothing was restored: the note {now} meanwhile. This is what it would do now."
            )
            return again
        try:
            done = await self._console.call(
                "lithos_restore",
                id=note_id,
                version=version,
                agent=self._console.agent,
                expected_version=expected,
            )
        except Refused as refusal:
            if refusal.code != "version_conflict":
                raise
            self._console.tell(
                "Nothing was restored: somebody changed the note meanwhile. "
                "This is what restoring would do now."
            )
            return again
        self._console.tell(
            f"Version {version} is back as version {done['version']}, recorded as {self._console.agent}."
        )
        return _address(note_id)

    # -- quarantine ----------------------------------------------------------------------------------

    async def quarantine(self, note_id: str) -> Response:
        """What rests on a note, before it is quarantined."""
        return await self._ask(note_id, is_clearing=False)

    async def clear(self, note_id: str) -> Response:
        """What rests on a note, before its quarantine ends."""
        return await self._ask(note_id, is_clearing=True)

    async def _ask(self, note_id: str, *, is_clearing: bool) -> Response:
        impact = await self._console.call("lithos_impact", id=note_id, action="preview")
        entry = self._entry(note_id)
        return await self._console.show(
            "note_quarantine.html",
            id=note_id,
            note=entry.note,
            impact=impact,
            is_clearing=is_clearing,
            action=f"{_address(note_id)}/{'clear' if is_clearing else 'quarantine'}",
            cancel=_address(note_id),
        )

    async def do_quarantine(self, form: Form, note_id: str) -> str:
        """Quarantine a note under the person's name, with tasks for what rests on it if asked for."""
        reason = " ".join(form.get("reason", "").split())
        if not reason:
            raise Refused("Nothing was changed: the reason is blank. Say what is wrong with the note.")
        done = await self._console.call(
            "lithos_impact",
            id=note_id,
            action="quarantine",
            agent=self._console.agent,
            reason=reason,
            open_tasks="open_tasks" in form,
        )
        tasks = len(done["task_ids"])
        told = "1 task to verify again is" if tasks == 1 else f"{tasks} tasks to verify again are"
        opened = f", and {told} open" if tasks else ""
        self._console.tell(f"The note is quarantined{opened}; recorded as {self._console.agent}.")
        return _address(note_id)

    async def do_clear(self, form: Form, note_id: str) -> str:
        """End a quarantine under the person's name."""
        await self._console.call("lithos_impact", id=note_id, action="clear", agent=self._console.agent)
        self._console.tell(f"The quarantine has ended; recorded as {self._console.agent}.")
        return _address(note_id)

    def _entry(self, note_id: str) -> Entry:
        entry = self._console.parts.catalogue.get(note_id)
        if entry is None:
            raise DocNotFound("The note was deleted meanwhile. Look under Notes, Deleted.")
        return entry


def _address(note_id: str) -> str:
    return f"/console/notes/{quote(note_id, safe='')}"


def _number(given: str | None) -> int | None:
    """A whole number of an address or a form; None for anything else."""
    text = (given or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def _folders(path: str) -> list[tuple[str, str]]:
    """The folders of a path, each with the address that lists it."""
    found, at = list[tuple[str, str]](), ""
    for part in path.split("/")[:-1]:
        at += f"{part}/"
        found.append((part, f"/console/notes?path_prefix={quote(at, safe='')}"))
    return found


@frozen
class Fact:
    """A key of the frontmatter and its value as a text; `kind` is `time`, `url` or `text`."""

    key: str
    text: str
    kind: str = "text"


def _facts(note: Note, namespace: str) -> list[Fact]:
    """The frontmatter, with the keys that are not Lithos' own."""
    row = metadata_row(note, namespace)
    own = [(key, value) for key, value in row.items() if key not in _TOLD]
    some = [(key, value) for key, value in (*own, *note.extra.items()) if value not in (None, [], {}, "")]
    return [
        _fact(key, value, is_own=place < len(own)) for place, (key, value) in enumerate(some[:MOST_FACTS])
    ]


def _fact(key: str, value: Any, *, is_own: bool) -> Fact:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return Fact(key, ", ".join(value[:MOST_FACTS]))
    if not isinstance(value, str):
        return Fact(key, json.dumps(value, ensure_ascii=False, default=str)[:LONGEST_FACT])
    if is_own and key.endswith("_at"):
        return Fact(key, value, "time")
    return Fact(
        key, value, "url" if key == "source_url" and value.startswith(("https://", "http://")) else "text"
    )


def _old(read: ReadNote) -> dict[str, Any] | None:
    """Of an earlier version: which, when, by whom, and which is current."""
    kept = read.kept
    if kept is None or kept.row.version == kept.current_version:
        return None
    row = kept.row
    return {
        "version": row.version,
        "at": format_time(row.at),
        "agent": row.agent,
        "op": row.op,
        "current": kept.current_version,
    }


def _titles(notes: Any, related: Mapping[str, Any] | None) -> dict[str, str]:
    """Titles of the notes at the ends of typed edges."""
    if related is None:
        return {}
    edges = related["edges"]
    ends = {edge["to_id"] for edge in edges["outgoing"]} | {edge["from_id"] for edge in edges["incoming"]}
    return {each: entry.note.title for each in ends if (entry := notes.get(each)) is not None}
