"""The bytecode of the methods that attrs generates is kept, and never used for other sources."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lithos.cli.generated import MOST, ClassCode

SOURCE = "def answer(self):\n    return 42\n"

PROGRAM = """
import json
from lithos.cli import generated
generated.install_class_code()
import lithos.core.notes.model as model
import lithos.core.tasks.model
generated.keep_class_code()
note = model.Note(id="a", title="b", tags=("c",))
same = model.Note(id="a", title="b", tags=("c",))
print(json.dumps([generated._installed[0].compiled, note == same and hash(model.Standing(1, "a")) ==
    hash(model.Standing(1, "a")), repr(note)]))
"""


def run(code: Any) -> Any:
    names: dict[str, Callable[..., Any]] = {}
    exec(code, names)
    return names["answer"](None)


@pytest.fixture
def bytecode(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return tmp_path / "kept" / "code.classes"


def kept(path: Path, source: str = SOURCE) -> int:
    """How many of one source a new process has to compile."""
    code = ClassCode(path)
    assert run(code.compile(source, "<a>", "exec")) == 42
    return code.compiled


def test_what_was_saved_is_not_compiled_again(bytecode: Path) -> None:
    first = ClassCode(bytecode)
    first.compile(SOURCE, "<a>", "exec")
    first.save()
    assert kept(bytecode) == 0
    assert kept(bytecode, SOURCE + "\n") == 1, "another source"
    assert [each.name for each in bytecode.parent.iterdir()] == [bytecode.name]


def test_the_file_name_in_a_trace_is_that_of_the_class(bytecode: Path) -> None:
    first = ClassCode(bytecode)
    first.compile(SOURCE, "<a>", "exec")
    first.save()
    assert ClassCode(bytecode).compile(SOURCE, "<b>", "exec").co_filename == "<b>"


@pytest.mark.parametrize(
    "damage",
    [lambda data: b"", lambda data: data[:-1], lambda data: b"other" + data[5:], lambda data: data + b"x"],
    ids=["empty", "torn", "another python", "longer"],
)
def test_a_damaged_file_is_not_read(bytecode: Path, damage: Callable[[bytes], bytes]) -> None:
    first = ClassCode(bytecode)
    first.compile(SOURCE, "<a>", "exec")
    first.save()
    bytecode.write_bytes(damage(bytecode.read_bytes()))
    assert kept(bytecode) == 1


def test_nothing_is_written_where_python_writes_no_bytecode(
    bytecode: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    first = ClassCode(bytecode)
    first.compile(SOURCE, "<a>", "exec")
    first.save()
    assert not bytecode.parent.exists()


def test_a_place_that_cannot_be_written_is_left_alone(bytecode: Path) -> None:
    bytecode.parent.write_text("a file where the folder would be")
    first = ClassCode(bytecode)
    assert run(first.compile(SOURCE, "<a>", "exec")) == 42
    first.save()
    assert bytecode.parent.read_text() == "a file where the folder would be"


def test_of_very_much_code_only_what_is_used_is_kept(bytecode: Path) -> None:
    first = ClassCode(bytecode)
    for number in range(MOST):
        first.compile(f"a = {number}", "<a>", "exec")
    first.save()
    second = ClassCode(bytecode)
    second.compile("a = 0", "<a>", "exec")
    second.compile(SOURCE, "<a>", "exec")
    second.save()
    third = ClassCode(bytecode)
    for source in ("a = 0", SOURCE, "a = 1"):
        third.compile(source, "<a>", "exec")
    assert third.compiled == 1


def test_a_second_process_compiles_no_class_and_has_the_same_ones(tmp_path: Path) -> None:
    """Whatever attrs puts in its sources is the same in each process, or the file would only grow."""
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        "PYTHONPYCACHEPREFIX": str(tmp_path),
    }

    def start(seed: str) -> Any:
        told = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**environment, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            check=True,
        )
        return json.loads(told.stdout)

    first, second = start("1"), start("2")
    assert first[0] > 10, "attrs compiles elsewhere"
    assert second[0] == 0
    assert first[1:] == second[1:]
    assert first[1] is True
