"""Slugs, namespaces and paths of notes below `knowledge/`, and source URLs (docs/spec/notes.md §6 and §7).

Path traversal is prevented by checks of the path text. The store checks that no symlink leads outside the
folder. Source URLs are normalised, so each source is stored only once (docs/spec/notes.md §8).
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit

from anyascii import anyascii

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.graphemes import beginning
from lithos.kernel.values.limits import TITLE
from lithos.text.words.analysis import normalise

SLUG_MAX: Final = 120
#: Maximum number of title characters that are used for the slug. Tools limit titles to the same length, but
#: titles in files may be longer.
_READ: Final = TITLE
#: Path limits in bytes: one name on common file systems, and a whole path, which leaves space for the root
#: folder.
SEGMENT_MAX: Final = 255
PATH_MAX: Final = 2048
DEFAULT_NAMESPACE: Final = "default"
_SUFFIX: Final = ".md"

_SPACE: Final = re.compile(r"[\s_]+")
#: Matches ASCII words that are separated by single spaces or hyphens.
_PLAIN_TITLE: Final = re.compile(r"[A-Za-z0-9]+(?:[ -][A-Za-z0-9]+)*+")
_NOT_SLUG: Final = re.compile(r"[^a-z0-9-]+")
_HYPHENS: Final = re.compile(r"-{2,}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
#: Matches characters that a file system or a wiki-link does not accept in a name.
_NOT_NAME: Final = re.compile(r'[\\/:*?"<>|#^\[\]\x00-\x1f\x7f-\x9f]')
_NAME_EDGES: Final = re.compile(r"\A[\s.]+|[\s.]+\Z")
#: Maximum number of characters, and of bytes, in a file name made from a title. The suffix is not included.
NAME_MAX: Final = 120
NAME_BYTES: Final = 200
#: Names that Windows reserves for devices, in any case and with any extension.
_DEVICES: Final = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$", "clock$"}
    | {f"{kind}{number}" for kind in ("com", "lpt") for number in "0123456789\u00b9\u00b2\u00b3"}
)


def slug_of(title: str, note_id: str) -> str:
    """Return the slug of a title: ASCII, lower case, with hyphens, at most 120 characters, never empty."""
    if len(title) <= SLUG_MAX and _PLAIN_TITLE.fullmatch(title):  # Ordinary titles take this fast path.
        return title.lower().replace(" ", "-")
    words = _SPACE.sub("-", anyascii(title[:_READ]).lower())
    slug = _HYPHENS.sub("-", _NOT_SLUG.sub("", words)).strip("-")[:SLUG_MAX]
    return slug or f"note-{_hex_of(note_id)}"


def file_name_of(title: str, note_id: str) -> str:
    """Return the file name for a title, without the suffix. Obsidian finds the file with `[[title]]`.

    The name is in Unicode NFC, because some disks normalise names. Many disks treat names that differ only in
    case as the same name. Such names also have the same slug, so the check for duplicate slugs keeps them
    apart.
    """
    name = beginning(_NOT_NAME.sub(" ", normalise("NFC", title[:_READ])), NAME_MAX)
    fitting = name.encode("utf-8", "surrogatepass")[:NAME_BYTES].decode("utf-8", "ignore")
    name = beginning(name, len(fitting)) if len(fitting) < len(name) else fitting
    return _NAME_EDGES.sub("", name) or f"note-{_hex_of(note_id)}"


def is_portable(part: str) -> bool:
    """Return whether every disk can store a file with this name.

    Windows device names and names that end with a full stop or a space are not portable.
    """
    return part.rstrip(" .") == part and _device_in(part) is None


def portable_path(path: str) -> str:
    """Return the path with changes to the names that some disks cannot store."""
    return "/".join(map(_portable, path.split("/")))


def _portable(part: str) -> str:
    name = part.rstrip(" .") or "_"
    device = _device_in(name)
    return name if device is None else f"{device}_{name.removeprefix(device)}"


def _device_in(part: str) -> str | None:
    """Return the Windows device name at the beginning of a file name, or None."""
    base = part.partition(".")[0].rstrip(" ")
    return base if base.lower() in _DEVICES else None


def _hex_of(note_id: str) -> str:
    return _NOT_SLUG.sub("", note_id.lower()).replace("-", "")[:8]


def folder_of(path: str) -> str:
    """Return the folder of a relative path. The root folder is ""."""
    return path.rpartition("/")[0]


def names_file(path: str | None) -> bool:
    """Return whether the parameter `path` names a file rather than a folder."""
    return path is not None and path.endswith(_SUFFIX)


def namespace_of(path: str, explicit: str | None) -> str:
    """Return the namespace of a note, in Unicode NFC.

    The namespace is `explicit`, or else the folders of the relative `path`, or else `default`.
    """
    folder = PurePosixPath(path).parent.as_posix()
    return normalise("NFC", explicit or (DEFAULT_NAMESPACE if folder == "." else folder))


def resolve_new_path(path: str | None, name: str) -> str:
    """Return the path of a new note relative to `knowledge/`. `path` is the parameter of the request.

    Without `path`, the note is created in the root folder. If `path` is a folder, the note is created in this
    folder as `name`. If `path` ends in `.md`, it is the exact path of the file. A `name` that some disk
    cannot store is changed, but a `path` never is: check the path with `is_portable`. Raises `InvalidInput`
    for paths that could leave the vault or are not notes.
    """
    name = _portable(name + _SUFFIX).removesuffix(_SUFFIX)
    if path is None or not path.strip():
        return name + _SUFFIX
    segments = _contained_segments(path)
    is_file = names_file(path)
    for folder in segments[:-1] if is_file else segments:
        if folder.endswith(_SUFFIX):
            raise InvalidInput(
                f"folder {folder!r} in path {path!r} must not end in {_SUFFIX}; "
                "only the last part of a path may"
            )
    return _join(segments if is_file else [*segments, name + _SUFFIX])


def resolve_read_path(path: str) -> str:
    """Return the file for the `path` of a read, relative to `knowledge/`. A missing `.md` is added.

    Every note file ends in `.md`. Text after another full stop is therefore part of the name, as in `v1.2
    notes`.
    """
    segments = _contained_segments(path)
    if not names_file(segments[-1]):
        segments[-1] += _SUFFIX
    return _join(segments)


def _contained_segments(path: str) -> list[str]:
    """Return the names in a path that stays below `knowledge/`.

    Raises `InvalidInput` for other paths. Symlinks are not checked.
    """
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
        f"The path {path!r} {reason}. It must be relative and stay within knowledge directory, "
        "like 'folder/note.md'."
    )


_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_TRACKING_KEYS: Final = frozenset(
    {"utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content", "fbclid"}
)
_NOT_IN_HOST: Final = re.compile(r"[\s\\<>\"^`{|}]")
_URL_SPACE: Final = re.compile(r"\s")


def normalise_url(url: str) -> str:
    """Return the stored form of an `http` or `https` address. Raises `InvalidInput` for anything else.

    A stored address is returned unchanged, so the function may be applied repeatedly.
    """
    try:
        parts = _split(url.strip())
        host, port = _host(parts), parts.port
    except ValueError:
        raise InvalidInput(
            f"source_url {url[:200]!r} is not an http or https address. Give an address such as "
            "'https://example.org/page', or leave source_url out."
        ) from None
    address = f"{parts.scheme}://{host}"
    if port is not None and port != _DEFAULT_PORTS[parts.scheme]:
        address += f":{port}"
    pairs = parse_qsl(parts.query, keep_blank_values=True, errors="surrogateescape")
    kept = sorted((pair for pair in pairs if pair[0] not in _TRACKING_KEYS), key=lambda pair: pair[0])
    query = urlencode(kept, errors="surrogateescape")
    return address + _path(parts.path) + (f"?{query}" if query else "")


def host_of(url: str) -> str:
    """Return the host of a stored address in lower case, without port."""
    place = url.partition("://")[2].partition("/")[0].partition("?")[0].lower()
    return place.partition("]")[0] + "]" if place.startswith("[") else place.partition(":")[0]


def _split(url: str) -> SplitResult:
    url.encode()  # `encode` raises an error for lone surrogates, which cannot be stored.
    if _CONTROL.search(url):
        raise ValueError("control character")
    parts = urlsplit(url)
    if parts.scheme not in _DEFAULT_PORTS:
        raise ValueError("scheme")
    return parts


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    if "[" in parts.netloc.rpartition("@")[2]:
        IPv6Address(host)
        return f"[{host}]"
    if _NOT_IN_HOST.search(host) or not any(character.isalnum() for character in host):
        raise ValueError("host")
    return host


def _path(path: str) -> str:
    """Return the path without trailing slashes and `;params`.

    The removal is repeated, because another slash or parameter may then be at the end.
    """
    segments = path.split("/")
    while segments:
        last = segments[-1].partition(";")[0]
        if last:
            segments[-1] = last
            break
        segments.pop()
    return _URL_SPACE.sub(lambda space: quote(space[0]), "/".join(segments))
