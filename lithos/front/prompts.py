"""`prompts/list` and `prompts/get`."""

from __future__ import annotations

from typing import Any

from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.types import INVALID_PARAMS, GetPromptRequestParams, PaginatedRequestParams

from lithos.core.prompts import PROMPTS, BadPrompt, Prompt, render_prompt

Context = ServerRequestContext[Any, Any]


def add_prompts(server: Server[Any]) -> None:
    """Let a server offer the prompts."""
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
