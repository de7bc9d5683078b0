"""Reference pages for operators of Lithos: settings, commands, metrics."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from docs.tables import as_code, make_table
from lithos.app.options import make_parser
from lithos.kernel.configuration.catalogue import DECLARED, OLDER_NAMES, SETTINGS, SHORT_VARIABLES, Setting
from lithos.kernel.configuration.retired import RETIRED
from lithos.kernel.metrics import _COUNTERS, _HISTOGRAMS, GAUGES

_PROCESS: Final = (
    "cpu_seconds_total",
    "resident_memory_bytes",
    "virtual_memory_bytes",
    "open_fds",
    "max_fds",
    "start_time_seconds",
)

_SETTINGS_INTRODUCTION: Final = """\
# Configuration

Here you find every setting: its default, what it takes, and the environment variable that sets it.

Stronger wins: defaults, then `config.yaml` in the data directory (or the file of `--config`), then the
environment, then options that were typed. A wrong value stops the start with exit code 2 and names the key
and where it came from; an unknown key is ignored with a warning. Lists are JSON or comma lists in the
environment. In YAML the part before the last dot is a section:

```yaml
server:
  port: 9000
  oauth:
    audience: lithos
```
"""

_COMMANDS_INTRODUCTION: Final = """\
# Command line

Here you find every command and option. `lithos COMMAND --help` tells the same.

Global options stand before or after the command:
"""

_COMMANDS_RULES: Final = """\
Exit codes: 0 done; 1 failed, or problems found; 2 usage or configuration; 3 `wait` saw nothing in time; 4 the
data directory belongs to another process. With `--json` stdout carries one JSON document, or one a line for
streams; everything else goes to stderr.
"""

_METRICS_INTRODUCTION: Final = """\
# Metrics

Here you find every series of `GET /metrics` (Prometheus text). Durations are in seconds. Label values come
from small fixed sets: never ids, agents or queries.
"""


def render_settings() -> str:
    """Every key with its default, what it takes and its environment variable."""
    parts = [
        _SETTINGS_INTRODUCTION,
    ]
    for section, purpose in _list_declared():
        rows = [_setting_row(each) for key, each in SETTINGS.items() if key.rpartition(".")[0] == section]
        parts += [f"## {section or 'agents'}\n", f"{purpose}\n"]
        parts.append(make_table(("Key", "Default", "Takes", "Meaning", "Environment"), rows))
    short = [(as_code(name), as_code(key)) for name, key in SHORT_VARIABLES.items()]
    older = [(as_code(old), as_code(new)) for old, new in OLDER_NAMES.items()]
    return "\n".join([
        *parts,
        "## Several vaults\n\nBeside the sections, at the top of the file; more: [several vaults]"
        "(../several-vaults.md).\n",
        make_table(("Key", "Takes", "Meaning"), _VAULT_ROWS),
        "## Short environment names\n\nWeaker than the long ones.\n",
        make_table(("Variable", "Sets"), short),
        "## Logs\n\nOnly in the environment.\n",
        make_table(
            ("Variable", "Default", "Meaning"),
            [
                ("`LITHOS_LOG_LEVEL`", "`info`", "Least level that is written, to stderr."),
                ("`LITHOS_LOG_FORMAT`", "`json`", "`json`: one object a line; `text`: for people."),
            ],
        ),
        "## Older names\n\nStill read.\n",
        make_table(("Older", "Now"), older),
        "## Retired settings\n\nNamed at the start and ignored.\n",
        make_table(("Key", "Instead"), [(as_code(key), sentence) for key, sentence in RETIRED.items()]),
    ])  # fmt: skip


#: Settings that define vaults, not settings of one vault.
_VAULT_ROWS: Final = (
    (
        "`vaults.NAME.path`",
        "the path of a folder",
        "Folder of Markdown files that is served under this name.",
    ),
    (
        "`vaults.NAME.data_dir`",
        "the path of a directory",
        "What Lithos keeps of that vault; left out: where a vault that is served alone has it.",
    ),
    (
        "`vaults.NAME.SECTION`",
        "a section of this page",
        "Settings of that vault, stronger than all others; not `server`, which is for all.",
    ),
    ("`default_vault`", "a name", "The vault that is meant where none is named; left out: the first."),
)


def _list_declared() -> Iterator[tuple[str, str]]:
    """(dotted name, what it says of itself) of every section."""
    for section in DECLARED:
        if section.name:
            yield from _list_sections(section.kind, section.name)
        else:
            yield "", "Beside the sections, at the top."


def _list_sections(section: type[Any], name: str) -> Iterator[tuple[str, str]]:
    yield name, (section.__doc__ or "").partition("\n")[0]
    attrs.resolve_types(section)
    for attribute in attrs.fields(section):
        if attribute.type is not None and attrs.has(attribute.type):
            yield from _list_sections(attribute.type, f"{name}.{attribute.name}")


def _setting_row(setting: Setting) -> tuple[str, ...]:
    default = as_code(setting.default) or "none"
    meaning = setting.description + (" Secret: never printed." if setting.secret else "")
    return as_code(setting.key), default, setting.allowed, meaning, as_code(setting.variable)


def render_commands() -> str:
    """Every command with its options."""
    parser = make_parser()
    shared = {action.dest for action in parser._actions}
    parts = [
        _COMMANDS_INTRODUCTION,
        _option_table(parser, skip=set()),
        _COMMANDS_RULES,
    ]
    for name, command in _subcommands(parser):
        parts += _describe_command(f"lithos {name}", command, shared)
    return "\n".join(parts)


def _subcommands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def _describe_command(name: str, parser: argparse.ArgumentParser, shared: set[str]) -> list[str]:
    positional = [
        action.metavar if isinstance(action.metavar, str) else action.dest
        for action in parser._actions
        if not action.option_strings
    ]
    parts = [f"## {' '.join((name, *positional))}\n"]
    if parser.description:
        parts.append(f"{parser.description}\n")
    if table := _option_table(parser, skip=shared):
        parts.append(table)
    helps = _subcommand_helps(parser)
    for inner, command in _subcommands(parser):
        rows = _option_table(command, skip=shared)
        parts += [f"* `{name} {inner}`: {helps.get(inner, '')}\n", *([rows] if rows else [])]
    return parts


def _subcommand_helps(parser: argparse.ArgumentParser) -> Mapping[str, str]:
    return {
        choice.dest: choice.help or ""
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for choice in action._choices_actions
    }


def _option_table(parser: argparse.ArgumentParser, skip: set[str]) -> str:
    """The options except those in `skip`, unless their spelling differs here; "" without options."""
    rows = [
        (as_code(_spell(action)), action.help or "")
        for action in parser._actions
        if not isinstance(action, argparse._SubParsersAction)
        and (action.dest not in skip or "--json-output" in action.option_strings)
    ]
    return make_table(("Option", "Meaning"), rows) if rows else ""


def _spell(action: argparse.Action) -> str:
    if not action.option_strings:
        return str(action.metavar or action.dest)
    value = ""
    if action.nargs != 0:
        value = str(action.metavar or "") or "|".join(map(str, action.choices or ()))
        value = f" {value or action.dest.upper()}"
    return ", ".join(action.option_strings) + value


def render_metrics() -> str:
    """Every instrument of `/metrics`."""
    kinds = (("Counters", "_total", _COUNTERS), ("Histograms", "", _HISTOGRAMS), ("Gauges", "", GAUGES))
    parts = [
        _METRICS_INTRODUCTION,
    ]
    for title, suffix, instruments in kinds:
        rows = [
            (as_code(f"lithos_{name}{suffix}"), ", ".join(map(as_code, labels)), text)
            for name, (text, labels) in instruments.items()
        ]
        parts += [f"## {title}\n", make_table(("Name", "Labels", "Meaning"), rows)]
    names = ", ".join(as_code(f"process_{name}") for name in _PROCESS)
    parts.append(f"## Process\n\nOn Linux: {names}.\n")
    return "\n".join(parts)
