"""Files that show by their existence whether a server requires tokens. The files are not read."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from lithos.kernel.databases.private_files import TOKEN_FILES

#: Minimum size at which each file counts. The second file is emptied when tokens are no longer required.
_SMALLEST: Final = (0, 1)


def asks_for_tokens(private: Path) -> bool:
    """Return whether the server of a private folder requires named tokens. True also if this is unknown."""
    for name, smallest in zip(TOKEN_FILES, _SMALLEST, strict=True):
        try:
            if (private / name).stat().st_size >= smallest:
                return True
        except FileNotFoundError:
            continue
        except OSError:
            return True
    return False
