"""The registry of settings: every setting as one row, which the loader checks and the documentation lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

import attrs
from attrs import field, frozen

from lithos.config.rules import AGENT_SCOPES, Rule, setting
from lithos.config.sections import (
    AttachmentsConfig,
    CareConfig,
    CoordinationConfig,
    EventsConfig,
    HistoryConfig,
    IndexConfig,
    LcmaConfig,
    ProposalsConfig,
    SearchConfig,
    ServerConfig,
    StorageConfig,
    TelemetryConfig,
)

#: Older names that are still read, and the settings they stand for.
OLDER_NAMES: Final[Mapping[str, str]] = MappingProxyType({
    "storage.knowledge_dir": "storage.knowledge_subdir",
    "coordination.claim_ttl_minutes": "coordination.claim_default_ttl_minutes",
})  # fmt: skip

#: Short environment variables, weaker than the long ones.
SHORT_VARIABLES: Final[Mapping[str, str]] = MappingProxyType({
    "LITHOS_DATA_DIR": "storage.data_dir",
    "LITHOS_VAULT": "storage.vault",
    "LITHOS_HOST": "server.host",
    "LITHOS_PORT": "server.port",
    "LITHOS_TRANSPORT": "server.transport",
    "LITHOS_AUTH_TOKEN": "server.auth_token",
    "LITHOS_ENVIRONMENT": "telemetry.environment",
    "LITHOS_OTEL_ENABLED": "telemetry.enabled",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "telemetry.endpoint",
})  # fmt: skip

HIDDEN: Final = "(hidden)"


#: Characters of JSON of a row of a compact search on average, and the rows that it always has room for.
ROOM_OF_ROW: Final = 348
LEAST_ROWS: Final = 10


@frozen(kw_only=True)
class Config:
    """The whole configuration; `Config()` is the defaults."""

    server: ServerConfig = field(factory=ServerConfig)
    storage: StorageConfig = field(factory=StorageConfig)
    search: SearchConfig = field(factory=SearchConfig)
    index: IndexConfig = field(factory=IndexConfig)
    coordination: CoordinationConfig = field(factory=CoordinationConfig)
    proposals: ProposalsConfig = field(factory=ProposalsConfig)
    care: CareConfig = field(factory=CareConfig)
    attachments: AttachmentsConfig = field(factory=AttachmentsConfig)
    events: EventsConfig = field(factory=EventsConfig)
    history: HistoryConfig = field(factory=HistoryConfig)
    telemetry: TelemetryConfig = field(factory=TelemetryConfig)
    lcma: LcmaConfig = field(factory=LcmaConfig)
    agents: Mapping[str, Mapping[str, tuple[str, ...]]] = setting(
        MappingProxyType({}),
        "What agents may change that have no token with patterns of its own, by the name they give: `write`, "
        "and `propose` for what waits for a person.",
        AGENT_SCOPES,
    )

    @property
    def answers_compactly(self) -> bool:
        """Whether answers leave out what is empty, a default or an explanation."""
        server = self.server
        return server.answers == "compact" and server.tools != "full" and server.write_outcomes != "status"

    def room_of_rows(self, limit: int) -> int:
        """Characters of JSON of the rows of a compact search; 0: no limit."""
        return ROOM_OF_ROW * max(LEAST_ROWS, limit) if self.answers_compactly else 0

    @property
    def reads_attachments(self) -> bool:
        """Whether files beside the notes are found and read."""
        enabled = self.attachments.enabled
        return self.storage.vault is not None if enabled is None else enabled


@frozen(kw_only=True)
class Setting:
    """One key: `kind` is the Python type of its value, `allowed` says in words what it takes."""

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
        """The long environment variable of this key."""
        return variable_of(self.key)


def variable_of(key: str) -> str:
    """`server.oauth.issuer` -> `LITHOS_SERVER__OAUTH__ISSUER`."""
    return "LITHOS_" + key.upper().replace(".", "__")


def without_none(kind: Any) -> Any:
    """The type of a setting that may be null."""
    kinds = [each for each in get_args(kind) if each is not NoneType]
    return kinds[0] if get_origin(kind) in (UnionType, Union) and len(kinds) == 1 else kind


def _describe_kind(kind: Any) -> str:
    kind = without_none(kind)
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(get_args(kind))
    return "true or false" if kind is bool else "a text"


def _list_settings(section: type[Any], prefix: str = "") -> Iterator[Setting]:
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


#: Every setting by its key, in the order of the sections.
SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType(
    {setting.key: setting for setting in _list_settings(Config)}
)

#: Every section, nested ones with their dots.
SECTIONS: Final = frozenset(key.rpartition(".")[0] for key in SETTINGS if "." in key)


def hide_userinfo(text: str) -> str:
    """An address without the name and password that it may carry."""
    return re.sub(r"//[^/@\s]*@", "//", text)


def as_public_dict(section: Any, prefix: str = "") -> dict[str, Any]:
    """The configuration as JSON-compatible values; a secret that is set reads `(hidden)`."""
    shown: dict[str, Any] = {}
    for name in (attribute.name for attribute in attrs.fields(type(section))):
        value = getattr(section, name)
        if attrs.has(type(value)):
            shown[name] = as_public_dict(value, f"{prefix}{name}.")
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
