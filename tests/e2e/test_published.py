"""Published wheel, sdist, plugin and bundle. Each can be installed, and its server answers (behaviour 245).

Packages for building and installing come from the package index of pip and uv. If there is no index, these
tests are skipped with the reason.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from lithos import __version__
from tests.e2e.process import clean_environment
from tests.e2e.stdio import stdio_program
from tests.release import bundle

ROOT = Path(__file__).parents[2]
WITHIN = 300.0
SERVE = ("serve", "--transport", "stdio")

pytestmark = [pytest.mark.nightly, pytest.mark.takes(20)]


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment in which only installed programs are found."""
    kept = clean_environment(extra)
    for name in ("PYTHONPATH", "VIRTUAL_ENV"):
        kept.pop(name, None)
    return kept


def run(*words: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        list(map(str, words)),
        capture_output=True, text=True, timeout=WITHIN, check=False, env=environment(env), cwd=ROOT.anchor,
    )  # fmt: skip
    assert done.returncode == 0, f"{words}: {done.stdout[-2_000:]} {done.stderr[-2_000:]}"
    return done


def find_uv(folder: Path) -> Path:
    """Return the path of uv. It is in this environment, on the machine, or newly installed with pip."""
    found = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if found:
        return Path(found)
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    done = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "uv"],
        capture_output=True, text=True, timeout=WITHIN, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"uv is not here and pip cannot install it: {done.stderr.strip().splitlines()[-1]}")
    return folder / "bin" / "uv"


@pytest.fixture(scope="module")
def uv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return find_uv(tmp_path_factory.mktemp("uv"))


@pytest.fixture(scope="module")
def built(uv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that contains the wheel and the sdist. The wheel is built from the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    reach = subprocess.run(
        [uv, "tool", "run", "--quiet", "--from", "hatchling", "hatchling", "version", "--help"],
        capture_output=True, text=True, timeout=WITHIN, check=False, env=environment(),
    )  # fmt: skip
    if reach.returncode:
        pytest.skip(f"no package index gives hatchling: {reach.stderr.strip()[-300:]}")
    run(uv, "build", "--quiet", "--out-dir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


def expect_server(words: Sequence[str | Path], folder: Path, **env: str) -> None:
    """Assert that the program speaks MCP over stdio and writes a note into the folder."""
    settings = environment(env | {"LITHOS_DATA_DIR": str(folder / "data")})
    with stdio_program(words, settings, cwd=folder) as server:
        server.greet()
        server.call(1, "lithos_write", agent="ann", title="Raft", content="A log.")
        assert server.answer()["result"]["structuredContent"]["status"] == "created"
        server.close_input()
        server.rest()
    assert (folder / "data" / "knowledge" / "raft.md").exists()


def test_wheel_and_sdist_pass_the_package_index_check(uv: Path, built: Path) -> None:
    """Behaviour 245."""
    files = sorted(file for file in built.iterdir() if file.name != ".gitignore")
    assert [file.suffix for file in files] == [".whl", ".gz"]
    assert "FAILED" not in run(uv, "tool", "run", "--quiet", "twine", "check", "--strict", *files).stdout
    with zipfile.ZipFile(next(file for file in files if file.suffix == ".whl")) as archive:
        names = archive.namelist()
        scripts = archive.read(f"lithos_server-{__version__}.dist-info/entry_points.txt").decode()
        size = sum(entry.compress_size for entry in archive.infolist())
    assert size < 60_000_000, "with both models, the wheel has 40 MB"
    assert {"lithos/models/builtin/model.safetensors", "lithos/models/builtin/SHA256SUMS"} <= set(names)
    assert "lithos/clients/plugin/skill.md" in names
    assert "lithos-server = lithos.app.main:main" in scripts
    assert not [name for name in names if name.startswith(("tests/", "docs/", "bench/"))]


def test_wheel_can_be_installed_with_pip_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    """Behaviour 245: the installed program writes the plugin, and the plugin starts the installed program."""
    venv.create(tmp_path / "empty", with_pip=True)
    programs = tmp_path / "empty" / "bin"
    # Modules are compiled on import. Compiling all of them would take longer than the installation.
    run(programs / "python", "-m", "pip", "install", "--quiet", "--no-compile", wheel)
    expect_server([programs / "lithos-server", *SERVE], tmp_path)
    run(
        programs / "lithos",
        "-d",
        tmp_path / "data",
        "connect",
        "claude-code",
        "--plugin",
        tmp_path / "plugin",
    )
    entry = json.loads((tmp_path / "plugin" / ".mcp.json").read_text())["mcpServers"]["lithos"]
    assert entry["command"] == str(programs / "lithos")
    (tmp_path / "data" / "knowledge" / "raft.md").unlink()
    expect_server([entry["command"], *entry["args"]], tmp_path)


def test_server_starts_with_uvx(uv: Path, wheel: Path, tmp_path: Path) -> None:
    """Behaviour 245."""
    expect_server([uv, "tool", "run", "--quiet", "--from", wheel, "lithos-server", *SERVE], tmp_path)


def test_server_can_be_installed_with_pipx(uv: Path, wheel: Path, tmp_path: Path) -> None:
    """Behaviour 245."""
    homes = {f"PIPX_{name}": str(tmp_path / name.lower()) for name in ("HOME", "BIN_DIR", "MAN_DIR")}
    search = f"{uv.parent}{os.pathsep}{os.environ['PATH']}"  # pipx finds uv on the path
    run(uv, "tool", "run", "--quiet", "pipx", "install", "--quiet", wheel, PATH=search, **homes)
    expect_server([tmp_path / "bin_dir" / "lithos-server", *SERVE], tmp_path)


def test_published_plugin_starts_its_server(uv: Path, built: Path, tmp_path: Path) -> None:
    """Behaviour 245: a local folder is the package index for the wheel."""
    assert bundle.main([str(tmp_path / "forms")]) == 0
    plugin = tmp_path / "forms" / ".claude-plugin" / "lithos"
    entry = json.loads((plugin / ".mcp.json").read_text())["mcpServers"]["lithos"]
    assert entry["command"] == "uvx"
    command = [uv, "tool", "run", "--quiet", *entry["args"]]
    expect_server(command, tmp_path, UV_FIND_LINKS=str(built))


def test_unpacked_bundle_starts_its_server(uv: Path, built: Path, tmp_path: Path) -> None:
    """Behaviour 245: runs the command in the manifest. A local folder is the package index for the wheel."""
    assert bundle.main([str(tmp_path / "forms")]) == 0
    unpacked = tmp_path / "unpacked"
    with zipfile.ZipFile(tmp_path / "forms" / f"lithos-{__version__}.mcpb") as archive:
        archive.extractall(unpacked)
    started = json.loads((unpacked / "manifest.json").read_text())["server"]["mcp_config"]
    assert started["command"] == "uv"
    words = [word.replace("${__dirname}", str(unpacked)) for word in started["args"]]
    expect_server([uv, *words], tmp_path, UV_FIND_LINKS=str(built))
