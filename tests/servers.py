"""A whole server in the test's own process, without a front: `async with serving(tmp_path) as lithos`."""

from __future__ import annotations

import functools
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from attrs import define, field

import lithos.app.server
import lithos.search.capability
import lithos.search.indexing.accurate
from lithos.app.server import Server, running_server
from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.messages import Flush
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.parts import utc_now
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.events import REINDEX_COMPLETE
from lithos.kernel.values.principals import OWNER
from lithos.notes.catalogue.note_reading import examine
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.lookup import find_note
from lithos.notes.writing.actor_writer import Writer
from lithos.notes.writing.external_changes import OutsideFiles
from lithos.search.index.embedder import Embedder, load_embedder
from lithos.search.indexing.semantic import SemanticBackend
from lithos.server.http.ports import compact_json
from lithos.server.settings import ServerConfig
from tests import fakes

Answer = dict[str, Any]
Load = Callable[[str], Embedder]
#: The built-in model takes half a second to load: once per session is enough.
load_once: Load = functools.cache(load_embedder)

MISSING_ID = "00000000-0000-4000-8000-000000000000"


class Clock(fakes.Clock):
    """A clock that stays still until it is moved, so that times in answers are known beforehand."""

    def __init__(self, text: str = "2026-03-04T05:06:07.000008+00:00") -> None:
        super().__init__(datetime.fromisoformat(text).astimezone(UTC))

    @property
    def text(self) -> str:
        return self.now.isoformat(timespec="microseconds")


@define
class Lithos:
    """A running server, called as the front calls it."""

    server: Server
    data: Path
    first_seq: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.first_seq = self.server.get(Coordinator).head

    @property
    def knowledge(self) -> Path:
        return self.data / "knowledge"

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        """The answer as a client sees it: through JSON, which must be strict and encodable."""
        answer = await self.server.tools.call(tool, arguments, OWNER)
        return json.loads(compact_json(answer).encode())

    async def write(self, title: str = "A note", content: str = "Some text.", **more: Any) -> Answer:
        """Write a note that is accepted; the answer."""
        answer = await self.call(
            "lithos_write", **{"title": title, "content": content, "agent": "tester"} | more
        )
        assert answer["status"] in ("created", "updated"), answer
        return answer

    async def create(self, title: str = "A note", content: str = "Some text.", **more: Any) -> str:
        """The id of a new note."""
        answer = await self.write(title, content, **more)
        assert answer["status"] == "created"
        return answer["id"]

    async def read(self, note_id: str, **more: Any) -> Answer:
        """A note that is there."""
        answer = await self.call("lithos_read", id=note_id, **more)
        assert "status" not in answer, answer
        return answer

    async def found(self, query: str, **more: Any) -> list[str]:
        """The titles that a search finds, best first; the search must not be degraded."""
        answer = await self.call("lithos_search", query=query, **more)
        assert set(answer) == {"results"}, answer
        return [row["title"] for row in answer["results"]]

    async def listed(self, **filters: Any) -> list[str]:
        """The titles that a listing shows, in order."""
        answer = await self.call("lithos_list", **filters)
        return [item["title"] for item in answer["items"]]

    def events(self) -> list[tuple[str, Mapping[str, Any]]]:
        """(type, payload) of everything journalled since this server started, but for its own indexing."""
        store = self.server.get(Coordinator)._store
        drafts = [e.draft for e in store.events_after(self.first_seq)]
        return [(draft.type, draft.payload) for draft in drafts if draft.type != REINDEX_COMPLETE]

    async def audit(self) -> list[tuple[str, str, str]]:
        """(agent, note, operation) of the access log, oldest first."""
        await self.server.get(Coordinator).mailbox.ask(Flush())
        rows = self.server.get(Coordinator)._store.audit(agent=None, doc=None, after=None, limit=1000)
        return [(str(row[1]), str(row[2]), str(row[3])) for row in reversed(rows)]

    def files(self) -> list[str]:
        """Every file below `knowledge/`, relative, sorted; not those that were replaced a moment ago."""
        paths = [path for path in self.knowledge.rglob("*") if path.is_file() and path.suffix != ".swap"]
        return sorted(path.relative_to(self.knowledge).as_posix() for path in paths)


#: Settings of a server of notes that a person owns.
VAULT: Final[dict[str, Any]] = {"vault": True}


@asynccontextmanager
async def serving(
    data: Path,
    *,
    clock: Callable[[], datetime] = utc_now,
    load: Load = load_once,
    settled: bool = True,
    transformer: Callable[[int], Any] | None = None,
    **sections: Any,
) -> AsyncIterator[Lithos]:
    """Run a server on `data`; `sections` are those of `Config`, `storage` and `server` as mappings.

    A `vault` that is True is the folder of `put_note`.

    `transformer` loads the accurate tier's model, which has all notes once the server is settled; without it
    onnxruntime counts as not installed. Answers are full unless `server` says something else.
    """
    places = sections.pop("storage", {})
    if places.get("vault") is True:
        places = {**places, "vault": data / "knowledge"}
        places["vault"].mkdir(parents=True, exist_ok=True)
    storage = StorageConfig(data_dir=data, **places)
    server = ServerConfig(**{"watch_files": False, "answers": "full"} | sections.pop("server", {}))
    config = Config(storage=storage, server=server, **sections)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lithos.search.capability, "load_embedder", load)
        patch.setattr(
            lithos.app.server, "return_memory", lambda: False
        )  # the next server of this process uses it
        patch.setattr(lithos.search.indexing.accurate, "is_installed", lambda: transformer is not None)
        if transformer is not None:
            patch.setattr(lithos.search.capability, "load_transformer", transformer)
        async with running_server(config, clock=clock) as running:
            if settled:
                await running.searchable()
                if transformer is not None and running.get(SemanticBackend).accurate is not None:
                    await running.get(SemanticBackend).accurate.settled.wait()
            yield Lithos(running, data)


def put_note(data: Path, path: str, text: str | bytes) -> Path:
    """A note file as a person would make it, before the server starts."""
    file = data / "knowledge" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


async def until(holds: Callable[[], bool], within: float = 60.0) -> None:
    """Wait until it holds."""
    with trio.fail_after(within):
        while not holds():
            await trio.sleep(0.01)


def refusal(answer: Mapping[str, Any], code: str) -> str:
    """The message of an error envelope, whose first keys are in their fixed order."""
    assert list(answer)[:3] == ["status", "code", "message"], answer
    assert (answer["status"], answer["code"]) == ("error", code), answer
    return str(answer["message"])


async def take_up(lithos: Lithos, path: str) -> None:
    """Have the server take a new file up as its watcher does, where none runs."""
    files = lithos.server.get(NoteFiles)
    seen = examine(files, find_note(files, path), None)
    await lithos.server.get(Writer).mailbox.ask(OutsideFiles((seen,)))
