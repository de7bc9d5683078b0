"""The sentence that says when an agent should call Lithos."""

from __future__ import annotations

from typing import Final

#: Begins the instructions of the server, and is also in the skill and in the block for AGENTS.md.
TRIGGER: Final = "Before you start a task or answer from memory, call lithos_context"
