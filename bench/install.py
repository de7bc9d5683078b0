"""A fresh installation: how long it takes, how large it is, its parts, and how soon it shows something.

`python -m bench.install` installs this revision with pip into a new virtual environment, below the system's
temporary directory, and runs `lithos demo` in it. pip may use what it has downloaded before.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from importlib.metadata import Distribution, distributions
from pathlib import Path

from attrs import asdict, frozen

from bench.report import print_report

ROOT = Path(__file__).resolve().parent.parent
DISTRIBUTION = "lithos-server"
MIB = 1 << 20
#: Seconds any of the commands may take.
LONGEST = 600.0


@frozen
class Package:
    """An installed distribution; `mib` is the size of its files on disk."""

    name: str
    version: str
    mib: float


@frozen
class Installation:
    """Seconds and MiB; `demo_s` counts from the first command on.

    `mib` is what pip added, `empty_mib` what the environment was before: pip itself and, up to Python 3.11,
    setuptools. `packages` are all but pip, the largest first; `direct` is how many of them Lithos asks for
    itself.
    """

    install_s: float
    demo_s: float
    mib: float
    empty_mib: float
    packages: tuple[Package, ...]
    direct: int


def measure_installation() -> Installation:
    """Install into an empty environment and run the demo."""
    with tempfile.TemporaryDirectory(prefix="lithos-install-") as folder:
        venv = Path(folder) / "venv"
        begun = time.perf_counter()
        _run(sys.executable, "-m", "venv", str(venv))
        empty = _size(venv)
        _run(str(venv / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", str(ROOT))
        installed = time.perf_counter()
        _run(str(venv / "bin" / "lithos"), "demo")
        shown = time.perf_counter()
        packages = _list_packages(venv)
        own = next(one for one in distributions(path=_library(venv)) if one.name == DISTRIBUTION)
        return Installation(
            install_s=round(installed - begun, 1),
            demo_s=round(shown - begun, 1),
            mib=round((_size(venv) - empty) / MIB),
            empty_mib=round(empty / MIB),
            packages=packages,
            direct=sum("extra ==" not in requirement for requirement in own.requires or ()),
        )


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-2000:]}")


def _library(venv: Path) -> list[str]:
    return [str(folder) for folder in venv.glob("lib/python*/site-packages")]


def _list_packages(venv: Path) -> tuple[Package, ...]:
    found = [
        Package(one.name, one.version, round(_size_of(one) / MIB, 1))
        for one in distributions(path=_library(venv))
    ]
    return tuple(
        sorted((one for one in found if one.name not in {"pip", "setuptools"}), key=lambda one: -one.mib)
    )


def _size_of(distribution: Distribution) -> int:
    """The disk space of what pip wrote for it."""
    paths = (Path(str(distribution.locate_file(file))) for file in distribution.files or ())
    return sum(_blocks(path) for path in paths if path.is_file())


def _size(folder: Path) -> int:
    return sum(_blocks(path) for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _blocks(path: Path) -> int:
    return path.stat().st_blocks * 512


def main() -> None:
    if sys.argv[1:]:
        sys.exit(__doc__)
    print_report("install", **asdict(measure_installation()))


if __name__ == "__main__":
    main()
