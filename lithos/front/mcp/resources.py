"""MCP handlers: `resources/list`, `resources/templates/list`, `resources/read`; `prompts/list` and `/get`."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final

from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.types import (
    INVALID_PARAMS,
    GetPromptRequestParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from lithos.catalogue.catalogue import Entry
from lithos.core.offers import NOTE_PREFIX, PROMPTS, TASK_PREFIX, BadPrompt, Prompt, render_prompt
from lithos.core.tasks.model import Task
from lithos.front.mcp.tool_calls import join_slices
from lithos.front.server.ports import compact_json
from lithos.services.notes.resources import (
    BadCursor,
    Content,
    ListedResource,
    NoteFile,
    Resources,
    Tags,
    UnknownResource,
)
from lithos.services.tasks.coordination import TaskSheet
from lithos.tools.contract.rows import row_of, sliced_rows

Context = ServerRequestContext[Any, Any]


def add_prompts(server: Server[Any]) -> None:
    """Register the prompt handlers with a server."""
    listing = {"prompts": [_wire_prompt(prompt) for prompt in PROMPTS], "resultType": "complete"}

    async def list_prompts(ctx: Context, params: PaginatedRequestParams) -> dict[str, Any]:
        return listing

    server.add_request_handler("prompts/list", PaginatedRequestParams, list_prompts)
    server.add_request_handler("prompts/get", GetPromptRequestParams, _get_prompt)


async def _get_prompt(ctx: Context, params: GetPromptRequestParams) -> dict[str, Any]:
    try:
        prompt, text = render_prompt(params.name, params.arguments or {})
    except BadPrompt as problem:
        raise MCPError(INVALID_PARAMS, str(problem)) from problem
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return {"description": prompt.description, "messages": [message], "resultType": "complete"}


def _wire_prompt(prompt: Prompt) -> dict[str, Any]:
    return {
        "name": prompt.name,
        "title": prompt.title,
        "description": prompt.description,
        "arguments": [
            {"name": argument.name, "description": argument.description, "required": argument.required}
            for argument in prompt.arguments
        ],
    }


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


def add_resources(
    server: Server[Any], resources: Resources, agent_of: Callable[[Context], str | None]
) -> None:
    """Register the resource handlers (notes, tasks, tags) with a server.

    `agent_of` a request is the agent that its token is bound to.
    """

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
            content = await resources.read(params.uri, agent_of(ctx))
        except UnknownResource as missing:
            raise not_found(ctx, params.uri, missing) from missing
        return {"contents": [{"uri": params.uri, **await _wire_content(content)}], "resultType": "complete"}

    server.add_request_handler("resources/list", PaginatedRequestParams, list_resources)
    server.add_request_handler("resources/templates/list", PaginatedRequestParams, list_templates)
    server.add_request_handler("resources/read", ReadResourceRequestParams, read)


def not_found(ctx: Context, uri: str, missing: UnknownResource) -> MCPError:
    """The protocol error for an unknown resource URI."""
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
        "task": row_of(sheet.task),
        "claims": [row_of(claim) for claim in sheet.claims],
        "findings": await sliced_rows(sheet.findings, row_of),
        "blockers": [row_of(blocker) for blocker in sheet.blockers],
    }
