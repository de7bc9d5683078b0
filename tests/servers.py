"""Complete server in the test process, without HTTP: `async with serving(tmp_path) as lithos`."""

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
import lithos.search.indexing.accurate_models
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
from lithos.search.embedding.embedder import Embedder, load_embedder
from lithos.search.embedding.transformer_models import ENGLISH, MULTILINGUAL, TransformerModel
from lithos.search.indexing.semantic import SemanticBackend
from lithos.server.http.ports import compact_json
from lithos.server.settings import ServerConfig
from tests import fakes

Answer = dict[str, Any]
Load = Callable[[str], Embedder]
#: Loading the built-in model takes half a second, so it is loaded only once per session.
load_once: Load = functools.cache(load_embedder)

MISSING_ID = "00000000-0000-4000-8000-000000000000"


class Clock(fakes.Clock):
    """A clock that moves only when a test moves it. Times in answers are therefore predictable."""

    def __init__(self, text: str = "2026-03-04T05:06:07.000008+00:00") -> None:
        super().__init__(datetime.fromisoformat(text).astimezone(UTC))

    @property
    def text(self) -> str:
        return self.now.isoformat(timespec="microseconds")


@define
class Lithos:
    """A running server with the calls that clients make."""

    server: Server
    data: Path
    first_seq: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.first_seq = self.server.get(Coordinator).head

    @property
    def knowledge(self) -> Path:
        return self.data / "knowledge"

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        """Return the answer as a client gets it.

        The answer passes through strict JSON, which must be able to encode it.
        """
        answer = await self.server.tools.call(tool, arguments, OWNER)
        return json.loads(compact_json(answer).encode())

    async def write(self, title: str = "A note", content: str = "Some text.", **more: Any) -> Answer:
        """Write a note and return the answer. The write must be accepted."""
        answer = await self.call(
            "lithos_write", **{"title": title, "content": content, "agent": "tester"} | more
        )
        assert answer["status"] in ("created", "updated"), answer
        return answer

    async def create(self, title: str = "A note", content: str = "Some text.", **more: Any) -> str:
        """Create a note and return its id."""
        answer = await self.write(title, content, **more)
        assert answer["status"] == "created"
        return answer["id"]

    async def read(self, note_id: str, **more: Any) -> Answer:
        """Read a note that must exist."""
        answer = await self.call("lithos_read", id=note_id, **more)
        assert "status" not in answer, answer
        return answer

    async def found(self, query: str, **more: Any) -> list[str]:
        """Return the titles that a search finds, best match first. The search must not be degraded."""
        answer = await self.call("lithos_search", query=query, **more)
        assert set(answer) == {"results"}, answer
        return [row["title"] for row in answer["results"]]

    async def listed(self, **filters: Any) -> list[str]:
        """Return the titles in a listing, in order."""
        answer = await self.call("lithos_list", **filters)
        return [item["title"] for item in answer["items"]]

    def events(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Return (type, payload) of all events since the server's start. Indexing events are left out."""
        store = self.server.get(Coordinator)._store
        drafts = [e.draft for e in store.events_after(self.first_seq)]
        return [(draft.type, draft.payload) for draft in drafts if draft.type != REINDEX_COMPLETE]

    async def audit(self) -> list[tuple[str, str, str]]:
        """Return (agent, note, operation) of each entry in the access log, oldest first."""
        await self.server.get(Coordinator).mailbox.ask(Flush())
        rows = self.server.get(Coordinator)._store.audit(agent=None, doc=None, after=None, limit=1000)
        return [(str(row[1]), str(row[2]), str(row[3])) for row in reversed(rows)]

    def files(self) -> list[str]:
        """Return the sorted relative paths below `knowledge/`.

        Files that were replaced recently are left out.
        """
        paths = [path for path in self.knowledge.rglob("*") if path.is_file() and path.suffix != ".swap"]
        return sorted(path.relative_to(self.knowledge).as_posix() for path in paths)


#: Settings of a server whose notes belong to a person.
VAULT: Final[dict[str, Any]] = {"vault": True}


@asynccontextmanager
async def serving(
    data: Path,
    *,
    clock: Callable[[], datetime] = utc_now,
    load: Load = load_once,
    settled: bool = True,
    transformer: Callable[[int], Any] | None = None,
    multilingual: Callable[[int], Any] | None = None,
    **sections: Any,
) -> AsyncIterator[Lithos]:
    """Run a server on `data`. `sections` are sections of `Config`. `storage` and `server` are mappings.

    If `vault` is True, the vault is the folder that `put_note` uses.

    `transformer` loads the model of the accurate tier. Once the server is settled, this model has indexed all
    notes. Without `transformer`, onnxruntime counts as not installed. `multilingual` loads the other model of
    that tier. Without `multilingual`, this model counts as not installed. Answers are full unless `server`
    sets another form.
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
        )  # the next server in this process uses it
        patch.setattr(lithos.search.indexing.accurate_models, "is_installed", lambda: transformer is not None)
        if transformer is not None:
            loads = {ENGLISH.name: transformer, MULTILINGUAL.name: multilingual}
            patch.setattr(
                lithos.search.capability,
                "load_transformer",
                lambda threads, model: loads[model.name](threads),
            )
            patch.setattr(
                TransformerModel, "is_installed", property(lambda model: loads[model.name] is not None)
            )
        async with running_server(config, clock=clock) as running:
            if settled:
                await running.searchable()
                if transformer is not None and running.get(SemanticBackend).accurate is not None:
                    await running.get(SemanticBackend).accurate.settled.wait()
            yield Lithos(running, data)


def put_note(data: Path, path: str, text: str | bytes) -> Path:
    """Create a note file as a person does, before the server starts."""
    file = data / "knowledge" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


async def until(holds: Callable[[], bool], within: float = 60.0) -> None:
    """Wait until the condition is true."""
    with trio.fail_after(within):
        while not holds():
            await trio.sleep(0.01)


def refusal(answer: Mapping[str, Any], code: str) -> str:
    """Return the message of an error envelope.

    The keys `status`, `code` and `message` must come first in the envelope, in this order.
    """
    assert list(answer)[:3] == ["status", "code", "message"], answer
    assert (answer["status"], answer["code"]) == ("error", code), answer
    return str(answer["message"])


async def take_up(lithos: Lithos, path: str) -> None:
    """Let the server read a new file, as a running watcher does."""
    files = lithos.server.get(NoteFiles)
    seen = examine(files, find_note(files, path), None)
    await lithos.server.get(Writer).mailbox.ask(OutsideFiles((seen,)))
