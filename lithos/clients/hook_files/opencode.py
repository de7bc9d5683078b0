"""The plugin file for opencode, which has no hooks that run a program.

The plugin starts the hook commands of Lithos and gives their text to the model.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Final

from attrs import frozen

from lithos.clients.connect.formats import CannotEdit
from lithos.clients.hook_files.formats import HookFormat, IsOurs
from lithos.clients.hooks.entries import Hooks

_TEMPLATE: Final = Path(__file__).with_name("opencode.js")
#: First line of the file. The digest of all other lines shows whether a person has changed them.
_FIRST: Final = re.compile(r"// lithos connect opencode --hooks \(([0-9a-f]{16})\)\n")
#: Key under which the text of the plugin is handed on.
_KEY: Final = "plugin"


def make_plugin(command: Sequence[str], more: Sequence[str]) -> Hooks:
    """Return the plugin that starts `command` and passes `more` to each hook."""
    values = {"command": json.dumps(list(command)), "more": json.dumps(list(more))}
    body = Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(values)
    return {_KEY: [{"text": f"// lithos connect opencode --hooks ({_digest(body)})\n{body}"}]}


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@frozen
class PluginFile(HookFormat):
    """A file that contains only the plugin."""

    def found(self, text: str, is_ours: IsOurs) -> Hooks:
        del is_ours
        first = _FIRST.match(text)
        if first is None:
            return {}
        if _digest(text[first.end() :]) != first[1]:
            raise CannotEdit("The plugin was changed since Lithos wrote it.")
        return {_KEY: [{"text": text}]}

    def added(self, text: str, hooks: Hooks) -> str:
        if text.strip():
            raise CannotEdit("It is a plugin of another program.")
        (plugin,) = hooks[_KEY]
        return str(plugin["text"])

    def removed(self, text: str, is_ours: IsOurs, before: str) -> str:
        del text, is_ours
        return before

    def is_bare(self, text: str) -> bool:
        return not text.strip()

    def covers(self, new: str, old: str) -> bool:
        return old in new
