"""The hook at the prompt, which will give the model passages that match the prompt strongly.

It does not say anything yet, so the model gets no text at the prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lithos.clients.hooks.owner import HookOwner
from lithos.clients.hooks.payload import Payload


def run(payload: Payload, owner: HookOwner, typed: Mapping[str, Any]) -> str:
    """Return the text for the model, or "" to stay silent."""
    del payload, owner, typed
    return ""
