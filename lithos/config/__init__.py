"""The configuration: frozen values, where they come from, and what they may be.

A leaf of the import graph: it imports nothing else of Lithos.
"""

from lithos.config.catalogue import SETTINGS, Config, Setting, as_public_dict
from lithos.config.errors import ConfigError
from lithos.config.lcma import LcmaConfig, LlmConfig
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
    IndexConfig,
    SearchConfig,
    ServerConfig,
    StorageConfig,
    TelemetryConfig,
)

__all__ = [
    "SETTINGS",
    "Config",
    "ConfigError",
    "CoordinationConfig",
    "EventsConfig",
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
