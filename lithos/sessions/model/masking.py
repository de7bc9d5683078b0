"""The port through which every text passes before it is stored or shown (docs/spec/sessions.md §4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import frozen

#: Number of characters after a cut that the mask still sees. A secret that the cut divides is thus masked,
#: because keys are shorter.
BEYOND: Final = 4_000


@frozen
class SecretMask:
    """Replaces the values of secrets in a text. Without a mask, no transcript is read."""

    mask: Callable[[str], str]

    def clean(self, text: str, most: int) -> str:
        """Return the beginning of a text, masked and without half characters, at most `most` characters.

        The mask is applied before the text is cut.
        """
        begin = text[: most + BEYOND].encode("utf-8", "replace").decode()
        return self.mask(begin)[:most]
