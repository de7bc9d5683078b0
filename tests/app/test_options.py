"""The commands that capabilities declare, what these repeat of slower modules, and retired words."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from lithos.access.commands import RIGHTS
from lithos.app import options
from lithos.kernel.values.principals import TOKEN_RIGHTS
from lithos.proposals import commands as proposals
from lithos.proposals.model import STATUSES
from lithos.server.command.declaring import CliCommand
from lithos.upkeep import commands as upkeep
from lithos.upkeep.checks.reconcile_indices import SCOPES
from lithos.upkeep.evaluation.model_questions import DEEPEST, MODES


def test_the_parser_knows_the_scopes_and_modes() -> None:
    assert upkeep.SCOPES == SCOPES
    assert upkeep.TEST_MODES == MODES
    assert RIGHTS == TOKEN_RIGHTS
    assert proposals.STATUSES == STATUSES
    assert upkeep.rank(str(DEEPEST)) == DEEPEST


def test_commands_have_places_of_their_own() -> None:
    places = [command.place for command in options.COMMANDS.values()]
    assert places == sorted({*places} - {0})


@pytest.mark.parametrize("command", options.COMMANDS.values(), ids=lambda command: command.name)
def test_what_runs_a_command_exists(command: CliCommand) -> None:
    for place in filter(None, (command.runs, command.hook)):
        module, _, function = place.partition(":")
        assert callable(getattr(import_module(module), function))


@pytest.mark.parametrize("capability", ["access", "clients", "events", "imports", "proposals", "search"])
def test_commands_are_gone_without_their_capability(capability: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = f"lithos.{capability}.commands"
    own = {command.name for command in import_module(module).COMMANDS}
    monkeypatch.setitem(sys.modules, module, None)
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
