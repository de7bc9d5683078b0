"""The `.mcpb` bundle: a zip that a desktop client installs with one click (manifest version 0.4).

Its server type is `uv`: the client brings Python and the dependencies of the `pyproject.toml` inside, which
are this version of Lithos and no more, so the bundle has a few kilobytes and serves every platform.
"""

from __future__ import annotations

import io
import zipfile
from typing import Any, Final

from lithos import __version__
from lithos.cli.bundle.registry import DESCRIPTION, PACKAGE
from lithos.cli.plugin.writing import AUTHOR, KEYWORDS, to_json

MANIFEST_VERSION: Final = "0.4"
ENTRY: Final = "src/server.py"
FOLDER: Final = "~/Lithos"
#: The same bytes for the same version: a zip has dates, which begin here.
_DATE: Final = (1980, 1, 1, 0, 0, 0)

_SERVER: Final = f'''\
"""Start Lithos for a desktop client, on the folder that it names in LITHOS_DATA_DIR."""

import os
import sys

from lithos.cli import main

chosen = os.environ.get("LITHOS_DATA_DIR", "").strip()
if not chosen or chosen.startswith("${{"):  # a client leaves the name of an empty setting as it is
    chosen = "{FOLDER}"
os.environ["LITHOS_DATA_DIR"] = os.path.expanduser(chosen)
sys.exit(main(["serve", "--transport", "stdio", *sys.argv[1:]]))
'''
_PROJECT: Final = f"""\
[project]
name = "lithos-bundle"
version = "{__version__}"
requires-python = ">=3.11"
dependencies = ["{PACKAGE}=={__version__}"]

[tool.uv]
package = false
"""


def make_manifest() -> dict[str, Any]:
    """The document `manifest.json`."""
    return {
        "manifest_version": MANIFEST_VERSION,
        "name": PACKAGE,
        "display_name": "Lithos",
        "version": __version__,
        "description": DESCRIPTION,
        "author": AUTHOR,
        "license": "MIT",
        "keywords": list(KEYWORDS),
        "server": {
            "type": "uv",
            "entry_point": ENTRY,
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", ENTRY],
                "env": {"LITHOS_DATA_DIR": "${user_config.data_dir}"},
            },
        },
        "tools_generated": True,
        "prompts_generated": True,
        "compatibility": {"platforms": ["darwin", "linux"], "runtimes": {"python": ">=3.11"}},
        "user_config": {
            "data_dir": {
                "type": "directory",
                "title": "Folder",
                "description": "Where the notes are kept, as Markdown files below knowledge/",
                "required": False,
                "default": "${HOME}/Lithos",
            }
        },
    }


def make_bundle() -> bytes:
    """The zip."""
    files = {
        "manifest.json": to_json(make_manifest()),
        "pyproject.toml": _PROJECT,
        ENTRY: _SERVER,
        ".mcpbignore": ".venv/\n__pycache__/\nuv.lock\n",
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name, _DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text)
    return buffer.getvalue()
