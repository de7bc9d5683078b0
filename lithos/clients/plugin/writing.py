"""Functions that write the plugin into a folder, and the command `lithos skill`.

The skill (`SKILL.md`) is made from the template next to this file, with the tool names of the registry. Agent
Skills have these rules: `name` has at most 64 lower-case letters, digits and hyphens, and is the name of the
skill's folder. `description` has at most 1,024 characters. A client reads the text only if the description
matches the current work.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any, Final

from lithos import __version__
from lithos.clients.connect.clients import CLIENTS
from lithos.clients.hooks.entries import guarded, hooks_for
from lithos.server.command.declaring import Invocation

SKILL: Final = "lithos"
#: Prefix of the tool names. Some clients use other names.
_PREFIX: Final = "lithos_"
_TEMPLATE: Final = Path(__file__).with_name("skill.md")


def make_skill() -> str:
    """Return the text of `SKILL.md`."""
    return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(_ToolNames(), version=__version__)


class _ToolNames(dict[str, str]):
    """Mapping that returns the full name of a tool for the part after `lithos_`."""

    def __missing__(self, name: str) -> str:
        return _PREFIX + name


def run_skill(invocation: Invocation) -> int:
    """Print the skill. Return 0."""
    from lithos.server.command.output import print_json

    text = make_skill()
    if invocation.as_json:
        print_json({"name": SKILL, "text": text})
    else:
        print(text, end="")
    return 0


CLIENT: Final = "claude-code"


def make_hooks(program: Sequence[str], options: Sequence[str]) -> dict[str, Any]:
    """Return the hooks that start `program` with the global `options`.

    If the program no longer exists, the hooks print nothing.
    """
    return hooks_of(guarded(program, options))


def hooks_of(begin: str) -> dict[str, Any]:
    """Return the hooks for the plugin.

    Each shell line begins with `begin`, which starts Lithos with its global options.
    """
    return {
        "description": "Lithos: a briefing when a session starts, passages that match a prompt, and a "
        "reminder before the context is lost.",
        # The plugin has its own server over stdio, which starts at the same moment as the first hook.
        "hooks": hooks_for(CLIENT, begin, brief=" --quiet"),
    }


NAME: Final = "lithos"
MANIFEST: Final = Path(".claude-plugin", "plugin.json")
DESCRIPTION: Final = (
    "Knowledge and tasks that your agents share: a briefing when a session starts, notes over MCP, a "
    "reminder to store what was learned."
)
AUTHOR: Final = {"name": "The Lithos developers"}
KEYWORDS: Final = ("mcp", "memory", "knowledge-base", "markdown", "tasks")
_LARGEST_MANIFEST: Final = 65_536


class ForeignFolder(Exception):
    """Raised if the folder contains files of another program. The message contains the next step."""


def write_plugin(directory: Path, program: Sequence[str], options: Sequence[str]) -> list[Path]:
    """Write the plugin for an installation, which is a program with global options. Return the files.

    Raises `ForeignFolder` if the folder belongs to another program, or `OSError`.
    """
    command = [*program, *options, "serve", "--transport", "stdio"]
    entry = {"type": "stdio", "command": command[0], "args": command[1:]}
    return write_form(directory, entry, make_hooks(program, options))


def describe_plugin() -> dict[str, Any]:
    """Return the manifest of the plugin. It also describes the plugin in a marketplace."""
    return {
        "name": NAME,
        "version": __version__,
        "description": DESCRIPTION,
        "author": AUTHOR,
        "license": "MIT",
        "keywords": list(KEYWORDS),
    }


def write_form(directory: Path, entry: Mapping[str, Any], hooks: Mapping[str, Any]) -> list[Path]:
    """Write a plugin with the given server entry and hooks. Return the files.

    The entry gets the client's switch that shows the tools on the first turn.
    Raises `ForeignFolder` if the folder belongs to another program, or `OSError`.
    """
    files = {
        MANIFEST: to_json(describe_plugin()),
        Path(".mcp.json"): to_json({"mcpServers": {NAME: {**entry, **CLIENTS[CLIENT].switch}}}),
        Path("skills", SKILL, "SKILL.md"): make_skill(),
        Path("hooks", "hooks.json"): to_json(hooks),
    }
    check_ours(directory, MANIFEST, NAME)
    return write_files(directory, files)


def to_json(document: Mapping[str, Any]) -> str:
    """Return a document as formatted JSON for a file."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def check_ours(directory: Path, manifest: Path, name: str) -> None:
    """Raise `ForeignFolder` unless the folder is missing, empty, or has a manifest with this name."""
    if not os.path.lexists(directory) or (directory.is_dir() and not any(directory.iterdir())):
        return
    if not directory.is_dir():
        raise ForeignFolder(f"{directory} is not a folder. Choose an empty or a new folder.")
    try:
        with (directory / manifest).open("rb") as file:
            found = json.loads(file.read(_LARGEST_MANIFEST))
    except (OSError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or found.get("name") != name:
        raise ForeignFolder(
            f"{directory} has files of another program: its {manifest} does not name {name}. "
            "Nothing was written. Choose an empty or a new folder."
        )


def write_files(directory: Path, files: Mapping[Path, str | bytes]) -> list[Path]:
    """Write the files that have changed, each atomically.

    Return all paths. Raises `ForeignFolder` or `OSError`.
    """
    for relative, content in files.items():
        path = directory / relative
        data = content.encode() if isinstance(content, str) else content
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink() or not path.parent.resolve().is_relative_to(directory.resolve()):
            raise ForeignFolder(f"{path} leads out of the folder through a link. Remove the link.")
        if path.is_file() and path.read_bytes() == data:
            continue
        fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
        try:
            fresh.write_bytes(data)
            os.replace(fresh, path)
        finally:
            fresh.unlink(missing_ok=True)
    return [directory / relative for relative in files]
