"""A release as far as a machine without an account can make it (behaviour 245).

The tests run the commands of the jobs `build` and `try` in `.github/workflows/release.yml`, and that of the
formula.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.e2e.test_published import environment, expect_server, find_uv, run
from tests.release import names, release, try_wheel

ROOT = Path(__file__).parents[2]
WITHIN = 1_500.0

pytestmark = [pytest.mark.nightly, pytest.mark.takes(300)]


def script(name: str, *words: str | Path) -> str:
    """Return what a release script prints, in an environment in which only installed programs are found."""
    done = subprocess.run(
        [sys.executable, str(ROOT / ".ci" / name), *map(str, words)],
        capture_output=True, text=True, timeout=WITHIN, check=False, env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]
    return done.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with all files of a release."""
    folder = tmp_path_factory.mktemp("release")
    reach = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "-q",
        "-d",
        str(folder / "reach"),
        "hatchling",
    ]
    done = subprocess.run(reach, capture_output=True, text=True, check=False, timeout=WITHIN)
    if done.returncode:
        pytest.skip(f"no package index gives hatchling: {done.stderr.strip()[-300:]}")
    script("release.py", "make", folder / "out")
    return folder / "out"


def test_release_contains_all_files_with_their_checksums(made: Path) -> None:
    """Behaviour 245."""
    package = names.package.replace("-", "_")
    models = release.find_models(ROOT)
    python = {file.name for file in (made / "python").iterdir()}
    assert {f"{package}-{names.version}.tar.gz", f"{package}-{names.version}-py3-none-any.whl"} <= python
    assert len(python) == 2 + 2 * len(models)
    files = {file.name for file in (made / "files").iterdir()}
    bill = f"{names.package}-{names.version}.cdx.json"
    assert files == {"server.json", f"lithos-{names.version}.mcpb", "lithos.rb", bill, "SHA256SUMS"}
    listed = dict(
        reversed(line.split("  ")) for line in (made / "files" / "SHA256SUMS").read_text().splitlines()
    )
    published = {file.name: file for part in ("python", "files") for file in (made / part).iterdir()}
    assert listed.keys() == published.keys() - {"SHA256SUMS"}
    for name, digest in listed.items():
        assert hashlib.sha256(published[name].read_bytes()).hexdigest() == digest
    assert listed[f"{package}-{names.version}.tar.gz"] in (made / "files" / "lithos.rb").read_text()
    assert '"name": "apsw"' in (made / "files" / bill).read_text()
    assert names.address in (made / "NOTES.md").read_text()


def test_page_of_the_package_index_has_no_links_into_a_folder(made: Path) -> None:
    (wheel,) = (made / "python").glob(f"{names.package.replace('-', '_')}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        described = archive.read(f"{wheel.name.partition('-py3')[0]}.dist-info/METADATA").decode()
    assert f"({names.address}/raw/{names.tag}/docs/console.png)" in described
    assert re.findall(r"\]\((?!https://|#)[^)]*\)", described) == []


def test_wheel_takes_the_first_steps_with_each_supported_python(made: Path) -> None:
    """Behaviour 245: serves a vault, connects a client, searches, and plays the demo."""
    printed = script("try_wheel.py", made)
    here = [version for version, path in try_wheel.find_pythons().items() if path is not None]
    assert here
    assert printed.count(f"lithos {names.version}, installed in") == len(here)


def test_formula_installs_the_source_archive(made: Path, tmp_path: Path) -> None:
    """Behaviour 245: the command of `Formula/lithos.rb`, which reads the lock file in the archive."""
    uv = find_uv(tmp_path / "uv")
    with tarfile.open(
        made / "python" / f"{names.package.replace('-', '_')}-{names.version}.tar.gz"
    ) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    prefix = tmp_path / "libexec"
    command = [
        uv,
        "sync",
        "--frozen",
        "--no-dev",
        "--no-editable",
        "--python",
        sys.executable,
        "--project",
        source,
    ]
    run(*command, "--quiet", UV_PROJECT_ENVIRONMENT=str(prefix), UV_PYTHON_DOWNLOADS="never")
    assert names.version in run(prefix / "bin" / "lithos-server", "--version").stdout
    expect_server([prefix / "bin" / "lithos", "serve", "--transport", "stdio"], tmp_path)


def test_workflows_pass_the_linters_of_the_code_host(tmp_path: Path) -> None:
    """zizmor finds unsafe workflows, and check-jsonschema has the schema of workflows."""
    uv, folder = find_uv(tmp_path / "uv"), ROOT / ".github" / "workflows"
    run(uv, "tool", "run", "--quiet", "zizmor", "--offline", "--quiet", "--min-severity=medium", folder)
    schema = ("check-jsonschema", "--builtin-schema", "vendor.github-workflows")
    run(uv, "tool", "run", "--quiet", *schema, *sorted(folder.glob("*.yml")))
