"""The tools `search` and `fetch`, for clients that support only these names (docs/spec/connectors.md §5)."""

from __future__ import annotations

from typing import Any, Final

from lithos.kernel.parts import Parts
from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.times import format_time
from lithos.notes.service.cut_reads import CutReads
from lithos.notes.service.knowledge import Knowledge
from lithos.notes.tools_rows import warn
from lithos.search.service.search import Search, SearchRequest
from lithos.search.tools_rows import search_row
from lithos.server.settings import ServerConfig
from lithos.server.tools.arguments import argument
from lithos.server.tools.bounds import LOOKUP, NAME, QUERY
from lithos.server.tools.declaring import Answer, tool

#: Maximum number of rows in an answer.
ROWS: Final = 10
#: Maximum number of note characters that one `fetch` returns.
MOST_FETCHED: Final = 20_000
#: Separates a note id from the offset at which reading continues.
_ON: Final = "#"


@tool("search", "connector", "RI", place=90, title="Search notes", is_heavy=True)
class ConnectorSearchTool:
    """Search the notes. Read a result with fetch."""

    query: str = argument("Words or question to search for.", bound=QUERY)
    agent_id: str | None = argument("Your agent id.", None, bound=NAME, is_caller=True, is_listed=False)

    async def answer(self, using: Parts) -> Answer:
        request = SearchRequest(query=self.query, limit=ROWS, agent_id=self.agent_id)
        now = using.clock()
        rows = [search_row(hit, now) for hit in (await using.get(Search).search(request)).hits]
        await warn(using, ((row["id"], row) for row in rows))
        return {
            "results": [
                {
                    "id": row["id"],
                    "title": row["title"],
                    "url": page_of(using, row["id"]),
                    "text": f"{in_words(row.get('warnings', ()))}{row['snippet']}",
                }
                for row in rows
            ]
        }


@tool("fetch", "connector", "RI", place=91, title="Read a note", counts="read", fits_itself=True)
class ConnectorFetchTool:
    """Read a note that search found, by its id."""

    id: str = argument(
        "Id of a search result. To continue a long note, append #NUMBER as the previous answer says.",
        bound=LOOKUP,
    )
    agent_id: str | None = argument("Your agent id.", None, bound=NAME, is_caller=True, is_listed=False)

    async def answer(self, using: Parts) -> Answer:
        note_id, _, start = self.id.partition(_ON)
        if start and not (start.isascii() and start.isdigit() and len(start) < 10):
            raise InvalidInput(
                "In id, the part after # must be a character offset, as at the end of the previous answer."
            )
        limit = using.get(ServerConfig).answer_limit
        room = min(limit // 2, MOST_FETCHED) if limit else MOST_FETCHED
        found = await using.get(Knowledge).read(
            note_id=note_id, path=None, max_length=room, agent_id=self.agent_id, offset=int(start or 0)
        )
        note, shown = found.entry.note, dict[str, Any]()
        using.get(CutReads).see(
            note.id, self.agent_id, found.content, int(start or 0), is_cut=found.truncated
        )
        await warn(using, [(note.id, shown)])
        warnings = shown.get("warnings", ())
        text = f"{in_words(warnings)}{found.content}"
        if found.truncated:
            text += f"\n\n[There is more: fetch {note.id}{_ON}{found.next_offset}]"
        metadata = {
            "path": found.entry.path,
            "tags": list(note.all_tags),
            "updated_at": format_time(note.updated_at),
            "version": note.version,
        }
        return {
            "id": note.id,
            "title": note.title,
            "text": text,
            "url": page_of(using, note.id),
            "metadata": metadata | ({"warnings": warnings} if warnings else {}),
        }


def in_words(warnings: Any) -> str:
    """Return one sentence per warning, as a prefix for a text.

    Return an empty text if there are no warnings.
    """
    return "".join(f"[Warning: {row['kind']}. {row['reason'][:300]}]\n" for row in warnings)


def page_of(using: Parts, note_id: str) -> str:
    """Return the address of the note's page in the console, for a remote client."""
    server = using.get(ServerConfig)
    return f"{server.public_url or f'http://{server.host}:{server.port}'}/console/notes/{note_id}"
