"""The files in which clients look for hooks, and what a person must do after they were written.

Sources are the pages that `clients.hooks.dialects` names. A hook's command has paths of this machine. So in a
project, Lithos writes to the file that is not shared, if the client has one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from attrs import frozen

from lithos.clients.connect.clients import ConfigScope, Surroundings
from lithos.clients.connect.files import CannotUse, read_config
from lithos.clients.connect.formats import CannotEdit, TomlFormat
from lithos.clients.hook_files.formats import HookFormat, JsonHooks, TomlHooks
from lithos.clients.hook_files.opencode import PluginFile

#: First key of a file with hooks for Cursor and Copilot CLI.
_VERSION: Final = {"version": 1}
#: Key with the hooks that a person trusts. Codex writes it into `config.toml`, wherever the hooks are.
_TRUST: Final = "state"


@frozen
class HookFile:
    """A file with hooks and its format."""

    path: Path
    form: HookFormat


@frozen
class HookPlace:
    """The files with hooks of a client by scope.

    If there are several files in a scope, the hooks are written to the first of them.
    """

    files: Callable[[Surroundings], Mapping[ConfigScope, tuple[HookFile, ...]]]
    #: Instructions for the person, printed after the file was written.
    then: str


def _json(
    user: Callable[[Surroundings], Path], project: str, head: Mapping[str, int] | None = None
) -> Callable[[Surroundings], Mapping[ConfigScope, tuple[HookFile, ...]]]:
    form = JsonHooks(head or {})
    return lambda around: {
        "user": (HookFile(user(around), form),),
        "project": (HookFile(around.folder / project, form),),
    }


def _codex(around: Surroundings) -> Mapping[ConfigScope, tuple[HookFile, ...]]:
    user = around.variable("CODEX_HOME") or around.home / ".codex"
    return {"user": _codex_files(user), "project": _codex_files(around.folder / ".codex")}


def _codex_files(folder: Path) -> tuple[HookFile, ...]:
    """Return both files, first the one to write to. Codex warns if one folder has hooks in both."""
    files = HookFile(folder / "hooks.json", JsonHooks()), HookFile(folder / "config.toml", TomlHooks())
    try:
        tree = TomlFormat(()).tree(read_config(files[1].path).text)
    except (CannotEdit, CannotUse):
        return files
    hooks = tree.get("hooks")
    has_tables = isinstance(hooks, dict) and bool(hooks.keys() - {_TRUST})
    return files[::-1] if has_tables and not files[0].path.exists() else files


def _copilot(around: Surroundings) -> Path:
    return around.variable("COPILOT_HOME") or around.home / ".copilot"


def _opencode(around: Surroundings) -> Mapping[ConfigScope, tuple[HookFile, ...]]:
    user, project = around.config / "opencode", around.folder / ".opencode"
    name, form = Path("plugins", "lithos.js"), PluginFile()
    return {"user": (HookFile(user / name, form),), "project": (HookFile(project / name, form),)}


HOOK_PLACES: Final[Mapping[str, HookPlace]] = {
    "claude-code": HookPlace(
        _json(
            lambda it: (it.variable("CLAUDE_CONFIG_DIR") or it.home / ".claude") / "settings.json",
            ".claude/settings.local.json",
        ),
        "Claude Code reads the file again at once. /hooks lists the hooks.",
    ),
    "codex": HookPlace(
        _codex,
        "Open Codex, type /hooks and trust the hooks of Lithos. Until then, Codex ignores them. If "
        "config.toml has hooks = false under [features], Codex runs no hooks.",
    ),
    "cursor": HookPlace(
        _json(lambda it: it.home / ".cursor" / "hooks.json", ".cursor/hooks.json", _VERSION),
        "Cursor reads the file again at once. Its version decides if text of hooks at the prompt reaches the "
        "model: version 3.20.17 accepts such text.",
    ),
    "gemini-cli": HookPlace(
        _json(lambda it: it.home / ".gemini" / "settings.json", ".gemini/settings.json"),
        "Restart Gemini CLI. If its setting hooksConfig.enabled is false, it runs no hooks.",
    ),
    "copilot-cli": HookPlace(
        _json(lambda it: _copilot(it) / "hooks" / "lithos.json", ".github/hooks/lithos.json", _VERSION),
        "Restart Copilot CLI. It takes no text from hooks at the prompt.",
    ),
    "vscode": HookPlace(
        _json(lambda it: _copilot(it) / "hooks" / "lithos-vscode.json", ".github/hooks/lithos-vscode.json"),
        "Hooks are a preview feature of VS Code. If no briefing appears, add the folder of the file to the "
        "setting chat.hookFilesLocations.",
    ),
    "opencode": HookPlace(_opencode, "Restart opencode. It loads plugins when it starts."),
}
