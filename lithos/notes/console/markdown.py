"""Notes as safe HTML: CommonMark with tables, wiki-links, task lists, footnotes and callouts.

The text of a note cannot affect the page around it. Raw HTML is reduced to harmless elements (nh3), and
addresses to http, https and mailto. Ids get a prefix, and only classes from this module are allowed. Vault
files are loaded from `/console/files/`. External images are replaced by links, so that a page does not
contact other hosts.

Links are resolved between parsing and rendering (`Parsed`). Parsing and rendering can therefore run in a
worker thread, and only the lookups run where the catalogue may be read. Constructs that would take more than
linear time are shown as plain text: paragraphs of brackets, tables of empty cells, and nested formatting in
raw HTML.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from attrs import frozen
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup, escape
from mdit_py_plugins.footnote import footnote_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from lithos.notes.console.note_links import ID_PREFIX, linked, sanitise, slug, targets_of

#: Languages with syntax highlighting. Highlighting a block takes almost linear time in these languages.
LANGUAGES: Final = frozenset({
    "bash", "c", "console", "cpp", "css", "diff", "dockerfile", "go", "html", "ini", "java",
    "javascript", "js", "json", "python", "py", "rust", "sh", "shell", "sql", "toml", "ts", "typescript",
    "xml", "yaml", "yml",
})  # fmt: skip
LONGEST_COLOURED: Final = 20_000
_CALLOUT: Final = re.compile(r"\[!([A-Za-z][A-Za-z-]{0,30})\]([+-]?)[ \t]*([^\n]{0,200})")
_CALLOUTS: Final = frozenset({
    "note", "info", "tip", "success", "question", "warning", "failure", "danger", "bug", "example",
    "quote", "todo", "abstract", "important", "caution",
})  # fmt: skip
_WIKI_LINK: Final = re.compile(
    r"(!?)\[\[([^\[\]\n|]{1,500})(?:\|((?:[^\[\]\n]|\[(?!\[)|\](?!\])){0,500}))?\]\]"
)
_TASK: Final = re.compile(r"\[([ xX])\][ \t]+")
#: Maximum number of brackets in a paragraph with unclosed brackets. A paragraph with more brackets is shown
#: as plain text, because the parser searches for the end of each bracket.
_MANY_BRACKETS: Final = 200
#: Maximum nesting depth of blocks and of brackets.
_NESTING: Final = 20
#: Formatting elements of raw HTML. If they are not closed, browsers reopen them in every later block.
_FORMATTING: Final = re.compile(
    r"<(/?)(?:a|b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)(?=[\s/>])", re.IGNORECASE
)
_DEEPEST_FORMATTING: Final = 8
#: Elements of raw HTML for which parsers search all ancestors. Elements without an end tag, or with an
#: optional end tag, are excluded.
_NESTED: Final = re.compile(
    r"<(/?)(?!(?:area|base|br|col|dd|dt|embed|hr|img|input|li|link|meta|option|p|param|rp|rt|source|tbody|td|"
    r"tfoot|th|thead|tr|track|wbr)(?=[\s/>]))[a-z]",
    re.IGNORECASE,
)
_DEEPEST: Final = 60
#: Maximum number of cells that may be missing from the rows of a table.
_MISSING_CELLS: Final = 2_000


@frozen
class OutlineEntry:
    """A heading outside lists and quotes, with its level (1 to 6), its text, and its id on the page."""

    level: int
    text: str
    anchor: str


@frozen
class Parsed:
    """A parsed text. `targets` are the names of notes to which its links may lead."""

    _parser: MarkdownIt
    _tokens: Sequence[Token]
    path: str
    targets: frozenset[str]
    outline: Sequence[OutlineEntry]

    def render(self, found: Mapping[str, str | None]) -> Markup:
        """Return the text as safe HTML.

        `found` maps a target to the id of its note. This method can only be called once.
        """
        for token in self._tokens:
            if token.children:
                token.children = [one for child in token.children for one in linked(child, found, self.path)]
        html = self._parser.renderer.render(self._tokens, self._parser.options, {})
        return Markup(sanitise(html))  # noqa: S704 - sanitised above


def render_markdown(text: str, resolve: Callable[[str], str | None], path: str = "") -> Markup:
    """Return the text as safe HTML. Takes linear time. A page shows at most 40,000 characters at once.

    `resolve` maps a wiki-link or path to the id of its note, or None. `path` is the path of the note itself.
    Relative addresses are relative to its folder.
    """
    parsed = parse_markdown(text, path)
    return parsed.render({target: resolve(target) for target in parsed.targets})


def parse_markdown(text: str, path: str = "") -> Parsed:
    """Parse a text. The links in its tokens are not resolved yet."""
    parser = _parser()
    environment: dict[str, object] = {}
    tokens = parser.parse(text, environment)
    targets = {
        target for token in tokens for child in token.children or () for target in targets_of(child, path)
    }
    return Parsed(parser, tokens, path, frozenset(targets), list(_outline(tokens)))


def block_starts(text: str) -> list[tuple[int, bool]]:
    """Return the first line of each top-level block, and whether the block is a heading."""
    parser = _parser()
    parser.core.ruler.enableOnly(["normalize", "block"])
    return [
        (token.map[0], token.type == "heading_open")
        for token in parser.parse(text, {})
        if token.level == 0 and token.nesting >= 0 and token.map is not None
    ]


def _outline(tokens: Sequence[Token]) -> Iterator[OutlineEntry]:
    for place, token in enumerate(tokens):
        if token.type == "heading_open" and token.level == 0:
            shown = "".join(_text_of(child) for child in tokens[place + 1].children or ())
            yield OutlineEntry(int(token.tag[1]), shown.strip(), f"{ID_PREFIX}{token.attrGet('id')}")


def _text_of(token: Token) -> str:
    if token.type == "wiki":
        return str(token.meta["shown"])
    if token.type in ("text", "code_inline", "image"):
        return token.content
    return " " if token.type in ("softbreak", "hardbreak") else ""


def _parser() -> MarkdownIt:
    parser = MarkdownIt(
        "commonmark",
        {"html": True, "linkify": False, "maxNesting": _NESTING, "highlight": _highlight, "langPrefix": ""},
    )
    parser.enable(["table", "strikethrough"])
    parser.use(footnote_plugin)
    parser.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    parser.block.ruler.before("fence", "comment", _comment, {"alt": ["paragraph", "blockquote", "list"]})
    parser.inline.ruler.before("link", "wiki_link", _wiki_link)
    parser.inline.ruler.before("link", "comment", _inline_comment)
    parser.core.ruler.at("inline", _inline)
    parser.core.ruler.push("callouts", _callouts)
    parser.core.ruler.push("task_items", _task_items)
    parser.core.ruler.push("headings", _headings)
    parser.core.ruler.push("cells", _cells)
    parser.core.ruler.push("tame_html", _tame_html)
    return parser


# -- bounds ------------------------------------------------------------


def _inline(state: StateCore) -> None:
    """Parse the text of each block. A text with many unclosed brackets is not parsed."""
    for token in state.tokens:
        if token.type == "inline":
            token.children = []
            if _is_tangle(token.content):
                token.children.append(Token("text", "", 0, content=token.content))
            else:
                state.md.inline.parse(token.content, state.md, state.env, token.children)


def _is_tangle(text: str) -> bool:
    opened = text.count("[")
    return opened > _MANY_BRACKETS and text.count("]") < opened * 0.7


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a table.

    A table with too many missing cells is refused, because the parser would create each missing cell.
    """
    if not table(state, start, end, True):  # this call checks only two lines
        return False
    if silent:
        return True
    second = state.src[state.bMarks[start + 1] : state.eMarks[start + 1]]
    columns, present = second.count("|") + 1, 0
    if columns > _MISSING_CELLS:
        return False
    for rows, line in enumerate(range(start + 2, end), 1):
        if state.bMarks[line] + state.tShift[line] >= state.eMarks[line]:
            break
        present += state.src.count("|", state.bMarks[line], state.eMarks[line]) + 1
        if columns * rows > 2 * present + _MISSING_CELLS:
            return False
    return table(state, start, end, False)


def _tame_html(state: StateCore) -> None:
    """Show raw HTML as text if its nesting is so deep that browsers and nh3 would take long."""
    raw = [token for token in state.tokens if token.type == "html_block"]
    raw += [child for token in state.tokens for child in token.children or () if child.type == "html_inline"]
    if not (_is_deeper(raw, _FORMATTING, _DEEPEST_FORMATTING) or _is_deeper(raw, _NESTED, _DEEPEST)):
        return
    for token in raw:
        if not (token.meta or {}).get("own"):
            token.type = "text"


def _is_deeper(raw: Sequence[Token], elements: re.Pattern[str], most: int) -> bool:
    """Return whether more than `most` of these elements are open at the same time."""
    depth = 0
    for token in raw:
        for match in elements.finditer(token.content):
            depth = max(0, depth - 1) if match[1] else depth + 1
            if depth > most:
                return True
    return False


# -- rules ------------------------------------------------------------


def _wiki_link(state: StateInline, silent: bool) -> bool:
    """Parse `[[target|shown]]` and `![[file]]`."""
    if state.src[state.pos] not in "[!":
        return False
    match = _WIKI_LINK.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    shown = match[3] or ""
    # In `[[Plan|the plan [1]]]`, the bracket after the link closes a bracket in the display text.
    is_open = shown.count("[") > shown.count("]") and state.src.startswith("]", match.end())
    if not silent:
        target = match[2].strip()
        token = state.push("wiki", "", 0)
        shown = (f"{shown}]" if is_open else shown).strip() or target
        token.meta = {"embedded": bool(match[1]), "target": target, "shown": shown}
    state.pos = match.end() + is_open
    return True


def _comment(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a block comment between `%%` and `%%`. The page does not show comments.

    A comment that is not closed is ordinary text.
    """
    line, text = start, state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
    if not text.startswith("%%"):
        return False
    text = text[2:]
    while "%%" not in text:
        line += 1
        if line >= end or (state.sCount[line] < state.blkIndent and not state.isEmpty(line)):
            return False
        text = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]
    if text.partition("%%")[2].strip():
        return False
    if not silent:
        state.line = line + 1
    return True


def _inline_comment(state: StateInline, silent: bool) -> bool:
    """Parse a comment within a paragraph."""
    if not state.src.startswith("%%", state.pos):
        return False
    end = state.src.find("%%", state.pos + 2, state.posMax)
    if end < 0:
        return False
    state.pos = end + 2
    return True


def _callouts(state: StateCore) -> None:
    """Convert quotes that begin with `[!kind] Title` to callouts."""
    tokens = state.tokens
    for place, token in enumerate(tokens[:-2]):
        if token.type != "blockquote_open" or tokens[place + 1].type != "paragraph_open":
            continue
        inline = tokens[place + 2]
        match = _CALLOUT.match(inline.content)
        if match is None:
            continue
        kind = match[1].lower()
        token.attrSet("class", f"callout callout-{kind if kind in _CALLOUTS else 'note'}")
        title, rest = match[3].strip() or kind.capitalize(), inline.content[match.end() :].lstrip("\n")
        children = _behind_first_line(inline.children or []) if rest else []
        if children is None:
            children = []
            state.md.inline.parse(rest, state.md, state.env, children)
        inline.children = children
        head = Token("html_block", "", 0, meta={"own": True})
        head.content = f'<p class="callout-title">{escape(title)}</p>\n'
        tokens[place + 1].meta = {"callout": head}
    state.tokens = [one for token in tokens for one in _with_title(token)]


def _behind_first_line(children: Sequence[Token]) -> list[Token] | None:
    """Return the tokens after the first line break of a paragraph.

    Return None if emphasis spans the break.
    """
    depth = 0
    for place, child in enumerate(children):
        depth += child.nesting
        if child.type in ("softbreak", "hardbreak"):
            return None if depth else list(children[place + 1 :])
    return []


def _with_title(token: Token) -> list[Token]:
    head = token.meta.get("callout") if token.type == "paragraph_open" else None
    return [token] if head is None else [head, token]


def _task_items(state: StateCore) -> None:
    """Convert list items that begin with `[ ]` or `[x]`. The checkbox is shown but disabled."""
    lists: list[Token] = []
    for place, token in enumerate(state.tokens):
        if token.type in ("bullet_list_open", "ordered_list_open"):
            lists.append(token)
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            lists.pop()
        elif token.type == "list_item_open" and place + 2 < len(state.tokens):
            inline = state.tokens[place + 2]
            first = inline.children[0] if inline.type == "inline" and inline.children else None
            match = _TASK.match(first.content) if first is not None and first.type == "text" else None
            if first is None or match is None:
                continue
            first.content = first.content[match.end() :]
            checked = " checked" if match[1] in "xX" else ""
            box = Token("html_inline", "", 0, content=f'<input type="checkbox" disabled{checked}> ')
            box.meta = {"own": True}
            inline.children = [box, *(inline.children or ())]
            token.attrSet("class", "task-list-item")
            lists[-1].attrSet("class", "contains-task-list")


def _headings(state: StateCore) -> None:
    """Add ids to headings, so that an outline can link to them. The ids of equal headings are numbered."""
    seen: dict[str, int] = {}
    for place, token in enumerate(state.tokens):
        if token.type == "heading_open":
            name = slug(state.tokens[place + 1].content)
            seen[name] = times = seen.get(name, 0) + 1
            token.attrSet("id", name if times == 1 else f"{name}-{times}")
        if token.tag == "h1" and token.type in ("heading_open", "heading_close"):
            token.tag = "h2"  # only the title of the page is a first-level heading


def _cells(state: StateCore) -> None:
    """Set the alignment of table cells as an attribute, because styles are not allowed."""
    for token in state.tokens:
        style = str(token.attrs.pop("style", "")) if token.type in ("td_open", "th_open") else ""
        if style:
            token.attrSet("align", style.rpartition(":")[2])


def _highlight(code: str, language: str, _attributes: str) -> str:
    """Return highlighted code, or "".

    If the result is "", the renderer escapes the code and shows it without highlighting.
    """
    if language.lower() not in LANGUAGES or len(code) > LONGEST_COLOURED:
        return ""
    coloured: str = highlight(
        code, get_lexer_by_name(language.lower()), HtmlFormatter(nowrap=True, classprefix="t-")
    )
    return f'<pre class="code"><code>{coloured}</code></pre>'
