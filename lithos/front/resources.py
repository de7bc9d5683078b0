"""`resources/list`, `resources/templates/list` and `resources/read`."""

from __future__ import annotations

import base64
from typing import Any, Final

from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.types import INVALID_PARAMS, PaginatedRequestParams, ReadResourceRequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from lithos.actors.catalogue import Entry
from lithos.core.resource_uris import NOTE_PREFIX, TASK_PREFIX
from lithos.core.tasks import Task
from lithos.front.replies import compact_json
from lithos.front.slices import join_slices
from lithos.services.coordination import TaskSheet
from lithos.services.resources import (
    BadCursor,
    Content,
    ListedResource,
    NoteFile,
    Resources,
    Tags,
    UnknownResource,
)
from lithos.tools.task_rows import blocker_row, claim_row, finding_row, sliced_rows, task_record

#: The code of the handshake versions; 2026-07-28 retired it.
RESOURCE_NOT_FOUND: Final = -32002
MARKDOWN: Final = "text/markdown"
JSON: Final = "application/json"

TEMPLATES: Final = [
    {
        "uriTemplate": f"{NOTE_PREFIX}{{id}}",
        "name": "note",
        "title": "Note",
        "description": "The file of a note as it is stored: YAML frontmatter and Markdown.",
        "mimeType": MARKDOWN,
    },
    {
        "uriTemplate": f"{TASK_PREFIX}{{id}}",
        "name": "task",
        "title": "Task",
        "description": "A task with its claims, its findings and what it waits for.",
        "mimeType": JSON,
    },
]

Context = ServerRequestContext[Any, Any]


def add_resources(server: Server[Any], resources: Resources) -> None:
    """Let a server offer notes, tasks and tags as resources."""

    async def list_resources(ctx: Context, params: PaginatedRequestParams) -> dict[str, Any]:
        try:
            page = await resources.page(params.cursor)
        except BadCursor as problem:
            raise MCPError(INVALID_PARAMS, str(problem)) from problem
        listing = {"resources": [_wire_resource(one) for one in page.resources], "resultType": "complete"}
        return listing if page.cursor is None else listing | {"nextCursor": page.cursor}

    async def list_templates(ctx: Context, params: PaginatedRequestParams) -> dict[str, Any]:
        return {"resourceTemplates": TEMPLATES, "resultType": "complete"}

    async def read(ctx: Context, params: ReadResourceRequestParams) -> dict[str, Any]:
        try:
            content = await resources.read(params.uri)
        except UnknownResource as missing:
            raise not_found(ctx, params.uri, missing) from missing
        return {"contents": [{"uri": params.uri, **await _wire_content(content)}], "resultType": "complete"}

    server.add_request_handler("resources/list", PaginatedRequestParams, list_resources)
    server.add_request_handler("resources/templates/list", PaginatedRequestParams, list_templates)
    server.add_request_handler("resources/read", ReadResourceRequestParams, read)


def not_found(ctx: Context, uri: str, missing: UnknownResource) -> MCPError:
    """The protocol's error for a URI without a resource."""
    is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    return MCPError(INVALID_PARAMS if is_modern else RESOURCE_NOT_FOUND, str(missing), {"uri": uri})


def _wire_resource(listed: ListedResource) -> dict[str, Any]:
    uri, subject = listed.address.uri, listed.subject
    if isinstance(subject, Entry):
        title = subject.note.title
        return {"uri": uri, "name": title, "title": title, "mimeType": MARKDOWN, "size": subject.state.size}
    if isinstance(subject, Task):
        return {"uri": uri, "name": subject.title, "title": subject.title, "mimeType": JSON}
    description = "All tags with their number of notes."
    return {"uri": uri, "name": "tags", "title": "Tags", "description": description, "mimeType": JSON}


async def _wire_content(content: Content) -> dict[str, str]:
    if isinstance(content, NoteFile):
        try:
            return {"mimeType": MARKDOWN, "text": content.data.decode("utf-8")}
        except UnicodeDecodeError:
            # Somebody stored something else meanwhile; it is told as it is.
            return {"mimeType": MARKDOWN, "blob": base64.b64encode(content.data).decode()}
    value = {"tags": content.counts} if isinstance(content, Tags) else await _wire_sheet(content)
    return {"mimeType": JSON, "text": await join_slices(value, compact_json)}


async def _wire_sheet(sheet: TaskSheet) -> dict[str, Any]:
    return {
        "task": task_record(sheet.task),
        "claims": [claim_row(claim) for claim in sheet.claims],
        "findings": await sliced_rows(sheet.findings, finding_row),
        "blockers": [blocker_row(blocker) for blocker in sheet.blockers],
    }
