"""Checked-out Git revisions, and a comparison of the newest revision's figures with the older figures."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import distributions
from pathlib import Path
from shutil import copytree
from statistics import median
from typing import Any, Final

from attrs import frozen

#: Keys of a report that are not figures.
_ASIDE: Final = ("bench", "machine")


@frozen
class Change:
    """One figure: its medians over the rounds, and the median and range of its ratios within rounds.

    `agrees` is True if the figure rises in all rounds or falls in all rounds. By chance, this happens in one
    of sixteen series of five rounds.
    """

    figure: str
    old: float
    new: float
    ratio: float
    lowest: float
    highest: float

    @property
    def agrees(self) -> bool:
        return self.lowest > 1 or self.highest < 1


@frozen
class Place:
    """A checked-out revision, with the folders of its `lithos` and its benchmarks."""

    revision: str
    tree: Path
    harness: Path

    @property
    def packages(self) -> Path:
        """Return the folder with the packages that the revision requires and this installation lacks."""
        return self.tree.with_name(f"{self.tree.name}-packages")

    def run(self, module: str, *arguments: str, timeout: float | None = None) -> str:
        """Run a module and return its output.

        If the module fails, print its errors and raise `SystemExit`.
        """
        environment = {**os.environ, "PYTHONPATH": f"{self.tree}{os.pathsep}{self.packages}"}
        command = [sys.executable, *(["-m", module] if module else []), *arguments]
        # A separate process group, so that servers started by the benchmark end together with it.
        with subprocess.Popen(
            command, cwd=self.harness, env=environment, stdout=subprocess.PIPE, text=True, process_group=0
        ) as process:
            try:
                told, _ = process.communicate(timeout=timeout)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        if process.returncode:
            raise SystemExit(
                f"{module or 'lithos'} does not work with {self.revision}; see the errors above."
            )
        return told


@contextmanager
def worktrees(*revisions: str) -> Iterator[tuple[Place, ...]]:
    """Check out the revisions, with the newest last. Remove them at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="lithos-compare-") as folder:
        trees = [Path(folder).resolve() / f"revision-{number}" for number, _ in enumerate(revisions)]
        try:
            for tree, revision in zip(trees, revisions, strict=True):
                _git("worktree", "add", "--quiet", "--detach", str(tree), revision)
            places = tuple(
                Place(_name(revision), tree, _place_harness(tree, trees[-1]))
                for tree, revision in zip(trees, revisions, strict=True)
            )
            for place in places:
                _add_packages(place)
                _check_place(place)
            yield places
        finally:
            for tree in filter(Path.exists, trees):
                _git("worktree", "remove", "--force", str(tree))


def _name(revision: str) -> str:
    """Return the given name of the revision, followed by its commit if that differs."""
    command = ["git", "rev-parse", "--short", f"{revision}^{{commit}}"]
    told = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    commit = told.stdout.strip()
    return (
        revision if commit.startswith(revision) or revision.startswith(commit) else f"{revision} ({commit})"
    )


def _place_harness(tree: Path, source: Path) -> Path:
    """Return a folder with only the benchmarks, because Python would import neighbouring files first."""
    harness = tree.with_name(f"{tree.name}-harness")
    copytree(source / "bench", harness / "bench")
    return harness


def _add_packages(place: Place) -> None:
    """Install the packages that the revision requires and this installation lacks."""
    required = tomllib.loads((place.tree / "pyproject.toml").read_text())["project"]["dependencies"]
    installed = {_normal(found.name) for found in distributions()}
    missing = [
        each for each in required if _normal(re.split(r"[^\w.-]", each, maxsplit=1)[0]) not in installed
    ]
    if missing:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        subprocess.run([*command, "--target", str(place.packages), *missing], check=True)


def _normal(name: str) -> str:
    """Return a package name in the form in which an index compares names (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _check_place(place: Place) -> None:
    """Raise `SystemExit` if the wrong code would be measured."""
    loaded = Path(place.run("", "-c", "import lithos; print(lithos.__file__)").strip()).resolve()
    if not loaded.is_relative_to(place.tree):
        raise SystemExit(f"lithos was loaded from {loaded} instead of {place.tree}; nothing was measured.")


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=Path(__file__).parent, check=True)


def in_turn(places: Sequence[Place], number: int) -> Sequence[Place]:
    """Return the places in the order of this round.

    The order changes so that other load affects all revisions equally.
    """
    return places if number % 2 == 0 else places[::-1]


def read_figures(printed: str) -> dict[str, float]:
    """Return every number in a benchmark's JSON lines by its path, for example `clients_1.hybrid.p50`."""
    figures: dict[str, float] = {}
    reports = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    for report in reports:
        prefix = f"{report['bench']}." if len(reports) > 1 else ""
        inner = {name: value for name, value in report.items() if name not in _ASIDE}
        figures.update((prefix + path, value) for path, value in _flatten(inner, ""))
    return figures


def _flatten(value: Any, path: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _flatten(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, float(value)


def compare_rounds(pairs: Sequence[tuple[Mapping[str, float], Mapping[str, float]]]) -> list[Change]:
    """Return the figures that every run has and that differ between runs.

    Zeros are left out, because they have no ratio.
    """
    changes: list[Change] = []
    for figure in pairs[0][0]:
        rows = [(old[figure], new[figure]) for old, new in pairs if figure in old and figure in new]
        values = {value for row in rows for value in row}
        if len(rows) < len(pairs) or len(values) < 2 or any(old <= 0 for old, _ in rows):
            continue
        ratios = [new / old for old, new in rows]
        changes.append(
            Change(
                figure,
                old=median(old for old, _ in rows),
                new=median(new for _, new in rows),
                ratio=round(median(ratios), 3),
                lowest=round(min(ratios), 3),
                highest=round(max(ratios), 3),
            )
        )
    return changes
