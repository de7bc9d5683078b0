"""The files that say whether a server asks for tokens, without a look into them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

TOKENS: Final = "tokens.json"
#: Holds something as long as tokens are asked for.
LOCK: Final = "tokens.lock"


def asks_for_tokens(private: Path) -> bool:
    """Whether the server of this private folder asks for named tokens; also where that is not known now."""
    for name, smallest in ((TOKENS, 0), (LOCK, 1)):
        try:
            if (private / name).stat().st_size >= smallest:
                return True
        except FileNotFoundError:
            continue
        except OSError:
            return True
    return False
