"""Memory files as notes of a running Lithos server (docs/spec/memory-tool.md §4)."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

from lithos.memory_tool.client import ServerClient, ToolAnswer
from lithos.memory_tool.paths import ROOT, MemoryPath, parse_path
from lithos.memory_tool.refusals import Changed, Exists, Missing, Refusal, StoreProblem
from lithos.memory_tool.stores import MOST_FILES, Listed, MemoryText

#: Author and folder of the notes if the program does not choose them.
CALLER: Final = "memory-tool"
FOLDER: Final = "memory/api"
_NOTE: Final = ".md"
#: Matches the end of a file name that shows the kind of the file, such as `.txt`.
_SUFFIX: Final = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}\Z")
#: First line of notes whose text begins with something that Lithos would take as properties or leave out.
_GUARD: Final = "<!-- memory -->\n"
#: Maximum number of notes with one title, in different spellings of one path.
_MOST_TITLES: Final = 20
#: Maximum number of sizes to remember, and of files whose sizes one view of a folder shows.
_MOST_SIZES, _MOST_MEASURED = 5_000, 50
#: Maximum number of times that a text is read if others change it meanwhile.
_ATTEMPTS: Final = 10


class ServerStore:
    """Notes below `folder`, written by `agent`. The server keeps every version and merges changes."""

    def __init__(self, url: str, token: str | None, agent: str, folder: str) -> None:
        self._client = ServerClient(url, token)
        self._agent = agent
        try:
            self._folder = parse_path(f"{ROOT}/{folder.strip('/')}").relative
        except Refusal as refusal:
            raise ValueError(f"{folder!r} is not a folder for notes: {refusal}") from refusal
        if not self._folder:
            raise ValueError("Give a folder for the notes, such as memory/api.")
        #: Time of update and size of texts by the path of their note.
        self._sizes: OrderedDict[str, tuple[str, int]] = OrderedDict()

    def hold(self) -> AbstractContextManager[None]:
        """Do nothing, because the server takes one change after the other."""
        return nullcontext()

    def read(self, path: MemoryPath) -> MemoryText:
        """Return the text of a note. A long text is read in parts of one version."""
        if path.is_root:
            raise Missing
        return self._load(self._note_of(path))

    def is_folder(self, path: MemoryPath) -> bool:
        """Return whether notes are below the path."""
        if path.is_root:
            return True
        with _failures():
            return next(self._rows(path, 1), None) is not None

    def entries(self, path: MemoryPath) -> Sequence[Listed]:
        """Return the notes below a folder and the folders between. Unknown sizes are None."""
        with _failures():
            rows = list(self._rows(path))
        top = self._prefix_of(path)
        sizes: dict[str, int | None] = {}
        for number, (note, updated_at) in enumerate(rows[:MOST_FILES]):
            size = self._size_of(note, updated_at) if number < _MOST_MEASURED else None
            sizes[_name_of(note[len(top) :])] = size
        folders: dict[str, int] = {}
        for name, size in sizes.items():
            for end in (place for place, sign in enumerate(name) if sign == "/"):
                folders[name[:end]] = folders.get(name[:end], 0) + (size or 0)
        files = [Listed(name, False, size) for name, size in sizes.items()]
        made = [Listed(name, True, size) for name, size in folders.items()]
        return sorted(files + made, key=lambda each: each.name.split("/"))

    def create(self, path: MemoryPath, text: str) -> None:
        """Write a new note. Its title is made from its path, because titles are unique on a server."""
        note = self._note_of(path)
        for number in range(1, _MOST_TITLES + 1):
            title = _title_of(note, number)
            try:
                with _failures():
                    self._client.change(
                        "lithos_write", title=title, content=_guarded(text), path=note, agent=self._agent
                    )
            except _TitleTaken:
                continue
            self._sizes.pop(note, None)
            return
        raise Refusal(f"File {path.given} was not created: too many notes are called {_title_of(note, 1)!r}.")

    def replace(self, path: MemoryPath, text: str, version: str) -> str:
        """Write a text that was made from this version. The server merges it with later changes."""
        note_id, _, number = version.rpartition(":")
        with _failures():
            answer = self._client.change(
                "lithos_write",
                id=note_id,
                content=_guarded(text),
                agent=self._agent,
                expected_version=int(number),
                on_conflict="merge",
                replace_all=True,
            )
        self._sizes.pop(self._note_of(path), None)
        if answer.get("merged_with") is not None:
            return self.read(path).text
        return text

    def remove(self, path: MemoryPath) -> None:
        """Delete a note, or every note below a folder. The server keeps their versions."""
        with _failures():
            below = list(self._rows(path))
            if len(below) > MOST_FILES:
                raise Refusal(f"{path.given} has more than {MOST_FILES:,} files. Delete parts of it first.")
        if not below:
            self._remove_note(self._note_of(path))
            return
        for number, (note, _) in enumerate(below):
            try:
                self._remove_note(note)
            except Missing:
                continue  # Another agent deleted it.
            except (Refusal, StoreProblem) as failure:
                raise Refusal(
                    f"{number} of {len(below)} files of {path.given} were deleted, the others were not: "
                    f"{_reason(failure)}. View the directory."
                ) from failure

    def _remove_note(self, note: str) -> None:
        with _failures():
            self._client.change("lithos_delete", path=note, agent=self._agent)
        self._sizes.pop(note, None)

    def move(self, path: MemoryPath, to: MemoryPath) -> None:
        """Move a note, or every note below a folder."""
        with _failures():
            if next(self._rows(to, 1), None) is not None:
                raise Exists
            if path.names == to.names:
                raise Exists if self._has_note(path) else Missing
            below = [note for note, _ in self._rows(path)]
        if len(below) > MOST_FILES:
            raise Refusal(f"{path.given} has more than {MOST_FILES:,} files. Move its directories first.")
        if not below:
            try:
                self._move_note(self._note_of(path), self._note_of(to))
            except Missing:
                raise Exists if self._has_note(to) else Missing from None
            return
        old, new = self._prefix_of(path), self._prefix_of(to)
        for number, note in enumerate(below):
            try:
                self._move_note(note, new + note[len(old) :])
            except Missing:
                continue  # Another agent deleted it.
            except (Refusal, StoreProblem) as failure:
                raise Refusal(
                    f"{number} of {len(below)} files of {path.given} were moved to {to.given}: "
                    f"{_reason(failure)}. View both directories."
                ) from failure

    def _move_note(self, note: str, target: str) -> None:
        with _failures():
            title = self._client.call("lithos_read", path=note, outline=True, agent_id=self._agent)["title"]
            moved = self._client.change("lithos_note_move", path=note, to=target, agent=self._agent)
        self._sizes.pop(note, None)
        if title == _title_of(note, 1):
            try:
                with _failures():
                    self._client.change(
                        "lithos_note_update", id=moved["id"], title=_title_of(target, 1), agent=self._agent
                    )
            except _TitleTaken:
                return  # The file has its new path. Another note has the title that fits the path.

    def _has_note(self, path: MemoryPath) -> bool:
        note = self._note_of(path)
        with _failures():
            items = self._client.call("lithos_list", path_prefix=note, limit=1).get("items", [])
        return any(item["path"] == note for item in items)

    def _rows(self, path: MemoryPath, most: int = MOST_FILES + 1) -> Iterator[tuple[str, str]]:
        """Yield the paths of the notes below a folder, at most `most`, each with its time of update."""
        top, offset = self._prefix_of(path), 0
        while offset < most:
            answer = self._client.call("lithos_list", path_prefix=top, limit=min(most, 200), offset=offset)
            items = answer.get("items", [])
            for item in items:
                if item["path"].startswith(top) and item["path"].endswith(_NOTE):
                    yield item["path"], str(item.get("updated_at", ""))
            offset += len(items)
            if not items or offset >= int(answer.get("total", 0)):
                return

    def _prefix_of(self, path: MemoryPath) -> str:
        return "/".join((self._folder, *path.names)) + "/"

    def _note_of(self, path: MemoryPath) -> str:
        """Return the path of the note that keeps a file. Other files than `.md` get this suffix too."""
        note = "/".join((self._folder, *path.names))
        return note if note.endswith(_NOTE) else note + _NOTE

    def _size_of(self, note: str, updated_at: str) -> int | None:
        """Return the size of a text. It is remembered until the note changes (a list has whole seconds)."""
        known = self._sizes.get(note)
        if known is not None and known[0] == updated_at:
            return known[1]
        try:
            text = self._load(note)
        except Missing:
            return None  # It was deleted since it was listed.
        self._sizes[note] = (updated_at, len(text.text.encode()))
        while len(self._sizes) > _MOST_SIZES:
            self._sizes.popitem(last=False)
        return self._sizes[note][1]

    def _load(self, note: str) -> MemoryText:
        """Return the text of a note. A long text is read in parts, again if it changes meanwhile."""
        for _ in range(_ATTEMPTS):
            parts: list[str] = []
            versions: set[str] = set()
            offset: int | None = 0
            while offset is not None:
                given = {"path": note, "agent_id": self._agent, "offset": offset}
                with _failures():
                    answer = self._client.call("lithos_read", **given)
                parts.append(answer["content"])
                versions.add(f"{answer['id']}:{answer['version']}")
                offset = answer.get("next_offset") if answer.get("truncated") else None
            if len(versions) == 1:
                text = "".join(parts).removeprefix(_GUARD)
                # An answer has no line break at the end. The file has the kind of its other lines.
                ending = "\r\n" if text.count("\r\n") == text.count("\n") > 0 else "\n"
                return MemoryText(text + ending if text and not text.endswith("\n") else text, versions.pop())
        raise Refusal(f"{note} changed {_ATTEMPTS} times while it was read. Try again.")


class _TitleTaken(StoreProblem):
    """Another note has the title."""


def _reason(failure: Exception) -> str:
    return str(failure).rstrip(".") or f"{type(failure).__name__.lower()} at the same time"


@contextmanager
def _failures() -> Iterator[None]:
    """Raise the exceptions of a store for refusals of the server."""
    try:
        yield
    except ToolAnswer as refusal:
        match refusal.code:
            case "doc_not_found" | "note_not_found":
                raise Missing from refusal
            case "version_conflict":
                raise Changed from refusal
            case "path_collision":
                raise Exists from refusal
            case "slug_collision":
                raise _TitleTaken from refusal
        raise Refusal(str(refusal)) from refusal


def _guarded(text: str) -> str:
    """Return the content of a note with this text.

    Lithos would take `---` at the beginning as properties, and leave out blank lines there.
    """
    first = text.split("\n", 1)[0]
    needs_guard = not first.strip() or first.lstrip("\ufeff ").startswith("---") or text.startswith(_GUARD)
    return _GUARD + text if text and needs_guard else text


def _title_of(note: str, number: int) -> str:
    """Return the title of the note with this path. A title is used once, so further ones have a number."""
    folder, _, name = note.removesuffix(_NOTE).rpartition("/")
    return f"{name} ({folder})" + (f" {number}" if number > 1 else "")


def _name_of(note: str) -> str:
    """Return the name of a file for the path of its note: `notes.txt.md` keeps `notes.txt`."""
    name = note.removesuffix(_NOTE)
    return name if _SUFFIX.search(name) else note
