"""The names and the version under which Lithos is published.

They stand once, in `pyproject.toml` and `lithos/__init__.py`. Reading them needs only the standard library.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
_VERSION: Final = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)


class Names(NamedTuple):
    """`registry` is the name in the MCP registry, and `image` is a reference without a tag."""

    package: str
    version: str
    repository: str
    image: str
    registry: str

    @property
    def owner(self) -> str:
        """The account that publishes."""
        return self.repository.partition("/")[0]

    @property
    def tag(self) -> str:
        """The git tag of this version."""
        return f"v{self.version}"

    @property
    def address(self) -> str:
        """The address of the repository."""
        return f"https://github.com/{self.repository}"

    @property
    def downloads(self) -> str:
        """The address of the files of this release."""
        return f"{self.address}/releases/download/{self.tag}"


def read_names(root: Path = ROOT) -> Names:
    """Return the names of the checkout in `root`."""
    document = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    own = document["tool"]["lithos"]
    found = _VERSION.search((root / "lithos" / "__init__.py").read_text(encoding="utf-8"))
    if found is None:
        raise ValueError('lithos/__init__.py has no line `__version__ = "…"`.')
    return Names(document["project"]["name"], found[1], own["repository"], own["image"], own["registry"])


NAMES: Final = read_names()

if __name__ == "__main__":
    print(*(f"{name}={value}" for name, value in NAMES._asdict().items()), sep="\n")
