"""The setup of every command: the parsed invocation, the configuration, logging."""

from __future__ import annotations

import os
import sys

from attrs import frozen

from lithos.cli.options import Invocation
from lithos.cli.streams import LossyStream
from lithos.config.catalogue import Config
from lithos.config.load import load_config, load_log_settings
from lithos.config.sources import ConfigError
from lithos.telemetry import configure_logging, get_logger

#: Options of commands and the settings they stand for.
_SETTINGS = {
    "transport": "server.transport",
    "host": "server.host",
    "port": "server.port",
    "watch": "server.watch_files",
    "tools": "server.tools",
    "telemetry_console": "telemetry.console_fallback",
}


class CommandFailed(Exception):
    """The command ends with `exit_code`; the message says what to do."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@frozen
class Session:
    """One command with its configuration."""

    invocation: Invocation
    config: Config


def load_session(invocation: Invocation) -> Session:
    """Read the configuration and start logging on stderr; raises `CommandFailed` with exit code 2."""
    typed = {_SETTINGS[name]: value for name, value in invocation.typed.items() if name in _SETTINGS}
    try:
        logs = load_log_settings(os.environ)
        loaded = load_config(
            config_path=invocation.config,
            data_dir=invocation.data_dir,
            environment=os.environ,
            overrides=typed,
        )
    except ConfigError as error:
        raise CommandFailed(str(error), exit_code=2) from error
    secrets = [loaded.config.server.auth_token, loaded.config.lcma.llm.api_key]
    # A question at a terminal is not a server: only what is wrong is worth a line there.
    serves = invocation.command == "serve"
    level = logs.level if serves or "LITHOS_LOG_LEVEL" in os.environ else "error"
    if serves:
        sys.stderr = LossyStream(2)
    configure_logging(level, logs.format, sys.stderr, secrets=[text for text in secrets if text])
    for warning in loaded.warnings:
        get_logger("lithos.config").warning("setting ignored", reason=warning)
    return Session(invocation, loaded.config)
