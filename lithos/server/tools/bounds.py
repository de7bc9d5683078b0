"""Size limits of tool arguments. An argument declares its limit: `argument(..., bound=NAME)`.

Every text, list and object in the arguments of a tool has a bound. `tests/test_inventory.py` fails if a bound
is missing. The numbers are in `kernel.values.limits`, so that other entry points use the same limits.
"""

from __future__ import annotations

from typing import Any, Final

from attrs import frozen

from lithos.kernel.values import limits
from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.limits import URL as URL_CHARACTERS
from lithos.kernel.values.limits import check_text, json_bytes


class Bound:
    """Maximum size of an argument. `str` returns the limit in the form for the documentation."""

    def check(self, name: str, value: Any) -> None:
        """Raise `InvalidInput` if `value` is too large. `name` is the name of the argument."""


@frozen
class Text(Bound):
    """Maximum number of characters in a text."""

    characters: int

    def check(self, name: str, value: Any) -> None:
        check_text(name, value, self.characters)

    def __str__(self) -> str:
        return f"{self.characters:,} characters"


@frozen
class Texts(Bound):
    """Maximum number of items in a list, and of characters in each item."""

    items: int
    characters: int

    def check(self, name: str, value: Any) -> None:
        if len(value) > self.items:
            raise InvalidInput(
                f"{name} has {len(value):,} items; at most {self.items:,} are accepted. Send fewer items."
            )
        for position, item in enumerate(value, 1):
            check_text(f"Item {position} of {name}", item, self.characters)

    def __str__(self) -> str:
        return f"{self.items:,} items of {self.characters:,} characters"


@frozen
class Json(Bound):
    """Maximum number of UTF-8 bytes of an object or array as JSON."""

    size: int

    def check(self, name: str, value: Any) -> None:
        if (size := json_bytes(value)) > self.size:
            raise InvalidInput(
                f"{name} has {size:,} bytes of JSON; at most {self.size:,} are accepted. Shorten "
                "the value. Long text belongs in the content of a note."
            )

    def __str__(self) -> str:
        return f"{self.size // 1024} kB of JSON"


@frozen
class Values(Bound):
    """Maximum number of characters of each value in an object. Keys are checked separately."""

    characters: int

    def check(self, name: str, value: Any) -> None:
        for key, text in value.items():
            if isinstance(text, str):
                check_text(f"{name}.{key[:100]}", text, self.characters)

    def __str__(self) -> str:
        return f"{self.characters:,} characters each"


@frozen
class Elsewhere(Bound):
    """Marker for an argument whose size another rule checks. `why` names the rule."""

    why: str

    def __str__(self) -> str:
        return self.why


TITLE: Final = Text(limits.TITLE)
NAME: Final = Text(limits.NAME)
DESCRIPTION: Final = Text(limits.DESCRIPTION)
OUTCOME: Final = Text(limits.OUTCOME)
METADATA: Final = Json(limits.METADATA_BYTES)
SUMMARIES: Final = Values(limits.DESCRIPTION)
#: A namespace is the path of a folder, or a key of the same maximum length.
NAMESPACE: Final = Text(1_000)
PATH: Final = Text(4_096)
URL: Final = Text(URL_CHARACTERS)
#: Value that is only compared with stored values. An id that is too long matches no note.
LOOKUP: Final = Text(10_000)
#: A question may be a whole page of text. A receipt stores only the beginning
#: (`memory.model.memory.QUERY_KEPT`).
QUERY: Final = Text(1_000_000)
CONTENT: Final = Elsewhere("`storage.max_content_size_bytes`, else `content_too_large`")

TAGS: Final = Texts(1_000, limits.NAME)
#: Ids of notes or tasks. They are stored or written to an event.
IDS: Final = Texts(1_000, limits.NAME)
#: Namespaces that are stored in a receipt.
NAMESPACES: Final = Texts(100, 1_000)
#: Filters that are only compared with stored values.
FILTERS: Final = Texts(1_000, limits.DESCRIPTION)
FILTER: Final = Json(1024 * 1024)
