"""Several vaults in one process: their names and their configurations.

Specified in docs/spec/cli-config.md §3.1. Each vault is loaded as if it had a separate server, with this
precedence: defaults < file < environment < options < the entry of the vault in `vaults`. The file is the file
that names the vaults. If the command line names the vaults, the file is `--config`, or without that option
the `config.yaml` in the data directory of each vault. The process has only one `server` section: all vaults
use the section of the default vault.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
from attrs import frozen

from lithos.kernel.configuration.load import (
    LoadedConfig,
    config_in,
    find_file,
    merge_layers,
    refuse,
    state_of_vault,
)
from lithos.kernel.configuration.sources import (
    ConfigError,
    Layer,
    RawSetting,
    guess,
    read_environment,
    read_file,
    read_options,
)
from lithos.kernel.configuration.vault_entries import (
    NAME,
    PLACES,
    SHARED,
    DeclaredVault,
    is_shared_warning,
    read_entries,
    split_typed,
    with_own,
)
from lithos.kernel.settings import StorageConfig

#: Value that selects all vaults, in commands that accept several vaults.
EVERY: Final = "*"


@frozen(kw_only=True)
class NamedVault:
    """One of several vaults, with its complete configuration."""

    name: str
    loaded: LoadedConfig
    #: Problems in the configuration, if the caller requested them instead of a `ConfigError`.
    problems: tuple[str, ...] = ()

    @property
    def root(self) -> Path:
        """Return the absolute path of the notes folder."""
        return self.loaded.config.of(StorageConfig).notes_folder

    @property
    def data_dir(self) -> Path:
        """Return the absolute path of the data directory."""
        return self.loaded.config.of(StorageConfig).data_dir


@frozen(kw_only=True)
class ConfiguredVaults:
    """All named vaults in order. If the server has a single vault without a name, the list is empty."""

    configured: tuple[NamedVault, ...] = ()
    #: Name of the vault that calls use if they name no vault.
    default: str | None = None
    #: Vaults that `--vault` selects, without repetitions. For `*`, all vaults.
    chosen: tuple[str, ...] = ()
    #: Whether `--vault` was `*`.
    is_every: bool = False
    #: Whether the command line declares the vaults (`work=~/work`). Otherwise a file declares them.
    is_typed: bool = False
    #: File that names the vaults or contains settings for all vaults.
    source: Path | None = None

    def named(self, name: str) -> NamedVault:
        """Return the vault with this name, which must exist."""
        return next(vault for vault in self.configured if vault.name == name)


def load_vaults(
    *,
    typed: Sequence[str] = (),
    config_path: Path | None = None,
    data_dir: Path | None = None,
    environment: Mapping[str, str],
    overrides: Mapping[str, Any] | None = None,
    is_lenient: bool = False,
) -> ConfiguredVaults:
    """Return the named vaults. The result is empty for a vault without a name, which `load_config` loads.

    `typed` contains the unchanged values of `--vault`. `overrides` contains all other options as in
    `load_config`, without `PLACES`. With `is_lenient`, the problems in a vault's configuration are stored in
    its `problems`. Raises `ConfigError`.
    """
    named, plain = split_typed(typed)
    file = _read_base(bool(named), plain, config_path, data_dir, environment)
    base, path = (Layer(), None) if file is None else file
    entries = list(named or read_entries(base.vaults, path))
    if not entries:
        _refuse_without_vaults(base, path, plain)
        return ConfiguredVaults()
    if data_dir is not None:
        raise ConfigError(
            f"--data-dir {data_dir} cannot be given with named vaults, because each vault has its "
            "own data directory; leave the option out, or set vaults.NAME.data_dir in a file "
            "that --config names"
        )
    chosen = _choose(plain, entries, is_file_named=config_path is not None)
    if chosen is None:
        return ConfiguredVaults()
    _refuse_unnamed(base, path, is_typed=bool(named))
    if named:  # Vaults of the file are not served. They only give settings to typed vaults of the same name.
        own = {entry.name: entry for entry in read_entries(base.vaults, path)}
        entries = [with_own(entry, own.get(entry.name)) for entry in entries]
    default = _default_of(base, path, entries, is_typed=bool(named))
    outer = (read_environment(environment).without(PLACES), read_options(dict(overrides or {})))
    layers = (base.without(PLACES), *outer)
    loaded = [_load(entry, layers, path, environment) for entry in entries]
    if not is_lenient:
        refuse([f"vault {each.name}: {problem}" for each in loaded for problem in each.problems])
    return ConfiguredVaults(
        configured=_share(loaded, default),
        default=default,
        chosen=chosen,
        is_every=EVERY in plain,
        is_typed=bool(named),
        source=path,
    )


def _read_base(
    is_named: bool,
    plain: Sequence[str],
    config_path: Path | None,
    data_dir: Path | None,
    environment: Mapping[str, str],
) -> tuple[Layer, Path] | None:
    """Return the file that may list vaults. Return None for a vault without a name.

    The file is `--config`, or otherwise `config.yaml` in the data directory that applies if no vault is
    named.
    """
    if config_path is not None:
        return read_file(config_path, in_data_dir=False), config_path
    may_be_names = any(text == EVERY or NAME.fullmatch(text) for text in plain)
    surroundings = read_environment(environment)
    has_vault = any(given.key == "storage.vault" for given in surroundings.given)
    if is_named or (plain and not may_be_names) or (has_vault and not plain):
        return None
    typed = read_options({} if data_dir is None else {"storage.data_dir": data_dir})
    try:
        path = find_file((surroundings.without(("storage.vault",)), typed), environment)
        return None if path is None else (read_file(path, in_data_dir=False), path)
    except ConfigError:
        if plain and Path(plain[0]).is_dir():  # a folder, even if other things are wrong
            return None
        if not plain:
            return None  # `load_config` reads the same file and reports its problems.
        raise


def _refuse_without_vaults(base: Layer, path: Path | None, plain: Sequence[str]) -> None:
    """Raise `ConfigError` for options that only make sense with named vaults."""
    if base.default_vault is not None:
        raise ConfigError(
            f"default_vault in file {path} names a vault, but the file has no vaults; name them "
            "(vaults: {work: {path: ~/work}}), or remove default_vault"
        )
    if EVERY in plain:
        raise ConfigError(
            "--vault '*' means all configured vaults, but none has a name here; give the file "
            "that names them with --config, or leave the option out"
        )
    if len(plain) > 1:
        raise ConfigError(
            f"--vault is given {len(plain)} times without names ({', '.join(plain[:5])}): every "
            "vault needs a name if there are several; give NAME=PATH for each, such as "
            "work=~/work"
        )


def _refuse_unnamed(base: Layer, path: Path | None, *, is_typed: bool) -> None:
    """Raise `ConfigError` if a file has both named vaults and a vault without a name."""
    found = sorted({given.key for given in base.given if given.key in PLACES})
    if found and not is_typed:
        raise ConfigError(
            f"{' and '.join(found)} in file {path} defines a vault without a name, in addition to "
            "the named vaults; move it to an entry of vaults (path, data_dir), or remove it"
        )


def _choose(
    plain: Sequence[str], entries: Sequence[DeclaredVault], *, is_file_named: bool
) -> tuple[str, ...] | None:
    """Return the vaults that `--vault` selects. Return None if it names a folder that is not a named vault.

    Raises `ConfigError`.
    """
    names = [entry.name for entry in entries]
    if EVERY in plain:
        return tuple(names)
    chosen: dict[str, None] = {}
    for text in plain:
        found = next((entry.name for entry in entries if _is_at(entry, text)), None)
        if text in names:
            if os.path.isdir(text) and found != text:
                raise ConfigError(
                    f"--vault {text} may be the vault of this name, or the folder {text!r} in the "
                    f"current folder; write ./{text} for the folder, or run the command in "
                    "another folder"
                )
            found = text
        if found is None and not is_file_named and len(plain) == 1 and os.path.isdir(text):
            return None
        if found is None:
            raise ConfigError(
                f"--vault {text} is not a configured vault "
                f"({', '.join(names)}){guess(text, names)}; give one of these names, or serve "
                "that folder alone, without the file that names these vaults"
            )
        chosen[found] = None
    return tuple(chosen)


def _is_at(entry: DeclaredVault, text: str) -> bool:
    try:
        return os.path.realpath(Path(text).expanduser()) == os.path.realpath(entry.path)
    except (RuntimeError, ValueError):  # The home directory is unknown, or the value is not a path.
        return False


def _default_of(base: Layer, path: Path | None, entries: Sequence[DeclaredVault], *, is_typed: bool) -> str:
    names = [entry.name for entry in entries]
    wanted = base.default_vault
    if wanted is None or (is_typed and wanted not in names):
        return names[0]
    if wanted not in names:
        raise ConfigError(
            f"default_vault in file {path} is {str(wanted)[:60]!r}, which is not a configured vault "
            f"({', '.join(names)}){guess(str(wanted), names)}; give one of these names"
        )
    return str(wanted)


def _load(
    entry: DeclaredVault,
    layers: tuple[Layer, ...],
    base: Path | None,
    environment: Mapping[str, str],
) -> NamedVault:
    """Load one vault from the shared layers and from its own layer.

    If there is no shared file, also read the file in the data directory of the vault.
    """
    problems: list[str] = []
    data = entry.data_dir or state_of_vault(entry.path, environment)
    file, own_path = Layer(), None
    try:
        own_path = config_in(data) if base is None else None
        if own_path is not None:
            file = read_file(own_path, in_data_dir=True)
    except ConfigError as error:
        problems += error.problems
    warnings = [*entry.warnings]
    if file.vaults is not None:
        warnings.append(f"vaults in file {own_path} has no effect: it is the file of one vault, {entry.name}")
    places = [(PLACES[0], entry.path), (PLACES[1], data)]
    own = tuple(RawSetting(key, value, entry.source, from_text=False) for key, value in places)
    first, *outer = layers
    last = Layer((*entry.own, *own), tuple(warnings))
    loaded = merge_layers(
        (first, file.without(PLACES), *outer, last), environment, own_path or base, None, problems.extend
    )
    return NamedVault(name=entry.name, loaded=loaded, problems=tuple(problems))


def _share(vaults: Iterable[NamedVault], default: str) -> tuple[NamedVault, ...]:
    """Return the vaults with the process-wide sections of the default vault."""
    found = {vault.name: vault for vault in vaults}
    shared = found[default].loaded
    return tuple(
        vault if vault.name == default else attrs.evolve(vault, loaded=_shared(vault.loaded, shared))
        for vault in found.values()
    )


def _shared(loaded: LoadedConfig, shared: LoadedConfig) -> LoadedConfig:
    def is_shared(key: str) -> bool:
        return key.partition(".")[0] in SHARED

    differing = [
        f"{key} from {source}"
        for key, source in loaded.sources.items()
        if is_shared(key) and shared.sources.get(key) != source
    ]
    sources = {key: source for key, source in loaded.sources.items() if not is_shared(key)}
    return attrs.evolve(
        loaded,
        config=loaded.config.replace(*(shared.config.of(kind) for kind in SHARED.values())),
        warnings=(*loaded.warnings, *map(is_shared_warning, differing)),
        sources={**sources, **{key: each for key, each in shared.sources.items() if is_shared(key)}},
    )
