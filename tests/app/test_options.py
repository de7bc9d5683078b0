"""The commands that capabilities declare, what these repeat of slower modules, and retired words."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

import pytest

from lithos.app import options
from lithos.kernel.discovery import declared_in
from lithos.server.command.declaring import CliCommand
from lithos.upkeep import commands as upkeep
from lithos.upkeep.checks.reconcile_indices import SCOPES


def test_the_parser_knows_the_scopes() -> None:
    assert upkeep.SCOPES == SCOPES


def test_commands_have_places_of_their_own() -> None:
    places = [command.place for command in options.COMMANDS.values()]
    assert places == sorted({*places} - {0})


@pytest.mark.parametrize("command", options.COMMANDS.values(), ids=lambda command: command.name)
def test_what_runs_a_command_exists(command: CliCommand) -> None:
    for place in filter(None, (command.runs, command.hook)):
        module, _, function = place.partition(":")
        assert callable(getattr(import_module(module), function))


@pytest.mark.parametrize("declaring", [*declared_in("commands")], ids=lambda module: module.__name__)
def test_commands_are_gone_without_their_capability(
    declaring: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {command.name for command in declaring.COMMANDS}
    monkeypatch.setitem(sys.modules, declaring.__name__, None)
    assert own
    assert {*options.find_commands()} == {*options.COMMANDS} - own


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["top", "--json"], "`lithos top` is no longer a command. Use `lithos inspect health`"),
        (["bundle", "forms"], "Releases run `.ci/bundle.py`."),
        (["serve", "--telemetry-console"], "`--telemetry-console` is no longer an option."),
    ],
)
def test_retired_words_say_what_to_use_instead(
    typed: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        options.parse_arguments(typed)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_errors_inside_of_a_declaration_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "lithos.search.commands")
    monkeypatch.setitem(sys.modules, "lithos.server.command.declaring", None)
    with pytest.raises(ModuleNotFoundError, match="declaring"):
        options.find_commands()
