"""`/console/notes/ID`: a note with its context and versions, and with the changes that a person may make."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from attrs import frozen
from quart import Blueprint, Response, redirect, request

from lithos.kernel.actors.threads import Threads, slices
from lithos.kernel.values.errors import DocNotFound
from lithos.kernel.values.times import parse_time
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.console.note_text import ParsedPart, RenderedPart, draft, finish, place_of
from lithos.notes.model.note import Note, NoteWarning, WarningKind
from lithos.notes.model.paths import folder_of
from lithos.notes.service.browsing import Browsing
from lithos.notes.service.knowledge import Knowledge, ReadNote
from lithos.notes.tools_rows import metadata_row
from lithos.server.console.console import Console, Form, PageRefused
from lithos.server.console.formats import Difference, folders_of, plural, read_diff, whole
from lithos.server.console.labels import agent_name, worded

#: Numbers of rows in the lists next to a text. Smaller numbers are used if long names would make the page too
#: large.
BESIDE: Final = (25, 8, 2)
#: Maximum number of versions in one table.
VERSIONS: Final = 25
#: Maximum number of backlinks on one page.
BACKLINKS: Final = 20
#: Maximum number of link targets of a note that are checked.
MOST_TARGETS: Final = 2_000
#: Maximum number of frontmatter keys to show, and maximum number of characters per value.
MOST_FACTS: Final = 60
LONGEST_FACT: Final = 400
#: Fields that are shown in other parts of the page.
_TOLD: Final = frozenset({"title", "tags", "status", "version", "derived_from_ids", "extra"})

#: Keys that enrichment updates. Changes of these keys do not affect ranking.
_ENRICHED: Final = frozenset({"entities", "entities_extractor"})
#: Keys whose words searches find.
_SEARCHED: Final = frozenset({"title", "body"})
#: Maximum age of a change that is listed as a reason for the note's rank.
RECENT: Final = timedelta(days=2)
_WARNED: Final[Mapping[WarningKind, str]] = {
    "quarantined": "The note is quarantined: retrieval leaves it out.",
    "suspect": "The note depends on a note that is not trusted: retrieval multiplies its score by 0.7.",
    "superseded": "A newer note supersedes this note.",
    "expired": "The note has expired: agents get a warning that it is stale.",
    "contradicted": "Another note contradicts this note, and the contradiction is not settled yet.",
    "duplicated": "Another file has the same id; that file is not served.",
    "conflict_copy": "Another machine wrote another version of the note, which is not served.",
    "conflict_markers": "Git left a conflict in the note's text, which contains both sides.",
}


def add_routes(console: Console, app: Blueprint) -> None:
    """Add `/notes/ID` and its subpages."""
    pages = NotePages(console, Threads(2))
    app.get("/notes/by-path")(pages.by_path)
    app.get("/notes/<note_id>")(pages.note)
    app.get("/notes/<note_id>/diff")(pages.diff)
    console.asking(app, "/notes/<note_id>/restore", pages.restore, pages.do_restore)
    for action in ("quarantine", "clear"):
        ask, act = partial(pages.ask_standing, action), partial(pages.change_standing, action)
        console.asking(app, f"/notes/<note_id>/{action}", ask, act)


@frozen
class NotePages:
    """Pages about one note."""

    _console: Console
    _reading: Threads

    async def by_path(self) -> Any:
        """Show the note at the path in the address."""
        path = request.args.get("path", "")[:4_096]
        entry = self._console.parts.get(Catalogue).spelled(path)
        if entry is None:
            raise PageRefused("There is no note at this path. Find the note under Notes.", 404)
        return redirect(_address(entry.note.id), 302)

    # -- looking -------------------------------------------------------------------------------------

    async def note(self, note_id: str) -> Response:
        """Show a note, an earlier version of the note, or a deleted note with its restorable versions."""
        version = _number(request.args.get("version"))
        if version is None and note_id not in self._console.parts.get(Catalogue):
            return await self._missing(note_id)
        read = await self._read(note_id, version)
        note, kept = read.document.note, read.kept
        around = await self._around(self._console.parts.get(Catalogue).get(note_id))
        here, links_from = (
            self._console.parts.get(Catalogue).get(note_id),
            _number(request.args.get("links")) or 0,
        )
        browsing = self._console.parts.get(Browsing)
        backlinks = None if here is None else await browsing.backlinks(here, links_from, BACKLINKS)
        versions, no_history = await self._versions(note_id, _number(request.args.get("before")))
        panels = await self._console.panels("note", read)
        learned = panels.get("learned", ())
        found = reasons(
            note.id, learned, around["warnings"], versions["versions"], self._console.parts.clock()
        )
        return await self._console.show_within(
            "note_page.html",
            "beside",
            BESIDE,
            **around,
            **panels,
            backlinks=backlinks,
            links_from=links_from,
            note=note,
            path_of_note=read.entry.path,
            folders=folders_of(folder_of(read.entry.path)),
            text=await self._shown(read),
            facts=_facts(note, read.entry.namespace),
            projects=() if here is None else self._console.parts.get(Catalogue).projects.of(here),
            old=kept if kept is not None and kept.row.version != kept.current_version else None,
            broken=await self._broken(read),
            titles=self._ends(around["related"]),
            versions=versions,
            no_history=no_history,
            reasons=found,
        )

    async def _around(self, entry: Entry | None) -> dict[str, Any]:
        """Return the notes around a note. These are its links, backlinks, sources and dependents."""
        if entry is None:
            return {"related": None, "impact": None, "sources": (), "warnings": ()}
        call, browsing, note_id = self._console.call, self._console.parts.get(Browsing), entry.note.id
        return {
            "related": await call("lithos_related", id=note_id),
            "impact": await call("lithos_impact", id=note_id),
            "sources": await browsing.sources(note_id),
            "warnings": (await browsing.warnings([entry])).get(note_id, ()),
        }

    async def _read(self, note_id: str, version: int | None) -> ReadNote:
        return await self._console.parts.get(Knowledge).read(
            note_id=note_id, path=None, max_length=None, agent_id=self._console.agent, version=version
        )

    async def _shown(self, read: ReadNote) -> RenderedPart:
        """Return the part of the text that the address selects.

        The part starts at the character `from`, or is a `section`.
        """
        text, path = read.content, read.entry.path
        start = _number(request.args.get("from")) or 0
        section = request.args.get("section", "")[:1_000]

        def begin() -> ParsedPart:
            place = place_of(text, section) if section else None
            return draft(text, path, start if place is None else place)

        made = await self._reading.run(begin)
        found = await self._resolve(made.parsed.targets)
        return await self._reading.run(lambda: finish(text, path, made, found))

    async def _resolve(self, targets: Sequence[str] | frozenset[str]) -> dict[str, str | None]:
        graph = self._console.parts.get(Catalogue).graph
        found: dict[str, str | None] = {}
        async for some in slices(list(targets), 100):
            found.update({target: graph.resolve(target) for target in some})
        return found

    async def _broken(self, read: ReadNote) -> list[str]:
        """Return the targets of the note's broken links."""
        targets = list(dict.fromkeys(link.target for link in read.links[:MOST_TARGETS]))
        found = await self._resolve(targets)
        files = self._console.parts.get(Catalogue).files
        return [target for target in targets if found[target] is None and target not in files][: BESIDE[0]]

    async def _versions(self, note_id: str, before: int | None = None) -> tuple[Mapping[str, Any], str]:
        """Return the kept versions of a note. If there is no history, return an empty list and the reason."""
        try:
            found = await self._console.call("lithos_history", id=note_id, limit=VERSIONS, before=before)
        except PageRefused as refusal:
            return {"versions": [], "total": 0}, refusal.message
        return found, ""

    def _ends(self, related: Mapping[str, Any] | None) -> dict[str, str | None]:
        """Return the titles of the notes that typed edges connect with this note."""
        edges = related["edges"] if related is not None else {"outgoing": (), "incoming": ()}
        ends = {edge["to_id"] for edge in edges["outgoing"]} | {edge["from_id"] for edge in edges["incoming"]}
        return {one: self._console.parts.get(Catalogue).title(one) for one in ends}

    async def _missing(self, note_id: str) -> Response:
        """Show a deleted note with its versions. For an unknown id, show an error."""
        versions, _ = await self._versions(note_id[:200])
        if not versions["versions"]:
            return await self._console.show("note_missing.html", 404, wanted=note_id)
        return await self._console.show(
            "note_deleted.html", id=note_id, versions=versions, last=versions["versions"][0]
        )

    async def diff(self, note_id: str) -> Response:
        """Show the difference between two versions. By default, the later version is the current version."""
        first, last = _number(request.args.get("from")), _number(request.args.get("to"))
        row = _number(request.args.get("row"))
        versions = await self._console.call("lithos_history", id=note_id, limit=VERSIONS)
        if not versions["versions"]:
            raise PageRefused("The versions of this note are not kept yet. Reload the page in a moment.", 404)
        if last is None:
            entry = self._console.parts.get(Catalogue).get(note_id)
            last = entry.note.version if entry is not None else versions["versions"][0]["version"]
        span = str(last) if first is None else f"{first}..{last}"
        span = span if row is None else f"r{row}"
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
        last = versions["versions"][0]["title"] if versions["versions"] else note_id
        return self._console.parts.get(Catalogue).title(note_id) or last

    # -- restoring ----------------------------------------------------------------------------------

    async def restore(self, note_id: str) -> Response:
        """Show a preview of restoring a version."""
        version = _number(request.args.get("version"))
        if version is None:
            raise PageRefused(
                "A version is missing. Choose the version to bring back in the table of versions."
            )
        entry = self._console.parts.get(Catalogue).get(note_id)
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
        """Restore a version in the person's name.

        If the note has changed in the meantime, nothing is restored.
        """
        version = _number(form.get("version"))
        if version is None:
            raise PageRefused(
                "Nothing was restored: the form does not contain a version. Choose a version in the table."
            )
        again = f"{_address(note_id)}/restore?version={version}"
        expected = _number(form.get("expected"))
        entry = self._console.parts.get(Catalogue).get(note_id)
        if (entry is None) != (expected is None):
            now = "was deleted" if entry is None else "came back"
            self._console.tell(
                f"Nothing was restored: the note {now} in the meantime. This page shows what "
                "restoring would do now."
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
        except PageRefused as refusal:
            if refusal.code != "version_conflict":
                raise
            self._console.tell(
                "Nothing was restored: the note was changed in the meantime. This page shows "
                "what restoring would do now."
            )
            return again
        self._console.tell(
            f"Version {version} is restored as version {done['version']}, recorded as {self._console.agent}."
        )
        return _address(note_id)

    # -- quarantine ----------------------------------------------------------------------------------

    async def ask_standing(self, action: str, note_id: str) -> Response:
        """Show the notes that depend on a note.

        The page asks whether a quarantine should begin (`quarantine`) or end (`clear`).
        """
        impact = await self._console.call("lithos_impact", id=note_id, action="preview")
        entry = self._console.parts.get(Catalogue).get(note_id)
        if entry is None:
            raise DocNotFound("The note was deleted in the meantime. Find the note under Notes, Deleted.")
        return await self._console.show(
            "note_quarantine.html",
            note=entry.note,
            impact=impact,
            is_clearing=action == "clear",
            action=f"{_address(note_id)}/{action}",
            cancel=_address(note_id),
        )

    async def change_standing(self, action: str, form: Form, note_id: str) -> str:
        """Begin or end the quarantine of a note in the person's name.

        A quarantine can also create tasks for the dependents of the note.
        """
        told, more = "The quarantine has ended", dict[str, Any]()
        if action == "quarantine":
            reason = " ".join(form.get("reason", "").split())
            if not reason:
                raise PageRefused(
                    "Nothing was changed: the reason is blank. Enter what is wrong with the note."
                )
            more = {"reason": reason, "open_tasks": "open_tasks" in form}
        done = await self._console.call(
            "lithos_impact", id=note_id, action=action, agent=self._console.agent, **more
        )
        if action == "quarantine":
            tasks = plural(len(done["task_ids"]), "task to verify again is", "tasks to verify again are")
            told = "The note is quarantined" + (f", and {tasks} open" if done["task_ids"] else "")
        self._console.tell(f"{told}; recorded as {self._console.agent}.")
        return _address(note_id)


def _address(note_id: str) -> str:
    return f"/console/notes/{quote(note_id, safe='')}"


def _number(given: str | None) -> int | None:
    """Return a version or offset from an address or a form. Return None if it is not a number."""
    return whole((given or "").strip(), 15)


def _facts(note: Note, namespace: str) -> list[tuple[str, str]]:
    """Return the frontmatter values as texts, including the person's keys.

    Values shown elsewhere are left out.
    """
    own = [(key, value) for key, value in metadata_row(note, namespace).items() if key not in _TOLD]
    some = [(key, value) for key, value in (*own, *note.extra.items()) if value not in (None, [], {}, "")]
    return [(key, _text_of(value)) for key, value in some[:MOST_FACTS]]


def _text_of(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value[:MOST_FACTS])
    return (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)[:LONGEST_FACT]
    )


@frozen
class Reason:
    """A reason for the rank of a note, with an optional link and time. `kind` is `up`, `down` or `same`."""

    text: str
    kind: str = "down"
    href: str = ""
    at: str = ""


def reasons(
    note_id: str,
    learned: Sequence[Reason],
    warnings: Sequence[NoteWarning],
    versions: Sequence[Mapping[str, Any]],
    now: datetime,
) -> list[Reason]:
    """Return the reasons why a note ranks higher or lower in searches. The most important reason is first."""
    found = [*(_of_warning(warning) for warning in warnings), *learned]
    found += _of_changes(note_id, versions, now)
    return found


def _of_warning(warning: NoteWarning) -> Reason:
    is_other = warning.kind in ("suspect", "superseded", "contradicted")
    return Reason(_WARNED[warning.kind], href=f"/console/notes/{warning.id}" if is_other else "")


def _of_changes(note_id: str, versions: Sequence[Mapping[str, Any]], now: datetime) -> list[Reason]:
    found: list[Reason] = []
    for row in versions[:5]:
        if now - parse_time(row["at"]) > RECENT or not set(row["changed"]) - _ENRICHED:
            continue
        changed = ", ".join(worded(key) for key in row["changed"][:6])
        text = f"{agent_name(row['agent'])} changed {changed} (version {row['version']})" + (
            "; searches match the new text." if _SEARCHED & set(row["changed"]) else "."
        )
        found.append(Reason(text, "same", f"/console/notes/{note_id}/diff?to={row['version']}", row["at"]))
    return found
