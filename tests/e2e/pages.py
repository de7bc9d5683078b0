"""Examples in Markdown pages: blocks that can run, and their expected output.

A comment before a fenced block says how the block is used. `<!-- install -->` creates `.venv` in the person's
folder. `<!-- serve -->` starts in a first shell and keeps running. `<!-- run -->` runs in a second shell.
`<!-- prints -->` contains lines that the stdout of the previous block must contain in this order. Other lines
are allowed between them, and `…` matches any text. `<!-- file NAME -->` before a block of any language writes
the block to that file.

`python -m tests.e2e.pages CHECKOUT [PAGE]` follows a page (default: README.md) in CHECKOUT, with `$HOME` next
to it. It prints the output that a person would see.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from attrs import define, evolve, field, frozen

from tests.e2e.process import STOP_BOUND, clean_environment

ROOT: Final = Path(__file__).parents[2]
#: The port that the pages show.
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
    """One fenced block. `mark` is the instruction in the comment before the block."""

    mark: Literal["install", "serve", "run", "prints", "file", ""]
    name: str
    language: str
    text: str
    line: int


@frozen
class Step:
    """One executed block, with its stdout and its duration in seconds."""

    block: Block
    printed: str
    seconds: float


def read_blocks(page: str) -> list[Block]:
    """Return all fenced blocks of a page in order."""
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
    """Return the README.md blocks that other pages need: all blocks up to the first in the second shell."""
    marks = [block.mark for block in blocks]
    return list(blocks[: marks.index("run") + 1])


@define
class Person:
    """A person who types the commands of a page in `folder`. Lithos is not on the path.

    `port` replaces the port in the pages. If `port` is 0, the system chooses a port when a server starts.
    """

    folder: Path
    environment: dict[str, str]
    port: str = "0"
    #: Environment with all packages, to which `.venv` links. If it is None, the install commands of the page
    #: run.
    venv: Path | None = Path(sys.prefix)
    _server: subprocess.Popen[str] | None = field(default=None, init=False)

    @classmethod
    def at(cls, folder: Path, home: Path, programs: Path | None = None) -> Person:
        """Return a person with an empty `home`.

        `programs` contains stubs of the programs that a page mentions.
        """
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
        """Execute the blocks in order. If a block fails, raise `AssertionError` with its output."""
        done: list[Step] = []
        for number, block in enumerate(blocks):
            if block.mark == "install":
                done += [self._install(block, within)]
            elif block.mark == "serve":
                done += [self._serve(block)]
            elif block.mark in ("run", "file"):
                return done + run_blocks(
                    list(map(self.with_port, blocks[number:])), self.folder, self.environment, within
                )
        return done

    def stop(self) -> None:
        """Press Ctrl-C in the first shell, so that the server stops without an error."""
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
        """Return the block with the running server's port."""
        return evolve(block, text=block.text.replace(PRINTED_PORT, self.port))

    def _install(self, block: Block, within: float) -> Step:
        began = time.monotonic()
        if self.venv is None:
            (step,) = run_blocks([block], self.folder, self.environment, within)
            return step
        (self.folder / ".venv").symlink_to(self.venv)
        return Step(block, "", time.monotonic() - began)

    def _serve(self, block: Block) -> Step:
        began = time.monotonic()
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
                return Step(block, said, time.monotonic() - began)
        raise AssertionError(f"the server did not start: {said}")


@contextmanager
def following(person: Person) -> Iterator[Person]:
    """Yield a person for the block. Afterwards, stop the person's server."""
    try:
        yield person
    finally:
        person.stop()


def run_blocks(
    blocks: Sequence[Block], folder: Path, environment: Mapping[str, str], within: float
) -> list[Step]:
    """Run the marked blocks in one shell in the directory `folder`.

    If a command fails, the shell ends. `AssertionError` with its output is then raised.
    """
    script, run = ["set -eu"], []
    for block in blocks:
        if block.mark == "file":
            (folder / block.name).write_text(block.text, encoding="utf-8")
        elif block.mark in ("run", "install"):
            run.append(block)
            script.append(f"{block.text}\nprintf '{_BETWEEN}%s{_BETWEEN}' $EPOCHREALTIME")
    began = time.time()
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
    ends = [began, *map(float, parts[1::2])]
    return [
        Step(block, printed, ends[index + 1] - ends[index])
        for index, (block, printed) in enumerate(zip(run, parts[::2], strict=True))
    ]


def find_unprinted(expected: str, printed: str) -> str | None:
    """Return the first line of `expected` that is missing from `printed`, or None.

    The order of lines counts.
    """
    lines = iter(printed.splitlines())
    for wanted in expected.splitlines():
        pattern = ".*".join(map(re.escape, wanted.strip().split("…")))
        if wanted.strip() and not any(re.fullmatch(pattern, line.strip()) for line in lines):
            return wanted
    return None


def find_difference(page: Path, blocks: Sequence[Block], steps: Sequence[Step]) -> str | None:
    """Return the first expected line that was not printed, with its position, or None."""
    for block, printed in shown_outputs(blocks, steps):
        if (missing := find_unprinted(block.text, printed)) is not None:
            return f"{page.name}:{block.line}: {missing!r} not in\n{printed}"
    return None


def put_claude(folder: Path) -> Path:
    """Return a folder that contains a stub program `claude` (`tests/e2e/claude.py`)."""
    folder.mkdir()
    program = folder / "claude"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT}/tests/e2e/claude.py" "$@"\n')
    program.chmod(0o755)
    return folder


def shown_outputs(blocks: Sequence[Block], steps: Sequence[Step]) -> list[tuple[Block, str]]:
    """Return each block of expected output, with the real output of the block before it."""
    printed = {step.block: step.printed for step in steps}
    last, shown = "", []
    for block in blocks:
        last = printed.get(block, last)
        if block.mark == "prints":
            shown.append((block, last))
    return shown


def transcript(steps: Sequence[Step]) -> str:
    """Return the typed commands with their output, and the seconds that each block took."""
    parts = [f"--- {step.block.mark}: {step.seconds:.1f} s" for step in steps]
    typed = ["".join(f"$ {line}\n" for line in step.block.text.splitlines()) for step in steps]
    return "\n".join(
        f"{part}\n{text}{step.printed}" for part, text, step in zip(parts, typed, steps, strict=True)
    )


def main(checkout: Path, page: Path) -> None:
    """Follow the page in a checkout, execute every step, and print the transcript."""
    checkout = checkout.resolve()
    person = Person.at(checkout, checkout.with_name("home"), put_claude(checkout.with_name("programs")))
    person.venv, person.port = None, PRINTED_PORT
    blocks = read_blocks(page.read_text(encoding="utf-8"))
    with following(person):
        steps = person.follow(blocks, 600.0)
    missing = find_difference(page, blocks, steps)
    sys.stdout.write(f"{transcript(steps)}\n--- {missing or 'as the page says'}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "README.md"))
