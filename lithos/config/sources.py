"""Where values come from: a YAML file, the environment, typed options. Nothing is judged here yet."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from attrs import frozen

from lithos.config.catalogue import OLDER_NAMES, SECTIONS, SETTINGS, SHORT_VARIABLES, variable_of
from lithos.config.errors import ConfigError

LOG_VARIABLES: Final = ("LITHOS_LOG_LEVEL", "LITHOS_LOG_FORMAT")


@frozen
class Given:
    """One value that somebody gave: `source` says where, in words."""

    key: str
    value: Any
    source: str
    #: Text stands for any type, as in a shell; a YAML file has types of its own.
    from_text: bool


@frozen
class Layer:
    """What one source gave, weakest first, with warnings about what was ignored."""

    given: tuple[Given, ...] = ()
    warnings: tuple[str, ...] = ()


def read_environment(environment: Mapping[str, str]) -> Layer:
    """Values of the known variables; a variable that is set to nothing counts as not set."""
    # A short name is weaker than a long one, and an older name than the one that replaced it.
    names = {
        **SHORT_VARIABLES,
        **{variable_of(old): new for old, new in OLDER_NAMES.items()},
        **{setting.variable: key for key, setting in SETTINGS.items()},
    }
    given = [
        Given(key, environment[name], f"environment variable {name}", from_text=True)
        for name, key in names.items()
        if environment.get(name, "").strip()
    ]
    unknown = sorted(
        name for name in environment
        if name.startswith("LITHOS_") and name not in names and name not in LOG_VARIABLES
    )  # fmt: skip
    warnings = [
        f"environment variable {name} is no setting and is ignored{_guess(name, names)}" for name in unknown
    ]
    return Layer(tuple(given), tuple(warnings))


def read_options(options: Mapping[str, Any]) -> Layer:
    """Options as they were typed; an unknown key is a mistake of the caller (`KeyError`)."""
    return Layer(
        tuple(
            Given(SETTINGS[key].key, value, "the command line", from_text=True)
            for key, value in options.items()
        )
    )


def read_file(path: Path, *, in_data_dir: bool) -> Layer:
    """Values of a YAML file; raises `ConfigError` when it cannot be read or is no mapping."""
    tree = _parse(path)
    if tree is None:
        return Layer()
    if not isinstance(tree, dict):
        raise ConfigError(
            f"file {path}: there must be sections such as `server:` at the top, not a single value or list"
        )
    given: list[Given] = []
    older: list[Given] = []  # weaker than the names that replaced them
    warnings: list[str] = []
    for key, value in _flatten(tree, "", path):
        if key == "storage.data_dir" and in_data_dir:
            warnings.append(f"storage.data_dir in file {path} has no effect: the file was found through it")
        elif key in SETTINGS:
            given.append(Given(key, value, f"file {path}", from_text=False))
        elif key in OLDER_NAMES:
            older.append(Given(OLDER_NAMES[key], value, f"file {path} ({key})", from_text=False))
        else:
            warnings.append(f"{key} in file {path} is no setting and is ignored{_guess(key, SETTINGS)}")
    return Layer((*older, *given), tuple(warnings))


def _parse(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"file {path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"file {path} is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # Neither the parser's excerpt nor its message: both may quote a secret.
        raise ConfigError(
            f"file {path} is not valid YAML{_place(error)}; check the lines around it"
        ) from None


def _place(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return ""
    what = f": {error.problem}" if isinstance(error, yaml.scanner.ScannerError) and error.problem else ""
    return f" at line {mark.line + 1}, column {mark.column + 1}{what}"


def _flatten(tree: Mapping[Any, Any], prefix: str, path: Path) -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        key = f"{prefix}{name}"
        if key not in SECTIONS:
            yield key, value
        elif isinstance(value, dict):
            yield from _flatten(value, key + ".", path)
        elif value is not None:  # a heading with nothing under it is an empty section
            raise ConfigError(
                f"{key} in file {path} is a section; put its settings under it, each on its own line"
            )


def _guess(name: str, known: Mapping[str, Any]) -> str:
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
    return f"; did you mean {nearest[0]}?" if nearest else ""
