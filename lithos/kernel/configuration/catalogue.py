"""Registry of settings with one row per setting.

The loader checks the rows, and the documentation lists them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin

import attrs
from attrs import frozen

from lithos.kernel.configuration.rules import Rule
from lithos.kernel.configuration.sections import find_sections

S = TypeVar("S")

#: Sections that all packages declare, in the order of their `place`.
DECLARED: Final = find_sections()

#: Older setting names that are still accepted, each with the current name.
OLDER_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {old: new for section in DECLARED for old, new in section.older.items()}
)

#: Short environment variables. A long environment variable overrides its short form.
SHORT_VARIABLES: Final[Mapping[str, str]] = MappingProxyType(
    {name: key for section in DECLARED for name, key in section.short.items()}
)

HIDDEN: Final = "(hidden)"


@frozen(init=False)
class Config:
    """The whole configuration, with one value per section. `Config()` contains the defaults."""

    by_class: Mapping[type[Any], Any]

    def __init__(self, *sections: attrs.AttrsInstance, **named: attrs.AttrsInstance) -> None:
        """Create a configuration from section values. Sections without a value get their defaults."""
        given = {type(each): each for each in (*sections, *named.values())}
        known = {each.kind: given.pop(each.kind, None) or each.kind() for each in DECLARED}
        if given:
            raise TypeError(f"Unknown section {next(iter(given)).__name__}: no capability declares it.")
        self.__attrs_init__(MappingProxyType(known))

    def of(self, kind: type[S]) -> S:
        """Return the values of the section that this class defines."""
        section: S = self.by_class[kind]
        return section

    def replace(self, *sections: attrs.AttrsInstance) -> Config:
        """Return a copy of the configuration with other values of these sections."""
        return Config(*{**self.by_class, **{type(each): each for each in sections}}.values())


@frozen(kw_only=True)
class Setting:
    """One setting. `kind` is the Python type of the value, and `allowed` describes the allowed values."""

    key: str
    kind: Any
    default: Any
    description: str
    allowed: str
    secret: bool
    rule: Rule
    convert: Callable[[Any], Any] | None

    @property
    def variable(self) -> str:
        """Return the long environment variable of this setting."""
        return variable_of(self.key)


def variable_of(key: str) -> str:
    """Return the environment variable of a setting key:

    `server.oauth.issuer` -> `LITHOS_SERVER__OAUTH__ISSUER`.
    """
    return "LITHOS_" + key.upper().replace(".", "__")


def without_none(kind: Any) -> Any:
    """Return the type of a setting without the alternative None."""
    kinds = [each for each in get_args(kind) if each is not NoneType]
    return kinds[0] if get_origin(kind) in (UnionType, Union) and len(kinds) == 1 else kind


def _describe_kind(kind: Any) -> str:
    kind = without_none(kind)
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(get_args(kind))
    return "true or false" if kind is bool else "a text"


def _list_settings(section: type[Any], prefix: str) -> Iterator[Setting]:
    attrs.resolve_types(section)
    for attribute in attrs.fields(section):
        key = prefix + attribute.name
        if attrs.has(attribute.type):
            yield from _list_settings(attribute.type, key + ".")
            continue
        rule: Rule = attribute.metadata["rule"]
        yield Setting(
            key=key,
            kind=attribute.type,
            default=attribute.default,
            allowed=rule.text or _describe_kind(attribute.type),
            **attribute.metadata,
        )


#: All settings by key, in the order of the sections.
SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType(
    {setting.key: setting for each in DECLARED for setting in _list_settings(each.kind, each.prefix)}
)

#: Keys of all sections, including nested sections such as `server.oauth`.
SECTIONS: Final = frozenset(key.rpartition(".")[0] for key in SETTINGS if "." in key)


def hide_userinfo(text: str) -> str:
    """Return an address without its user name and password."""
    return re.sub(r"//[^/@\s]*@", "//", text)


def as_public_dict(config: Config) -> dict[str, Any]:
    """Return the configuration as JSON-compatible values. If a secret is set, its value is `(hidden)`."""
    shown: dict[str, Any] = {}
    for section in DECLARED:
        values = _as_public(config.of(section.kind), section.prefix)
        shown |= {section.name: values} if section.name else values
    return shown


def _as_public(section: Any, prefix: str) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for name in (attribute.name for attribute in attrs.fields(type(section))):
        value = getattr(section, name)
        if attrs.has(type(value)):
            shown[name] = _as_public(value, f"{prefix}{name}.")
        elif SETTINGS[prefix + name].secret:
            shown[name] = None if value is None else HIDDEN
        else:
            shown[name] = _plain(value)
    return shown


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):
        return list(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    return hide_userinfo(str(value))
