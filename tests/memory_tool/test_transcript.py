"""Exact answers of the Anthropic SDK's own memory tool, replayed on every store."""

from __future__ import annotations

import json
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from lithos.memory_tool import LithosMemory, MemoryToolError

pytestmark = pytest.mark.needs("memory_tool")

#: `transcript.json` names its source.
STEPS = json.loads((Path(__file__).parent / "transcript.json").read_text(encoding="utf-8"))["steps"]


def comparable(answer: str) -> str:
    """Return an answer without the parts in which Lithos differs (docs/spec/memory-tool.md §3).

    These are the sizes of directories, and the empty line after a line break at the end. All empty lines
    at the end are left out here.
    """
    if answer.startswith("Here're the files"):
        title, first, *rows = answer.split("\n")
        rows = [re.sub(r"^\S+(?=\t.*/\Z)", "-", row) for row in rows]
        return "\n".join([title, re.sub(r"^\S+", "-", first), *rows])
    return re.sub(r"(?:\n +\d+\t)*\n?\Z", "", answer)


def replay(tool: Any, refusal: type[Exception]) -> list[tuple[Any, bool, str]]:
    answers = []
    for step in STEPS:
        try:
            answers.append((step["input"], False, comparable(tool.call(step["input"]))))
        except refusal as error:
            answers.append((step["input"], True, comparable(str(error))))
    return answers


EXPECTED = [(step["input"], step["is_error"], comparable(step["answer"])) for step in STEPS]


def test_examples_of_the_sdk_get_the_same_answers(memory: LithosMemory) -> None:
    """behaviour 326"""
    assert len(STEPS) > 60
    assert replay(memory, MemoryToolError) == EXPECTED


@pytest.mark.skipif(find_spec("anthropic") is None, reason="the Anthropic SDK is not installed")
def test_transcript_is_that_of_the_installed_sdk(tmp_path: Path) -> None:
    tool = import_module("anthropic.tools").BetaLocalFilesystemMemoryTool(str(tmp_path))
    assert replay(tool, import_module("anthropic.lib.tools").ToolError) == EXPECTED
