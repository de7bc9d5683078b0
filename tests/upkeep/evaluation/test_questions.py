"""File of knowledge tests: its content, and errors that name the line."""

from __future__ import annotations

import json

import pytest

from lithos.upkeep.evaluation import commands
from lithos.upkeep.evaluation.model_questions import (
    DEEPEST,
    LARGEST_FILE,
    LONGEST_QUESTION,
    MODES,
    MOST_NAMES,
    MOST_QUESTIONS,
    Question,
    UnusableTests,
    read_questions,
    write_questions,
)

YAML = """\
# Tests of the vault.
- question: How does Raft elect a leader?
  expect: [raft.md, Raft]
- question: "Which port?"
  expect: ports.md
  within: 1
  tags: [network]
  mode: fulltext
  forbid: [old/ports.md]
"""


def test_yaml_is_read_with_defaults_and_lines() -> None:
    """Behaviour 234."""
    first, second = read_questions(YAML.encode())
    assert first == Question(question="How does Raft elect a leader?", expect=("raft.md", "Raft"), line=2)
    assert second == Question(
        question="Which port?",
        expect=("ports.md",),
        within=1,
        tags=("network",),
        mode="fulltext",
        forbid=("old/ports.md",),
        line=4,
    )


def test_json_lines_contain_the_same_questions_as_yaml() -> None:
    rows = ['{"question": "a", "expect": ["x.md"]}', "", '{"question": "b", "expect": ["y"], "within": 3}']
    first, second = read_questions("\r\n".join(rows).encode("utf-8-sig"))
    assert (first.question, first.line, second.within, second.line) == ("a", 1, 3, 3)


def test_question_in_two_modes_counts_as_two_tests() -> None:
    rows = [{"question": "a", "expect": ["x"], "mode": mode} for mode in ("fulltext", "semantic")]
    assert len(read_questions(json.dumps(rows).encode())) == 2


ITEM = "- question: a\n  expect: [x]\n"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "The file has no questions"),
        (b"# nothing\n", "The file has no questions"),
        (b"[]", "The file has no questions"),
        (b"---\n", "does not begin a list"),
        (ITEM.encode() + b"- \xff\xfe\n", "Line 3 is not UTF-8"),
        (ITEM.encode() + b"- question: [b\n", "Line 4 is not valid YAML"),
        (ITEM.encode() + b"- question: 'b\n", "is not valid YAML"),
        (b"question: a\nexpect: [x]\n", "Line 1 does not begin a list"),
        (b"- a\n", "Line 1 is not a question"),
        (b"- &a [*a]\n", "Line 1 is not a question"),
        (f"{ITEM}---\n{ITEM}".encode(), "is not valid YAML"),
        (f"{ITEM}  expected: [x]\n".encode(), "the key 'expected' is unknown; did you mean `expect`?"),
        (f"{ITEM}  colour: red\n".encode(), "Known are question, expect"),
        (f"{ITEM}  ? [1, 2]\n  : x\n".encode(), "is not valid YAML"),
        (f"{ITEM}  within: 0\n".encode(), "`within` must be"),
        (f"{ITEM}  within: 51\n".encode(), "`within` must be"),
        (f"{ITEM}  within: yes\n".encode(), "`within` must be"),
        (f"{ITEM}  mode: exact\n".encode(), f"`mode` must be one of {', '.join(MODES)}"),
        (f"{ITEM}  mode: [hybrid]\n".encode(), "`mode` must be one of"),
        (f"{ITEM}  tags: [1]\n".encode(), "`tags` must be a list of texts"),
        (f"{ITEM}  forbid: ['']\n".encode(), "`forbid` must be a list of texts"),
        (f"{ITEM}  question: b\n".encode(), "has a key twice"),
        (b"- question: 2024-01-01\n  expect: [x]\n", "`question` must be a text"),
        (b"- question: 2024-02-31\n  expect: [x]\n", "not valid YAML"),
        (b"- question: ' '\n  expect: [x]\n", "`question` must be a text"),
        (b"- question: a\n", "`expect` is missing"),
        (b"- question: a\n  expect: []\n", "`expect` is missing"),
        (b"- question: a\n  expect: [2024-01-01]\n", "`expect` must be a list of texts"),
        ((ITEM + ITEM).encode(), "Line 3 asks the same as line 1: 'a'"),
        (f"- {'[' * 9}{']' * 9}".encode(), "nested too deeply"),
        (b"- " * 40, "nested too deeply"),
        (f"- question: {'x' * (LONGEST_QUESTION + 1)}\n  expect: [x]\n".encode(), "at most 10,000"),
        (f"- question: a\n  expect: [{', '.join(map('n{}'.format, range(MOST_NAMES + 1)))}]".encode(), "101"),
        (f"- question: a\n  expect: [{'x' * 5_000}]".encode(), "more than 4,096"),
        (b'{"question": "a", "expect": ["x"]}\n{"question": "b", ', "Line 2 is not a JSON object"),
        (b'{"question": "a", "question": "b", "expect": ["x"]}', "Line 1 has a key twice"),
        (b'{"question": "a", "expect": ["\\ud800"]}', "lone surrogate"),
        (b'{"question": ' + b"[" * 5_000, "Line 1 is not a JSON object"),
        (
            b'{"question": "a", "expect": ["x"], "within": ' + b"9" * 5_000 + b"}",
            "Line 1 is not a JSON object",
        ),
        (b"#" * (LARGEST_FILE + 1), "at most 2,097,152"),
        (b'{"question": "a", "expect": ["x\\u0000"]}', "NUL"),
        (b'- question: "a\\0"\n  expect: [x]\n', "NUL"),
        (b"- ? 0x" + b"f" * 9_000 + b"\n  : 1\n", "Line 1 is not valid YAML (found a very long number"),
        (f"{ITEM}  within: 0b{'1' * 100_000}\n".encode(), "very long number"),
        (f"{ITEM}  within: 1{':59' * 500_000}\n".encode(), "very long number"),
        (f"{ITEM}  within: 1{':59' * 500_000}.5\n".encode(), "very long number"),
    ],
)
def test_error_for_an_invalid_test_file_names_the_position(content: bytes, told: str) -> None:
    """Behaviour 234."""
    with pytest.raises(UnusableTests) as refusal:
        read_questions(content)
    assert told in str(refusal.value)
    assert len(str(refusal.value)) < 500


def test_too_many_questions_are_refused() -> None:
    rows = "".join(f'{{"question": "q{number}", "expect": ["x"]}}\n' for number in range(MOST_QUESTIONS + 1))
    with pytest.raises(UnusableTests, match="more than 5,000"):
        read_questions(rows.encode())


@pytest.mark.parametrize("as_json_lines", [True, False])
def test_written_questions_can_be_read_back(as_json_lines: bool) -> None:
    """Behaviour 234: the text of an agent's question may contain any characters."""
    odd = ["plain", "yes", "2024-01-01", "- a: [b", "\"'", "a\x1b[31m\x7f\u2028b", "😀 語", "# no", "x\ty"]
    written = [
        Question(question=text, expect=(text,), tags=("t",), forbid=("no.md",), within=7) for text in odd
    ]
    remark = "two\nlines \x1b and\u2028more"
    content = write_questions([(each, remark) for each in written], as_json_lines=as_json_lines)
    found = read_questions(content.encode(), is_json_lines=as_json_lines)
    kept = [(each.question, each.expect, each.tags, each.forbid, each.within) for each in found]
    assert kept == [(each.question, each.expect, each.tags, each.forbid, each.within) for each in written]


def test_command_options_match_the_modes_and_maximum_depth() -> None:
    assert commands.TEST_MODES == MODES
    assert commands.rank(str(DEEPEST)) == DEEPEST
