"""Reader for exported ChatGPT and Claude conversations. A conversation becomes one or more notes.

The source is `conversations.json`, the numbered files of newer ChatGPT exports, a folder with these files, or
the downloaded .zip file. Files are read as streams. At most one conversation, of up to 32 MB, is in memory at
a time.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from attrs import define, evolve, field, frozen

from lithos.imports.files.reading import read_head
from lithos.imports.model import chats
from lithos.imports.model.chats import NoConversation
from lithos.imports.model.conversation import Conversation, blocks_of, parts_of
from lithos.imports.model.importing import MOST_CONTENT, ImportRefused, Item, Malformed, Record, RecordEdge
from lithos.imports.model.json_items import Damaged, read_items
from lithos.imports.model.texts import digest
from lithos.kernel.values.graphemes import beginning
from lithos.kernel.values.times import format_optional
from lithos.notes.links.links import scan_targets
from lithos.notes.model.paths import slug_of

#: Relation from a part of a conversation to the preceding part.
CONTINUES: Final = "continues"
#: Number of bytes to read for recognising the program. The first conversation may begin with a summary before
#: its messages.
_HEAD: Final = 16_384
_EXPORT: Final = re.compile(r"conversations(-\d+)?\.json")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_TITLE_LENGTH: Final = 80
#: Placeholder for an image or for another item without text.
_MARK: Final = re.compile(r"^\[[^\]\n]*\]$", re.MULTILINE)
#: Errors caused by a damaged .zip file. `zipfile` raises the last two for unknown methods and for passwords.
_READ_FAILED: Final = (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


@frozen
class _Kind:
    """The properties that distinguish the exports of the two programs."""

    name: str
    program: str
    #: A JSON key, including its quotes, that only conversations of this program have.
    key: bytes
    address: str
    read: Callable[[Any], Conversation]
    is_other: Callable[[Any], bool]
    other: str


_CHATGPT: Final = _Kind(
    "chatgpt", "ChatGPT", b'"mapping"', "https://chatgpt.com/c/", chats.read_chatgpt,
    chats.is_claude, "claude",
)  # fmt: skip
_CLAUDE: Final = _Kind(
    "claude", "Claude", b'"chat_messages"', "https://claude.ai/chat/", chats.read_claude,
    chats.is_chatgpt, "chatgpt",
)  # fmt: skip
_KINDS: Final = (_CHATGPT, _CLAUDE)


class Conversations:
    """Source of kind `chatgpt` or `claude`. The text of a note has at most `most_content` bytes."""

    def __init__(self, kind: _Kind, most_content: int) -> None:
        self.kind, self.most_content, self._kind = kind.name, most_content, kind

    def recognises(self, path: Path) -> bool:
        """Return whether this program wrote the first conversation of the export."""
        # An unreadable file is not recognised. If the kind is given, `read` refuses the file with the reason.
        with suppress(*_READ_FAILED):
            exports = _find_exports(path)
            return bool(exports) and _program_of(exports[0].head()) is self._kind
        return False

    def read(self, path: Path) -> Iterator[Item]:
        """Read the conversations of the export. Raises `ImportRefused`."""
        exports = self._open(path)
        reading = _Reading(self._kind, self.most_content)
        for export in exports:
            try:
                with export.open() as file:
                    yield from reading.read(export.name, file)
            except _READ_FAILED as error:
                yield Malformed(export.name, f"the rest cannot be read ({error or type(error).__name__})")

    def _open(self, path: Path) -> list[_Export]:
        try:
            exports = _find_exports(path)
            heads = [export.head() for export in exports]
        except _READ_FAILED as error:
            raise ImportRefused(
                f"{path} cannot be read ({error or type(error).__name__}). Download the export again, "
                "or unpack it and name the folder."
            ) from error
        if not any(head.lstrip()[:1] in (b"[", b"{") for head in heads):
            raise ImportRefused(
                f"{path} is not an export of {self._kind.program}: it has no conversations.json "
                "with a list of conversations. Name that file, its folder, or the .zip as "
                "downloaded."
            )
        return exports


def chatgpt_source(most_content: int = MOST_CONTENT) -> Conversations:
    """Return the source of kind `chatgpt`."""
    return Conversations(_CHATGPT, most_content)


def claude_source(most_content: int = MOST_CONTENT) -> Conversations:
    """Return the source of kind `claude`."""
    return Conversations(_CLAUDE, most_content)


def _program_of(head: bytes) -> _Kind | None:
    """Return the program that wrote the conversation at the beginning of `head`, or None."""
    if head.lstrip()[:1] not in (b"[", b"{"):
        return None
    places = [(place, number) for number, kind in enumerate(_KINDS) if (place := head.find(kind.key)) >= 0]
    return _KINDS[min(places)[1]] if places else None


@frozen
class _Export:
    """One file with conversations, in a folder or as `member` of a .zip file."""

    path: Path
    member: str | None = None

    @property
    def name(self) -> str:
        """Return the file name without suffix, such as `conversations`. Reports use it for positions."""
        return PurePosixPath(self.member or self.path.name).stem

    def head(self) -> bytes:
        """Return the first bytes of the file."""
        if self.member is None:
            return read_head(self.path, _HEAD)
        with self.open() as file:
            return file.read(_HEAD)

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the file as a byte stream. Both programs write UTF-8."""
        if self.member is None:
            with self.path.open("rb") as file:
                yield file
            return
        with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as inner:
            yield inner


def _find_exports(path: Path) -> list[_Export]:
    """Return the conversation files in order. Read errors are raised unchanged."""
    if path.is_dir():
        return [
            _Export(each)
            for each in sorted(path.iterdir())
            if _EXPORT.fullmatch(each.name) and each.is_file()
        ]
    if not path.is_file():
        return []
    if not zipfile.is_zipfile(path):
        return [_Export(path)]
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if _EXPORT.fullmatch(PurePosixPath(name).name)]
    return [_Export(path, name) for name in sorted(names)]


@define
class _Reading:
    """State while reading one export: the ids and titles used so far."""

    _kind: _Kind
    _most_content: int
    _ids: set[bytes] = field(factory=set, init=False)
    # bounded: 12 bytes for each conversation of an import
    _slugs: set[bytes] = field(factory=set, init=False)

    def read(self, name: str, file: IO[bytes]) -> Iterator[Item]:
        """Yield the conversations of one file."""
        number = 0
        for value in read_items(file):
            inner = value.get("conversations") if isinstance(value, dict) else None
            for each in inner if isinstance(inner, list) else (value,):
                yield from self._value(f"{name}[{number}]", each)
                number += 1

    def _value(self, position: str, value: Any) -> Iterator[Item]:
        if isinstance(value, Damaged):
            yield Malformed(position, value.reason)
            return
        try:
            conversation = self._kind.read(value)
        except NoConversation as error:
            if self._kind.is_other(value):
                yield Malformed(
                    position,
                    f"the conversation is from another program: import it with --from {self._kind.other}",
                )
            else:
                yield Malformed(position, str(error))
            return
        del value
        if not conversation.messages:
            yield Malformed(position, "the conversation has no visible message")
            return
        if not conversation.id:
            conversation = evolve(conversation, id=_derived_id(conversation))
        if not _is_new(self._ids, conversation.id):
            yield Malformed(position, f"the conversation {conversation.id} occurs twice in the export")
            return
        yield from self._records(position, conversation)

    def _records(self, position: str, conversation: Conversation) -> Iterator[Record]:
        said = _title_of(conversation)
        title = self._unique(said, conversation)
        properties: dict[str, Any] = {"conversation_id": conversation.id, **conversation.properties}
        if conversation.model:
            properties["model"] = conversation.model
        properties["messages"] = len(conversation.messages)
        if conversation.hidden:
            properties |= {"other_branches": conversation.branches, "hidden_messages": conversation.hidden}
        moments = (conversation.created_at, conversation.updated_at)
        times = [format_optional(moment) or "" for moment in moments]
        address = self._kind.address + conversation.id if _UUID.fullmatch(conversation.id) else None
        for part in parts_of(lambda: blocks_of(conversation), title, self._most_content):
            if part.count > 1:
                properties = {**properties, "part": part.number, "parts": part.count}
            before = conversation.id if part.number == 2 else f"{conversation.id}#{part.number - 1}"
            yield Record(
                id=conversation.id if part.number == 1 else f"{conversation.id}#{part.number}",
                hash=digest((said, part.said, str(part.count), *times, repr(sorted(properties.items())))),
                position=position,
                title=part.title,
                content=part.text,
                created_at=conversation.created_at,
                updated_at=conversation.updated_at,
                source_url=address if part.number == 1 else None,
                properties=properties,
                edges=(RecordEdge(CONTINUES, before),) if part.number > 1 else (),
                links=len(scan_targets(part.text)),
            )

    def _unique(self, title: str, conversation: Conversation) -> str:
        """Return a unique title. If the title is used, its date is added, and then its id if necessary."""
        at = conversation.created_at
        dated = f"{title} ({at:%Y-%m-%d})" if at else title
        for each in (title, dated, f"{dated} {conversation.id[:8]}"):
            if _is_new(self._slugs, slug_of(each, conversation.id)):
                return each
        return f"{dated} {conversation.id}"


def _is_new(known: set[bytes], text: str) -> bool:
    """Return whether a text is new. Remember 12 bytes of its hash."""
    short = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest()
    if short in known:
        return False
    known.add(short)
    return True


def _derived_id(conversation: Conversation) -> str:
    first = conversation.messages[0]
    return digest(
        (conversation.title, format_optional(conversation.created_at) or "", first.role, first.text)
    )


def _title_of(conversation: Conversation) -> str:
    """Return the title. If it is missing, return the beginning of the first user message, or the date."""
    if conversation.title:
        return conversation.title
    asked = next((message.text for message in conversation.messages if message.role == "User"), "")
    words = " ".join(_MARK.sub("", asked[: 4 * _TITLE_LENGTH]).split())
    if len(words) > _TITLE_LENGTH:
        return words[:_TITLE_LENGTH].rpartition(" ")[0] or beginning(words, _TITLE_LENGTH)
    if words:
        return words
    at = conversation.created_at
    return f"Conversation of {at:%Y-%m-%d}" if at else "Untitled conversation"
