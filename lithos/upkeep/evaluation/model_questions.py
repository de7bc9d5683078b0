"""The questions of a knowledge test: reading and writing the file (docs/spec/context.md §3).

The file is a YAML list or JSON lines, one mapping per question:
`{"question","expect":[path, id or title],"within":5,"tags"?,"mode"?,"forbid"?:[…]}`. Nothing in it is
guessed: an unknown key, a wrong type, a question asked twice and a file without any question are refused,
with the line, since a test that is skipped silently looks like one that passed.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import yaml
from attrs import frozen
from yaml.constructor import ConstructorError

from lithos.text.yaml.nodes import line_nesting_deeper

#: Bytes of a file, questions in it, characters of a question and of a note's name, names in one list.
LARGEST_FILE: Final = 2 * 1024 * 1024
MOST_QUESTIONS: Final = 5_000
LONGEST_QUESTION: Final = 10_000
LONGEST_NAME: Final = 4_096
MOST_NAMES: Final = 100
#: Ranks that `within` may name; no search answers more rows than `search.max_results`, by default as many.
DEEPEST: Final = 50
WITHIN: Final = 5
RETRIEVE: Final = "retrieve"
#: Modes of `lithos_search` (`graph` begins at the notes nearest to the question), and `lithos_retrieve`.
MODES: Final = ("hybrid", "fulltext", "semantic", "graph", RETRIEVE)

_KEYS: Final = ("question", "expect", "within", "tags", "mode", "forbid")
#: A question's lists are on level 3.
_DEEPEST_NESTING: Final = 8
#: Characters of a number.
_LONGEST_NUMBER: Final = 100
_SHOWN: Final = 80


class UnusableTests(Exception):
    """The file holds no usable questions; the message names the line and says what to do."""


@frozen(kw_only=True)
class Question:
    """One test: at least one of the notes `expect` is among the first `within`, and none of `forbid`.

    `tags` filters the search. A question without `mode` uses that of the command. `line` is its line in the
    file, from 1.
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
        """The key by which two questions are the same: the words and the mode."""
        return " ".join(self.question.split()), self.mode or ""


def read_questions(content: bytes, *, is_json_lines: bool | None = None) -> tuple[Question, ...]:
    """The questions of a file, in order. Raises `UnusableTests`.

    Parse JSON lines if `is_json_lines`; with None, if the text begins with `{`.
    """
    if len(content) > LARGEST_FILE:
        raise UnusableTests(
            f"The file has {len(content):,} bytes; at most {LARGEST_FILE:,} are read. Split it into several."
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
            raise UnusableTests(f"There are more than {MOST_QUESTIONS:,} questions. Split the file.")
    if not found:
        raise UnusableTests("There is no question in the file. Write at least one: a question and `expect`.")
    return tuple(found.values())


def _json_items(text: str) -> Iterator[tuple[int, Any]]:
    # Not `splitlines`, which also ends lines at characters that a JSON text may hold.
    for line, row in enumerate(text.split("\n"), 1):
        if not row.strip():
            continue
        try:
            yield line, json.loads(row, object_pairs_hook=_refuse_twice(line))
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", "it nests too deeply, or holds a number too long")
            raise UnusableTests(
                f"Line {line} is not a JSON object ({reason}). Write one question per line."
            ) from error


def _refuse_twice(line: int) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def make(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            raise UnusableTests(f"Line {line} gives a key twice. Keep one of them.")
        return made

    return make


def _yaml_items(text: str) -> Iterator[tuple[int, Any]]:
    loader: Any = None
    try:
        if (line := line_nesting_deeper(text, _DEEPEST_NESTING)) is not None:
            raise UnusableTests(f"Line {line} nests too deeply. Flatten it.")
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is None:
            return
        if not isinstance(root, yaml.SequenceNode):
            raise UnusableTests(
                f"Line {root.start_mark.line + 1} begins no list. Write each question as an item: "
                "`- question: …` with `expect` below it."
            )
        # The list itself may be an item of itself; its items are constructed one by one.
        for node in root.value:
            line = node.start_mark.line + 1
            _refuse_keys_twice(node, line)
            yield line, loader.construct_document(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        where = f"Line {mark.line + 1}" if mark is not None else "The file"
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
        raise UnusableTests(
            f"{where} is not valid YAML ({problem}). Correct it there, or just above."
        ) from error
    except (RecursionError, ValueError) as error:  # a date such as 2024-02-31
        raise UnusableTests(f"The file is not valid YAML ({error}). Put texts into quotes.") from error
    finally:
        if loader is not None:
            loader.dispose()


class _Loader(yaml.CSafeLoader):
    """Refuses long numbers: many digits cannot be shown, and many sixties (1:59:59…) take minutes to read."""


def _short_number(loader: _Loader, node: yaml.ScalarNode) -> object:
    if len(node.value) > _LONGEST_NUMBER:
        raise ConstructorError(None, None, "found a very long number; put texts into quotes", node.start_mark)
    is_whole = node.tag.endswith(":int")
    return loader.construct_yaml_int(node) if is_whole else loader.construct_yaml_float(node)


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _short_number)


def _refuse_keys_twice(node: Any, line: int) -> None:
    if not isinstance(node, yaml.MappingNode):
        return
    names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
    if len(set(names)) < len(names):
        raise UnusableTests(f"The question at line {line} gives a key twice. Keep one of them.")


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
        raise UnusableTests(f"Line {line}: `question` must be a text that is not empty.")
    if len(value) > LONGEST_QUESTION:
        raise UnusableTests(
            f"Line {line}: `question` has {len(value):,} characters; at most {LONGEST_QUESTION:,} are asked."
        )
    return _encodable(line, "question", value)


def _texts(line: int, item: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """A list of names without repetitions; one text alone is a list of one."""
    value = item.get(key)
    listed = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(each, str) and each.strip() for each in listed):
        raise UnusableTests(
            f"Line {line}: `{key}` must be a list of texts, none of them empty. "
            "Put numbers and dates into quotes."
        )
    if len(listed) > MOST_NAMES:
        raise UnusableTests(f"Line {line}: `{key}` has {len(listed):,} items; at most {MOST_NAMES} count.")
    if any(len(each) > LONGEST_NAME for each in listed):
        raise UnusableTests(f"Line {line}: an item of `{key}` has more than {LONGEST_NAME:,} characters.")
    return tuple(dict.fromkeys(_encodable(line, key, each).strip() for each in listed))


def _encodable(line: int, key: str, text: str) -> str:
    """JSON can spell half of a character, and both can spell NUL, which no server takes."""
    if "\0" in text:
        raise UnusableTests(f"Line {line}: `{key}` holds a NUL character. Remove it.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UnusableTests(f"Line {line}: `{key}` holds half of a character (a lone surrogate).") from error
    return text


def _suggest(key: Any) -> str:
    nearest = difflib.get_close_matches(str(key)[:_SHOWN], _KEYS, n=1)
    return f"; did you mean `{nearest[0]}`?" if nearest else f". Known are {', '.join(_KEYS)}"


def _shorten(text: Any) -> str:
    words = repr(text[:_SHOWN] if isinstance(text, str) else text)
    return words if len(words) <= _SHOWN else words[:_SHOWN] + "…"


def write_questions(questions: Iterable[tuple[Question, str]], *, as_json_lines: bool) -> str:
    """The content of a test file; each question comes with a remark, a YAML comment above it."""
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
