"""How the notes of a vault are understood and written (specification: vault, sections 2 and 3)."""

from __future__ import annotations

from typing import Final

from attrs import fields, frozen


@frozen(kw_only=True)
class VaultStyle:
    """One rule each; the defaults are those of a folder that Lithos made itself."""

    #: Titles come from the `title` key and the file name, and a heading stays in the body.
    titles_from_files: bool = False
    #: A title must be unique only within its folder.
    titles_per_folder: bool = False
    #: `#tags` in the text count as tags.
    inline_tags: bool = False
    #: A note whose frontmatter cannot be read is served without it.
    serves_broken: bool = False
    #: A write adds only the keys that say something, and no heading.
    minimal_frontmatter: bool = False
    #: A new note's file is named by its title, not by its slug.
    titles_name_files: bool = False
    #: Files that programs which synchronise folders leave of a conflict are no notes of their own.
    knows_copies: bool = True

    @property
    def reading(self) -> str:
        """The rules that decide what is read of a file: what was read by others is read anew."""
        titles = "files" if self.titles_from_files else ""
        owned = "few owned keys" if self.minimal_frontmatter else "owned keys"
        return f"{titles} {'tags' * self.inline_tags} {'broken' * self.serves_broken} {owned}".strip()

    @classmethod
    def of_foreign(cls) -> VaultStyle:
        """The rules of a vault that somebody else owns."""
        return cls(**{each.name: True for each in fields(cls)})


#: The rules of a folder that Lithos made itself.
PLAIN: Final = VaultStyle()
