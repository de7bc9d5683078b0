"""Declarations of vaults: `--vault work=~/work`, and the entries of `vaults` in a configuration file.

Specified in docs/spec/cli-config.md §3.1.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
from attrs import frozen

from lithos.kernel.configuration.catalogue import DECLARED, SECTIONS, SETTINGS
from lithos.kernel.configuration.load import refuse
from lithos.kernel.configuration.retired import drop_retired
from lithos.kernel.configuration.sources import MOST_UNKNOWN, ConfigError, RawSetting, flatten, guess
from lithos.kernel.configuration.yaml_file import shorten

#: Settings of the served folders. Only the entry of a named vault may set them for that vault.
PLACES: Final = ("storage.vault", "storage.data_dir")
#: Sections that apply to the whole process, and their classes.
SHARED: Final = {each.name: each.kind for each in DECLARED if each.is_shared}
#: Pattern of a vault name.
NAME: Final = re.compile(r"[a-z0-9-]{1,32}")
_NAMED: Final = re.compile(r"([a-z0-9-]{1,32})=(.*)", re.DOTALL)
_NAMES: Final = "A name has 1 to 32 small letters, digits and dashes"
_ENTRY: Final = "give each vault as `work: {path: ~/work}`"


@frozen
class DeclaredVault:
    """A declared vault: its folder, and the settings that apply only to it."""

    name: str
    path: Path
    data_dir: Path | None
    source: str
    own: tuple[RawSetting, ...] = ()
    warnings: tuple[str, ...] = ()


def split_typed(typed: Sequence[str]) -> tuple[list[DeclaredVault], list[str]]:
    """Return the vaults that are declared like `work=~/work`, and all remaining values.

    Raises `ConfigError`.
    """
    found = [(text, _NAMED.fullmatch(text)) for text in typed]
    plain = [text for text, named in found if named is None]
    entries = [_declared(text, *named.groups()) for text, named in found if named is not None]
    if entries and plain:
        raise ConfigError(
            f"--vault {plain[0]} has no name, and --vault "
            f"{typed[0] if typed[0] != plain[0] else typed[-1]} has one: every vault needs a name "
            "if there are several; give NAME=PATH for each"
        )
    names = [entry.name for entry in entries]
    for name in sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"--vault names {name!r} twice; give each vault a different name")
    return entries, plain


def _declared(text: str, name: str, place: str) -> DeclaredVault:
    if os.path.lexists(text):
        raise ConfigError(
            f"--vault {text} may be a vault named {name!r} at {place}, or the folder {text!r} in "
            f"the current folder; write ./{text} for the folder, or an absolute path after the = "
            "for the named vault"
        )
    if not place.strip():
        raise ConfigError(f"--vault {text} names no folder; give NAME=PATH, such as work=~/work")
    return DeclaredVault(name, _absolute(place, f"--vault {text}"), None, "the command line")


def _absolute(place: str, where: str) -> Path:
    if "\0" in place:
        raise ConfigError(f"{where}: a path has no zero byte; give the path of a folder")
    try:
        os.fsencode(place)
        return Path(os.path.abspath(Path(place).expanduser()))
    except UnicodeEncodeError as error:
        raise ConfigError(f"{where}: the path is not valid text; give the path of a folder") from error
    except RuntimeError as error:  # The home directory is unknown.
        raise ConfigError(f"{where}: {error}; give an absolute path") from error


def read_entries(vaults: Any, path: Path | None) -> Iterator[DeclaredVault]:
    """Yield the vaults in a file. Raises `ConfigError` with all problems of their declarations."""
    if vaults is None or path is None:
        return
    if not isinstance(vaults, Mapping):
        raise ConfigError(f"vaults in file {path} is not a mapping of names; {_ENTRY}")
    problems: list[str] = []
    for name, entry in vaults.items():
        if not isinstance(name, str) or not NAME.fullmatch(name):
            problems.append(
                f"vaults.{shorten(str(name))} in file {path}: this cannot name a vault. {_NAMES}; "
                "a name of only digits must be put in quotes"
            )
            continue
        try:
            yield _read_entry(name, entry, path)
        except ConfigError as error:
            problems += error.problems
    refuse(problems)


def _read_entry(name: str, entry: Any, path: Path) -> DeclaredVault:
    where = f"vaults.{name}"
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{where} in file {path} is not a mapping; {_ENTRY}")
    rest = dict(entry)
    places = {key: rest.pop(key, None) for key in ("path", "data_dir")}
    for key, value in places.items():
        if value is None and key == "path":
            raise ConfigError(f"{where} in file {path} has no path: give the folder of its notes; {_ENTRY}")
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise ConfigError(f"{where}.{key} in file {path} is not a path; give the path of a folder")
    source = f"file {path} ({where})"
    given, warnings = _read_own(rest, where, path, source)
    data = places["data_dir"]
    return DeclaredVault(
        name,
        _absolute(str(places["path"]), f"{where}.path"),
        None if data is None else _absolute(str(data), f"{where}.data_dir"),
        source,
        given,
        warnings,
    )


def _read_own(
    rest: Mapping[str, Any], where: str, path: Path, source: str
) -> tuple[tuple[RawSetting, ...], tuple[str, ...]]:
    """Return the settings of an entry, and warnings about ignored settings. Raises `ConfigError`."""
    given, warnings, problems = list[RawSetting](), list[str](), list[str]()
    for key, value in drop_retired(flatten(rest, "", path), source, warnings):
        if key in PLACES:
            own = "path" if key == "storage.vault" else "data_dir"
            problems.append(
                f"{where}.{key} in file {path}: a named vault has {where}.{own} instead; give that"
            )
        elif key not in SETTINGS:
            known = [*SETTINGS, *SECTIONS, "path", "data_dir"]
            problems.append(
                f"{where}.{shorten(key)} in file {path} is not a setting{guess(key, known)}; "
                "correct the name, or remove the setting"
            )
            if len(problems) >= MOST_UNKNOWN:
                break
        elif key.partition(".")[0] in SHARED:
            warnings.append(is_shared_warning(f"{where}.{key} in file {path}"))
        else:
            given.append(RawSetting(key, value, source, from_text=False))
    refuse(problems)
    return tuple(given), tuple(warnings)


def is_shared_warning(what: str) -> str:
    """Return the warning that a process-wide setting is ignored, and why."""
    return (
        f"{what} is ignored: all vaults share one server, whose settings are those of the file, the "
        "environment and the default vault"
    )


def with_own(entry: DeclaredVault, own: DeclaredVault | None) -> DeclaredVault:
    """Return a vault from the command line with the settings that the file contains for its name."""
    if own is None:
        return entry
    data = own.data_dir if own.path == entry.path else None
    return attrs.evolve(entry, data_dir=data, own=own.own, warnings=own.warnings)
