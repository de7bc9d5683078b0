"""The configuration: frozen values, where they come from, and what they may be.

Every room but core may import it; it is a leaf and imports nothing else of Lithos.
Never here: what a setting does.
"""

from lithos.config.catalogue import SETTINGS, Config, Setting, as_public_dict
from lithos.config.load import (
    LoadedConfig,
    LogSettings,
    load_config,
    load_log_settings,
    load_usable_config,
)
from lithos.config.sections import (
    CoordinationConfig,
    EventsConfig,
    HistoryConfig,
    IndexConfig,
    LcmaConfig,
    LlmConfig,
    SearchConfig,
    ServerConfig,
    StorageConfig,
    TelemetryConfig,
)
from lithos.config.sources import ConfigError

__all__ = [
    "SETTINGS",
    "Config",
    "ConfigError",
    "CoordinationConfig",
    "EventsConfig",
    "HistoryConfig",
    "IndexConfig",
    "LcmaConfig",
    "LlmConfig",
    "LoadedConfig",
    "LogSettings",
    "SearchConfig",
    "ServerConfig",
    "Setting",
    "StorageConfig",
    "TelemetryConfig",
    "as_public_dict",
    "load_config",
    "load_log_settings",
    "load_usable_config",
]
