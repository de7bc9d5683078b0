"""Reference pages for operators: settings, commands and metrics."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

import attrs

from docs.tables import as_code, make_table
from lithos.app.options import COMMANDS, make_parser
from lithos.kernel.configuration.catalogue import DECLARED, OLDER_NAMES, SETTINGS, SHORT_VARIABLES, Setting
from lithos.kernel.configuration.retired import RETIRED
from lithos.kernel.metrics import _COUNTERS, _HISTOGRAMS, GAUGES

#: Spellings of a command-line option, and its help text.
_Option: TypeAlias = tuple[tuple[str, ...], str | None]

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

Every setting with its default, its allowed values, and its environment variable.

Later sources override earlier ones: defaults, `config.yaml` in the data directory (or the file of
`--config`), the environment, command-line options. A wrong value stops the start with exit code 2; the
message names the key and its source. An unknown key is ignored with a warning. In the environment, lists
are JSON or separated by commas. In YAML, the part before the last dot is a section:

```yaml
server:
  port: 9000
  oauth:
    audience: lithos
```
"""

_COMMANDS_INTRODUCTION: Final = """\
# Command line

Every command and its options, as `lithos COMMAND --help` prints them. These options work with every
command, before or after its name, and are not repeated below:
"""

_COMMANDS_RULES: Final = """\
| Exit code | Meaning |
| --- | --- |
| 0 | success |
| 1 | the command failed or found problems |
| 2 | wrong usage or configuration |
| 3 | `wait` got no event in time |
| 4 | another process owns the data directory |

With `--json`, stdout has one JSON document, or one per line for streams; everything else is written to
stderr.
"""

_METRICS_INTRODUCTION: Final = """\
# Metrics

Every series of `GET /metrics` (Prometheus text). Durations are in seconds. Label values come
from small fixed sets; they never contain ids, agents or queries.
"""


def render_settings() -> str:
    """Return the reference page of all settings.

    The page shows the default, allowed values and environment variable of each setting.
    """
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
        "## Several vaults\n\nThese keys are at the top of the file, outside the sections: [several vaults]"
        "(../several-vaults.md).\n",
        make_table(("Key", "Takes", "Meaning"), _VAULT_ROWS),
        "## Short environment names\n\nThe long names have precedence. For a secret, the name with "
        "`_FILE` at its end takes the path of a file with the secret, such as `LITHOS_AUTH_TOKEN_FILE`.\n",
        make_table(("Variable", "Sets"), short),
        "## Logs\n\nThese are set only in the environment.\n",
        make_table(
            ("Variable", "Default", "Meaning"),
            [
                ("`LITHOS_LOG_LEVEL`", "`info`", "Lowest level that is logged to stderr."),
                ("`LITHOS_LOG_FORMAT`", "`json`", "`json`: one object per line; `text`: easier to read."),
            ],
        ),
        "## Older names\n\nThese names still work.\n",
        make_table(("Older", "Now"), older),
        "## Retired settings\n\nThe server names these at the start and ignores them.\n",
        make_table(("Key", "Instead"), [(as_code(key), sentence) for key, sentence in RETIRED.items()]),
    ])  # fmt: skip


#: Keys that define vaults. They are not settings of a single vault.
_VAULT_ROWS: Final = (
    (
        "`vaults.NAME.path`",
        "the path of a folder",
        "Folder of Markdown files to serve under this name.",
    ),
    (
        "`vaults.NAME.data_dir`",
        "the path of a directory",
        "Data directory of that vault; default: that of a vault that is served alone.",
    ),
    (
        "`vaults.NAME.SECTION`",
        "a section of this page",
        "Settings of that vault, which override all others. Not `server`, which applies to all vaults.",
    ),
    ("`default_vault`", "a name", "The vault of requests that name no vault; default: the first."),
)


def _list_declared() -> Iterator[tuple[str, str]]:
    """Yield the dotted name and the purpose of each settings section."""
    for section in DECLARED:
        if section.name:
            yield from _list_sections(section.kind, section.name)
        else:
            yield "", "At the top of the file, outside the sections."


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
    """Return the reference page of all commands and their options."""
    parser = make_parser()
    shared = frozenset(_identify(action) for action in parser._actions if action.option_strings)
    group = ""
    parts = [
        _COMMANDS_INTRODUCTION,
        _option_table(parser),
        _COMMANDS_RULES,
    ]
    for name, command in _subcommands(parser):
        if COMMANDS[name].group != group:
            group = COMMANDS[name].group
            parts.append(f"## {group.capitalize()}\n")
        parts += _describe_command(f"lithos {name}", command, shared)
    return "\n".join(parts)


def _subcommands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def _describe_command(name: str, parser: argparse.ArgumentParser, shared: frozenset[_Option]) -> list[str]:
    positional = [
        action.metavar if isinstance(action.metavar, str) else action.dest
        for action in parser._actions
        if not action.option_strings
    ]
    parts = [f"### {' '.join((name, *positional))}\n"]
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


def _identify(action: argparse.Action) -> _Option:
    """Return the spellings and the help text of a command-line option."""
    return tuple(action.option_strings), action.help


def _option_table(parser: argparse.ArgumentParser, skip: frozenset[_Option] = frozenset()) -> str:
    """Return a table of the options that are not in `skip`. If no option is left, return ""."""
    rows = [
        (as_code(_spell(action)), action.help or "")
        for action in parser._actions
        if not isinstance(action, argparse._SubParsersAction) and _identify(action) not in skip
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
    """Return the reference page of all metrics in `/metrics`."""
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
