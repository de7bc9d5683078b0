"""The environment variables of Lithos. Only this module decides that a blank variable counts as unset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PREFIX: Final = "LITHOS_"


def without_blanks(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the blank variables of Lithos.

    Compose files and shell scripts often pass on a variable that is not set, so it arrives blank.
    """
    return {
        name: value for name, value in environment.items() if value.strip() or not name.startswith(PREFIX)
    }
