"""Rules for reading and writing the notes of a vault (docs/spec/vault.md §2 and §3)."""

from __future__ import annotations

from typing import Final

from attrs import fields, frozen


@frozen(kw_only=True)
class VaultStyle:
    """The style of a vault. The defaults apply to folders that Lithos created."""

    #: True if a person owns the notes. Titles come from the `title` key and the file name, and are unique
    #: within a folder. Headings are part of the body, `#tags` in the text are tags, and a new file is named
    #: after its title.
    is_foreign: bool = False
    #: True if a note with unreadable frontmatter is served without it.
    serves_broken: bool = False
    #: True if a write leaves out frontmatter keys that carry no information.
    minimal_frontmatter: bool = False
    #: True if files that synchronising programs leave after a conflict are treated as conflict copies, not
    #: notes.
    knows_copies: bool = True

    @property
    def reading(self) -> str:
        """Return the rules that decide how a file is read. If they change, files are read again."""
        return "files tags broken few owned keys" if self.is_foreign else "owned keys"

    @classmethod
    def of_foreign(cls) -> VaultStyle:
        """Return the rules for a vault that a person owns."""
        return cls(**{each.name: True for each in fields(cls)})


#: The rules for a folder that Lithos created.
PLAIN: Final = VaultStyle()
