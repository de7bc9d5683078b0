"""Secrets in files: `LITHOS_AUTH_TOKEN_FILE=/run/secrets/token` instead of `LITHOS_AUTH_TOKEN`.

Containers and service managers give secrets as files, because every child process inherits a variable, and
tools such as `docker inspect` show it. Only secret settings have such a variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from attrs import frozen

#: End of the name of a variable that names a file.
FILE: Final = "_FILE"
#: Maximum size of a secret in bytes.
LARGEST_SECRET: Final = 4096


class UnusableSecret(Exception):
    """Error for a secret file that cannot be used. The message never quotes the content."""


@frozen
class FileSecret:
    """The value of a secret setting. If its file cannot be used, `problem` says why and `value` is empty."""

    variable: str
    value: str = ""
    problem: str | None = None


def read_secrets(names: Iterable[str], environment: Mapping[str, str]) -> Iterator[tuple[str, FileSecret]]:
    """Yield the secrets in files, each with the name of its plain variable. Blocks.

    `names` are the plain variables of all secret settings.
    """
    for name in names:
        variable = name + FILE
        path = environment.get(variable, "").strip()
        if not path:
            continue
        if environment.get(name, "").strip():
            both = f"environment variables {name} and {variable} are both set, so the secret is not clear"
            yield name, FileSecret(variable, problem=f"{both}; unset one")
            continue
        try:
            yield name, FileSecret(variable, _read(path, variable))
        except UnusableSecret as unusable:
            yield name, FileSecret(variable, problem=str(unusable))


def _read(path: str, variable: str) -> str:
    named = f"file {path} from environment variable {variable}"
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST_SECRET + 1)
        text = content.decode().strip()
    except OSError as error:
        raise UnusableSecret(
            f"{named} cannot be read: {error.strerror or error}; let the user who runs Lithos read it"
        ) from error
    except UnicodeDecodeError:
        raise UnusableSecret(f"{named} is not UTF-8 text; write the secret into it, on one line") from None
    if not text or "\n" in text or len(content) > LARGEST_SECRET:
        raise UnusableSecret(
            f"{named} must have one line of at most {LARGEST_SECRET} bytes; write only the secret into it"
        )
    return text
