"""Reader for JSON lines: each line is an object with a text and other properties.

The file is read line by line. Memory use depends on the longest line, whose length is limited. Blocks.
"""

from __future__ import annotations

import codecs
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from lithos.imports.files.reading import read_lines, read_moment
from lithos.imports.model.importing import Degraded, ImportRefused, Item, Malformed, Record
from lithos.kernel.databases.private_files import NotRegular, open_regular
from lithos.kernel.values.graphemes import beginning
from lithos.notes.links.links import scan_links

#: Maximum number of bytes in a line. Longer lines are skipped and are never in memory.
LONGEST_LINE: Final = 8 * 1024 * 1024
#: Number of bytes to read for recognising a JSON lines file.
_LOOK: Final = 64 * 1024
#: Maximum number of characters in a title that is made from the text.
_TITLE: Final = 80
#: Maximum number of characters in an id that stays unchanged.
_LONGEST_ID: Final = 200
#: Keys of the text. The first of these keys that exists is used.
_TEXTS: Final = ("text", "memory", "content")
_CREATED: Final = ("created_at", "created", "timestamp", "date")
_UPDATED: Final = ("updated_at", "updated")
_TAGS: Final = ("tags", "categories")
_URLS: Final = ("source_url", "url")


class JsonLinesSource:
    """Source of kind `jsonl`. Each object becomes a note."""

    kind = "jsonl"

    def recognises(self, path: Path) -> bool:
        """Return whether one of the first lines is an object with a text."""
        try:
            with open_regular(path) as file:
                lines = file.read(_LOOK).splitlines()
        except OSError:
            return False
        return any(self._is_one(line) for line in lines[:50])

    def _is_one(self, line: bytes) -> bool:
        try:
            given = json.loads(line.removeprefix(b"\xef\xbb\xbf"))
        except (ValueError, RecursionError):
            return False
        return isinstance(given, dict) and any(isinstance(given.get(key), str) for key in _TEXTS)

    def read(self, path: Path) -> Iterator[Item]:
        """Read the file line by line. Raises `ImportRefused`."""
        try:
            file = open_regular(path, 1 << 20)
        except NotRegular:
            raise ImportRefused(
                f"{path} is not a file of JSON lines. Name a JSON lines file, or choose another "
                "kind with --from."
            ) from None
        except OSError as failure:
            raise ImportRefused(
                f"{path} cannot be read: {failure.strerror or failure}. Check the file and its permissions."
            ) from failure
        with file:
            if file.read(3) != codecs.BOM_UTF8:
                file.seek(0)
            for line in read_lines(file, LONGEST_LINE):
                position = f"line {line.number}"
                if line.data is None:
                    yield Malformed(position, f"the line has more than {LONGEST_LINE:,} bytes; split it")
                else:
                    yield from self._read_line(line.data, position)

    def _read_line(self, line: bytes, position: str) -> Iterator[Item]:
        try:
            given = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
        except UnicodeDecodeError as problem:
            yield Malformed(position, f"byte {problem.start + 1} of the line is not valid UTF-8")
            return
        except RecursionError:
            yield Malformed(position, "the JSON is nested too deeply")
            return
        except ValueError as problem:
            cut = "" if line.endswith(b"\n") else "; the file ends here and may be truncated"
            yield Malformed(position, f"the line is not valid JSON: {problem}{cut}")
            return
        if not isinstance(given, dict):
            yield Malformed(position, "the line is not a JSON object")
            return
        text = next((given[key] for key in _TEXTS if given.get(key) is not None), None)
        if not isinstance(text, str) or not text.strip():
            yield Malformed(position, f"the object has no text: use one of the keys {', '.join(_TEXTS)}")
            return
        if b"\\u" in line and not _is_encodable(given):
            yield Malformed(position, "the text contains half of a character pair (a lone surrogate)")
            return
        yield from _make(given, text, position)


def _make(given: Mapping[str, Any], text: str, position: str) -> Iterator[Item]:
    """Yield the record of an object. Notices about values that had to be changed come first."""
    used = {next(key for key in _TEXTS if given.get(key) is not None)}
    metadata = given.get("metadata")
    properties: dict[str, Any] = dict(metadata) if isinstance(metadata, dict) else {}
    if isinstance(metadata, dict):
        used.add("metadata")
    moments = []
    for keys in (_CREATED, _UPDATED):
        key = next((key for key in keys if given.get(key) is not None), None)
        moment = None if key is None else read_moment(given[key])
        moments.append(moment)
        if key is not None and moment is not None:
            used.add(key)
        elif key is not None:
            yield Degraded(
                position,
                f"{key} {str(given[key])[:100]!r} is not a readable date; it is kept as text",
            )
    tags: list[str] = []
    for key in _TAGS:
        if (found := _tags(given.get(key))) is not None:
            tags += [tag for tag in found if tag not in tags]
            used.add(key)
    if (found := _tags(properties.get("tags"))) is not None:
        tags += [tag for tag in found if tag not in tags]
        del properties["tags"]
    url_key = next((key for key in _URLS if isinstance(given.get(key), str)), None)
    title = given.get("title")
    if isinstance(title, str) and title.strip():
        used.add("title")
    own = given.get("id")
    used |= {"id", *((url_key,) if url_key else ())}
    rest = {key: value for key, value in given.items() if key not in used and value is not None}
    yield Record(
        id=_id_of(own, given),
        hash=_hash(given),
        position=position,
        title=title if isinstance(title, str) and title.strip() else title_of(text),
        content=text,
        tags=tuple(tags),
        created_at=moments[0],
        updated_at=moments[1],
        source_url=given[url_key] if url_key else None,
        properties={**properties, **rest},
        links=len(scan_links(text)),
    )


def _id_of(own: Any, given: Mapping[str, Any]) -> str:
    """Return the id of an object. If it is missing, return a hash of the object's content."""
    if isinstance(own, str | int) and not isinstance(own, bool) and str(own).strip():
        text = str(own).strip()
        return text if len(text) <= _LONGEST_ID else f"{text[:100]}-{_hash({'id': text})}"
    return _hash(given)


def _hash(given: Mapping[str, Any]) -> str:
    text = json.dumps(given, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _tags(value: Any) -> list[str] | None:
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        return None
    return list(dict.fromkeys(tag.strip() for tag in value if tag.strip()))


def title_of(text: str) -> str:
    """Return a title that is made from the first line of a text."""
    line = next((each.strip() for each in text[:10_000].splitlines() if each.strip("#*-> \t")), "")
    line = line.lstrip("#*-> \t")
    if len(line) <= _TITLE:
        return line or "Untitled"
    return line[:_TITLE].rpartition(" ")[0].rstrip(" ,;:") or beginning(line, _TITLE)


def _is_encodable(given: Mapping[str, Any]) -> bool:
    try:
        json.dumps(given, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
