"""Names of the published forms. `pyproject.toml` contains each name once, and all other places must match."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from lithos import __version__
from tests.clients.plugin.test_plugin import files_of
from tests.release import bundle, names, plugins

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: Names of the repository, the image and the registry entry, as any file may contain them.
REPOSITORY = re.compile(r"github\.com/([\w.-]+/[\w-]+)(?:/(?:blob|tree|releases|issues)|[\"\s.)]|$)")
IMAGE = re.compile(r"\bghcr\.io/([\w.-]+/[\w-]+)")
REGISTRY = re.compile(r"\bio\.github\.[\w-]+/[\w-]+")
#: Files that a person or a program reads to install Lithos.
PLACES = (
    "README.md", "CONTRIBUTING.md", "SECURITY.md", "AGENTS.md", "pyproject.toml", "mkdocs.yml", "flake.nix",
    "Formula/lithos.rb", "docker/Dockerfile", "docker/compose.yaml", "docs/release.md", "docs/connect.md",
    ".github/workflows/release.yml", ".github/workflows/site.yml",
)  # fmt: skip


def text_of(name: str) -> str:
    path = ROOT / name
    return path.read_text(encoding="utf-8") if path.exists() else ""


def test_every_place_has_the_names_of_pyproject() -> None:
    owners = {"name": f"{names.owner}/{names.repository.partition('/')[2]}"}
    assert owners["name"] == names.repository
    for place in PLACES:
        text = text_of(place)
        assert {found for found in REPOSITORY.findall(text) if names.owner in found} <= {names.repository}, (
            place
        )
        assert {f"ghcr.io/{found}" for found in IMAGE.findall(text)} <= {names.image}, place
        assert set(REGISTRY.findall(text)) <= {names.registry}, place


def test_names_are_found_where_a_release_needs_them() -> None:
    """The registry compares its name with README and the label of the image."""
    assert names.registry in text_of("README.md")
    assert names.registry in text_of("docker/Dockerfile")
    assert names.repository in text_of("mkdocs.yml")
    assert set(PROJECT["urls"]) >= {"Source", "Changelog"}
    assert all(url.startswith(names.address) for url in PROJECT["urls"].values())
    assert names.owner == names.registry.removeprefix("io.github.").partition("/")[0]
    assert names.owner == names.image.removeprefix("ghcr.io/").partition("/")[0]
    assert (names.package, names.version) == (PROJECT["name"], __version__)
    assert (names.package, names.registry) == (bundle.PACKAGE, bundle.NAME)
    assert f"{names.image}:{__version__}" == bundle.DEFAULT_IMAGE


def test_another_owner_is_found_in_every_place() -> None:
    """The patterns of this file find a name that is not in pyproject.toml."""
    assert IMAGE.findall("image: ghcr.io/other/lithos:1") == ["other/lithos"]
    assert REGISTRY.findall("io.github.other/lithos") == ["io.github.other/lithos"]
    assert REPOSITORY.findall("https://github.com/other/lithos/releases/download") == ["other/lithos"]


def test_plugins_in_the_repository_are_those_that_the_generator_writes(tmp_path: Path) -> None:
    """After a change of the skill, the hooks or the version: `python .ci/plugins.py`."""
    assert plugins.main([str(tmp_path)]) == 0
    written = files_of(tmp_path)
    here = {
        path: content
        for folder in (".claude-plugin", ".codex-plugin", ".agents")
        for path, content in ((f"{folder}/{name}", data) for name, data in files_of(ROOT / folder).items())
    }
    assert len(written) == 9
    assert here == written
