"""Slugs, namespaces and the place of a note below `knowledge/` as text (notes spec, sections 6 and 7).

Nothing here looks at a disk: that no symlink leads outside is for the store to see.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

from anyascii import anyascii

from lithos.core.errors import InvalidInput

SLUG_MAX: Final = 120
#: Bytes that common file systems take for one name and, with room for the root, for a path.
SEGMENT_MAX: Final = 255
PATH_MAX: Final = 2048
DEFAULT_NAMESPACE: Final = "default"
_SUFFIX: Final = ".md"

_SPACE: Final = re.compile(r"[\s_]+")
_NOT_SLUG: Final = re.compile(r"[^a-z0-9-]+")
_HYPHENS: Final = re.compile(r"-{2,}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def slug_of(title: str, note_id: str) -> str:
    """Return the slug of a title: ASCII, lower case, hyphens, at most 120 characters, never empty."""
    words = _SPACE.sub("-", anyascii(title).lower())
    slug = _HYPHENS.sub("-", _NOT_SLUG.sub("", words)).strip("-")[:SLUG_MAX]
    return slug or "note-" + _NOT_SLUG.sub("", note_id.lower()).replace("-", "")[:8]


def namespace_of(path: str, explicit: str | None) -> str:
    """Return the explicit namespace, else the folders of the relative `path`, else `default`."""
    folder = PurePosixPath(path).parent.as_posix()
    return explicit or (DEFAULT_NAMESPACE if folder == "." else folder)


def resolve_new_path(path: str | None, slug: str) -> str:
    """Return where a new note goes, relative to `knowledge/`, from the parameter `path` and its slug.

    Without `path` the root, with a folder that folder, with a last segment in `.md` exactly that file.
    Raises `InvalidInput` for what could lie outside or be no note.
    """
    if path is None or not path.strip():
        return slug + _SUFFIX
    segments = _contained_segments(path)
    names_file = segments[-1].endswith(_SUFFIX) and not path.endswith("/")
    for folder in segments[:-1] if names_file else segments:
        if folder.endswith(_SUFFIX):
            raise InvalidInput(f"in path {path!r} only the last part may end in {_SUFFIX}, not {folder!r}")
    return _join(segments if names_file else [*segments, slug + _SUFFIX])


def resolve_read_path(path: str) -> str:
    """Return the file a read `path` names, relative to `knowledge/`; `.md` is appended to a bare name."""
    segments = _contained_segments(path)
    if not PurePosixPath(segments[-1]).suffix:
        segments[-1] += _SUFFIX
    return _join(segments)


def _contained_segments(path: str) -> list[str]:
    """Split a path that stays below `knowledge/` by its text alone; raise `InvalidInput` for any other."""
    segments = [segment for segment in path.split("/") if segment]
    if path.startswith("/"):
        raise _refusal(path, "is absolute")
    if not segments:
        raise _refusal(path, "is empty")
    if "\\" in path or _CONTROL.search(path):
        raise _refusal(path, "has a backslash or a control character")
    if any(segment.startswith(".") for segment in segments):
        raise _refusal(path, "has a part that starts with a dot")
    return segments


def _join(segments: list[str]) -> str:
    path = "/".join(segments)
    try:
        longest = max(len(segment.encode()) for segment in segments)
    except UnicodeEncodeError:
        raise _refusal(path, "is not valid Unicode") from None
    if longest > SEGMENT_MAX or len(path.encode()) > PATH_MAX:
        raise _refusal(
            f"{path[:80]}…", f"is too long ({SEGMENT_MAX} bytes for each name, {PATH_MAX} for the whole)"
        )
    return path


def _refusal(path: str, reason: str) -> InvalidInput:
    return InvalidInput(
        f"path {path!r} {reason}; it must be relative and stay within knowledge directory, "
        "like 'folder/note.md'"
    )
