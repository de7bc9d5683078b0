"""Running a tool and encoding its answer, for the SDK and for calls that need none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import trio

from lithos.front.ports import ToolBox
from lithos.front.replies import compact_json
from lithos.front.slices import join_slices
from lithos.telemetry import get_logger
from lithos.tools.contract import ArgumentFault, UnknownTool

log = get_logger(__name__)


async def call_tool_box(toolbox: ToolBox, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Run one tool and return its encoded result; only cancellation leaves as an exception."""
    try:
        return await encode_result(await toolbox.call(name, arguments))
    except ArgumentFault as fault:
        return encode_fault(fault.message)
    except UnknownTool as missing:
        return encode_fault(str(missing))
    except Exception as error:
        log.exception("tool failed", tool=name)
        return encode_fault(f"Error calling tool '{name}': {error}")
    except BaseExceptionGroup as group:
        # A cancelled call may bring other errors along; the server must only see the cancellation.
        cancelled, others = group.split(trio.Cancelled)
        if cancelled is None or (others is not None and not isinstance(others, ExceptionGroup)):
            raise
        if others is not None:
            log.error("tool failed while cancelled", exc=others, tool=name)
        raise cancelled from None


async def encode_result(result: Mapping[str, Any] | None) -> dict[str, Any]:
    """Encode a tool's answer: the same JSON as one text block and as structured content."""
    structured = {"result": None} if result is None else result
    content = [{"type": "text", "text": await join_slices(result, compact_json)}]
    return {
        "content": content,
        "structuredContent": structured,
        "isError": False,
        "resultType": "complete",
    }


def encode_fault(message: str) -> dict[str, Any]:
    """Encode a protocol error of a tool call: text only."""
    return {"content": [{"type": "text", "text": message}], "isError": True, "resultType": "complete"}
