"""Rules for reading and writing notes that depend on the vault (docs/spec/vault.md §2 and §3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import evolve, field, frozen


def _nowhere(path: str) -> bool:
    return False


@frozen(kw_only=True)
class VaultStyle:
    """Reading and writing rules of a vault. The defaults apply to folders that Lithos created."""

    #: True if a person owns the notes. Titles then come from the `title` key or the file name, and are unique
    #: within a folder. Headings are part of the body, `#tags` in the text count as tags, and a new file is
    #: named after its title.
    is_foreign: bool = False
    #: True if a note with unreadable frontmatter is served without the frontmatter.
    serves_broken: bool = False
    #: True if a write leaves out frontmatter keys that carry no information.
    minimal_frontmatter: bool = False
    #: True if files that synchronisation programs create after a conflict are treated as conflict copies, not
    #: as notes.
    knows_copies: bool = True
    #: True for a file that another program keeps. A write then adds no key of Lithos, not even the id.
    is_bare: bool = False
    #: Function that returns whether the file at a path is such a file.
    is_kept_elsewhere: Callable[[str], bool] = field(default=_nowhere, eq=False, repr=False)

    def at(self, path: str) -> VaultStyle:
        """Return the rules for the file at a path."""
        if self.is_bare or not self.is_kept_elsewhere(path):
            return self
        return evolve(self, minimal_frontmatter=True, is_bare=True)

    @property
    def reading(self) -> str:
        """Return the rules that determine how a file is read. If these rules change, files are read again."""
        return "files tags broken few owned keys" if self.is_foreign else "owned keys"

    @classmethod
    def of_foreign(cls) -> VaultStyle:
        """Return the rules for a vault that a person owns."""
        return cls(is_foreign=True, serves_broken=True, minimal_frontmatter=True)


#: The rules for a folder that Lithos created.
PLAIN: Final = VaultStyle()
