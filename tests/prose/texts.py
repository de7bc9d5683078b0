"""All texts that people and agents read, each with its kind, file and line.

Code in backticks, code blocks, links' targets and placeholders are left out: style applies to sentences.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from attrs import frozen

ROOT: Final = Path(__file__).parents[2]
#: Texts that users meet, and texts that contributors meet.
SHOWN: Final = (
    "readme",
    "guide",
    "contract",
    "changelog",
    "tool",
    "setting",
    "help",
    "console",
    "error",
    "log",
)
INNER: Final = ("docstring", "comment", "test name")
KINDS: Final = SHOWN + INNER

#: Calls whose string arguments are shown, by the kind of text.
_CALLS: Final = {
    "argument": "tool", "setting": "setting", "take": "help", "flag": "help", "CliCommand": "help",
    "info": "log", "warning": "log", "debug": "log", "exception": "log",
}  # fmt: skip
#: They quote what is banned.
_QUOTING: Final = ("docs/style.md", "tests/prose/")
_FOLDERS: Final = ("lithos", "tests", "bench", "docs", "examples")
_DIRECTIVE: Final = re.compile(r"#!|# (noqa|type:|fmt:|pragma|bounded|kept rows|pylint|mypy)")
_NO_TEXT: Final = re.compile(
    r"\b(SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA|WHERE|ORDER BY)\b|</|\\[dwsb]|\(\?"
)
_CODE: Final = re.compile(r"`[^`]*`|\{[^{}]*\}|https?://\S+|\]\([^)]*\)|<[^<>]*>|\$\w+")
_WORDS: Final = re.compile(r"[A-Za-z]{2,}")
_FENCE: Final = re.compile(r"^ *(```|~~~)")
_TAG: Final = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>|\{%.*?%\}|\{#.*?#\}", re.DOTALL)


@frozen
class Text:
    """One text; `path` is relative to the repository, `line` is where it begins."""

    kind: str
    path: str
    line: int
    text: str

    @property
    def plain(self) -> str:
        """The text without code."""
        return _CODE.sub("`", self.text)


@cache
def all_texts() -> tuple[Text, ...]:
    """Every text, in the order of files and lines."""
    found = [text for path in _python() for text in _of_python(path)]
    found += [text for path in _markdown() for text in _of_markdown(path)]
    found += [text for path in sorted((ROOT / "lithos").rglob("*.html")) for text in _of_template(path)]
    read = (text for text in found if not text.path.startswith(_QUOTING))
    return tuple(sorted(read, key=lambda text: (text.path, text.line)))


def _python() -> Iterator[Path]:
    for folder in _FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.py"))


def _markdown() -> Iterator[Path]:
    yield from sorted(ROOT.glob("*.md"))
    yield from (path for path in sorted((ROOT / "docs").rglob("*.md")) if "reference" not in path.parts)


def _of_markdown(path: Path) -> Iterator[Text]:
    """Paragraphs, list items, headings and table rows; code blocks and comments are left out."""
    name = path.relative_to(ROOT).as_posix()
    kind = {"README.md": "readme", "CONTRIBUTING.md": "readme", "SECURITY.md": "readme"}.get(name, "guide")
    kind = "changelog" if name == "CHANGELOG.md" else "contract" if name.startswith("docs/spec/") else kind
    block, begin, is_code = list[str](), 0, False
    for number, line in enumerate([*path.read_text(encoding="utf-8").splitlines(), ""], 1):
        if _FENCE.match(line):
            is_code = not is_code
        ends = is_code or not line.strip() or re.match(r" *([*+-]|\d+\.|#+|\||<!--|```|~~~)", line)
        if ends and block:
            yield Text(kind, name, begin, " ".join(block))
            block = []
        if not is_code and line.strip() and not re.match(r" *(<!--|```|~~~)", line):
            begin = begin if block else number
            block.append(line.strip())


def _of_template(path: Path) -> Iterator[Text]:
    """The text between tags, a line each."""
    name = path.relative_to(ROOT).as_posix()
    blank = _TAG.sub(lambda tag: re.sub(r"[^\n]", " ", tag[0]), path.read_text(encoding="utf-8"))
    for number, line in enumerate(blank.splitlines(), 1):
        if len(_WORDS.findall(_CODE.sub(" ", line.replace("{{", "{").replace("}}", "}")))) > 1:
            yield Text("console", name, number, " ".join(line.split()))


def _of_python(path: Path) -> Iterator[Text]:
    name = path.relative_to(ROOT).as_posix()
    source = path.read_text(encoding="utf-8")
    yield from _comments(name, source)
    tree = ast.parse(source)
    documented = set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _docstring(name, node, documented)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield Text("test name", name, node.lineno, node.name.removeprefix("test_").replace("_", " "))
    if name.startswith("lithos/"):
        yield from _strings(name, tree, documented)


def _docstring(name: str, node: ast.AST, documented: set[int]) -> Iterator[Text]:
    body = getattr(node, "body", [])
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        value = body[0].value
        if isinstance(value.value, str):
            documented.add(id(value))
            is_tool = isinstance(node, ast.ClassDef) and any(
                isinstance(each, ast.Call) and ast.unparse(each.func) == "tool"
                for each in node.decorator_list
            )
            for offset, part in _paragraphs(value.value):
                yield Text("tool" if is_tool else "docstring", name, value.lineno + offset, part)


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Paragraphs of a docstring, each with the number of lines before it; indented code is left out."""
    at, is_code = 0, False
    for block in re.split(r"(\n[ \t]*\n)", text):
        if block.strip():
            is_code ^= block.count("```") % 2 == 1
            if not is_code and "```" not in block:
                yield at, " ".join(block.split())
        at += block.count("\n")


def _comments(name: str, source: str) -> Iterator[Text]:
    """Comments; those on lines that follow each other are one."""
    block, begin, last = list[str](), 0, -1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or _DIRECTIVE.match(token.string):
            continue
        line = token.start[0]
        if block and line != last + 1:
            yield Text("comment", name, begin, " ".join(block))
            block = []
        begin = begin if block else line
        block.append(token.string.lstrip("#: "))
        last = line
    if block:
        yield Text("comment", name, begin, " ".join(block))


def _strings(name: str, tree: ast.Module, documented: set[int]) -> Iterator[Text]:
    """Strings of two words or more that are shown, by what they are handed to."""
    kinds = dict[int, str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            kind = _CALLS.get(ast.unparse(node.func).rpartition(".")[2])
            if kind:
                kinds.update({id(inner): kind for inner in ast.walk(node)})
    inside = {
        id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            text = node.value
        else:
            continue
        if id(node) not in documented and _is_sentence(text):
            yield Text(kinds.get(id(node), "error"), name, node.lineno, " ".join(text.split()))


def _is_sentence(text: str) -> bool:
    """Whether a string is for readers: some words, and neither SQL nor markup nor a pattern."""
    words = _WORDS.findall(_CODE.sub(" ", text))
    return len(words) > 2 and " " in text.strip() and not _NO_TEXT.search(text)
