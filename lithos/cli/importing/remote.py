"""The server that owns the data directory as the writer of an import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import trio
from attrs import field, frozen

from lithos.cli.session import CommandFailed
from lithos.core.carrying import Carried, KeptRow, RowBatch
from lithos.core.importing import Record
from lithos.front.bridge.client import OwnerClient
from lithos.services.importing.records import Begun, Options, Outcome, SourceEdge, record_to_json
from lithos.services.importing.tables import batch_to_json

#: Seconds for a batch, above the deadline of a single write.
STEP_TIMEOUT: Final = 300.0


@frozen
class RemoteWriter:
    """Sends the records to a running server."""

    client: OwnerClient
    #: Batches go one after another: which comes first decides of duplicates and paths.
    _turn: trio.Lock = field(factory=trio.Lock)

    async def begin(self, options: Options) -> Begun:
        answer = await self._ask(
            "begin",
            kind=options.kind,
            agent=options.agent,
            into=options.into,
            dry_run=options.dry_run,
            recreate=options.recreate,
        )
        return Begun(answer["session"], Path(answer["notes_folder"]), int(answer["content_limit"]))

    async def take(self, session_id: str, records: Sequence[Record]) -> list[Outcome]:
        sent = [record_to_json(record) for record in records]
        answer = await self._ask("notes", session=session_id, records=sent)
        return [Outcome.from_json(each) for each in answer["outcomes"]]

    async def connect(self, session_id: str, edges: Sequence[SourceEdge]) -> list[str]:
        sent = [[edge.source, edge.relation, edge.target] for edge in edges]
        answer = await self._ask("edges", session=session_id, edges=sent)
        return [str(result) for result in answer["results"]]

    async def carry(self, session_id: str, batch: RowBatch) -> Carried:
        answer = await self._ask("rows", session=session_id, **batch_to_json(batch))
        kept = tuple(KeptRow(*row) for row in answer["kept"])
        return Carried(answer["created"], answer["updated"], answer["same"], kept)

    async def end(self, session_id: str) -> None:
        await self._ask("end", session=session_id)

    async def _ask(self, step: str, **given: Any) -> Mapping[str, Any]:
        async with self._turn:
            answer = await self.client.import_step({"step": step, **given})
        if answer.get("error") == "not_found":
            raise CommandFailed(
                "The running server is of an earlier version and takes no imports. Restart it, or stop it "
                "and import without it."
            )
        if "error" in answer:
            raise CommandFailed(str(answer.get("message", answer["error"])))
        return answer
