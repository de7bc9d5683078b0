"""Blank environment variables (docs/spec/cli-config.md §5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithos.kernel.configuration.catalogue import SETTINGS, SHORT_VARIABLES
from lithos.kernel.configuration.environment import without_blanks
from lithos.kernel.configuration.load import load_config, logs_json
from lithos.kernel.configuration.sources import LOG_VARIABLES
from lithos.server.command.declaring import CliCommand, Invocation
from lithos.server.command.session import read_log_settings

#: Every variable of Lithos, two retired variables, and a variable that does not exist.
VARIABLES = (
    *(setting.variable for setting in SETTINGS.values()),
    *SHORT_VARIABLES,
    *LOG_VARIABLES,
    "LITHOS_ENVIRONMENT",
    "LITHOS_OTEL_ENABLED",
    "LITHOS_NO_SUCH_SETTING",
)


@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
def test_blank_variables_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blank: str) -> None:
    """behaviour 337: neither settings nor warnings nor the log level."""
    monkeypatch.chdir(tmp_path)
    without = load_config(environment={})
    loaded = load_config(environment=dict.fromkeys(VARIABLES, blank))
    assert loaded == without
    for name in VARIABLES:
        monkeypatch.setenv(name, blank)
    assert read_log_settings("error").level == "error"
    assert logs_json({"LITHOS_LOG_FORMAT": blank}) is True


@pytest.mark.needs("clients")
def test_hooks_ignore_blank_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """behaviour 337"""
    from lithos.clients.hooks import owner  # noqa: PLC0415 - the package may be absent

    monkeypatch.chdir(tmp_path)
    for name in VARIABLES:
        monkeypatch.setenv(name, " ")
    asked = Invocation(CliCommand("brief", "brief"), None, None, as_json=False, typed={})
    assert owner.find_data(asked) == (Path("data"), None)


def test_only_blank_variables_of_lithos_are_left_out() -> None:
    """behaviour 337"""
    assert without_blanks({"LITHOS_PORT": " ", "LITHOS_HOST": "h", "EMPTY": ""}) == {
        "LITHOS_HOST": "h",
        "EMPTY": "",
    }
