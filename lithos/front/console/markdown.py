"""Notes as HTML: CommonMark with tables, wiki-links, task lists, footnotes and callouts, sanitised.

What a note says can do nothing on a page: raw HTML is cut to harmless elements (nh3), addresses to http,
https and mailto, ids get a prefix, classes are those made here. Files of the vault come from
`/console/files/`; images from elsewhere become links, so that a page asks no other host for anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from posixpath import dirname, normpath
from typing import Final
from urllib.parse import quote, unquote, urlsplit

import nh3
from attrs import frozen
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup, escape
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.tasklists import tasklists_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

#: Before the ids of headings and footnotes: nothing in a note can pass for a part of the page.
ID_PREFIX: Final = "n-"
#: Languages that are coloured; each has a lexer that is linear enough for a block.
LANGUAGES: Final = frozenset({
    "bash", "c", "console", "cpp", "css", "diff", "dockerfile", "go", "html", "ini", "java",
    "javascript", "js", "json", "python", "py", "rust", "sh", "shell", "sql", "toml", "ts", "typescript",
    "xml", "yaml", "yml",
})  # fmt: skip
LONGEST_COLOURED: Final = 20_000
IMAGES: Final = frozenset({"png", "jpg", "jpeg", "gif", "webp", "avif", "bmp"})
_CALLOUT: Final = re.compile(r"\[!([A-Za-z][A-Za-z-]{0,30})\]([+-]?)[ \t]*([^\n]{0,200})")
_CALLOUTS: Final = frozenset({
    "note", "info", "tip", "success", "question", "warning", "failure", "danger", "bug", "example",
    "quote", "todo", "abstract", "important", "caution",
})  # fmt: skip
_WIKI_LINK: Final = re.compile(r"(!?)\[\[([^\[\]\n|]{1,500})(?:\|([^\[\]\n]{0,500}))?\]\]")
_CLASS: Final = re.compile(
    r"^(?:t-[a-z0-9]{1,4}|callout|callout-[a-z]+|callout-title|wikilink|broken|task-list-item|contains-task-list|"
    r"footnotes|footnotes-list|footnote-item|footnote-ref|footnote-backref|code|external)$"
)
_SCHEME: Final = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")


@frozen
class Links:
    """Where links of a note lead: `resolve` gives the id of the note a wiki-link or path means, or None.

    `path` is the path of the note itself, in the folder of which relative addresses begin.
    """

    resolve: Callable[[str], str | None]
    path: str = ""


def render_markdown(text: str, links: Links) -> Markup:
    """The text as safe HTML. Linear in its length; a page shows at most 40,000 characters at once."""
    parser = _parser()
    html = parser.render(text, {"links": links})
    return Markup(_sanitise(html))  # noqa: S704 - sanitised above


def _parser() -> MarkdownIt:
    parser = MarkdownIt(
        "commonmark",
        {"html": True, "linkify": False, "maxNesting": 40, "highlight": _highlight, "langPrefix": ""},
    )
    parser.enable(["table", "strikethrough"])
    parser.use(footnote_plugin).use(tasklists_plugin)
    parser.inline.ruler.before("link", "wiki_link", _wiki_link)
    parser.core.ruler.push("callouts", _callouts)
    parser.core.ruler.push("addresses", _addresses)
    parser.core.ruler.push("headings", _headings)
    parser.core.ruler.push("cells", _cells)
    return parser


def _wiki_link(state: StateInline, silent: bool) -> bool:
    """`[[target|shown]]` and `![[file]]`."""
    if state.src[state.pos] not in "[!":
        return False
    match = _WIKI_LINK.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        links: Links = state.env["links"]
        embedded, target, shown = match[1], match[2].strip(), (match[3] or "").strip()
        note, _, heading = target.partition("#")
        found = links.resolve(note.strip()) if note.strip() else ""
        suffix = note.rpartition(".")[2].lower()
        if embedded and found is None and suffix in IMAGES:
            token = state.push("image", "img", 0)
            token.attrs = {"src": _file_address(note.strip()), "alt": shown or note}
            token.children = [Token("text", "", 0, content=shown or note)]
            token.content = shown or note
        else:
            token = state.push("link_open", "a", 1)
            if found is None:
                is_file = "." in note and suffix != "md"
                href = _file_address(note.strip()) if is_file else "/console/notes?" + _query(note)
                token.attrs = {"href": href, "class": "wikilink" if is_file else "wikilink broken"}
                if not is_file:
                    token.attrs["title"] = "No note has this name yet."
            else:
                anchor = f"#{ID_PREFIX}{slug(heading)}" if heading else ""
                token.attrs = {
                    "href": f"/console/notes/{quote(found, safe='')}{anchor}" if found else anchor or "#"
                }
                token.attrs["class"] = "wikilink"
            token.meta = {"own": True}
            state.push("text", "", 0).content = shown or target
            state.push("link_close", "a", -1)
    state.pos = match.end()
    return True


def _query(name: str) -> str:
    return f"q={quote(name.strip(), safe='')}"


def _file_address(path: str) -> str:
    return "/console/files/" + quote(path.lstrip("/"), safe="/")


def _callouts(state: StateCore) -> None:
    """Quotes that begin with `[!kind] Title` as callouts."""
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
        inline.content = rest
        inline.children = []
        state.md.inline.parse(rest, state.md, state.env, inline.children)
        head = Token("html_block", "", 0)
        head.content = f'<p class="callout-title">{escape(title)}</p>\n'
        tokens[place + 1].meta = {"callout": head}
    state.tokens = [one for token in tokens for one in _with_title(token)]


def _with_title(token: Token) -> list[Token]:
    head = token.meta.get("callout") if token.type == "paragraph_open" else None
    return [token] if head is None else [head, token]


def _addresses(state: StateCore) -> None:
    """Lead relative links to notes and files of the vault; turn images from elsewhere into links."""
    links: Links = state.env["links"]
    for token in state.tokens:
        for child in token.children or ():
            if child.type == "link_open" and not child.meta.get("own"):
                child.attrSet("href", _address(str(child.attrGet("href") or ""), links))
                if _SCHEME.match(str(child.attrGet("href"))):
                    child.attrSet("class", "external")
            elif child.type == "image":
                _image(child, links)


def _image(token: Token, links: Links) -> None:
    source = str(token.attrGet("src") or "")
    if source.startswith("/console/files/"):
        return
    if _SCHEME.match(source) or source.startswith("//"):
        text = escape(token.content or source)
        token.type, token.tag, token.children = "html_inline", "", None
        token.content = f'<a class="external" href="{escape(source)}">{text}</a>'
    else:
        token.attrSet("src", _file_address(_beside(unquote(source), links.path)))


def _address(href: str, links: Links) -> str:
    if _SCHEME.match(href) or href.startswith("//"):
        return href
    path, _, anchor = href.partition("#")
    mark = f"#{ID_PREFIX}{slug(unquote(anchor))}" if anchor else ""
    if not path:
        return mark or "#"
    target = _beside(unquote(urlsplit(path).path), links.path)
    found = links.resolve(target.removesuffix(".md")) or links.resolve(target)
    return f"/console/notes/{quote(found, safe='')}{mark}" if found else _file_address(target)


def _beside(path: str, note: str) -> str:
    """A path as seen from the folder of a note, never above the vault."""
    if path.startswith("/"):
        return normpath(path).lstrip("/")
    return normpath(f"/{dirname(note)}/{path}").lstrip("/")


def _headings(state: StateCore) -> None:
    """Ids for headings, so that an outline can lead to them; equal ones are numbered."""
    seen: dict[str, int] = {}
    for place, token in enumerate(state.tokens):
        if token.type == "heading_open":
            name = slug(state.tokens[place + 1].content)
            seen[name] = times = seen.get(name, 0) + 1
            token.attrSet("id", name if times == 1 else f"{name}-{times}")


def _cells(state: StateCore) -> None:
    """The side on which a column stands as an attribute: styles are not allowed."""
    for token in state.tokens:
        style = str(token.attrs.pop("style", "")) if token.type in ("td_open", "th_open") else ""
        if style:
            token.attrSet("align", style.rpartition(":")[2])


def slug(heading: str) -> str:
    """The id of a heading without its prefix."""
    return re.sub(r"[^\w]+", "-", heading[:200].lower()).strip("-") or "section"


def _highlight(code: str, language: str, _attributes: str) -> str:
    """Coloured code; "" lets it be escaped as it is."""
    if language.lower() not in LANGUAGES or len(code) > LONGEST_COLOURED:
        return ""
    coloured: str = highlight(
        code, get_lexer_by_name(language.lower()), HtmlFormatter(nowrap=True, classprefix="t-")
    )
    return f'<pre class="code"><code>{coloured}</code></pre>'


_ATTRIBUTES: Final = {
    "*": {"class", "id", "title", "dir", "lang"},
    "a": {"href"},
    "img": {"src", "alt", "width", "height"},
    "input": {"type", "checked", "disabled"},
    "ol": {"start"},
    "td": {"colspan", "rowspan", "align"},
    "th": {"colspan", "rowspan", "align"},
    "details": {"open"},
}
_TAGS: Final = frozenset({
    "a", "abbr", "b", "blockquote", "br", "caption", "center", "cite", "code", "dd", "del", "details",
    "dfn", "div", "dl", "dt", "em", "figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr",
    "i", "img", "input", "ins", "kbd", "li", "mark", "ol", "p", "pre", "q", "s", "samp", "section",
    "small", "span", "strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead",
    "tr", "u", "ul", "var",
})  # fmt: skip


def _filter(tag: str, attribute: str, value: str) -> str | None:
    """Classes of this module only, pictures of the vault only, checkboxes that cannot be used."""
    if attribute == "class":
        return " ".join(one for one in value.split() if _CLASS.match(one)) or None
    if tag == "a" and attribute == "href" and value.startswith("#"):
        return value if value.startswith(f"#{ID_PREFIX}") else f"#{ID_PREFIX}{value[1:]}"
    if tag == "img" and attribute == "src":
        return value if value.startswith("/console/files/") else None
    if tag == "input" and attribute == "type":
        return value if value == "checkbox" else None
    return value


def _sanitise(html: str) -> str:
    return nh3.clean(
        html,
        tags=set(_TAGS),
        attributes=_ATTRIBUTES,
        attribute_filter=_filter,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
        id_prefix=ID_PREFIX,
        set_tag_attribute_values={"input": {"disabled": "", "type": "checkbox"}},
    )
