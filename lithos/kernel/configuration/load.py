"""Configuration loader. Precedence: defaults < YAML file < environment < command-line options.

Specified in docs/spec/cli-config.md §3 and §5.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs
from attrs import field, frozen

from lithos.kernel.configuration.catalogue import DECLARED, SETTINGS, Config, Setting, hide_userinfo
from lithos.kernel.configuration.environment import without_blanks
from lithos.kernel.configuration.rules import Disagreement
from lithos.kernel.configuration.sections import SettingsSection
from lithos.kernel.configuration.sources import (
    ConfigError,
    Layer,
    RawSetting,
    read_environment,
    read_file,
    read_options,
    structure_value,
)
from lithos.kernel.configuration.yaml_file import LONGEST_SHOWN, shorten
from lithos.kernel.settings import StorageConfig

T = TypeVar("T", bound=attrs.AttrsInstance)

LOG_LEVELS: Final = ("debug", "info", "warning", "error", "critical")
LOG_FORMATS: Final = ("json", "text")


@frozen(kw_only=True)
class LoadedConfig:
    """The effective configuration, warnings about ignored values, and the YAML file if one was read."""

    config: Config
    warnings: tuple[str, ...] = ()
    source: Path | None = None
    #: Source of each value, by key. If a key has no source, its value is the default.
    sources: Mapping[str, str] = field(factory=dict)


@frozen(kw_only=True)
class LogSettings:
    """The arguments of `kernel.log.configure_logging`.

    The log settings are read first, so that later errors are logged.
    """

    level: str = "info"
    format: str = "json"


def refuse(problems: Sequence[str]) -> None:
    """Raise `ConfigError` if there are any problems."""
    if problems:
        raise ConfigError(*problems)


def load_config(
    *,
    config_path: Path | None = None,
    data_dir: Path | None = None,
    environment: Mapping[str, str],
    overrides: Mapping[str, Any] | None = None,
    report: Callable[[Sequence[str]], None] = refuse,
) -> LoadedConfig:
    """Read all sources and validate every value, even a value that a source of higher precedence overrides.

    `config_path` and `data_dir` are the global options. `overrides` maps keys such as `server.port` to the
    values of command-line options. If `config_path` is not set, the file is `config.yaml` in the data
    directory, if it exists. Raises `ConfigError` with one line per invalid value. To inspect an installation
    with a possibly broken configuration, pass `report`. It then gets these lines, and invalid values are left
    out.
    """
    typed = dict(overrides or {})
    if data_dir is not None:
        typed["storage.data_dir"] = data_dir
    outer = (read_environment(environment), read_options(typed))
    path, file = config_path, Layer()
    try:
        path = config_path if config_path is not None else find_file(outer, environment)
        file = file if path is None else read_file(path, in_data_dir=config_path is None)
    except ConfigError as error:
        report(error.problems)
    if file.vaults is not None:
        ignored = f"vaults in file {path} has no effect here: one vault without a name is served"
        file = attrs.evolve(file, warnings=(*file.warnings, ignored))
    found_in = path.parent if path is not None and config_path is None else None
    return merge_layers((file, *outer), environment, path, found_in, report)


def merge_layers(
    layers: Sequence[Layer],
    environment: Mapping[str, str],
    source: Path | None,
    found_in: Path | None,
    report: Callable[[Sequence[str]], None] = refuse,
) -> LoadedConfig:
    """Return the configuration from these sources. The last source has the highest precedence.

    `found_in` is explained in `_with_state_of_vault`.
    """
    chosen, wrong = _judge([given for layer in layers for given in layer.given])
    report(wrong)
    try:
        config = _with_state_of_vault(chosen, environment, found_in)
    except ConfigError as error:
        report(error.problems)
        storage = {key: each for key, each in chosen.items() if key.startswith("storage.")}
        config = _with_state_of_vault(storage, environment, found_in)
    return LoadedConfig(
        config=config,
        warnings=tuple(warning for layer in layers for warning in layer.warnings),
        source=source,
        sources={key: each.source for key, each in chosen.items()},
    )


def load_log_settings(environment: Mapping[str, str]) -> LogSettings:
    """Read `LITHOS_LOG_LEVEL` and `LITHOS_LOG_FORMAT`. Raises `ConfigError` for an unknown value."""
    environment = without_blanks(environment)
    level = environment.get("LITHOS_LOG_LEVEL", "info").strip().lower()
    form = environment.get("LITHOS_LOG_FORMAT", "json").strip().lower()
    chosen = (("LITHOS_LOG_LEVEL", level, LOG_LEVELS), ("LITHOS_LOG_FORMAT", form, LOG_FORMATS))
    problems = [
        f"environment variable {name} is {value[:LONGEST_SHOWN]!r}; give one of {', '.join(allowed)}"
        for name, value, allowed in chosen
        if value not in allowed
    ]
    if problems:
        raise ConfigError(*problems)
    return LogSettings(level=level, format=form)


def logs_json(environment: Mapping[str, str]) -> bool:
    """Return whether log lines are JSON.

    If the format is unknown, the error about it is reported in the default format.
    """
    return environment.get("LITHOS_LOG_FORMAT", "").strip().lower() != "text"


def state_of_vault(vault: Path, environment: Mapping[str, str]) -> Path:
    """Return the default data directory of a vault.

    The directory is below `$XDG_DATA_HOME/lithos/` and named after the vault's real path.
    """
    home = Path(environment.get("XDG_DATA_HOME", ""))
    if not home.is_absolute():  # The XDG specification says that relative paths must be ignored.
        home = Path("~/.local/share").expanduser()
    real = os.path.realpath(vault)
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:8]
    return home / "lithos" / f"{os.path.basename(real) or 'vault'}-{digest}"


def _with_state_of_vault(
    chosen: Mapping[str, RawSetting], environment: Mapping[str, str], found_in: Path | None
) -> Config:
    """Return the configuration. If its vault has no data directory, add the default data directory.

    `found_in` is the data directory with the `config.yaml` that was read. It takes precedence over the
    default.
    """
    config = _build(chosen)
    storage = config.of(StorageConfig)
    if storage.vault is None:
        return config
    vault, place = storage.vault.absolute(), storage.data_dir
    if "storage.data_dir" not in chosen:
        place = _place_state(vault, environment) if found_in is None else found_in
    return config.replace(attrs.evolve(storage, vault=vault, data_dir=place))


def _place_state(vault: Path, environment: Mapping[str, str]) -> Path:
    try:
        return state_of_vault(vault, environment)
    except RuntimeError as error:  # The home directory is unknown.
        raise ConfigError(f"storage.vault: {error}; name the data directory with --data-dir") from error


def find_file(layers: Iterable[Layer], environment: Mapping[str, str]) -> Path | None:
    """Return `config.yaml` in the data directory that these sources name, or None. Raises `ConfigError`."""
    keys = ("storage.data_dir", "storage.vault")
    given = [given for layer in layers for given in layer.given if given.key in keys]
    chosen = _judge(given)[0]  # An invalid value is reported later, together with all other invalid values.
    directory: Path = SETTINGS["storage.data_dir"].default
    if "storage.data_dir" in chosen:
        directory = chosen["storage.data_dir"].value
    elif "storage.vault" in chosen and chosen["storage.vault"].value is not None:
        directory = _place_state(chosen["storage.vault"].value, environment)
    return config_in(directory)


def config_in(directory: Path) -> Path | None:
    """Return `config.yaml` in a data directory if it exists. Raises `ConfigError`."""
    path = directory / "config.yaml"
    try:
        return path if path.exists() else None
    except OSError as error:
        raise ConfigError(f"file {path} cannot be read: {error.strerror or error}") from error


def _judge(given: Iterable[RawSetting]) -> tuple[dict[str, RawSetting], list[str]]:
    """Return the last valid value of each key, and the problems of all invalid values."""
    chosen: dict[str, RawSetting] = {}
    problems: list[str] = []
    for each in given:
        setting = SETTINGS[each.key]
        if each.problem is not None:
            problems.append(each.problem)
            continue
        try:
            value = structure_value(setting, each.value, from_text=each.from_text)
        except ValueError:
            problems.append(_describe_problem(setting, each))
        else:
            chosen[each.key] = attrs.evolve(each, value=value)
    return chosen, problems


def _describe_problem(setting: Setting, given: RawSetting) -> str:
    shown = "the value"
    if not setting.secret:
        shown = _show(given.value)
    return f"{setting.key}: {shown} from {given.source} is not allowed; give {setting.allowed}"


def _show(value: Any) -> str:
    """Return `repr` of a value, truncated for a message.

    A value with YAML aliases may be larger than any memory.
    """
    shown = ""
    for piece in _pieces(value):
        shown += piece
        if len(shown) > LONGEST_SHOWN:
            break
    return shorten(shown)


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield "{"
        for number, (name, each) in enumerate(value.items()):
            yield f"{', ' if number else ''}{hide_userinfo(repr(name))}: "
            yield from _pieces(each)
        yield "}"
    elif isinstance(value, list):
        yield "["
        for number, each in enumerate(value):
            yield ", " if number else ""
            yield from _pieces(each)
        yield "]"
    else:
        yield hide_userinfo(repr(value))


def _build(chosen: Mapping[str, RawSetting]) -> Config:
    tree: dict[str, Any] = {}
    for key, each in chosen.items():
        *sections, name = key.split(".")
        branch = tree
        for section in sections:
            branch = branch.setdefault(section, {})
        branch[name] = each.value
    try:
        return Config(*(_construct(each.kind, _branch(each, tree)) for each in DECLARED))
    except Disagreement as error:
        named = {key: chosen[key].source if key in chosen else "the defaults" for key in error.keys}
        sources = ", ".join(f"{key} is from {source}" for key, source in named.items())
        raise ConfigError(f"{error} ({sources})") from None


def _branch(section: SettingsSection, tree: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of a tree that belongs to a section.

    For the section without a name, return the top-level keys that no other section has.
    """
    if section.name:
        part: Mapping[str, Any] = tree.get(section.name, {})
        return part
    return {each.name: tree[each.name] for each in attrs.fields(section.kind) if each.name in tree}


def _construct(section: type[T], tree: Mapping[str, Any]) -> T:
    kinds = {name: attribute.type for name, attribute in attrs.fields_dict(section).items()}
    parts = {name: kind for name, kind in kinds.items() if kind is not None and attrs.has(kind)}
    values = {name: _construct(parts[name], each) if name in parts else each for name, each in tree.items()}
    return section(**values)
