"""The six commands of the memory tool, on any store (docs/spec/memory-tool.md §3)."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from attrs import define, field

from lithos.memory_tool import texts
from lithos.memory_tool.paths import ROOT, MemoryPath, parse_path
from lithos.memory_tool.positions import line_now
from lithos.memory_tool.refusals import Changed, Exists, Missing, Refusal, StoreProblem
from lithos.memory_tool.stores import MOST_BYTES, MemoryText, Store

COMMANDS: Final = ("view", "create", "str_replace", "insert", "delete", "rename")
#: Maximum number of times that a command is tried if other writers change the file at the same time.
_ATTEMPTS: Final = 20
#: Number of texts to remember as the model last saw them, and the maximum number of characters of each.
_REMEMBERED, _LONGEST_REMEMBERED = 64, 200_000
#: Number of levels and maximum number of rows of the view of a folder.
_LEVELS, _MOST_ROWS = 2, 1_000

#: Return the value of an argument of the command, or None if it is absent.
Argument = Callable[[str], Any]


@define(eq=False)
class Memory:
    """Carries out commands one after the other. It may be used from several threads."""

    _store: Store
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    #: File texts as the model last saw them. The lines of an insertion are counted in them.
    _seen: OrderedDict[str, str] = field(factory=OrderedDict, init=False)

    def run(self, command: str, argument: Argument) -> str:
        """Return the answer to a command. Raise `Refusal` if it cannot be carried out."""
        if command not in COMMANDS:
            raise Refusal(f"Unknown command: {command!r:.100}. Use one of: {', '.join(COMMANDS)}.")
        with self._held():
            answer: str = getattr(self, f"_{command}")(argument)
            return answer

    def clear(self) -> str:
        """Delete all memory files."""
        root = parse_path(ROOT)
        with self._held():
            while names := [each.name for each in self._store.entries(root) if "/" not in each.name]:
                for name in names:
                    self._store.remove(MemoryPath(f"{ROOT}/{name}", (name,)))
            self._seen.clear()
        return "All memory cleared"

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Keep other commands out, and translate a change by others for which the command has no answer."""
        with self._lock, self._store.hold():
            try:
                yield
            except StoreProblem as problem:
                raise Refusal(
                    "The memory was changed by others at the same time. View the directory and try again."
                ) from problem

    def _view(self, argument: Argument) -> str:
        path = parse_path(argument("path"))
        view_range = _range(argument("view_range"))
        looks_like_file = "." in path.normal
        if not looks_like_file and self._store.is_folder(path):
            return self._listing(path)
        try:
            text = self._store.read(path).text
        except Missing:
            if looks_like_file and self._store.is_folder(path):
                return self._listing(path)
            raise texts.missing(path.given) from None
        self._remember(path, text)
        return texts.view_of(path.given, text, view_range)

    def _listing(self, path: MemoryPath) -> str:
        entries = self._store.entries(path)
        shown = [each for each in entries if each.name.count("/") < _LEVELS]
        rows = [(each.size, each.name + "/" * each.is_folder) for each in shown[:_MOST_ROWS]]
        total = sum(each.size or 0 for each in entries if not each.is_folder)
        return texts.listing_of(path.given, total, rows, len(shown) - len(rows))

    def _create(self, argument: Argument) -> str:
        path, text = _file(argument("path")), _text(argument, "file_text")
        _check_size(path, text)
        try:
            self._store.create(path, text)
        except Exists:
            raise Refusal(f"File {path.given} already exists") from None
        self._remember(path, text)
        return f"File created successfully at: {path.given}"

    def _str_replace(self, argument: Argument) -> str:
        path = _file(argument("path"))
        old, new = _text(argument, "old_str"), _text(argument, "new_str", "")
        changed = 0

        def change(now: str) -> str:
            nonlocal changed
            text, changed = texts.replaced(path.given, now, old, new)
            return text

        wanted, stored = self._change(path, change)
        if stored != wanted and new and (place := stored.find(new)) >= 0:
            changed = stored.count("\n", 0, place)
        return texts.snippet_of(stored, changed)

    def _insert(self, argument: Argument) -> str:
        path, added = _file(argument("path")), _text(argument, "insert_text")
        line = argument("insert_line")
        if not isinstance(line, int) or isinstance(line, bool):
            raise Refusal(f"Invalid `insert_line` parameter: {line!r:.100}. It should be a line number.")

        seen = self._seen.get(path.normal)
        self._change(
            path, lambda now: texts.inserted(now, line if seen is None else line_now(seen, now, line), added)
        )
        lines = len(texts.lines_of(seen)) if seen else 0
        if seen is not None and 0 <= line <= lines:
            # The answer does not show the lines of others, so the model still counts in the text it knows.
            self._remember(path, texts.inserted(seen, line, added))
        return f"The file {path.given} has been edited."

    def _delete(self, argument: Argument) -> str:
        path = parse_path(argument("path"))
        if path.is_root:
            raise Refusal("Cannot delete the /memories directory itself")
        try:
            self._store.remove(path)
        except Missing:
            raise Refusal(f"The path {path.given} does not exist") from None
        self._forget(path)
        return f"Successfully deleted {path.given}"

    def _rename(self, argument: Argument) -> str:
        old, new = parse_path(argument("old_path")), parse_path(argument("new_path"))
        if old.is_root:
            raise Refusal("Cannot rename the /memories directory itself")
        if new.is_root:
            raise Refusal(f"The destination {new.given} already exists")
        if new.is_below(old):
            raise Refusal(f"The path {old.given} cannot be moved into itself ({new.given}).")
        try:
            self._store.move(old, new)
        except Missing:
            raise Refusal(f"The path {old.given} does not exist") from None
        except Exists:
            raise Refusal(f"The destination {new.given} already exists") from None
        self._forget(old)
        return f"Successfully renamed {old.given} to {new.given}"

    def _change(self, path: MemoryPath, change: Callable[[str], str]) -> tuple[str, str]:
        """Apply a change to the current text of a file, again if another writer changes it meanwhile.

        Return the text with the change, and the stored text, which also has merged changes of others.
        """
        for _ in range(_ATTEMPTS):
            now = self._read(path)
            wanted = change(now.text)
            _check_size(path, wanted)
            try:
                stored = self._store.replace(path, wanted, now.version)
            except Changed:
                continue
            except Missing:
                raise texts.missing(path.given) from None
            self._remember(path, stored)
            return wanted, stored
        raise Refusal(
            f"The file {path.given} was changed by others {_ATTEMPTS} times while it was edited. Nothing was "
            "changed. View it and try again."
        )

    def _read(self, path: MemoryPath) -> MemoryText:
        try:
            return self._store.read(path)
        except Missing:
            if self._store.is_folder(path):
                raise Refusal(f"The path {path.given} is not a file.") from None
            raise texts.missing(path.given) from None

    def _remember(self, path: MemoryPath, text: str) -> None:
        self._seen.pop(path.normal, None)
        if len(text) <= _LONGEST_REMEMBERED:
            self._seen[path.normal] = text
        while len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)

    def _forget(self, path: MemoryPath) -> None:
        for known in [
            each for each in self._seen if parse_path(each) == path or parse_path(each).is_below(path)
        ]:
            del self._seen[known]


def _file(given: object) -> MemoryPath:
    """Return the path of a file. `/memories` and paths that end in a slash are folders."""
    path = parse_path(given)
    if path.is_root or str(given).endswith("/"):
        raise Refusal(f"The path {path.given} is not a file.")
    return path


def _text(argument: Argument, name: str, default: str | None = None) -> str:
    value = argument(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise Refusal(f"The parameter `{name}` must be a text, got: {value!r:.100}. Nothing was changed.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Refusal(f"The parameter `{name}` has half a character. Send whole characters.") from None
    return value


def _range(value: object) -> tuple[int, ...] | None:
    """Return the parts of `view_range`, which is optional."""
    if value is None:
        return None
    if not isinstance(value, (list, tuple)) or any(
        not isinstance(each, int) or isinstance(each, bool) for each in value
    ):
        raise Refusal(f"The parameter `view_range` must be two line numbers ([1, 20]), got: {value!r:.100}.")
    return tuple(value)


def _check_size(path: MemoryPath, text: str) -> None:
    size = len(text.encode())
    if size > MOST_BYTES:
        raise Refusal(
            f"The text of {path.given} has {size:,} bytes, and the limit is {MOST_BYTES:,}. "
            "Nothing was changed. Keep the memory in several files."
        )
