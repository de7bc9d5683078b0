"""Files of the root folder. A new one needs a reason, because people see this list first."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
#: The root folder belongs to these. Names that begin with a dot are configuration.
OWN: Final = {
    "lithos",
    "tests",
    "bench",
    "docs",
    "docker",
    "examples",
    "pyproject.toml",
    "uv.lock",
    "README.md",
}
#: Files that other programs find only in the root folder.
REASONS: Final = {
    "AGENTS.md": "coding agents read their instructions there",
    "CHANGELOG.md": "people look for it there, and the notes of a release are cut from it",
    "CONTRIBUTING.md": "the code host shows it",
    "Formula": "Homebrew reads formulas of a tap there",
    "LICENSE": "the code host and package tools read it there",
    "SECURITY.md": "the code host shows it",
    "flake.nix": "Nix reads the flake of a repository there",
    "mkdocs.yml": "mkdocs reads it there",
    "models": "packages of models, which are published apart from Lithos because of their size",
}


def names_of(root: Path) -> set[str]:
    """Return the visible names in the root folder, without those that git ignores."""
    ignored = [line.strip("/\n") for line in (root / ".gitignore").read_text(encoding="utf-8").splitlines()]
    return {
        path.name
        for path in root.iterdir()
        if not path.name.startswith(".") and not any(fnmatch(path.name, each) for each in ignored)
    }


def test_root_folder_contains_only_files_with_a_reason() -> None:
    found = names_of(ROOT)
    assert found <= OWN | REASONS.keys()
    assert (OWN | REASONS.keys()) - found <= {"models"}, "remove the reasons of files that do not exist"


def test_file_without_a_reason_is_found(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("/dist/\n*.egg-info/\n")
    for name in ("dist", "lithos.egg-info", ".hidden", "README.md", "notes.txt"):
        (tmp_path / name).touch()
    assert names_of(tmp_path) - OWN - REASONS.keys() == {"notes.txt"}
