"""Check of the texts that a call of an agent stores outside notes: tasks, findings, edges and their metadata.

The writer checks notes itself, because it knows which secrets a note had before
(`lithos/notes/writing/secret_check.py`). Warnings and errors never contain a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from attrs import frozen

from lithos.kernel.values.errors import InvalidInput
from lithos.text.secrets.masking import find_secrets

#: Fewest characters of a text that is examined. No secret is shorter.
SHORTEST: Final = 8
#: Maximum number of secrets that an answer names.
MOST: Final = 5


@frozen
class SecretArguments:
    """Check of the arguments of a call. `mode` is the setting `storage.secrets`."""

    mode: Literal["warn", "refuse", "off"] = "off"

    def check(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the warnings about secrets in the arguments. Raises `InvalidInput` if they are refused."""
        if self.mode == "off":
            return ()
        found = [
            (name, text.count("\n", 0, begin) + 1, kind)
            for name, text in _texts(arguments)
            for begin, _, kind in find_secrets(text)
        ][:MOST]
        if not found:
            return ()
        told = ", ".join(f"line {line} of {name} looks like a {kind}" for name, line, kind in found)
        if self.mode == "refuse":
            raise InvalidInput(
                f"The text seems to contain secrets, and storage.secrets is `refuse`: {told}. Nothing was "
                "changed. Leave the value out and write where it is kept, for example the name of an "
                "environment variable.",
                secrets=[{"line": line, "kind": kind} for _, line, kind in found],
            )
        return (f"secret_suspected: {told}. If it is real, remove it and revoke it.",)


def _texts(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name of an argument and each text in it that may contain a secret.

    Inside an object, a text has its key in front of it, since `{"password": ...}` names what it is.
    """
    for name, value in arguments.items():
        waiting = [value]
        while waiting:
            each = waiting.pop()
            if isinstance(each, str):
                if len(each) >= SHORTEST:
                    yield name, each
            elif isinstance(each, Mapping):
                waiting += [
                    f"{key}: {inner}" if isinstance(inner, str) else inner for key, inner in each.items()
                ]
            elif isinstance(each, list | tuple):
                waiting += each
