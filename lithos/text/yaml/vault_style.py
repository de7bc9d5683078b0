"""How the notes of a vault are understood and written (specification: vault, sections 2 and 3)."""

from __future__ import annotations

from typing import Final

from attrs import fields, frozen


@frozen(kw_only=True)
class VaultStyle:
    """The defaults are those of a folder that Lithos made itself."""

    #: The notes are a person's. Titles come from the `title` key and the file name, and are unique within a
    #: folder; a heading is part of the body, `#tags` in the text are tags, a new file is named by its title.
    is_foreign: bool = False
    #: A note whose frontmatter cannot be read is served without it.
    serves_broken: bool = False
    #: A write adds only the keys that say something.
    minimal_frontmatter: bool = False
    #: Whether files that synchronising programs leave after a conflict are treated as conflict copies, not
    #: notes.
    knows_copies: bool = True

    @property
    def reading(self) -> str:
        """Return the rules that decide how a file is read. Files read by other rules are read again."""
        return "files tags broken few owned keys" if self.is_foreign else "owned keys"

    @classmethod
    def of_foreign(cls) -> VaultStyle:
        """Return the rules for a vault that a person owns."""
        return cls(**{each.name: True for each in fields(cls)})


#: The rules of a folder that Lithos made itself.
PLAIN: Final = VaultStyle()
