"""`lithos bundle DIR`: write `server.json`, the `.mcpb` bundle, and a marketplace with the plugin."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from lithos import __version__
from lithos.cli.bundle.desktop import make_bundle
from lithos.cli.bundle.registry import NAME, default_image, make_server_json
from lithos.cli.output import print_json, print_line
from lithos.cli.plugin.writing import (
    AUTHOR,
    DESCRIPTION,
    ForeignFolder,
    check_ours,
    describe_plugin,
    to_json,
    write_files,
    write_portable_plugin,
)
from lithos.cli.session import CommandFailed, Session

MARKETPLACE: Final = Path(".claude-plugin", "marketplace.json")
MARKETPLACE_NAME: Final = "lithos"
_PLUGIN: Final = Path("plugins", "lithos")
_NAMES: Final = re.compile(r"[a-zA-Z0-9.-]{1,150}/[a-zA-Z0-9._-]{1,49}")
_IMAGES: Final = re.compile(r"[a-z0-9][a-z0-9._:/-]{0,200}:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


def run_bundle(session: Session) -> int:
    """Write all forms and list them. Raises `CommandFailed`."""
    typed = session.invocation.typed
    name, image = typed.get("name", NAME), typed.get("image", default_image())
    if not _NAMES.fullmatch(name):
        raise CommandFailed(f"{name!r} is no name of the MCP registry. Give one as io.github.OWNER/NAME.", 2)
    if not _IMAGES.fullmatch(image) or image.endswith(":latest"):
        raise CommandFailed(f"{image!r} names no image with a tag. Give one as OWNER/NAME:{__version__}.", 2)
    directory = Path(typed["directory"]).absolute()
    try:
        files = write_bundle(directory, name, image)
    except ForeignFolder as foreign:
        raise CommandFailed(str(foreign), 2) from foreign
    if session.invocation.as_json:
        print_json({"directory": str(directory), "files": [str(file) for file in files]})
        return 0
    print_line(f"In {directory}:")
    for file in files:
        print_line(f"  {file.relative_to(directory)}")
    return 0


def write_bundle(directory: Path, name: str, image: str) -> list[Path]:
    """Write all forms; the files. Raises `ForeignFolder`, `OSError`."""
    check_ours(directory, MARKETPLACE, MARKETPLACE_NAME)
    forms: dict[Path, str | bytes] = {
        MARKETPLACE: to_json(make_marketplace()),
        Path("server.json"): to_json(make_server_json(name, image)),
        Path(f"lithos-{__version__}.mcpb"): make_bundle(),
    }
    return [*write_files(directory, forms), *write_portable_plugin(directory / _PLUGIN)]


def make_marketplace() -> dict[str, Any]:
    """The marketplace of one plugin."""
    return {
        "name": MARKETPLACE_NAME,
        "owner": AUTHOR,
        "metadata": {"description": DESCRIPTION, "version": __version__},
        "plugins": [{**describe_plugin(), "source": f"./{_PLUGIN.as_posix()}", "category": "productivity"}],
    }
