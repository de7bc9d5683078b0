"""Settings of Obsidian and its plugins that exclude files from the notes, such as templates and hidden files.

The settings belong to another program, so a missing, broken or too large file is logged and ignored. Each
plugin has its own file with its own keys. A value is ignored if it is not a path in the vault. It is also
ignored if it is the vault itself, because every note would then be a template.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import define, field

from lithos.kernel.databases.private_files import open_regular
from lithos.kernel.log import get_logger
from lithos.notes.model.ignored import Ignored, read_filters

log = get_logger("lithos.vault")

#: Name of Obsidian's settings folder.
FOLDER: Final = ".obsidian"
#: Maximum size of a settings file in bytes.
LARGEST: Final = 1_000_000
#: Maximum number of characters in a path, of templates in a vault, and of nesting levels of choices.
LONGEST: Final = 1_000
MOST: Final = 500
_DEEPEST: Final = 5
#: The template folder if the settings of Obsidian's core template plugin do not name one.
USUAL: Final = "templates"

#: Settings files below `.obsidian`, with the keys that name a template folder in each file.
_FOLDERS: Final = {
    "templates.json": ("folder",),
    "plugins/templater-obsidian/data.json": ("templates_folder", "template_folder"),
    "plugins/quickadd/data.json": ("templateFolderPath",),
}
#: Settings files, with the keys that name a single template or a list of templates. A template is a text, or
#: an object with such a key.
_FILES: Final = {
    "daily-notes.json": ("template",),
    "zk-prefixer.json": ("template",),
    "plugins/calendar/data.json": ("weeklyNoteTemplate",),
    "plugins/periodic-notes/data.json": ("daily", "weekly", "monthly", "quarterly", "yearly"),
    "plugins/templater-obsidian/data.json": (
        "folder_templates", "file_templates", "startup_templates", "enabled_templates_hotkeys",
    ),
    "plugins/quickadd/data.json": ("choices",),
}  # fmt: skip
_HIDDEN: Final = "app.json"
_NAMED: Final = ("template", "templatePath", "choices")


def template_prefixes(read: Callable[[str], Any]) -> list[str]:
    """Return the path prefixes of all templates. `read` returns a parsed settings file by name, or None."""
    found = {name: read(name) for name in {**_FOLDERS, **_FILES}}
    settings = {name: value for name, value in found.items() if isinstance(value, Mapping)}
    folders = {
        name: [path for key in keys if (path := _clean(settings.get(name, {}).get(key)))]
        for name, keys in _FOLDERS.items()
    }
    places = [f"{path}/" for paths in folders.values() for path in paths]
    if not folders["templates.json"]:
        places.append(f"{USUAL}/")
    for name, keys in _FILES.items():
        places += (_as_file(path) for key in keys for path in _paths(settings.get(name, {}).get(key), 0))
    return list(dict.fromkeys(places))[:MOST]


def _paths(value: Any, depth: int) -> Iterator[str]:
    """Yield the template paths in a value.

    The value is a text, an object that names a template, or a list of these.
    """
    if isinstance(value, str):
        if path := _clean(value):
            yield path
    elif isinstance(value, Mapping):
        for key in _NAMED:
            yield from _paths(value.get(key), depth)
    elif isinstance(value, list) and depth < _DEEPEST:
        for each in value[:MOST]:
            yield from _paths(each, depth + 1)


def _clean(value: Any) -> str:
    """Return a path in the vault without surrounding slashes. Return "" if the value is not such a path."""
    if not isinstance(value, str) or len(value) > LONGEST:
        return ""
    parts = [part for part in value.strip().split("/") if part not in ("", ".")]
    return "" if ".." in parts else "/".join(parts)


def _as_file(path: str) -> str:
    """Return the file name for a setting. A missing suffix `.md` is added."""
    return path if path.casefold().endswith((".md", ".canvas")) else f"{path}.md"


@define
class VaultSettings:
    """The patterns of ignored files according to a vault's settings.

    The class detects later changes of the settings.
    """

    vault: Path
    #: Patterns from the Lithos configuration. They replace the template folders.
    globs: Iterable[str] | None = None
    _seen: tuple[object, ...] = field(default=(), init=False)
    _is_broken: bool = field(default=False, init=False)

    def read(self) -> Ignored:
        """Return the current patterns of ignored files. Blocks."""
        self._seen, self._is_broken = self._stamps(), False
        filters, complaints = read_filters(self._parsed(_HIDDEN, {}))
        for complaint in complaints:
            log.warning("Obsidian setting ignored", file=str(self._file(_HIDDEN)), reason=complaint)
        if self.globs is not None:
            return Ignored.of(self.globs, filters)
        return Ignored.of((), filters, template_prefixes(lambda name: self._parsed(name, None)))

    def read_again(self) -> Ignored | None:
        """Return the patterns of ignored files if a settings file has changed.

        Return None if no file has changed, or if a file is broken at present.

        Blocks.
        """
        if self._stamps() == self._seen:
            return None
        found = self.read()
        return None if self._is_broken else found

    def _file(self, name: str) -> Path:
        return self.vault / FOLDER / name

    def _stamps(self) -> tuple[object, ...]:
        return tuple(_stamp(self._file(name)) for name in (_HIDDEN, *{**_FOLDERS, **_FILES}))

    def _parsed(self, name: str, otherwise: Any) -> Any:
        """Return the parsed settings file, or `otherwise` if it is missing, broken or too large."""
        path = self._file(name)
        try:
            with open_regular(path) as file:
                data = file.read(LARGEST + 1)
            if len(data) > LARGEST:
                raise ValueError(f"not a file of at most {LARGEST} bytes")
            return json.loads(data)
        except (FileNotFoundError, NotADirectoryError):
            return otherwise
        except (OSError, ValueError, RecursionError) as failure:
            self._is_broken = True
            log.warning("Obsidian settings file ignored", file=str(path), reason=str(failure))
            return otherwise


def _stamp(path: Path) -> object:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def read_ignored(vault: Path, globs: Iterable[str] | None) -> Ignored:
    """Return the patterns of files to ignore in a vault.

    If `globs` is None, the patterns match the templates of Obsidian and its plugins.
    """
    return VaultSettings(vault, globs).read()
