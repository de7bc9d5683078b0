"""The release script `.ci/release.py`, the templates that it fills, and the workflow that calls it."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.clients.plugin.test_plugin import files_of
from tests.release import names, release, try_wheel

ROOT = Path(__file__).parents[1]
WORKFLOWS = ROOT / ".github" / "workflows"
FORMULA = (ROOT / "Formula" / "lithos.rb").read_text(encoding="utf-8")
CHANGELOG = """# Changelog

## 1.2.0 (unreleased)

* Nothing yet.

## 1.1.0

* A [page](docs/run.md#stop) and a [site](https://example.org/a), a [part](#x).

## 1.0.0

* First.
"""
RELEASED = names._replace(version="1.1.0")


def workflow(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((WORKFLOWS / name).read_text(encoding="utf-8"))
    return found


def steps_of(name: str) -> list[dict[str, Any]]:
    return [step for job in workflow(name)["jobs"].values() for step in job.get("steps", [])]


@pytest.fixture
def sdist(tmp_path: Path) -> Path:
    file = tmp_path / f"lithos_server-{names.version}.tar.gz"
    file.write_bytes(b"content")
    return file


def test_tag_must_be_the_version_of_the_checkout() -> None:
    release.check_release(RELEASED, CHANGELOG, tag="v1.1.0", owner=names.owner.upper())
    with pytest.raises(release.Refused, match=r"release\.py version 1\.1\.1`, commit"):
        release.check_release(RELEASED, CHANGELOG, tag="v1.1.1", owner=None)


def test_unreleased_changelog_is_refused_for_a_tag() -> None:
    coming = names._replace(version="1.2.0")
    release.check_release(coming, CHANGELOG, tag=None, owner=None)
    with pytest.raises(release.Refused, match="unreleased"):
        release.check_release(coming, CHANGELOG, tag="v1.2.0", owner=None)
    with pytest.raises(release.Refused, match=r"no heading `## 1\.3\.0`"):
        release.check_release(names._replace(version="1.3.0"), CHANGELOG, tag=None, owner=None)


def test_page_without_a_release_is_refused_for_a_tag() -> None:
    release.check_pages({"README.md": "Run uvx."})
    with pytest.raises(release.Refused, match=r"b\.md says that the first release"):
        release.check_pages({"a.md": "Run uvx.", "b.md": f"It {release.UNPUBLISHED}."})


def test_pages_agree_on_the_first_release() -> None:
    """Once Lithos is released, the line without a clone comes first in both pages."""
    for name in ("README.md", "docs/index.md"):
        page = release._read(name)
        assert f"uvx {names.package} --vault ~/notes serve" in page
        is_first = page.index(f"uvx {names.package}") < page.index("python3 -m venv")
        assert is_first != (release.UNPUBLISHED in page), name


def test_fork_with_the_names_of_another_owner_is_refused() -> None:
    with pytest.raises(release.Refused, match=r"belongs to other, and pyproject\.toml names"):
        release.check_release(RELEASED, CHANGELOG, tag="v1.1.0", owner="other")


def test_notes_contain_the_section_of_their_version_with_whole_links() -> None:
    notes = release.make_notes(RELEASED, CHANGELOG)
    assert f"[page]({names.address}/blob/v1.1.0/docs/run.md#stop)" in notes
    assert "[site](https://example.org/a), a [part](#x)" in notes
    assert "First." not in notes
    assert "Nothing yet." not in notes
    assert f"uvx {names.package}@1.1.0 " in notes
    assert f"{names.image}:1.1.0" in notes


def test_links_and_images_lead_to_the_files_of_the_tag() -> None:
    text = "![a b](docs/a.png) [[c]](d/e.md#f) [g](#h) [i](https://example.org)"
    blob, raw = f"{names.address}/blob/v1.1.0", f"{names.address}/raw/v1.1.0"
    linked = release.link_files(RELEASED, text)
    assert linked == f"![a b]({raw}/docs/a.png) [[c]]({blob}/d/e.md#f) [g](#h) [i](https://example.org)"
    assert not re.search(r"\]\((?!https://|#)", release.link_files(names, release._read("README.md")))


def test_source_copy_contains_the_files_of_the_archive(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "lithos").mkdir(parents=True)
    (root / "lithos" / "__pycache__").mkdir()
    for name, text in {
        "pyproject.toml": '[tool.hatch.build.targets.sdist]\ninclude = ["lithos", "README.md"]\n',
        ".gitignore": "", "README.md": "[a](docs/a.md)", "lithos/a.py": "1",
        "lithos/__pycache__/a": "2", "b": "3",
    }.items():  # fmt: skip
        (root / name).write_text(text)
    copy = release.copy_source(root, tmp_path / "copy")
    assert files_of(copy).keys() == {"pyproject.toml", ".gitignore", "README.md", "lithos/a.py"}
    assert (copy / "README.md").read_text() == f"[a]({names.address}/blob/{names.tag}/docs/a.md)"
    assert (root / "README.md").read_text() == "[a](docs/a.md)"


def test_packages_of_models_are_released_too(tmp_path: Path) -> None:
    for name in ("two", "one", "notes"):
        (tmp_path / "models" / name).mkdir(parents=True)
    (tmp_path / "models" / "two" / "pyproject.toml").touch()
    (tmp_path / "models" / "one" / "pyproject.toml").touch()
    assert [path.name for path in release.find_models(tmp_path)] == ["one", "two"]
    assert release.find_models(tmp_path / "models") == []


def test_changelog_of_this_version_gives_notes() -> None:
    assert "* Lithos is an MCP server" in release.make_notes(names, release._read("CHANGELOG.md"))


def test_version_is_set_in_all_places(tmp_path: Path) -> None:
    for name in ("lithos/__init__.py", "flake.nix", "pyproject.toml", "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for folder in (".ci", "lithos"):
        shutil.copytree(
            ROOT / folder, tmp_path / folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("models")
        )
    release.set_version(tmp_path, "7.8.9")
    assert '__version__ = "7.8.9"' in (tmp_path / "lithos" / "__init__.py").read_text()
    assert 'version = "7.8.9";' in (tmp_path / "flake.nix").read_text()
    entry = json.loads((tmp_path / ".claude-plugin" / "lithos" / ".mcp.json").read_text())
    assert entry["mcpServers"]["lithos"]["args"][0] == f"{names.package}@7.8.9"
    for wrong in ("v1", "1.2", "1.2.3rc1"):
        with pytest.raises(release.Refused, match="not a version"):
            release.set_version(tmp_path, wrong)
    with pytest.raises(release.Refused, match="not a version like"):
        release.check_release(names._replace(version="1.2.3rc1"), CHANGELOG, tag=None, owner=None)


def test_flake_has_the_version_and_the_package_of_this_checkout() -> None:
    flake = (ROOT / "flake.nix").read_text(encoding="utf-8")
    assert f'version = "{names.version}";' in flake
    assert f'package = "{names.package}";' in flake


#: The part of nixpkgs that the flake uses. Programs are described instead of built.
NIXPKGS = """{
  lib.genAttrs = names: make: builtins.listToAttrs (map (name: { inherit name; value = make name; }) names);
  legacyPackages = builtins.listToAttrs (map (name: { inherit name; value = {
    lib = {
      makeLibraryPath = paths: builtins.concatStringsSep ":" (map (each: each + "/lib") paths);
      optionalString = is: text: if is then text else "";
    };
    stdenv = { isLinux = builtins.match ".*-linux" name != null; cc.cc.lib = "/gcc"; };
    zlib = "/zlib"; uv = "/uv"; python313 = "/python";
    writeShellApplication = described: described;
    symlinkJoin = described: described;
  }; }) [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ]);
}"""


@pytest.mark.skipif(shutil.which("nix-instantiate") is None, reason="only Nix reads a flake")
def test_flake_starts_the_package_of_this_version(tmp_path: Path) -> None:
    (tmp_path / "nixpkgs.nix").write_text(NIXPKGS)
    flake, stub = ROOT / "flake.nix", tmp_path / "nixpkgs.nix"
    told = subprocess.run(
        ["nix-instantiate", "--eval", "--strict", "--json", "-E",
         f"((import {flake}).outputs {{ self = {{}}; nixpkgs = import {stub}; }}).packages"],
        capture_output=True, text=True, check=True, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin",
        "NIX_STATE_DIR": str(tmp_path / "state"), "NIX_STORE_DIR": str(tmp_path / "store")},
    ).stdout  # fmt: skip
    packages = json.loads(told)
    assert len(packages) == 4
    for system, found in packages.items():
        first, second = found["default"]["paths"]
        assert (first["name"], second["name"]) == ("lithos", names.package)
        assert f'exec uvx --from {names.package}=={names.version} lithos "$@"' in first["text"]
        assert ("LD_LIBRARY_PATH" in first["text"]) == system.endswith("-linux")
        subprocess.run(["bash", "-n", "-c", first["text"]], check=True)


def test_formula_is_filled_with_the_source_archive(sdist: Path) -> None:
    filled = release.fill(FORMULA, release.describe_sdist(names, sdist))
    assert not re.search(r"@[A-Z_]+@", filled)
    assert f'url "{names.downloads}/{sdist.name}"' in filled
    assert f'sha256 "{hashlib.sha256(b"content").hexdigest()}"' in filled
    with pytest.raises(release.Refused, match="@OTHER@, which has no value"):
        release.fill("a @OTHER@", {})


@pytest.mark.skipif(shutil.which("ruby") is None, reason="only Ruby reads a formula")
def test_filled_formula_is_valid_ruby(sdist: Path, tmp_path: Path) -> None:
    file = tmp_path / "lithos.rb"
    file.write_text(release.fill(FORMULA, release.describe_sdist(names, sdist)))
    subprocess.run(["ruby", "-wc", str(file)], check=True, capture_output=True)


def test_source_archive_contains_the_lock_file_that_the_formula_uses() -> None:
    assert "--frozen" in FORMULA
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '"uv.lock"' in project.partition("[tool.hatch.build.targets.sdist]")[2].partition("[tool")[0]


@pytest.mark.parametrize("name", ["ci.yml", "nightly.yml", "release.yml", "site.yml"])
def test_actions_are_pinned_by_hash_with_their_version(name: str) -> None:
    used = re.findall(r"uses: (\S+)(.*)", (WORKFLOWS / name).read_text(encoding="utf-8"))
    foreign = [(action, note) for action, note in used if not action.startswith("./")]
    assert foreign
    assert [each for each in foreign if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", each[0])] == []
    assert [each for each in foreign if not re.fullmatch(r" # v\d+\.\d+\.\d+", each[1])] == []


def test_the_same_action_has_the_same_hash_everywhere() -> None:
    used = {
        line for file in WORKFLOWS.glob("*.yml") for line in re.findall(r"uses: (\S+@\S+)", file.read_text())
    }
    assert len(used) == len({action.partition("@")[0] for action in used})


def test_every_job_has_only_the_rights_that_it_needs() -> None:
    whole = workflow("release.yml")
    assert whole["permissions"] == {}
    rights = {name: job["permissions"] for name, job in whole["jobs"].items()}
    writers = {
        name: {scope for scope, right in given.items() if right == "write"} for name, given in rights.items()
    }
    assert writers == {
        "check": set(), "gate": set(), "build": set(), "try": set(), "package": {"id-token"},
        "image": {"packages", "id-token", "attestations"}, "files": {"contents", "id-token", "attestations"},
        "registry": {"id-token"}, "site": {"pages", "id-token"},
    }  # fmt: skip
    secrets = re.findall(r"secrets\.(\w+)", (WORKFLOWS / "release.yml").read_text(encoding="utf-8"))
    assert set(secrets) == {"GITHUB_TOKEN"}


def test_nothing_is_published_before_the_gate_and_the_trials_pass() -> None:
    jobs = workflow("release.yml")["jobs"]
    needs = {
        name: [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
        for name, job in jobs.items()
    }
    assert set(needs["package"]) == {"gate", "try"}
    for name in ("image", "files", "registry", "site"):
        assert "package" in needs[name], name


def test_no_value_of_an_event_is_written_into_a_script() -> None:
    """A tag may contain shell syntax, so scripts read it from the environment."""
    for name in ("ci.yml", "nightly.yml", "release.yml", "site.yml"):
        assert [step["run"] for step in steps_of(name) if "${{" in step.get("run", "")] == []


def test_scripts_of_the_workflow_exist_and_know_their_options(capsys: pytest.CaptureFixture[str]) -> None:
    used = {
        script
        for name in ("ci.yml", "nightly.yml", "release.yml")
        for step in steps_of(name)
        for script in re.findall(r"\.ci/[\w.]+", step.get("run", ""))
    }
    assert used == {".ci/run", ".ci/nightly", ".ci/release.py", ".ci/names.py", ".ci/try_wheel.py"}
    assert all((ROOT / script).is_file() for script in used)
    for module, words in (
        (release, ["check", "--help"]),
        (release, ["make", "--help"]),
        (try_wheel, ["--help"]),
    ):
        with pytest.raises(SystemExit, match="0"):
            module.main(words)
    shown = capsys.readouterr().out
    assert all(option in shown for option in ("--tag", "--owner", "--python", "DIR"))


def test_wheel_is_tried_with_every_supported_python() -> None:
    tried = workflow("release.yml")["jobs"]["try"]["strategy"]["matrix"]["python"]
    assert tried == try_wheel.supported()
