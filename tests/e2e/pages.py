"""Examples in Markdown pages: which blocks are run, and what they must print.

A line before a fenced block says what becomes of it. `<!-- install -->` makes `.venv` in the person's folder,
`<!-- serve -->` is typed into a first shell and goes on in the background, `<!-- run -->` is typed into the
second shell. `<!-- prints -->` says what stdout of the block before must show: each of its lines, in this
order, other lines between them; `…` stands for anything. `<!-- file NAME -->` before a block of any language
has it written to that file.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from attrs import define, evolve, field, frozen

from tests.e2e.process import STOP_BOUND, clean_environment

ROOT: Final = Path(__file__).parents[2]
#: The port that pages print.
PRINTED_PORT: Final = "8765"
_BLOCK: Final = re.compile(
    r"(?:^<!-- (?P<mark>install|serve|run|prints|file (?P<name>\S+)) -->\n+)?"
    r"^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_BETWEEN: Final = "\x1e"
_PORT: Final = re.compile(r"http://127\.0\.0\.1:(\d+)/mcp")


@frozen
class Block:
    """One fenced block; `mark` is what the comment before it asks for."""

    mark: Literal["install", "serve", "run", "prints", "file", ""]
    name: str
    language: str
    text: str
    line: int


@frozen
class Step:
    """One block that was run, and what it printed on stdout."""

    block: Block
    printed: str


def read_blocks(page: str) -> list[Block]:
    """All fenced blocks of a page, in order."""
    return [
        Block(
            mark=(found["mark"] or "").partition(" ")[0],  # type: ignore[arg-type]
            name=found["name"] or "",
            language=found["language"],
            text=found["text"],
            line=page.count("\n", 0, found.start("text")),
        )
        for found in _BLOCK.finditer(page)
    ]


def first_steps(blocks: Sequence[Block]) -> list[Block]:
    """The blocks of README.md that other pages go on from: up to the first in the second shell."""
    marks = [block.mark for block in blocks]
    return list(blocks[: marks.index("run") + 1])


@define
class Person:
    """Somebody who types what a page shows, in `folder`, with nothing of Lithos on the path.

    `port`: what stands for the port that pages print; 0 has the system choose one when a server is started.
    """

    folder: Path
    environment: dict[str, str]
    port: str = "0"
    _server: subprocess.Popen[str] | None = field(default=None, init=False)

    @classmethod
    def at(cls, folder: Path, home: Path, programs: Path | None = None) -> Person:
        """A person with an empty `home`; `programs` has what stands in for programs that a page names."""
        home.mkdir()
        own = str(Path(sys.executable).parent)
        path = [each for each in os.environ["PATH"].split(os.pathsep) if each != own]
        path[:0] = [] if programs is None else [str(programs)]
        home_only = {"HOME": str(home), "PATH": os.pathsep.join(path)}
        environment = clean_environment(home_only)
        for name in [name for name in environment if name.startswith("XDG_")]:
            del environment[name]
        return cls(folder, environment)

    def follow(self, blocks: Sequence[Block], within: float) -> list[Step]:
        """Do what the blocks say, in their order; `AssertionError` with what was said where one fails."""
        done: list[Step] = []
        for number, block in enumerate(blocks):
            if block.mark == "install":
                done += [self._install(block)]
            elif block.mark == "serve":
                done += [self._serve(block)]
            elif block.mark in ("run", "file"):
                return done + run_blocks(
                    list(map(self.with_port, blocks[number:])), self.folder, self.environment, within
                )
        return done

    def stop(self) -> None:
        """Press Ctrl-C in the first shell: a server ends in order."""
        if self._server is None:
            return
        os.killpg(self._server.pid, signal.SIGINT)
        try:
            assert self._server.wait(STOP_BOUND) in (0, 130), self._server.returncode
        finally:
            if self._server.poll() is None:
                os.killpg(self._server.pid, signal.SIGKILL)
            assert self._server.stdout is not None
            self._server.stdout.close()

    def with_port(self, block: Block) -> Block:
        """The block with the port of the running server in it."""
        return evolve(block, text=block.text.replace(PRINTED_PORT, self.port))

    def _install(self, block: Block) -> Step:
        """`.venv` is this environment, which has what is installed."""
        (self.folder / ".venv").symlink_to(sys.prefix)
        return Step(block, "")

    def _serve(self, block: Block) -> Step:
        with (self.folder.parent / "serve.stderr").open("ab") as errors:
            self._server = subprocess.Popen(
                ["bash", "--norc", "-c", block.text],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=self.folder,
                env={**self.environment, "LITHOS_PORT": self.port},
                text=True,
                start_new_session=True,
            )
        said = ""
        assert self._server.stdout is not None
        for line in self._server.stdout:
            said += line
            if found := _PORT.search(line):
                self.port = self.environment["LITHOS_PORT"] = found[1]
                return Step(block, said)
        raise AssertionError(f"the server did not start: {said}")


@contextmanager
def following(person: Person) -> Iterator[Person]:
    """A person for the block, whose server is stopped afterwards."""
    try:
        yield person
    finally:
        person.stop()


def run_blocks(
    blocks: Sequence[Block], folder: Path, environment: Mapping[str, str], within: float
) -> list[Step]:
    """Run the marked blocks in one shell, with `folder` as its current one.

    The shell ends at the first command that fails: `AssertionError` with what it said.
    """
    script, run = ["set -eu"], []
    for block in blocks:
        if block.mark == "file":
            (folder / block.name).write_text(block.text, encoding="utf-8")
        elif block.mark in ("run", "install"):
            run.append(block)
            script.append(f"{block.text}\nprintf '{_BETWEEN}'")
    done = subprocess.run(
        ["bash", "--norc", "-c", "\n".join(script)],
        capture_output=True,
        text=True,
        cwd=folder,
        env=dict(environment),
        timeout=within,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stderr}\nafter: {done.stdout}"
    *parts, _ = done.stdout.split(_BETWEEN)
    return [Step(block, printed) for block, printed in zip(run, parts, strict=True)]


def find_unprinted(expected: str, printed: str) -> str | None:
    """The first line of `expected` that does not appear in its place, or None."""
    lines = iter(printed.splitlines())
    for wanted in expected.splitlines():
        pattern = ".*".join(map(re.escape, wanted.strip().split("…")))
        if wanted.strip() and not any(re.fullmatch(pattern, line.strip()) for line in lines):
            return wanted
    return None


def find_difference(page: Path, blocks: Sequence[Block], steps: Sequence[Step]) -> str | None:
    """What the page shows as printed and was not, with its place; None where all of it was."""
    for block, printed in shown_outputs(blocks, steps):
        if (missing := find_unprinted(block.text, printed)) is not None:
            return f"{page.name}:{block.line}: {missing!r} not in\n{printed}"
    return None


def put_claude(folder: Path) -> Path:
    """A folder with a program `claude` (`tests/e2e/claude.py`)."""
    folder.mkdir()
    program = folder / "claude"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT}/tests/e2e/claude.py" "$@"\n')
    program.chmod(0o755)
    return folder


def shown_outputs(blocks: Sequence[Block], steps: Sequence[Step]) -> list[tuple[Block, str]]:
    """Each block that shows what is printed, with what the block before it printed."""
    printed = {step.block: step.printed for step in steps}
    last, shown = "", []
    for block in blocks:
        last = printed.get(block, last)
        if block.mark == "prints":
            shown.append((block, last))
    return shown
