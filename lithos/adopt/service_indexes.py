"""The index files of adopted folders: which of them a client has loaded, and trimming of long ones."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Final

import trio
from attrs import define, field, frozen

from lithos.adopt.model_clients import CLIENTS, MemoryClient, client_of
from lithos.adopt.model_trimming import LARGEST_TOPIC, TOPIC, Block, Trimming, plan_trimming
from lithos.adopt.settings import MemoryConfig
from lithos.events.journal.broadcaster import Broadcaster, Subscription
from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.messages import AppendEvents
from lithos.kernel.actors.mailboxes import ActorDown, ShuttingDown
from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.actors.threads import Threads
from lithos.kernel.log import get_logger
from lithos.kernel.parts import Clock
from lithos.kernel.values.errors import LithosError
from lithos.kernel.values.events import NOTE_CREATED, NOTE_TRIMMED, NOTE_UPDATED, Event, EventDraft
from lithos.kernel.values.limits import TITLE
from lithos.kernel.values.principals import TRIM_AGENT
from lithos.kernel.values.projects import same_project
from lithos.memory.context.request import LoadedNotes
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.values import OutsideKnowledge
from lithos.notes.links.links import scan_targets
from lithos.notes.model.versions import HistoryFailed
from lithos.notes.service.knowledge import Knowledge
from lithos.notes.service.texts import NoteTexts
from lithos.notes.writing.messages import WriteNote
from lithos.notes.writing.ports import VersionStore

log = get_logger("lithos.adopt")

#: Maximum number of versions whose lines are compared to find the age of a line.
_MOST_VERSIONS: Final = 200
#: Seconds between the last change of an index and its trimming, so that a client finishes its writes first.
_QUIET: Final = 2.0
#: Seconds until a failed trimming is tried again, and maximum number of attempts.
_RETRY: Final = 5.0
_ATTEMPTS: Final = 5


@frozen
class LoadedIndexes(LoadedNotes):
    """The index files that a client loads on its own at the start of a session."""

    _files: NoteFiles

    def has(self, path: str, agent: str | None, project: str | None) -> bool:
        """Return whether the client of an agent has loaded a note when it works on a project."""
        linked = self._files.linked.find(path)
        if linked is None or linked.client != client_of(agent):
            return False
        if path != f"{linked.prefix}/{CLIENTS[linked.client].index}":
            return False
        return not linked.project or (project is not None and same_project(linked.project, project))


def make_loaded(files: NoteFiles) -> LoadedNotes:
    """Return the notes that clients load on their own."""
    return LoadedIndexes(files)


@define(eq=False)
class IndexTrimming:
    """Keeps adopted index files within the limits of their clients, if `memory.trim` is true."""

    _config: MemoryConfig
    _files: NoteFiles
    _catalogue: Catalogue
    _texts: NoteTexts
    _knowledge: Knowledge
    _versions: VersionStore | None
    _broadcaster: Broadcaster
    _coordinator: Coordinator
    _opening: Opening
    _clock: Clock
    _blocking: Threads = field(factory=Threads, init=False)

    async def run(self) -> None:
        """Trim the indexes that are too long, then each index that a client makes too long."""
        if not self._config.trim:
            return
        await self._opening.complete.wait()
        while True:
            events = self._broadcaster.listen(self._is_of_index)
            for linked in self._files.linked.listed:
                if linked.client in CLIENTS:
                    await self._try_trimming(f"{linked.prefix}/{CLIENTS[linked.client].index}")
            await self._follow(events)
            self._broadcaster.leave(events)

    async def _follow(self, events: Subscription) -> None:
        """Trim the index of each event. Return if events were missed, or after `close`."""
        async for event in events.events:
            paths = {str(event.draft.payload["path"])}
            with trio.move_on_after(_QUIET):
                async for more in events.events:
                    paths.add(str(more.draft.payload["path"]))
            for path in sorted(paths):
                await self._try_trimming(path)
        if not events.overflowed:
            await trio.sleep_forever()  # The server stops.

    def _is_of_index(self, event: Event) -> bool:
        draft = event.draft
        if draft.type not in (NOTE_CREATED, NOTE_UPDATED) or draft.agent == TRIM_AGENT:
            return False
        return self._client_of(str(draft.payload.get("path"))) is not None

    def _client_of(self, path: str) -> MemoryClient | None:
        """Return the client whose index is at a path and may be trimmed, or None."""
        linked = self._files.linked.find(path)
        client = None if linked is None else CLIENTS.get(linked.client)
        if linked is None or client is None or not client.may_be_trimmed:
            return None
        return client if path == f"{linked.prefix}/{client.index}" else None

    async def _try_trimming(self, path: str) -> None:
        """Trim an index. While the client writes it, try again."""
        client = self._client_of(path)
        if client is None:
            return
        for _ in range(_ATTEMPTS):
            try:
                await self._trim(path, client)
            except (LithosError, OSError, OutsideKnowledge, trio.TooSlowError) as failure:
                log.warning("index not trimmed", path=path, reason=str(failure))
            except (ActorDown, ShuttingDown):
                return
            else:
                return
            await trio.sleep(_RETRY)

    async def _trim(self, path: str, client: MemoryClient) -> None:
        entry = self._catalogue.at_path(path)
        if entry is None:
            return
        data = (await self._blocking.run(lambda: self._files.read(path))).data
        [read] = await self._texts.versioned([entry])
        if read is None or not client.excess(data):
            return
        content, version = read
        start = data.find(content.encode())
        if start < 0:  # The line breaks of the file are not those of the text.
            log.warning("index not trimmed, because its text cannot be found in its file", path=path)
            return
        around = data[:start] + data[start + len(content.encode()) :]
        ages = await self._blocking.run(lambda: self._ages(entry))
        topic_path, topic = await self._topic(path)
        plan = plan_trimming(
            content, around, client, topic, lambda block: (self._reads(block, path), _age(block, ages))
        )
        if plan is None:
            log.warning("index too long, but none of its lines can move", path=path)
            return
        await self._move(entry, version, plan, topic_path, topic)

    async def _move(self, entry: Entry, version: int, plan: Trimming, topic_path: str, topic: str) -> None:
        """Write the topic file first. A failure then leaves the lines in both files."""
        known = self._catalogue.at_path(topic_path)
        today = date.fromtimestamp(self._clock().timestamp())
        head = f"## Moved on {today}"
        if known is None:
            created = await self._knowledge.write(
                WriteNote(
                    agent=TRIM_AGENT, title=topic, path=topic_path, content="\n".join((head, "", *plan.moved))
                )
            )
            topic_id = created.id
        else:
            [read] = await self._texts.versioned([known])
            text, topic_version = ("", known.note.version) if read is None else read
            missing = [each for each in plan.moved if f"\n{each}\n" not in f"\n{text}\n"]
            if missing:
                content = "\n".join((text.rstrip(), "", head, "", *missing))
                await self._knowledge.write(
                    WriteNote(
                        agent=TRIM_AGENT, id=known.note.id, content=content, expected_version=topic_version
                    )
                )
            topic_id = known.note.id
        done = await self._knowledge.write(
            WriteNote(agent=TRIM_AGENT, id=entry.note.id, content=plan.content, expected_version=version)
        )
        payload = {
            "id": entry.note.id,
            "title": entry.note.title[:TITLE],
            "path": entry.path,
            "topic_id": topic_id,
            "topic_path": topic_path,
            "lines": plan.lines,
            "version": done.version,
        }
        draft = EventDraft(
            type=NOTE_TRIMMED,
            agent=TRIM_AGENT,
            payload=payload,
            timestamp=self._clock(),
            tags=entry.note.all_tags,
        )
        await self._coordinator.mailbox.ask(AppendEvents((draft,)))
        log.info("index trimmed", path=entry.path, lines=plan.lines, topic=topic_path)

    async def _topic(self, path: str) -> tuple[str, str]:
        """Return the path and the name of the topic file that has space for more lines."""
        folder, number = path.rpartition("/")[0], 1
        while True:
            name = TOPIC if number == 1 else f"{TOPIC}-{number}"
            known = self._catalogue.at_path(f"{folder}/{name}.md")
            if known is None or known.state.size < LARGEST_TOPIC:
                return f"{folder}/{name}.md", name
            number += 1

    def _ages(self, entry: Entry) -> list[frozenset[str]]:
        """Return the lines of the kept versions, newest first. Blocks."""
        return list(self._lines(entry))

    def _lines(self, entry: Entry) -> Iterator[frozenset[str]]:
        try:
            if self._versions is not None:
                for data in self._versions.contents(entry.note.id, _MOST_VERSIONS):
                    yield frozenset(data.decode("utf-8", "replace").splitlines())
        except HistoryFailed as failure:
            log.warning("age of lines unknown", path=entry.path, reason=failure.message)

    def _reads(self, block: Block, path: str) -> int:
        """Return how often agents read the notes that a block links to."""
        folder = path.rpartition("/")[0]
        reads = 0
        for target in scan_targets(block.text, path):
            for spelled in (target, f"{target}.md", f"{folder}/{target}", f"{folder}/{target}.md"):
                found = self._catalogue.at_path(spelled)
                if found is not None:
                    reads += self._coordinator.reads_of(found.note.id)
                    break
        return reads


def _age(block: Block, ages: list[frozenset[str]]) -> int:
    """Return in how many of the newest versions the first line of a block is without a gap."""
    line = block.text.partition("\n")[0]
    for number, lines in enumerate(ages):
        if line not in lines:
            return number
    return len(ages)
