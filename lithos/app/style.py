"""The style of a vault as it is configured: what is not set follows from serving somebody else's folder."""

from __future__ import annotations

from lithos.config.sections import StorageConfig
from lithos.core.notes.style import VaultStyle


def style_of(storage: StorageConfig) -> VaultStyle:
    """How notes are understood and written."""
    base = VaultStyle() if storage.vault is None else VaultStyle.of_foreign()

    def chosen(value: str | None, means: str, otherwise: bool) -> bool:
        return otherwise if value is None else value == means

    return VaultStyle(
        titles_from_files=chosen(storage.title_from, "file", base.titles_from_files),
        titles_per_folder=chosen(storage.titles, "folder", base.titles_per_folder),
        inline_tags=base.inline_tags if storage.inline_tags is None else storage.inline_tags,
        serves_broken=chosen(storage.broken_frontmatter, "serve", base.serves_broken),
        minimal_frontmatter=chosen(storage.frontmatter, "minimal", base.minimal_frontmatter),
        titles_name_files=chosen(storage.file_names, "title", base.titles_name_files),
    )
