"""Warnings and refusals for text of agents that looks like a secret (setting `storage.secrets`).

A warning and an error name the line and the kind of a secret, never its value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from attrs import frozen

from lithos.kernel.values.errors import InvalidInput
from lithos.text.secrets.changes import added_secrets
from lithos.text.secrets.masking import find_secrets
from lithos.text.secrets.provider_keys import are_rules_read

#: Maximum number of secrets that an answer names.
MOST: Final = 5
#: Maximum number of characters of a path in an answer.
PATH: Final = 200
#: Fewest characters of an argument that is examined. No secret is shorter.
SHORTEST: Final = 8


@frozen
class SecretPolicy:
    """What happens to a text with secrets. `mode` is the setting `storage.secrets`."""

    mode: Literal["warn", "refuse", "off"] = "off"

    @property
    def is_ready(self) -> bool:
        """Return whether a search is fast. The first search reads the rules, and should run in a thread."""
        return self.mode == "off" or are_rules_read()

    def of_file(self, path: str, old: bytes, new: bytes) -> tuple[str, ...]:
        """Return the warnings about secrets that a change adds to a file.

        Raises `InvalidInput` if secrets are refused.
        """
        if self.mode == "off":
            return ()
        found = added_secrets(old, new)
        return self._judged([(line, kind, "") for line, kind in found], f"in {path[:PATH]}, ")

    def of_arguments(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the warnings about secrets in the arguments of a call. Raises as `of_file` does."""
        if self.mode == "off":
            return ()
        return self._judged(
            [
                (text.count("\n", 0, begin) + 1, kind, f" of {name}")
                for name, text in _texts(arguments)
                for begin, _, kind in find_secrets(text)
            ]
        )

    def _judged(self, found: Sequence[tuple[int, str, str]], where: str = "") -> tuple[str, ...]:
        if not found:
            return ()
        places = [f"line {line}{of} looks like a {kind}" for line, kind, of in found[:MOST]]
        more = f", and {len(found) - MOST} more" if len(found) > MOST else ""
        told = f"{where}{', '.join(places)}{more}"
        if self.mode == "refuse":
            raise InvalidInput(
                f"The text seems to contain secrets, and storage.secrets is `refuse`: {told}. Nothing was "
                "changed. Leave the value out and write where it is kept, for example the name of an "
                "environment variable.",
                secrets=[{"line": line, "kind": kind} for line, kind, _ in found[:MOST]],
            )
        return (f"secret_suspected: {told}. If it is real, remove it and revoke it.",)


def _texts(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name of an argument and each text in it that may contain a secret.

    Inside an object, a text has its key in front of it, since `{"password": ...}` names its kind.
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
