"""Write what is published next to the wheel: `server.json`, the `.mcpb` bundle and the plugins.

For a release: `python .ci/bundle.py DIR`, in an environment where Lithos is installed.

`server.json` is what the MCP registry says of this server (schema of 2025-12-11). The registry looks for the
name in what it publishes: in the README of the Python package (`mcp-name: NAME`) and in the label
`io.modelcontextprotocol.server.name` of the image.

The `.mcpb` bundle is a zip that a desktop client installs with one click (manifest version 0.4). Its server
type is `uv`: the client brings Python and the dependencies of the `pyproject.toml` inside, which are this
version of Lithos and no more, so the bundle has a few kilobytes and serves every platform.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from names import NAMES
from plugins import MARKETPLACE, MARKETPLACE_NAME, write_plugins

from lithos import __version__
from lithos.clients.plugin import writing

SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
#: Its part before the slash is the account that publishes; README.md and docker/Dockerfile have the name too.
NAME: Final = NAMES.registry
PACKAGE: Final = NAMES.package
#: At most 100 characters.
DESCRIPTION: Final = "Local knowledge base that many AI agents share: Markdown notes, search, tasks; offline."


#: Of this version.
DEFAULT_IMAGE: Final = f"{NAMES.image}:{__version__}"


def make_server_json(name: str, image: str) -> dict[str, Any]:
    """The document; `name` is the registry's, `image` a reference with a tag."""
    stdio = {"type": "stdio"}
    serve = [
        {"type": "positional", "value": "serve"},
        {"type": "named", "name": "--transport", "value": "stdio"},
    ]
    python = {
        "registryType": "pypi",
        "identifier": PACKAGE,
        "version": __version__,
        "runtimeHint": "uvx",
        "transport": stdio,
        "packageArguments": serve,
        "environmentVariables": [
            {
                "name": "LITHOS_DATA_DIR",
                "description": "Folder of the notes (below knowledge/) and of what Lithos keeps about them",
                "format": "filepath",
                "default": "~/Lithos",
            }
        ],
    }
    volume = {"type": "named", "name": "--volume", "value": "lithos:/data", "description": "Where notes stay"}
    container = {
        "registryType": "oci",
        "identifier": image,
        "runtimeHint": "docker",
        "transport": stdio,
        "runtimeArguments": [volume],
        "packageArguments": serve,
    }
    return {
        "$schema": SCHEMA,
        "name": name,
        "title": "Lithos",
        "description": DESCRIPTION,
        "version": __version__,
        "repository": {"url": NAMES.address, "source": "github"},
        "packages": [python, container],
    }


MANIFEST_VERSION: Final = "0.4"
ENTRY: Final = "src/server.py"
FOLDER: Final = "~/Lithos"
#: The same bytes for the same version: a zip has dates, which begin here.
_DATE: Final = (1980, 1, 1, 0, 0, 0)

_SERVER: Final = f'''\
"""Start Lithos for a desktop client, on the folder that it names in LITHOS_DATA_DIR."""

import os
import sys

from lithos.app.main import main

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
        "author": writing.AUTHOR,
        "license": "MIT",
        "keywords": list(writing.KEYWORDS),
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
        "manifest.json": writing.to_json(make_manifest()),
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


_NAMES: Final = re.compile(r"[a-zA-Z0-9.-]{1,150}/[a-zA-Z0-9._-]{1,49}")
_IMAGES: Final = re.compile(r"[a-z0-9][a-z0-9._:/-]{0,200}:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


def main(argv: Sequence[str] | None = None) -> int:
    """Write all forms and list them; 2 when a name is wrong or the folder holds other files."""
    parser = argparse.ArgumentParser(prog="bundle.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "directory", metavar="DIR", type=Path, help="empty, absent, or written by this script"
    )
    parser.add_argument("--name", default=NAME, help="name in the MCP registry, as io.github.OWNER/NAME")
    parser.add_argument("--image", default=DEFAULT_IMAGE, help="container image, with its tag")
    typed = parser.parse_args(argv)
    if not _NAMES.fullmatch(typed.name):
        parser.error(f"{typed.name!r} is not a name of the MCP registry. Give one as io.github.OWNER/NAME.")
    if not _IMAGES.fullmatch(typed.image) or typed.image.endswith(":latest"):
        parser.error(f"{typed.image!r} is not an image with a tag. Give one as OWNER/NAME:{__version__}.")
    directory = typed.directory.absolute()
    try:
        files = write_bundle(directory, typed.name, typed.image)
    except writing.ForeignFolder as refusal:
        parser.error(str(refusal))
    print(f"In {directory}:", *(f"  {file.relative_to(directory)}" for file in files), sep="\n")
    return 0


def write_bundle(directory: Path, name: str, image: str) -> list[Path]:
    """Write all forms; the files. Raises `ForeignFolder`, `OSError`."""
    writing.check_ours(directory, MARKETPLACE, MARKETPLACE_NAME)
    forms: dict[Path, str | bytes] = {
        Path("server.json"): writing.to_json(make_server_json(name, image)),
        Path(f"lithos-{__version__}.mcpb"): make_bundle(),
    }
    return [*writing.write_files(directory, forms), *write_plugins(directory)]


if __name__ == "__main__":
    sys.exit(main())
