"""The files whose existence says whether a server asks for tokens; they are not read."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from lithos.kernel.databases.private_files import TOKEN_FILES

#: The smallest size with which each of them says so: the second is emptied once none are asked for.
_SMALLEST: Final = (0, 1)


def asks_for_tokens(private: Path) -> bool:
    """Whether the server of this private folder asks for named tokens; also where that is not known now."""
    for name, smallest in zip(TOKEN_FILES, _SMALLEST, strict=True):
        try:
            if (private / name).stat().st_size >= smallest:
                return True
        except FileNotFoundError:
            continue
        except OSError:
            return True
    return False
