"""Declared commands, removed commands, and values that are copied from modules that import slowly."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from types import ModuleType

import pytest

from lithos.app import options
from lithos.kernel.discovery import declared_in
from lithos.server.command.declaring import GROUPS, CliCommand
from lithos.upkeep import commands as upkeep
from lithos.upkeep.checks.reconcile_indices import SCOPES


def test_parser_accepts_all_scopes_of_reconcile() -> None:
    assert upkeep.SCOPES == SCOPES


def test_commands_have_distinct_positions_in_their_groups() -> None:
    places = [(GROUPS.index(command.group), command.place) for command in options.COMMANDS.values()]
    assert places == sorted({*places})
    assert all(place for _, place in places)


def test_help_lists_commands_under_their_groups() -> None:
    lines = options.make_parser().format_help().splitlines()
    listed = lines[lines.index("commands:") + 1 : lines.index("options:") - 1]
    found: dict[str, list[str]] = {}
    for line in listed:
        if heading := re.fullmatch(r" {2}(\S.*):", line):
            found[heading[1]] = []
        elif command := re.match(r" {4}([a-z-]+)", line):
            found[[*found][-1]].append(command[1])
    assert found == {
        group: [name for name, command in options.COMMANDS.items() if command.group == group]
        for group in GROUPS
    }


@pytest.mark.parametrize("command", options.COMMANDS.values(), ids=lambda command: command.name)
def test_declared_command_functions_exist(command: CliCommand) -> None:
    for place in filter(None, (command.runs, command.hook)):
        module, _, function = place.partition(":")
        assert callable(getattr(import_module(module), function))


@pytest.mark.parametrize("declaring", [*declared_in("commands")], ids=lambda module: module.__name__)
def test_commands_do_not_exist_without_their_capability(
    declaring: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {command.name for command in declaring.COMMANDS}
    monkeypatch.setitem(sys.modules, declaring.__name__, None)
    assert own
    assert {*options.find_commands()} == {*options.COMMANDS} - own


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["top", "--json"], "`lithos top` is no longer a command. Use `lithos inspect health`"),
        (["bundle", "forms"], "Releases run `.ci/bundle.py`."),
        (["serve", "--telemetry-console"], "`--telemetry-console` is no longer an option."),
    ],
)
def test_error_for_a_removed_command_names_its_replacement(
    typed: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        options.parse_arguments(typed)
    assert ended.value.code == 2
    assert expected in capsys.readouterr().err


def test_error_inside_a_command_declaration_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "lithos.search.commands")
    monkeypatch.setitem(sys.modules, "lithos.server.command.declaring", None)
    with pytest.raises(ModuleNotFoundError, match="declaring"):
        options.find_commands()
