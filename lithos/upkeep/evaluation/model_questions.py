"""The questions of a knowledge test, and a reader and a writer for test files (docs/spec/context.md §3).

A test file is a YAML list or JSON lines, with one mapping per question: `{"question","expect":[path, id or
title],"within":5,"tags"?,"mode"?,"forbid"?:[…]}`. The reader is strict, because a silently skipped test would
look like a passed test. It refuses unknown keys, wrong types, repeated questions and files without questions,
and the error names the line.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import yaml
from attrs import frozen
from yaml.constructor import ConstructorError

from lithos.kernel.values.graphemes import beginning
from lithos.text.yaml.nodes import line_nesting_deeper

#: Limits: bytes of a file, questions in a file, characters of a question, characters of a note's name, and
#: names in one list.
LARGEST_FILE: Final = 2 * 1024 * 1024
MOST_QUESTIONS: Final = 5_000
LONGEST_QUESTION: Final = 10_000
LONGEST_NAME: Final = 4_096
MOST_NAMES: Final = 100
#: Maximum value of `within`. It equals the default of `search.max_results`, which limits the rows of an
#: answer.
DEEPEST: Final = 50
WITHIN: Final = 5
RETRIEVE: Final = "retrieve"
#: Modes of `lithos_search`, and the mode that uses `lithos_retrieve`. The mode `graph` starts at the notes
#: nearest to the question.
MODES: Final = ("hybrid", "fulltext", "semantic", "graph", RETRIEVE)

_KEYS: Final = ("question", "expect", "within", "tags", "mode", "forbid")
#: Maximum nesting depth of a file. The lists of a question are at depth 3.
_DEEPEST_NESTING: Final = 8
#: Maximum number of characters of a number.
_LONGEST_NUMBER: Final = 100
_SHOWN: Final = 80


class UnusableTests(Exception):
    """Error for a file without usable questions. The message names the line and gives advice."""


@frozen(kw_only=True)
class Question:
    """A test question.

    The test passes if the first `within` results contain a note of `expect` and no note of `forbid`.

    `tags` filters the search. If `mode` is missing, the mode of the command applies. `line` is the line of
    the question in the file, from 1.
    """

    question: str
    expect: tuple[str, ...]
    within: int = WITHIN
    tags: tuple[str, ...] = ()
    mode: str | None = None
    forbid: tuple[str, ...] = ()
    line: int = 0

    @property
    def key(self) -> tuple[str, str]:
        """The words and mode of the question, which identify it."""
        return " ".join(self.question.split()), self.mode or ""


def read_questions(content: bytes, *, is_json_lines: bool | None = None) -> tuple[Question, ...]:
    """Return the questions of a file in file order. Raises `UnusableTests`.

    Parses JSON lines if `is_json_lines` is True, or if it is None and the text begins with `{`.
    """
    if len(content) > LARGEST_FILE:
        raise UnusableTests(
            f"The file has {len(content):,} bytes, but at most {LARGEST_FILE:,} are read. Split "
            "it into several files."
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UnusableTests(f"Line {line} is not UTF-8. Save the file as UTF-8.") from error
    if is_json_lines is None:
        is_json_lines = text.lstrip().startswith("{")
    items = _json_items(text) if is_json_lines else _yaml_items(text)
    found: dict[tuple[str, str], Question] = {}
    for line, item in items:
        question = _read_one(line, item)
        earlier = found.setdefault(question.key, question)
        if earlier is not question:
            raise UnusableTests(
                f"Line {line} asks the same as line {earlier.line}: {_shorten(question.question)}. "
                "Remove one, or give them different modes."
            )
        if len(found) > MOST_QUESTIONS:
            raise UnusableTests(f"The file has more than {MOST_QUESTIONS:,} questions. Split the file.")
    if not found:
        raise UnusableTests("The file has no questions. Write at least one with `question` and `expect`.")
    return tuple(found.values())


def _json_items(text: str) -> Iterator[tuple[int, Any]]:
    # `splitlines` would also split at characters that JSON texts may contain.
    for line, row in enumerate(text.split("\n"), 1):
        if not row.strip():
            continue
        try:
            yield line, json.loads(row, object_pairs_hook=_refuse_twice(line))
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", "nested too deeply, or a number is too long")
            raise UnusableTests(
                f"Line {line} is not a JSON object ({reason}). Write one question per line."
            ) from error


def _refuse_twice(line: int) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def make(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            raise UnusableTests(f"Line {line} has a key twice. Keep one of them.")
        return made

    return make


def _yaml_items(text: str) -> Iterator[tuple[int, Any]]:
    loader: Any = None
    try:
        if (line := line_nesting_deeper(text, _DEEPEST_NESTING)) is not None:
            raise UnusableTests(f"Line {line} is nested too deeply. Use fewer levels.")
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is None:
            return
        if not isinstance(root, yaml.SequenceNode):
            raise UnusableTests(
                f"Line {root.start_mark.line + 1} does not begin a list. Write each question as "
                "an item: `- question: …` with `expect` below it."
            )
        # Through an alias, the list may contain itself. Its items are therefore constructed one by one.
        for node in root.value:
            line = node.start_mark.line + 1
            _refuse_keys_twice(node, line)
            yield line, loader.construct_document(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        where = f"Line {mark.line + 1}" if mark is not None else "The file"
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable content"
        raise UnusableTests(
            f"{where} is not valid YAML ({problem}). Correct this line or the line above."
        ) from error
    except (RecursionError, ValueError) as error:  # raised for example for the date 2024-02-31
        raise UnusableTests(f"The file is not valid YAML ({error}). Put quotes around texts.") from error
    finally:
        if loader is not None:
            loader.dispose()


class _Loader(yaml.CSafeLoader):
    """A YAML loader that refuses long numbers.

    Very long integers cannot be displayed, and long sexagesimal numbers (1:59:59…) take minutes to parse.
    """


def _short_number(loader: _Loader, node: yaml.ScalarNode) -> object:
    if len(node.value) > _LONGEST_NUMBER:
        raise ConstructorError(
            None, None, "found a very long number; put quotes around texts", node.start_mark
        )
    is_whole = node.tag.endswith(":int")
    return loader.construct_yaml_int(node) if is_whole else loader.construct_yaml_float(node)


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _short_number)


def _refuse_keys_twice(node: Any, line: int) -> None:
    if not isinstance(node, yaml.MappingNode):
        return
    names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
    if len(set(names)) < len(names):
        raise UnusableTests(f"The question at line {line} has a key twice. Keep one of them.")


def _read_one(line: int, item: Any) -> Question:
    if not isinstance(item, Mapping):
        raise UnusableTests(f"Line {line} is not a question. Write a mapping with `question` and `expect`.")
    for key in item:
        if key not in _KEYS:
            raise UnusableTests(f"Line {line}: the key {_shorten(key)} is unknown{_suggest(key)}.")
    within = item.get("within", WITHIN)
    if isinstance(within, bool) or not isinstance(within, int) or not 1 <= within <= DEEPEST:
        raise UnusableTests(f"Line {line}: `within` must be a whole number from 1 to {DEEPEST}.")
    mode = item.get("mode")
    if mode is not None and mode not in MODES:
        raise UnusableTests(f"Line {line}: `mode` must be one of {', '.join(MODES)}.")
    expect = _texts(line, item, "expect")
    if not expect:
        raise UnusableTests(f"Line {line}: `expect` is missing. Name the notes that answer the question.")
    return Question(
        question=_question(line, item.get("question")),
        expect=expect,
        within=within,
        tags=_texts(line, item, "tags"),
        mode=mode,
        forbid=_texts(line, item, "forbid"),
        line=line,
    )


def _question(line: int, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UnusableTests(f"Line {line}: `question` must be a text and must not be empty.")
    if len(value) > LONGEST_QUESTION:
        raise UnusableTests(
            f"Line {line}: `question` has {len(value):,} characters, but at most "
            f"{LONGEST_QUESTION:,} are allowed."
        )
    return _encodable(line, "question", value)


def _texts(line: int, item: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return a list of names without duplicates. A single text counts as a list with one name."""
    value = item.get(key)
    listed = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(each, str) and each.strip() for each in listed):
        raise UnusableTests(
            f"Line {line}: `{key}` must be a list of texts without empty texts. Put quotes around "
            "numbers and dates."
        )
    if len(listed) > MOST_NAMES:
        raise UnusableTests(
            f"Line {line}: `{key}` has {len(listed):,} items, but at most {MOST_NAMES} are allowed."
        )
    if any(len(each) > LONGEST_NAME for each in listed):
        raise UnusableTests(f"Line {line}: an item of `{key}` has more than {LONGEST_NAME:,} characters.")
    return tuple(dict.fromkeys(_encodable(line, key, each).strip() for each in listed))


def _encodable(line: int, key: str, text: str) -> str:
    """Return the text. Refuses lone surrogates, which JSON can contain, and NUL, which no server accepts."""
    if "\0" in text:
        raise UnusableTests(f"Line {line}: `{key}` contains a NUL character. Remove it.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UnusableTests(
            f"Line {line}: `{key}` contains half of a character (a lone surrogate)."
        ) from error
    return text


def _suggest(key: Any) -> str:
    nearest = difflib.get_close_matches(str(key)[:_SHOWN], _KEYS, n=1)
    return f"; did you mean `{nearest[0]}`?" if nearest else f". Known are {', '.join(_KEYS)}"


def _shorten(text: Any) -> str:
    words = repr(text[:_SHOWN] if isinstance(text, str) else text)
    return words if len(words) <= _SHOWN else beginning(words, _SHOWN) + "…"


def write_questions(questions: Iterable[tuple[Question, str]], *, as_json_lines: bool) -> str:
    """Return the content of a test file. In YAML, each question's remark is a comment above the question."""
    if as_json_lines:
        return "".join(json.dumps(_as_item(each)) + "\n" for each, _ in questions)
    blocks = []
    for each, remark in questions:
        item = yaml.dump(
            [_as_item(each)], Dumper=yaml.CSafeDumper, allow_unicode=True, sort_keys=False, width=100
        )
        comment = "".join(char if char.isprintable() else " " for char in remark)
        blocks.append(f"# {comment}\n{item}")
    return "\n".join(blocks)


def _as_item(question: Question) -> dict[str, Any]:
    item: dict[str, Any] = {"question": question.question, "expect": list(question.expect)}
    if question.within != WITHIN:
        item["within"] = question.within
    for key in ("tags", "forbid"):
        if getattr(question, key):
            item[key] = list(getattr(question, key))
    return item | ({"mode": question.mode} if question.mode else {})
