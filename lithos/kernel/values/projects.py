"""Projects: the keys that identify them, and the project of the call that is being served.

See docs/spec/projects.md §1. A project is a repository, or a folder without one. Its key is the host and path
of the repository's origin, such as `github.com/acme/shop`, or else the name of a folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Final
from unicodedata import category, normalize
from urllib.parse import unquote, urlsplit

from attrs import frozen

from lithos.kernel.values.errors import InvalidInput

#: Maximum number of characters of a key.
LONGEST_KEY: Final = 300
#: Maximum number of projects of one note. Further values of the property are ignored.
MOST_OF_NOTE: Final = 20
#: Frontmatter property with the projects of a note.
PROPERTY: Final = "project"
#: HTTP header with the project of a call, and header with the client session in which a hook runs.
PROJECT_HEADER: Final = b"lithos-project"
SESSION_HEADER: Final = b"lithos-session"
#: Value of the argument `project` that asks for the notes of all projects.
ALL_PROJECTS: Final = "*"
#: Host of a repository that is a folder of this machine (RFC 8089: an empty host means this machine).
_HERE: Final = "localhost"
#: Hosts at which large services also accept SSH, for networks that block port 22.
_SSH_HOSTS: Final = {
    "ssh.github.com": "github.com",
    "altssh.gitlab.com": "gitlab.com",
    "altssh.bitbucket.org": "bitbucket.org",
}
#: An address with a scheme, and the short form of SSH, `user@host:path` (git-clone(1), "GIT URLS").
_WITH_SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
_SHORT_SSH: Final = re.compile(r"(?:[^@/:\s]+@)?(\[[0-9a-fA-F:.]+\]|[^@/:\s\\]{2,}):(?!//)(.*)")
_WIKI_LINK: Final = re.compile(r"\[\[([^\]|#]*)[^\]]*\]\]")
_NO_PROJECT: Final = "/"


def normalise_project(text: str) -> str:
    """Return the project key for an address of a repository, a key, or a name.

    Every way to write the address of one repository gives the same key: with SSH or HTTPS, with a user, a
    port, a final slash or `.git`, and with any case of the host. Raises `InvalidInput` for a text that is
    empty, too long, or has several lines or characters that cannot be printed.
    """
    text = text.strip()
    # The length is checked first, because normalising many combining marks takes quadratic time.
    if not text or len(text) > 4 * LONGEST_KEY or any(category(each)[0] == "C" for each in text):
        raise InvalidInput(_told(text))
    text = normalize("NFC", text)
    parts = _parts_of(text)
    key = "/".join(part for part in parts if part not in ("", "."))
    if not key or len(key) > LONGEST_KEY or ".." in parts:
        raise InvalidInput(_told(text))
    return key


def _told(text: str) -> str:
    return (
        f"{text[:80]!r} is not a project. Give the address of a repository, such as github.com/acme/shop, or "
        f"a name, as one line of at most {LONGEST_KEY} characters."
    )


def _parts_of(text: str) -> list[str]:
    """Return host and path parts of an address, or the parts of a name."""
    if _WITH_SCHEME.match(text):
        try:
            parts = urlsplit(text)
            host, path = parts.hostname or _HERE, unquote(parts.path)
        except ValueError:
            raise InvalidInput(_told(text)) from None
    elif text.startswith("/"):
        host, path = _HERE, text
    elif (found := _SHORT_SSH.fullmatch(text)) is not None:
        host, path = found[1].strip("[]"), found[2]
    else:
        first, _, path = text.partition("/")
        is_host = bool(path) and ("." in first.strip(".") or first.lower() == _HERE)
        if not is_host:
            return _without_git(text).split("/")
        host = first
    host = host.lower().rstrip(".")
    if not path.strip("/"):
        raise InvalidInput(_told(text))
    return [_SSH_HOSTS.get(host, host), *_without_git(path).split("/")]


def _without_git(path: str) -> str:
    path = path.rstrip("/")
    shorter = path.removesuffix(".git")
    return path if shorter == "" or shorter.endswith("/") else shorter


def projects_of(value: object) -> tuple[str, ...]:
    """Return the keys in the frontmatter property of a note: a text, a link, or a list of these.

    Other values are ignored, because a person may use the property for something else.
    """
    match value:
        case [[str(link)]]:  # YAML reads an unquoted [[Shop]] as a list in a list.
            values: Sequence[object] = (f"[[{link}]]",)
        case [*_]:
            values = value
        case _:
            values = (value,)
    keys = dict[str, None]()
    for each in values[:MOST_OF_NOTE]:
        if not isinstance(each, str):
            continue
        found = _WIKI_LINK.fullmatch(each.strip())
        try:
            keys[normalise_project(each if found is None else found[1].rpartition("/")[2])] = None
        except InvalidInput:
            continue
    return tuple(keys)


def same_project(one: str, other: str) -> bool:
    """Return whether two keys name one project. A name without a path also means a key that ends with it.

    Case is ignored, as the large services do in their addresses.
    """
    return not _asked_terms(one).isdisjoint(project_terms((other,)))


def project_terms(keys: Iterable[str]) -> frozenset[str]:
    """Return the terms under which an index stores a note with these project keys."""
    terms = set[str]()
    for key in keys:
        folded = key.casefold()
        terms.add(folded)
        if "/" in folded:
            terms.add(f"{folded.rpartition('/')[2]}/")
    return frozenset(terms or (_NO_PROJECT,))


def _asked_terms(key: str) -> frozenset[str]:
    folded = key.casefold()
    name = folded.rpartition("/")[2]
    return frozenset((folded, name if "/" in folded else f"{name}/"))


@frozen
class ProjectFilter:
    """Filter that passes the notes of one project, and with `has_common` also notes without a project.

    If `key` is empty, only notes without a project pass.
    """

    key: str
    has_common: bool = False

    @cached_property
    def terms(self) -> frozenset[str]:
        """The index terms of which a note must have at least one."""
        own = _asked_terms(self.key) if self.key else frozenset((_NO_PROJECT,))
        return own | {_NO_PROJECT} if self.has_common else own

    def passes(self, keys: Iterable[str]) -> bool:
        """Return whether a note with these project keys passes."""
        return not self.terms.isdisjoint(project_terms(keys))


def read_project(text: str | None, working_in: str | None) -> str | None:
    """Return the key for the argument `project` of a tool: a key, `*`, "" for no project, or None.

    The name of the session's own project means that project. Raises `InvalidInput`.
    """
    if text is None or not text.strip() or text.strip() == ALL_PROJECTS:
        return text if text is None else text.strip()
    key = normalise_project(text)
    return working_in if working_in is not None and same_project(key, working_in) else key


def read_written_project(text: str | None, working_in: str | None) -> str | None:
    """Return the key for the argument `project` of a tool that writes: a key, "" for none, or None.

    Raises `InvalidInput`, also for `*`, because a note or a task belongs to projects that have a name.
    """
    key = read_project(text, working_in)
    if key == ALL_PROJECTS:
        raise InvalidInput(
            "project must not be *, because only reads can ask for all projects. Nothing was changed. Give "
            'one project, such as github.com/acme/shop, or "" for none.'
        )
    return key


#: The project of the call that is being served, or None. `Tools` sets it for each call of a tool.
WORKING_IN: Final[ContextVar[str | None]] = ContextVar("lithos_working_in", default=None)


@contextmanager
def working_in(project: str | None) -> Iterator[None]:
    """Serve the calls in this block as calls from a project. This applies to the current task."""
    token = WORKING_IN.set(project)
    try:
        yield
    finally:
        WORKING_IN.reset(token)


def asked_project(text: str | None) -> ProjectFilter | None:
    """Return the filter for the argument `project` of a tool that reads. None means all projects.

    Raises `InvalidInput`.
    """
    if text is None:
        return None
    key = read_project(text, WORKING_IN.get())
    return None if key is None or key == ALL_PROJECTS else ProjectFilter(key)
