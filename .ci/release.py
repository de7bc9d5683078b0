"""Make a release: every file that is published, and the checks before it.

    python .ci/release.py version 0.2.0    set the version in all places
    python .ci/release.py check            the version, the changelog and the names fit together
    python .ci/release.py make DIR         build and check all files in DIR (needs an index of packages)
    python .ci/release.py notes            print the notes of this version

The workflow `.github/workflows/release.yml` runs these commands for a tag. This file needs only the standard
library: `make` installs its tools and the built wheel into environments of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from names import NAMES, ROOT, Names

FORMULA: Final = Path("Formula", "lithos.rb")
#: Files with the version: the lines that contain it.
VERSIONED: Final = {
    Path("lithos", "__init__.py"): re.compile(r'^(__version__ = ")[^"]+(")$', re.MULTILINE),
    Path("flake.nix"): re.compile(r'^(\s+version = ")[^"]+(";)$', re.MULTILINE),
}
#: Older versions of twine refuse the metadata that hatchling writes.
TOOLS: Final = ("build>=1.2,<2", "twine>=7,<8", "cyclonedx-bom>=7,<8")
#: No candidates: each release becomes the latest image and the latest entry of the registry.
_VERSION: Final = re.compile(r"\d+\.\d+\.\d+")
#: Part of the sentence about the first release in README.md and docs/index.md.
UNPUBLISHED: Final = "has not been published yet"
#: Links and images of Markdown that lead to a file of the repository.
_LINK: Final = re.compile(r"(\]\()(?!https?://|#)([^)\s]+\))")
_IMAGE: Final = re.compile(r"(!\[[^\]]*\]\()(?!https?://)([^)\s]+\))")


class Refused(Exception):
    """Raised if there is nothing to release. The message contains the next step."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; 2 if the release is refused."""
    about, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(prog="release.py", description=about)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    version = commands.add_parser("version", help="set the version in all places")
    version.add_argument("number", metavar="VERSION")
    check = commands.add_parser("check", help="check the version, the changelog and the names")
    check.add_argument("--tag", help="tag that was pushed")
    check.add_argument("--owner", help="account that owns the repository")
    make = commands.add_parser("make", help="build and check all published files")
    make.add_argument("directory", metavar="DIR", type=Path, help="an empty or a new folder")
    commands.add_parser("notes", help="print the notes of this version")
    typed = parser.parse_args(argv)
    try:
        if typed.command == "version":
            set_version(ROOT, typed.number)
        elif typed.command == "check":
            check_release(NAMES, _read("CHANGELOG.md"), tag=typed.tag, owner=typed.owner)
            if typed.tag is not None:
                check_pages({name: _read(name) for name in ("README.md", "docs/index.md")})
        elif typed.command == "make":
            make_release(typed.directory.absolute())
        else:
            print(make_notes(NAMES, _read("CHANGELOG.md")), end="")
    except Refused as refusal:
        parser.error(str(refusal))
    return 0


def set_version(root: Path, number: str) -> None:
    """Write the version into all files that contain it. Raises `Refused`."""
    if not _VERSION.fullmatch(number):
        raise Refused(f"{number!r} is not a version. Give one as 1.2.3.")
    for name, line in VERSIONED.items():
        text, count = line.subn(rf"\g<1>{number}\g<2>", (root / name).read_text(encoding="utf-8"))
        if count != 1:
            raise Refused(f"{name} has {count} lines with a version instead of one. Repair it first.")
        (root / name).write_text(text, encoding="utf-8")
    _run(sys.executable, root / ".ci" / "plugins.py", root)


def check_release(names: Names, changelog: str, *, tag: str | None, owner: str | None) -> None:
    """Raise `Refused` unless this checkout is what the tag says, and its owner is who publishes."""
    if tag is not None and tag != names.tag:
        raise Refused(
            f"The tag {tag} is not the version {names.version}. Run `python .ci/release.py version "
            f"{tag.removeprefix('v')}`, commit, and tag that commit."
        )
    if not _VERSION.fullmatch(names.version):
        raise Refused(f"{names.version!r} in lithos/__init__.py is not a version like 1.2.3.")
    if owner is not None and owner.lower() != names.owner:
        raise Refused(
            f"The repository belongs to {owner}, and pyproject.toml names {names.owner}. Change the names in "
            "[tool.lithos], then run `pytest tests/test_names.py`, which finds all other places."
        )
    if tag is not None and "unreleased" in _heading(names, changelog):
        raise Refused(f"CHANGELOG.md calls {names.version} unreleased. Remove that word before you tag.")
    _heading(names, changelog)


def check_pages(pages: Mapping[str, str]) -> None:
    """Raise `Refused` if a page still says that there is no release."""
    for name, text in pages.items():
        if UNPUBLISHED in text:
            raise Refused(
                f"{name} says that the first release has not been published. Put the line with uvx first and "
                "the clone after it, and remove the sentence."
            )


def _heading(names: Names, changelog: str) -> str:
    found = re.search(rf"^## {re.escape(names.version)}(?: .*)?$", changelog, re.MULTILINE)
    if found is None:
        raise Refused(f"CHANGELOG.md has no heading `## {names.version}`. Add what changed.")
    return found[0]


def make_notes(names: Names, changelog: str) -> str:
    """Return the notes: how to install, the section of the changelog, and how to check a file."""
    after = changelog.partition(_heading(names, changelog))[2]
    section = re.split(r"^## ", after, maxsplit=1, flags=re.MULTILINE)[0].strip()
    return f"""\
```sh
uvx {names.package}@{names.version} --vault ~/notes serve --transport http
docker run -p 127.0.0.1:8765:8765 -v lithos:/data {names.image}:{names.version}
```

{link_files(names, section)}

To check which workflow built a file: `gh attestation verify FILE --repo {names.repository}`. The checksums of
all files are in `SHA256SUMS`.
"""


def link_files(names: Names, text: str) -> str:
    """Return Markdown whose links and images lead to the files of the tag. Other sites show these texts."""
    with_images = _IMAGE.sub(rf"\g<1>{names.address}/raw/{names.tag}/\g<2>", text)
    return _LINK.sub(rf"\g<1>{names.address}/blob/{names.tag}/\g<2>", with_images)


def copy_source(root: Path, into: Path) -> Path:
    """Copy the files of the source archive, with a README for the package index. Return the copy."""
    document = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    for name in (
        "pyproject.toml",
        ".gitignore",
        *document["tool"]["hatch"]["build"]["targets"]["sdist"]["include"],
    ):
        if (root / name).is_dir():
            shutil.copytree(root / name, into / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            into.mkdir(exist_ok=True)
            shutil.copy2(root / name, into / name)
    readme = (root / "README.md").read_text(encoding="utf-8")
    (into / "README.md").write_text(link_files(NAMES, readme), encoding="utf-8")
    return into


def find_models(root: Path) -> list[Path]:
    """Return the folders of the packages of models, which are distributions of their own."""
    return sorted(file.parent for file in (root / "models").glob("*/pyproject.toml"))


def make_release(directory: Path) -> None:
    """Build and check all files. `python/` is for the package index, `files/` is for the release alone."""
    if directory.exists() and any(directory.iterdir()):
        raise Refused(f"{directory} contains files. Choose an empty or a new folder.")
    python, files = directory / "python", directory / "files"
    files.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="lithos-release.") as work:
        tools = make_environment(Path(work, "tools"), *TOOLS)
        source = copy_source(ROOT, Path(work, "source"))
        for project in (source, *find_models(ROOT)):
            _run(tools, "-m", "build", "--outdir", python, project)
        _run(tools, "-m", "twine", "check", "--strict", *sorted(python.iterdir()))
        (wheel,) = python.glob(f"{NAMES.package.replace('-', '_')}-*.whl")
        clean = make_environment(Path(work, "clean"), wheel)
        _run(clean, ROOT / ".ci" / "bundle.py", Path(work, "forms"))
        for form in ("server.json", f"lithos-{NAMES.version}.mcpb"):
            shutil.copy(Path(work, "forms", form), files)
        # A person may install Lithos without them.
        _run(clean, "-m", "pip", "uninstall", "--quiet", "--yes", "pip", "setuptools")
        bill = files / f"{NAMES.package}-{NAMES.version}.cdx.json"
        _run(tools, "-m", "cyclonedx_py", "environment", clean, "--output-reproducible", "-o", bill)
    (sdist,) = python.glob(f"{NAMES.package.replace('-', '_')}-*.tar.gz")
    formula = fill(_read(FORMULA), describe_sdist(NAMES, sdist))
    (files / FORMULA.name).write_text(formula, encoding="utf-8")
    (directory / "NOTES.md").write_text(make_notes(NAMES, _read("CHANGELOG.md")), encoding="utf-8")
    published = sorted([*python.iterdir(), *files.iterdir()], key=lambda file: file.name)
    (files / "SHA256SUMS").write_text("".join(map(_checksum, published)), encoding="utf-8")
    made = sorted(path for path in directory.rglob("*") if path.is_file())
    sizes = (f"  {file.stat().st_size:>12,}  {file.relative_to(directory)}" for file in made)
    print(f"In {directory}:", *sizes, sep="\n")


def make_environment(folder: Path, *packages: str | Path) -> Path:
    """Make an empty environment with these packages. Return its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    _run(python, "-m", "pip", "install", "--quiet", "--no-compile", *packages)
    return python


def describe_sdist(names: Names, sdist: Path) -> dict[str, str]:
    """Return what the template of the formula needs to know."""
    return {
        "HOMEPAGE": names.address,
        "SDIST_URL": f"{names.downloads}/{sdist.name}",
        "SDIST_SHA256": _digest(sdist),
    }


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return the template with a value for each `@NAME@`. Raises `Refused` if a name has no value."""

    def value_of(name: re.Match[str]) -> str:
        if name[1] not in values:
            raise Refused(f"The template contains {name[0]}, which has no value. Add it in .ci/release.py.")
        return values[name[1]]

    return re.sub(r"@([A-Z][A-Z0-9_]+)@", value_of, template)


def _checksum(file: Path) -> str:
    return f"{_digest(file)}  {file.name}\n"


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _read(name: str | Path) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _run(*words: str | Path) -> None:
    """Run a program. Its output is that of this program. Raises `Refused` if it fails."""
    command = [str(word) for word in words]
    print("+", *command, flush=True)
    if subprocess.run(command, check=False).returncode:
        raise Refused(f"`{' '.join(command[:4])} …` failed. Its output is above.")


if __name__ == "__main__":
    sys.exit(main())
