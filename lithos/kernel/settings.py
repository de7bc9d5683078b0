"""Settings of the notes folder and of the database folder. The settings loader itself needs them."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Final, Literal

from attrs import frozen

from lithos.kernel.configuration.rules import NAMES, PATTERNS, Rule, setting, whole
from lithos.kernel.configuration.sections import SettingsSection

DIRECTORY = Rule("the path of a directory", lambda path: "\0" not in str(path))


def _is_inner_folder(text: str) -> bool:
    parts = PurePosixPath(text).parts
    return bool(parts) and "\0" not in text and not any(part[0] in "./" for part in parts)


INNER_FOLDER = Rule(
    "a folder inside the data directory: no leading /, no .., no folder that starts with a dot",
    _is_inner_folder,
)


@frozen(kw_only=True)
class StorageConfig:
    """Folders of notes and databases."""

    data_dir: Path = setting(
        Path("data"),
        "Directory for all files that Lithos stores, including the notes if `storage.vault` is not set.",
        DIRECTORY,
    )
    knowledge_subdir: str = setting(
        "knowledge",
        "Notes folder inside the data directory. Not used with `storage.vault`.",
        INNER_FOLDER,
    )
    max_content_size_bytes: int = setting(
        1_000_000, "Maximum size of one note's content in UTF-8 bytes.", whole(1, 1_000_000_000)
    )
    vault: Path | None = setting(
        None,
        "Folder of Markdown files that Lithos serves in place. Lithos writes only notes to it.",
        DIRECTORY,
    )
    lock: bool = setting(
        True,
        "Whether Lithos refuses to start on a file system without locks, where it cannot "
        "prevent a second server.",
    )
    ignore: tuple[str, ...] | None = setting(
        None,
        "Patterns of files that are not notes, relative to the notes folder. null with a vault ignores the "
        "templates that the settings of Obsidian and its plugins name.",
        NAMES,
    )
    protected: tuple[str, ...] = setting(
        (), "Patterns of notes that only people can change, whatever an agent's token allows.", PATTERNS
    )
    conflict_copies: Literal["ask", "merge", "ignore"] = setting(
        "ask",
        "How to treat the conflict copies that programs for folder synchronisation create. `ask` shows them "
        "until a person merges them. `merge` merges a copy at once if the merge has no conflict and only "
        "programs give such file names. `ignore` treats them as ordinary notes.",
    )
    secrets: Literal["warn", "refuse", "off"] = setting(
        "warn",
        "What happens if an agent writes text that looks like a password or a key into a note, a task, a "
        "finding or an edge. `warn` stores the text and names the line in the answer, and `refuse` "
        "stores nothing.",
    )

    @property
    def notes_folder(self) -> Path:
        """Return the notes folder."""
        return self.data_dir / self.knowledge_subdir if self.vault is None else self.vault


_STYLE: Final = (
    "notes of storage.vault are left as their owner writes them, notes of a data directory are managed"
)

SETTINGS: Final = (
    SettingsSection(
        "storage",
        StorageConfig,
        place=20,
        older={"storage.knowledge_dir": "storage.knowledge_subdir"},
        short={"LITHOS_DATA_DIR": "storage.data_dir", "LITHOS_VAULT": "storage.vault"},
        retired={
            "storage.broken_frontmatter": _STYLE,
            "storage.file_names": _STYLE,
            "storage.frontmatter": _STYLE,
            "storage.inline_tags": _STYLE,
            "storage.title_from": _STYLE,
            "storage.titles": _STYLE,
        },
    ),
)
