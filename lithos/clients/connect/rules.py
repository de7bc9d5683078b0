"""The clients' own rules that let the tools that only read run without a question.

A rule always names one tool, never a pattern: a pattern would also allow tools that change notes. Values that
would allow every tool are never written: `trust` of Gemini CLI, `default_tools_approval_mode` of Codex,
`toolName: null` of Copilot CLI, a general `default` of Zed.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from lithos.clients.connect.clients import Surroundings
from lithos.clients.connect.files import DEFAULT_NAME, read_config
from lithos.clients.connect.formats import (
    CannotEdit,
    Format,
    InvalidText,
    JsonFormat,
    TomlFormat,
    Tree,
    Value,
)
from lithos.clients.connect.rule_files import Rule, RulePlace
from lithos.clients.connect.writing import ClientEntry


@frozen
class ReadRules:
    """The rules for the tools that only read, and the place where the client reads them."""

    #: None if the client has no file for such rules.
    place: RulePlace | None
    rules: tuple[Rule, ...] = ()
    #: The reason why Lithos does not write the rules.
    refusal: str = ""
    #: An effect of the rules on other settings of the person, who must agree to it first.
    caution: str = ""


Maker = Callable[[ClientEntry, Surroundings, Sequence[str]], ReadRules]


def find_rules(entry: ClientEntry, around: Surroundings, tools: Sequence[str]) -> ReadRules:
    """Return the rules for these tools of the server that the entry names.

    Raises `CannotUse` and `CannotEdit` if the rules are in a file that cannot be read.
    """
    return _MAKERS[entry.client.name](entry, around, tools)


@frozen
class GeminiPolicy(Format):
    """A policy file of Gemini CLI that contains nothing but the rule for one server."""

    server: str = DEFAULT_NAME

    def tree(self, text: str, exact: bool = True) -> dict[str, Any]:
        try:
            rules = tomllib.loads(text, parse_float=str if exact else float).get("rule", [])
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise InvalidText(str(error)) from error
        first = rules[0] if isinstance(rules, list) and rules else {}
        return dict(first) if isinstance(first, dict) else {}

    def edit(self, text: str, name: str, entry: Value | None, keep: Tree = {}) -> str:  # noqa: B006 - never changed
        del keep
        if text.strip():
            raise CannotEdit("The file has rules that Lithos did not write.")
        # A tool that stops being read-only falls out, even before Lithos renews the file.
        return (
            f'[[rule]]\nmcpName = "{self.server}"\n{name} = {json.dumps(entry)}\n'
            'toolAnnotations = { readOnlyHint = true }\ndecision = "allow"\npriority = 200\n'
        )


def _claude_code(entry: ClientEntry, around: Surroundings, tools: Sequence[str]) -> ReadRules:
    """code.claude.com/docs/en/permissions (autumn 2026). The rules of several files are combined.

    `settings.local.json` is the person's own file in a project, which is not committed.
    """
    folder = around.variable("CLAUDE_CONFIG_DIR") or around.home / ".claude"
    path = (
        folder / "settings.json" if entry.scope == "user" else around.folder / ".claude/settings.local.json"
    )
    place = RulePlace(path, JsonFormat(("permissions",)), "allow", entry.name)
    return ReadRules(place, tuple(("", f"mcp__{entry.name}__{tool}") for tool in tools))


def _codex(entry: ClientEntry, around: Surroundings, tools: Sequence[str]) -> ReadRules:
    """developers.openai.com/codex/mcp (2026): `tools.<tool>.approval_mode`, in the entry of the server.

    The mode `auto`, which is the default, already runs such tools. The rule counts if the person has chosen a
    stricter mode, or if the session cannot ask.
    """
    del around
    place = RulePlace(entry.path, TomlFormat(("mcp_servers", entry.name, "tools")), name=entry.name)
    return ReadRules(place, tuple((tool, {"approval_mode": "approve"}) for tool in tools))


def _cursor(entry: ClientEntry, around: Surroundings, tools: Sequence[str]) -> ReadRules:
    """cursor.com/docs/reference/permissions (newest copy of November 2026).

    Which versions read a file of the project is not documented, so only the user's file is written.
    """
    if entry.scope != "user":
        return ReadRules(None, refusal=_ONLY_USER.format("Cursor"))
    path = around.home / ".cursor" / "permissions.json"
    place = RulePlace(path, JsonFormat(()), "mcpAllowlist", entry.name)
    has_list = "mcpAllowlist" in place.form.entries(read_config(path).text)
    caution = "" if has_list else f"Cursor then uses the list in {path} instead of the list in its settings."
    return ReadRules(place, tuple(("", f"{entry.name}:{tool}") for tool in tools), caution=caution)


def _gemini_cli(entry: ClientEntry, around: Surroundings, tools: Sequence[str]) -> ReadRules:
    """google-gemini/gemini-cli, docs/reference/policy-engine.md (2026)."""
    if "_" in entry.name:  # The documentation forbids it, because names of tools then have several meanings.
        refusal = "Rules of Gemini CLI need a server name without `_`. Choose another name with --name."
        return ReadRules(None, refusal=refusal)
    folder = around.home if entry.scope == "user" else around.folder
    path = folder / ".gemini" / "policies" / f"{entry.name}.toml"
    place = RulePlace(path, GeminiPolicy((), entry.name), "toolName", entry.name)
    return ReadRules(place, tuple(("", tool) for tool in tools))


def _copilot_cli(entry: ClientEntry, around: Surroundings, tools: Sequence[str]) -> ReadRules:
    """github/docs, cli-config-dir-reference.md (autumn 2026): approvals by the root of the repository."""
    if entry.scope != "project":
        example = f"copilot --allow-tool='{entry.name}({tools[0] if tools else 'TOOL'})'"
        refusal = (
            "Copilot CLI has rules only per project. Use --scope project in the folder of the project, or "
            f"name each tool when you start it: {example}"
        )
        return ReadRules(None, refusal=refusal)
    folder = around.variable("COPILOT_HOME") or around.home / ".copilot"
    form = JsonFormat(("locations", str(_main_folder(around.folder))))
    place = RulePlace(folder / "permissions-config.json", form, "tool_approvals", entry.name)
    made = ({"kind": "mcp", "serverName": entry.name, "toolName": tool} for tool in tools)
    return ReadRules(place, tuple(("", rule) for rule in made))


def _opencode(entry: ClientEntry, around: Surroundings, tools: Sequence[str]) -> ReadRules:
    """opencode.ai/v1/docs/permissions (version 1), and docs/migrate-v1.mdx (version 2), autumn 2026.

    The last rule that matches decides. Without a rule that asks, opencode runs all tools.
    """
    del around
    tree = entry.client.format.tree(read_config(entry.path).text, exact=False)
    names = [f"{entry.name}_{tool}" for tool in tools]
    older, newer = tree.get("permission", {}), tree.get("permissions")
    if isinstance(newer, list):
        place = RulePlace(entry.path, JsonFormat(()), "permissions", entry.name)
        rules: list[Rule] = [("", {"action": name, "resource": "*", "effect": "allow"}) for name in names]
        others = {str(each.get("action")): each.get("effect") for each in newer if isinstance(each, dict)}
    elif isinstance(older, dict):
        place = RulePlace(entry.path, JsonFormat(("permission",)), name=entry.name)
        rules, others = [(name, "allow") for name in names], older
    else:
        wanted = json.dumps({"permission": {"*": older} | dict.fromkeys(names, "allow")})
        return ReadRules(
            None, refusal=f"`permission` in {entry.path} is for all tools. Use {wanted} instead."
        )
    asking = {pattern for pattern, effect in others.items() if effect != "allow"}
    refusal = ""
    if "*" not in asking:
        refusal = "opencode runs these tools without a question already, so there is nothing to set."
    elif any(fnmatchcase(name, pattern) for name in names for pattern in asking - {"*"}):
        refusal = f"{entry.path} has a rule of your own for these tools, which Lithos does not change."
    return ReadRules(place, tuple(rules), refusal)


def _zed(entry: ClientEntry, around: Surroundings, tools: Sequence[str]) -> ReadRules:
    """zed-industries/zed, docs/src/ai/tool-permissions.md (2026), since 0.224.

    Whether a project's file may contain rules is not documented, so only the user's file is written.
    """
    del around
    if entry.scope != "user":
        return ReadRules(None, refusal=_ONLY_USER.format("Zed"))
    place = RulePlace(entry.path, JsonFormat(("agent", "tool_permissions", "tools")), name=entry.name)
    return ReadRules(place, tuple((f"mcp:{entry.name}:{tool}", {"default": "allow"}) for tool in tools))


def _none(reason: str) -> Maker:
    return lambda entry, around, tools: ReadRules(None, refusal=reason)


_ONLY_USER: Final = (
    "{} reads these rules from your own settings, for all projects. Lithos writes them with --scope user."
)
_MAKERS: Final[Mapping[str, Maker]] = {
    "claude-code": _claude_code,
    "claude-desktop": _none("Allow tools in the app: Settings > Connectors > lithos."),
    "cursor": _cursor,
    # microsoft/vscode, mcpLanguageModelToolContribution.ts: a tool with `readOnlyHint` needs no confirmation.
    "vscode": _none("VS Code runs the tools that only read without a question, so there is nothing to set."),
    "codex": _codex,
    "gemini-cli": _gemini_cli,
    "copilot-cli": _copilot_cli,
    "windsurf": _none("Allow tools in the app: MCP servers in the settings of Cascade."),
    "zed": _zed,
    "opencode": _opencode,
    # openclaw/openclaw, docs/cli/mcp.md (late 2026): `--approval` is for all tools of a server.
    "openclaw": _none("OpenClaw has a rule only for all tools of a server, so Lithos writes none."),
    "agent-zero": _none("Agent Zero documents no rules for tools, so Lithos writes none."),
}


def _main_folder(folder: Path) -> Path:
    """Return the root of the repository. For a linked worktree, return the root of the main worktree.

    Raises `CannotUse` if the `.git` file is unreadable.
    """
    for root in (folder, *folder.parents):
        git = root / ".git"
        if git.is_dir():
            return root
        if git.is_file():
            link = read_config(git).text.removeprefix("gitdir:").strip()
            shared = Path(os.path.realpath(root / link / ".." / ".."))
            return shared.parent if shared.name == ".git" else root
    return folder
