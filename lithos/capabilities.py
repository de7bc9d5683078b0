"""The list of capabilities, by the names of their packages, each after those that it needs.

`capability.py` of a package is what it adds to a server (`lithos.app.capabilities`), `commands.py` what it
adds to the command line. These are names, since no command loads what a server is made of.
Never here: an import of a capability.
"""

from __future__ import annotations

from typing import Final

NAMES: Final = (
    "notes", "history", "search", "tasks", "events", "memory", "proposals", "attachments", "access",
    "imports", "upkeep", "clients",
)  # fmt: skip
