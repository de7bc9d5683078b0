"""The one error of this room."""

from __future__ import annotations


class ConfigError(Exception):
    """The configuration cannot be used; the caller prints the message and exits with 2.

    `problems` holds one line per finding: key, source, value (never of a secret) and what is allowed.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
