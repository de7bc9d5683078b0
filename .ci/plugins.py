"""Write the plugins and their marketplaces for Claude Code and Codex, as they stand in this repository.

Run `python .ci/plugins.py` after a change of the version, the skill or the hooks. A test compares the files.
Clients read them from the repository: `claude plugin marketplace add OWNER/NAME`, or the same with `codex`.
Each plugin has its own folder: a client copies the whole folder of a plugin, and Codex ignores a plugin in
the root of its marketplace.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from names import NAMES, ROOT

from lithos.clients.plugin import writing

CLAUDE: Final = Path(".claude-plugin")
CODEX: Final = Path(".codex-plugin")
MARKETPLACE: Final = CLAUDE / "marketplace.json"
CODEX_MARKETPLACE: Final = Path(".agents", "plugins", "marketplace.json")
MARKETPLACE_NAME: Final = "lithos"
_CATEGORY: Final = "productivity"
_SERVE: Final = ("serve", "--transport", "stdio")
#: The package whose program uvx starts.
_PACKAGE: Final = f"{NAMES.package}@{NAMES.version}"


def main(argv: Sequence[str] | None = None) -> int:
    """Write the plugins and list their files."""
    parser = argparse.ArgumentParser(prog="plugins.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory", metavar="DIR", type=Path, nargs="?", default=ROOT)
    directory = parser.parse_args(argv).directory.absolute()
    try:
        files = write_plugins(directory)
    except writing.ForeignFolder as refusal:
        parser.error(str(refusal))
    print(f"In {directory}:", *(f"  {file.relative_to(directory)}" for file in files), sep="\n")
    return 0


def write_plugins(directory: Path) -> list[Path]:
    """Write both plugins and both marketplaces. Return the files. Raises `ForeignFolder`, `OSError`."""
    marketplaces: dict[Path, str | bytes] = {
        MARKETPLACE: writing.to_json(make_marketplace()),
        CODEX_MARKETPLACE: writing.to_json(make_codex_marketplace()),
    }
    return [
        *writing.write_files(directory, marketplaces),
        *write_plugin(directory / CLAUDE / writing.NAME),
        *write_codex_plugin(directory / CODEX / writing.NAME),
    ]


def make_marketplace() -> dict[str, Any]:
    """Return the marketplace for Claude Code."""
    plugin = writing.describe_plugin()
    source = f"./{(CLAUDE / writing.NAME).as_posix()}"
    return {
        "name": MARKETPLACE_NAME,
        "owner": writing.AUTHOR,
        "metadata": {"description": plugin["description"], "version": NAMES.version},
        "plugins": [{**plugin, "source": source, "category": _CATEGORY}],
    }


def make_codex_marketplace() -> dict[str, Any]:
    """Return the marketplace for Codex."""
    source = {"source": "local", "path": f"./{(CODEX / writing.NAME).as_posix()}"}
    policy = {"installation": "AVAILABLE", "authentication": "ON_INSTALL"}
    return {
        "name": MARKETPLACE_NAME,
        "interface": {"displayName": "Lithos"},
        "plugins": [{"name": writing.NAME, "source": source, "policy": policy, "category": "Productivity"}],
    }


def write_plugin(directory: Path) -> list[Path]:
    """Write the plugin for Claude Code: uvx starts the server, on LITHOS_DATA_DIR or ~/Lithos.

    Raises `ForeignFolder`, `OSError`.
    """
    entry = {
        "type": "stdio",
        "command": "uvx",
        "args": [_PACKAGE, *_SERVE],
        # The client knows no default within a default, and Lithos knows the tilde.
        "env": {"LITHOS_DATA_DIR": "${LITHOS_DATA_DIR:-~/Lithos}"},
    }
    # `uvx` needs no installation, but takes longer than a hook may. Another package has a program `lithos`.
    program = NAMES.package
    hooks = writing.hooks_of(
        f"command -v {program} >/dev/null 2>&1 || exit 0; "
        f'exec {program} -d "${{LITHOS_DATA_DIR:-$HOME/Lithos}}"'
    )
    return writing.write_form(directory, entry, hooks)


def write_codex_plugin(directory: Path) -> list[Path]:
    """Write the plugin for Codex: a server, on ~/Lithos, and the skill. Raises `ForeignFolder`, `OSError`.

    `lithos connect codex --hooks` writes the hooks: Codex runs hooks of a plugin in its desktop app alone.
    """
    manifest = CODEX / "plugin.json"
    # Codex replaces no variables in arguments. It passes on only the variables of a fixed list.
    entry = {"command": "uvx", "args": [_PACKAGE, "--data-dir", "~/Lithos", *_SERVE]}
    interface = {
        "displayName": "Lithos",
        "shortDescription": "Notes and tasks that your agents share",
        "longDescription": writing.DESCRIPTION,
        "developerName": writing.AUTHOR["name"],
        "category": "Productivity",
        "capabilities": ["Read", "Write"],
        "websiteURL": NAMES.address,
    }
    described = {
        **writing.describe_plugin(),
        "repository": NAMES.address,
        "skills": "./skills/",
        "mcpServers": "./.mcp.json",
        "interface": interface,
    }
    files: dict[Path, str | bytes] = {
        manifest: writing.to_json(described),
        Path(".mcp.json"): writing.to_json({"mcpServers": {writing.NAME: entry}}),
        Path("skills", writing.SKILL, "SKILL.md"): writing.make_skill(),
    }
    writing.check_ours(directory, manifest, writing.NAME)
    return writing.write_files(directory, files)


if __name__ == "__main__":
    sys.exit(main())
