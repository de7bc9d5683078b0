"""`server.json`: what the MCP registry says of this server (schema of 2025-12-11).

The registry looks for the name in what it publishes: in the README of the Python package (`mcp-name: NAME`)
and in the label `io.modelcontextprotocol.server.name` of the image.
"""

from __future__ import annotations

from typing import Any, Final

from lithos import __version__

SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
#: Its part before the slash is the account that publishes; README.md and docker/Dockerfile have the name too.
NAME: Final = "io.github.lithos-server/lithos"
PACKAGE: Final = "lithos-server"
#: At most 100 characters.
DESCRIPTION: Final = "Local knowledge base that many AI agents share: Markdown notes, search, tasks; offline."


def default_image() -> str:
    """The image of this version."""
    return f"{PACKAGE}/lithos:{__version__}"


def make_server_json(name: str, image: str) -> dict[str, Any]:
    """The document; `name` is the registry's, `image` a reference with a tag."""
    return {
        "$schema": SCHEMA,
        "name": name,
        "title": "Lithos",
        "description": DESCRIPTION,
        "version": __version__,
        "packages": [_python_package(), _image(image)],
    }


def _python_package() -> dict[str, Any]:
    return {
        "registryType": "pypi",
        "identifier": PACKAGE,
        "version": __version__,
        "runtimeHint": "uvx",
        "transport": {"type": "stdio"},
        "packageArguments": _serve(),
        "environmentVariables": [
            {
                "name": "LITHOS_DATA_DIR",
                "description": "Folder of the notes (below knowledge/) and of what Lithos keeps about them",
                "format": "filepath",
                "default": "~/Lithos",
            }
        ],
    }


def _image(reference: str) -> dict[str, Any]:
    volume = {"type": "named", "name": "--volume", "value": "lithos:/data", "description": "Where notes stay"}
    return {
        "registryType": "oci",
        "identifier": reference,
        "runtimeHint": "docker",
        "transport": {"type": "stdio"},
        "runtimeArguments": [volume],
        "packageArguments": _serve(),
    }


def _serve() -> list[dict[str, Any]]:
    return [
        {"type": "positional", "value": "serve"},
        {"type": "named", "name": "--transport", "value": "stdio"},
    ]
