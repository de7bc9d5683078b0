"""Files whose existence shows whether a server requires tokens; the files are not read."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from lithos.kernel.databases.private_files import TOKEN_FILES

#: Minimum size of each file that counts: the second file is emptied when no tokens are required.
_SMALLEST: Final = (0, 1)


def asks_for_tokens(private: Path) -> bool:
    """Return whether a private folder's server requires named tokens, or this is unknown."""
    for name, smallest in zip(TOKEN_FILES, _SMALLEST, strict=True):
        try:
            if (private / name).stat().st_size >= smallest:
                return True
        except FileNotFoundError:
            continue
        except OSError:
            return True
    return False
