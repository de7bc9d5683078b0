"""Configuration sources (YAML file, environment, options) and the conversion of raw values to types.

If a value cannot be converted or breaks its rule, a `ValueError` without details is raised. The loader turns
it into a `ConfigError`, because only the loader can name the key, the source and the allowed values.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import NoneType
from typing import Any, Final, Literal, get_args, get_origin

from attrs import evolve, frozen

from lithos.kernel.configuration.catalogue import (
    OLDER_NAMES,
    SECTIONS,
    SETTINGS,
    SHORT_VARIABLES,
    Setting,
    variable_of,
    without_none,
)
from lithos.kernel.configuration.environment import PREFIX, without_blanks
from lithos.kernel.configuration.retired import drop_retired, tell_retired_variable
from lithos.kernel.configuration.secret_files import FILE, FileSecret, read_secrets
from lithos.kernel.configuration.yaml_file import LONGEST_SHOWN, UnusableFile, read_yaml, shorten

#: Maximum number of problems listed in one message.
MOST_PROBLEMS: Final = 50


class ConfigError(Exception):
    """Error for an invalid configuration. The caller prints the message and exits with code 2.

    `problems` has one line per problem: key, source, value (never of a secret) and the allowed values.
    """

    def __init__(self, *problems: str) -> None:
        if len(problems) > MOST_PROBLEMS:
            more = f"{len(problems) - MOST_PROBLEMS:,} more problems are not shown. Correct these first."
            problems = (*problems[:MOST_PROBLEMS], more)
        super().__init__("\n".join(problems))
        self.problems = problems


_BOOLS: Final = dict.fromkeys(["1", "true", "yes", "on"], True) | dict.fromkeys(
    ["0", "false", "no", "off"], False
)

#: Accepted types of a raw value, for each setting type. The types are listed because Python treats a bool as
#: an int.
_TAKEN: Final[Mapping[Any, tuple[type, ...]]] = {
    bool: (bool,),
    int: (int,),
    float: (float, int),
    str: (str,),
    Path: (str, Path),
}


def _structure(value: Any, kind: Any) -> Any:
    """Convert a value of a YAML file to the type of a setting. Raises `ValueError` for other types."""
    if NoneType in get_args(kind):
        return None if value is None else _structure(value, without_none(kind))
    origin = get_origin(kind)
    if kind in _TAKEN:
        fits = isinstance(value, _TAKEN[kind]) and (kind is bool or not isinstance(value, bool))
        if isinstance(value, str):
            os.fsencode(value)  # A lone surrogate is not text. `UnicodeEncodeError` is a `ValueError`.
        if fits and kind is Path:
            return Path(value).expanduser() if str(value).strip() else _refuse()
        return kind(value) if fits else _refuse()
    if origin is Literal:
        return value if isinstance(value, str) and value in get_args(kind) else _refuse()
    if origin is tuple:
        fits = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
        return tuple(_structure(item, str) for item in value) if fits else _refuse()
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ValueError
    inner = get_args(kind)[1]
    return {_structure(name, str): _structure(each, inner) for name, each in value.items()}


def _refuse() -> Any:
    raise ValueError


def structure_value(setting: Setting, raw: Any, *, from_text: bool) -> Any:
    """Return a raw value converted to the setting's type. Raises `ValueError` if it is invalid.

    With `from_text`, text is parsed like an environment variable.
    """
    if from_text and isinstance(raw, str):
        raw = _read_text(setting.kind, raw.strip())
    try:
        value = _structure(raw, setting.kind)
    except (OverflowError, RuntimeError) as error:  # the number is too large, or the home folder is unknown
        raise ValueError from error
    if setting.convert is not None:
        value = setting.convert(value)
    if value is not None and not setting.rule.accepts(value):
        raise ValueError
    return value


def _read_text(kind: Any, text: str) -> Any:
    kind = without_none(kind)
    origin: Any = get_origin(kind)
    if kind is bool:
        return _BOOLS.get(text.lower(), text)
    if kind is int:
        return int(text) if re.fullmatch(r"[+-]?[0-9]{1,20}", text) else text
    if kind is float:
        return float(text)
    if origin is tuple and not text.startswith("["):
        return [item.strip() for item in text.split(",") if item.strip()]
    if origin in (tuple, Mapping):
        return json.loads(text)  # JSON errors are `ValueError`s.
    return text


#: Maximum number of unknown keys to list. Each listed key has a suggestion.
MOST_UNKNOWN: Final = 20
LOG_VARIABLES: Final = ("LITHOS_LOG_LEVEL", "LITHOS_LOG_FORMAT")


@frozen
class RawSetting:
    """A raw value, and the name of its `source`."""

    key: str
    value: Any
    source: str
    #: Whether text is accepted for every type, as in environment variables. Values in YAML files are typed.
    from_text: bool
    #: Reason why the source has no usable value, or None.
    problem: str | None = None


@frozen
class Layer:
    """The values of one source, and warnings about ignored values."""

    given: tuple[RawSetting, ...] = ()
    warnings: tuple[str, ...] = ()
    #: The unchanged values of `vaults` and `default_vault` in the file
    #: (lithos/kernel/configuration/vaults.py).
    vaults: Any = None
    default_vault: Any = None

    def without(self, keys: Collection[str]) -> Layer:
        """Return a copy of the layer without the values of some keys."""
        return evolve(self, given=tuple(each for each in self.given if each.key not in keys))


def read_environment(environment: Mapping[str, str]) -> Layer:
    """Return the values of all known environment variables. A blank variable counts as unset.

    Blocks if a variable names the file of a secret.
    """
    environment = without_blanks(environment)
    # Long names override short names, and current names override older names.
    names = {
        **SHORT_VARIABLES,
        **{variable_of(old): new for old, new in OLDER_NAMES.items()},
        **{setting.variable: key for key, setting in SETTINGS.items()},
    }
    secret = [name for name, key in names.items() if SETTINGS[key].secret]
    files = dict(read_secrets(secret, environment))
    given = []
    for name, key in names.items():
        found = files.get(name) or FileSecret(name, environment.get(name, ""))
        if found.value.strip() or found.problem:
            source = f"environment variable {found.variable}"
            given.append(RawSetting(key, found.value, source, from_text=True, problem=found.problem))
    known = {*names, *LOG_VARIABLES, *(name + FILE for name in secret)}
    unknown = sorted(
        name for name in environment
        if name.startswith(PREFIX) and name not in known
    )  # fmt: skip
    warnings = [
        tell_retired_variable(name)
        or f"environment variable {name} is not a setting and is ignored{guess(name, names)}"
        for name in unknown
    ]
    return Layer(tuple(given), tuple(warnings))


def read_options(options: Mapping[str, Any]) -> Layer:
    """Return the values of command-line options. An unknown key is a bug in the caller (`KeyError`)."""
    return Layer(
        tuple(
            RawSetting(SETTINGS[key].key, value, "the command line", from_text=True)
            for key, value in options.items()
        )
    )


def read_file(path: Path, *, in_data_dir: bool) -> Layer:
    """Return the values in a YAML file. Raises `ConfigError` if the file is unreadable or not a mapping."""
    try:
        tree = read_yaml(path)
    except UnusableFile as unusable:
        raise ConfigError(str(unusable)) from None
    if tree is None:
        return Layer()
    if not isinstance(tree, dict):
        raise ConfigError(
            f"file {path}: there must be sections such as `server:` at the top, not a single value or list"
        )
    vaults, default_vault = tree.pop("vaults", None), tree.pop("default_vault", None)
    given: list[RawSetting] = []
    older: list[RawSetting] = []  # Values under older names. Values under current names override them.
    warnings: list[str] = []
    unknown: list[str] = []
    for key, value in drop_retired(flatten(tree, "", path), f"file {path}", warnings):
        if key == "storage.data_dir" and in_data_dir:
            warnings.append(f"storage.data_dir in file {path} has no effect: the file was found through it")
        elif key in SETTINGS:
            given.append(RawSetting(key, value, f"file {path}", from_text=False))
        elif key in OLDER_NAMES:
            older.append(RawSetting(OLDER_NAMES[key], value, f"file {path} ({key})", from_text=False))
        else:
            unknown.append(key)
    warnings += [
        f"{shorten(key)} in file {path} is not a setting and is ignored{guess(key, SETTINGS)}"
        for key in unknown[:MOST_UNKNOWN]
    ]
    if len(unknown) > MOST_UNKNOWN:
        more = len(unknown) - MOST_UNKNOWN
        warnings.append(f"{more:,} further keys in file {path} are not settings and are ignored")
    return Layer((*older, *given), tuple(warnings), vaults, default_vault)


def flatten(tree: Mapping[Any, Any], prefix: str, path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the values of all sections with their dotted keys. Raises `ConfigError`."""
    for name, value in tree.items():
        key = f"{prefix}{name}"
        is_section = key in SECTIONS
        if is_section and isinstance(value, dict):
            yield from flatten(value, key + ".", path)
        elif not is_section:
            yield key, value
        elif value is not None:  # A heading without settings below it is an empty section.
            raise ConfigError(
                f"{key} in file {path} is a section; put its settings under it, each on its own line"
            )


def guess(name: str, known: Iterable[str]) -> str:
    """Return a suggestion for an unknown name. It is written as the end of a sentence."""
    nearest = difflib.get_close_matches(name[:LONGEST_SHOWN], known, n=1, cutoff=0.8)
    return f"; did you mean {nearest[0]}?" if nearest else ""
