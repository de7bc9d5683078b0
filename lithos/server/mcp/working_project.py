"""The project of a folder: its `.lithos-project`, its repository, or its name (docs/spec/projects.md §1).

Only the files of git are read, and git itself is never run, because hooks call this module before each
session and must start fast. The format is that of git-config(1) and gitrepository-layout(5). Settings outside
the repository are ignored: `include.path`, the user's own configuration, and `GIT_DIR`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lithos.kernel.databases.lock import vault_record_of
from lithos.kernel.databases.private_files import open_regular
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.projects import normalise_project

log = get_logger("lithos.front.working_project")

#: File with the key of the folder that contains it.
PROJECT_FILE: Final = ".lithos-project"
#: Maximum number of bytes that are read of a file. A longer configuration of git counts up to there.
_MOST_READ: Final = 512 * 1024
#: Maximum number of folders above the given folder that are searched.
_MOST_FOLDERS: Final = 100
#: Maximum number of repositories that are followed when each is a clone of the next on the same machine.
_MOST_CLONES: Final = 5


def project_of(folder: Path) -> str | None:
    """Return the key of the project to which a folder belongs.

    Return None for the home folder, for `/`, and for folders of a vault that a server serves now. Blocks.
    Unreadable and invalid files are passed over, so this never raises an error.
    """
    try:
        return _find(Path(os.path.realpath(folder)))
    except (OSError, ValueError) as problem:  # The working directory was deleted, or a path contains a null.
        log.debug("folder has no project", reason=str(problem))
        return None


def repository_folder(folder: Path) -> Path | None:
    """Return the folder of the repository that contains a folder, or None. Blocks. Raises `OSError`.

    For a worktree, this is the folder of the main repository.
    """
    real = Path(os.path.realpath(folder))
    for above in (real, *real.parents)[:_MOST_FOLDERS]:
        if (repository := _repository_at(above)) is not None:
            return _folder_of(repository)
    return None


def _find(folder: Path) -> str | None:
    for above in (folder, *folder.parents)[:_MOST_FOLDERS]:
        if (named := _read_line(above / PROJECT_FILE)) is not None:
            return named
        if _is_served(above):
            return None
        if (repository := _repository_at(above)) is not None:
            return _key_of(repository) or _name_of(folder)
    return _name_of(folder)


def _is_served(folder: Path) -> bool:
    """Return whether a folder is a data directory, or a vault that a server serves now.

    An agent that starts there works on the notes of all projects.
    """
    places = (folder / ".lithos" / "lock", vault_record_of(folder, os.environ))
    return any(map(os.path.lexists, places))


def _key_of(repository: Path) -> str | None:
    address = _origin_of(repository)
    return (address and _key(address)) or _name_of(_folder_of(repository))


def _key(text: str) -> str | None:
    try:
        return normalise_project(text)
    except InvalidInput as problem:
        log.debug("project ignored", reason=problem.message)
        return None


def _name_of(folder: Path) -> str | None:
    """Return the name of a folder as a key. The home folder and the folders above it have no key."""
    home = Path(os.path.realpath(os.path.expanduser("~")))
    return None if home.is_relative_to(folder) else _key(folder.name)


def _read_line(path: Path) -> str | None:
    """Return the key in the first line of a file, if the file has one."""
    text = _read(path)
    return None if text is None else _key(text.partition("\n")[0])


def _read(path: Path) -> str | None:
    """Return the start of a file, without a last line that is cut off. Return None if it is not readable."""
    try:
        with open_regular(path) as file:
            data = file.read(_MOST_READ + 1)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        log.debug("file ignored", path=str(path), reason=str(problem))
        return None
    if len(data) > _MOST_READ:
        data = data[:_MOST_READ].rpartition(b"\n")[0]
    # Names of files need not be UTF-8.
    return data.decode("utf-8-sig", "surrogateescape").replace("\r\n", "\n")


def _repository_at(folder: Path) -> Path | None:
    """Return the common git directory of the repository whose root, or git directory, is this folder."""
    git = folder / ".git"
    if os.path.lexists(git / "HEAD"):
        return _common_of(git)
    if (text := _read(git)) is not None and text.startswith("gitdir:"):
        # The folder may be missing, for example in a container with only the worktree. Its path is enough.
        return _common_of(folder / text.removeprefix("gitdir:").strip("\n").lstrip(" "))
    is_bare = all(os.path.lexists(folder / name) for name in ("HEAD", "objects", "config"))
    return _common_of(folder) if is_bare else None


def _common_of(git: Path) -> Path:
    """Return the directory that all worktrees of a repository share."""
    git = Path(os.path.realpath(git))
    if (shared := _read(git / "commondir")) is not None:
        return Path(os.path.realpath(git / shared.strip("\n")))
    return git.parents[1] if git.parent.name == "worktrees" and not git.exists() else git


def _folder_of(repository: Path) -> Path:
    """Return the folder after which a repository is called: the one with `.git`, or itself if it is bare."""
    return repository.parent if repository.name == ".git" else repository


def _origin_of(repository: Path) -> str | None:
    """Return the address of the origin. The origin of a clone of a local folder is that folder's origin."""
    address = None
    for _ in range(_MOST_CLONES):
        origin = _read_origin(_read(repository / "config") or "")
        if origin is None:
            break
        address = origin
        path = _local_path(origin)
        if path is None:
            break
        place = Path(os.path.realpath(_folder_of(repository) / path))
        following = _repository_at(place)
        address = str(place if following is None else _folder_of(following))
        if following is None:
            break
        repository = following
    return address


def _local_path(address: str) -> str | None:
    """Return the path of an address on this machine, as git decides it (git-clone(1), "GIT URLS")."""
    for start in ("file:///", "file://localhost/"):
        if address.startswith(start):
            return f"/{address.removeprefix(start)}"
    return None if ":" in address.partition("/")[0] else address


_BLANK: Final = re.compile(r"(?:\s|[#;][^\n]*+)*+")
_SECTION: Final = re.compile(r'\[([A-Za-z0-9.-]++)(?:[ \t]++"((?:[^"\\\n]|\\[^\n])*+)")?+\]')
_KEY: Final = re.compile(r"([A-Za-z][A-Za-z0-9-]*+)[ \t]*+(=?)")
_PLAIN: Final = re.compile(r'[^"\\#;\n]++')
_QUOTED: Final = re.compile(r'[^"\\\n]++')
_REST: Final = re.compile(r"[^\n]*+")
_ESCAPED: Final = {"n": "\n", "t": "\t", "b": "\b", '"': '"', "\\": "\\"}


def _read_origin(config: str) -> str | None:
    """Return the first address of `origin` in the text of a configuration, with `insteadOf` applied."""
    addresses = list[str]()
    bases = dict[str, str]()
    for section, name, key, value in _settings(config):
        if (section, name, key) == ("remote", "origin", "url"):
            addresses = [*addresses[:1], value] if value else []  # An empty value removes earlier ones.
        elif section == "url" and key == "insteadof":
            bases[value] = name
    if not addresses:
        return None
    start = max(filter(addresses[0].startswith, bases), key=len, default="")
    return bases.get(start, "") + addresses[0].removeprefix(start)


def _settings(config: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield section, subsection, key and value of each setting. Lines that git would refuse are skipped."""
    section = name = ""
    at = 0
    while (at := _skip(_BLANK, config, at)) < len(config):
        if (head := _SECTION.match(config, at)) is not None:
            section, _, dotted = head[1].lower().partition(".")
            name = dotted if head[2] is None else re.sub(r"\\(.)", r"\1", head[2])
            at = head.end()
        elif (key := _KEY.match(config, at)) is not None and key[2]:
            value, at = _read_value(config, key.end())
            yield section, name, key[1].lower(), value
        else:
            at = _skip(_REST, config, at)


def _read_value(config: str, at: int) -> tuple[str, int]:
    """Return the value that begins at `at`, and the position of the end of its line."""
    parts = list[str]()
    is_quoted = False
    while at < len(config) and config[at] != "\n":
        if config[at] == '"':
            is_quoted = not is_quoted
            at += 1
        elif config[at] == "\\":  # Before the end of a line, it joins the next line.
            parts.append(_ESCAPED.get(config[at + 1 : at + 2], ""))
            at += 2
        elif config[at] in "#;" and not is_quoted:
            at = _skip(_REST, config, at)
        else:
            end = _skip(_QUOTED if is_quoted else _PLAIN, config, at)
            parts.append(config[at:end])
            at = end
    return "".join(parts).strip(), at


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return the position after a match of `pattern`, or `at` if nothing matches."""
    found = pattern.match(text, at)
    return at if found is None else found.end()
