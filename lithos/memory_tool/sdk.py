"""The classes of the Anthropic SDK, if it is installed. Lithos does not depend on the SDK."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def class_of_sdk(name: str, otherwise: type) -> Any:
    """Return a class of `anthropic.lib.tools`, or `otherwise` if the SDK is missing or too old to have it."""
    try:
        module = import_module("anthropic.lib.tools")
    except ImportError:
        return otherwise
    return getattr(module, name, otherwise)
