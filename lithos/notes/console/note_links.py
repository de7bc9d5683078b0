"""Links and pictures in notes.

Resolves links and pictures against the existing notes, and sanitises the HTML.

nh3 removes all but harmless elements, attributes, classes and addresses (`sanitise`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from posixpath import dirname, normpath
from typing import Final
from urllib.parse import quote, unquote, urlsplit

import nh3
from markdown_it.token import Token
from markupsafe import escape

from lithos.notes.links.forms import is_placed, place_target

#: Prefix of heading and footnote ids. With the prefix, a note cannot imitate a part of the page.
ID_PREFIX: Final = "n-"
#: Value of the `rel` attribute of external links.
REL: Final = "noopener noreferrer nofollow"
_CLASS: Final = re.compile(
    r"^(?:t-[a-z0-9]{1,4}|callout|callout-[a-z]+|callout-title|wikilink|broken|task-list-item|contains-task-list|"
    r"footnotes|footnotes-list|footnote-item|footnote-ref|footnote-backref|code|external)$"
)
_ATTRIBUTES: Final = {
    "*": {"class", "id", "title", "dir", "lang"},
    "a": {"href", "rel"},
    "img": {"src", "alt", "width", "height"},
    "input": {"type", "checked", "disabled"},
    "ol": {"start"},
    "td": {"colspan", "rowspan", "align"},
    "th": {"colspan", "rowspan", "align"},
    "details": {"open"},
}
_TAGS: Final = frozenset({
    "a", "abbr", "b", "blockquote", "br", "caption", "center", "cite", "code", "dd", "del", "details",
    "dfn", "div", "dl", "dt", "em", "figcaption", "figure", "h2", "h3", "h4", "h5", "h6", "hr",
    "i", "img", "input", "ins", "kbd", "li", "mark", "ol", "p", "pre", "q", "s", "samp", "section",
    "small", "span", "strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead",
    "tr", "u", "ul", "var",
})  # fmt: skip


def _filter(tag: str, attribute: str, value: str) -> str | None:
    """Return the value of an allowed attribute, else None.

    Allowed are classes of this module, pictures of the vault, and disabled checkboxes.
    """
    if attribute == "class":
        return " ".join(one for one in value.split() if _CLASS.match(one)) or None
    if tag == "a" and attribute == "href" and value.startswith("#"):
        return value if value.startswith(f"#{ID_PREFIX}") else f"#{ID_PREFIX}{value[1:]}"
    if tag == "img" and attribute == "src":
        is_file = value.startswith("/console/files/") and ".." not in unquote(value)
        return value if is_file and "\\" not in value else None
    if attribute == "rel":
        return REL
    if tag == "input" and attribute == "type":
        return value if value == "checkbox" else None
    return value


def sanitise(html: str) -> str:
    """Return the HTML without elements that could run code, load data or navigate unexpectedly."""
    return nh3.clean(
        html,
        tags=set(_TAGS),
        attributes=_ATTRIBUTES,
        attribute_filter=_filter,
        url_schemes={"http", "https", "mailto"},
        link_rel=None,
        id_prefix=ID_PREFIX,
        set_tag_attribute_values={
            "input": {"disabled": "", "type": "checkbox"},
            # `pre` and `table` elements have their own scrollbars, so they must be reachable by keyboard.
            "pre": {"tabindex": "0"},
            "table": {"tabindex": "0"},
        },
    )


IMAGES: Final = frozenset({"png", "jpg", "jpeg", "gif", "webp", "avif", "bmp"})
#: The suffix of a file name. `scan.pdf` matches, but `v2.0` and `Mr. Smith` do not.
_SUFFIX: Final = re.compile(r"[a-z][a-z0-9]{1,4}")
_SCHEME: Final = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")


def targets_of(token: Token, path: str) -> Iterator[str]:
    """Yield the names of notes to which a token of a paragraph may link."""
    if token.type == "wiki":
        note = _note_of(str(token.meta["target"]), path)
        if note:
            yield note
    elif token.type == "link_open":
        target = _beside_of(str(token.attrGet("href") or ""), path)
        if target:
            yield target.removesuffix(".md")
            yield target


def linked(token: Token, found: Mapping[str, str | None], path: str) -> Iterator[Token]:
    """Yield a token of a paragraph with its resolved link."""
    if token.type == "wiki":
        yield from _wiki_tokens(token.meta, found, path)
        return
    if token.type == "link_open":
        href = _address(str(token.attrGet("href") or ""), found, path)
        token.attrSet("href", href)
        if _is_elsewhere(href):
            token.attrSet("class", "external")
            token.attrSet("rel", REL)
    elif token.type == "image":
        _image(token, path)
    yield token


def _note_of(target: str, path: str) -> str:
    """Return the name of the note in a wiki-link.

    For a relative link, return its path with a leading slash.
    """
    note = target.partition("#")[0].strip()
    return place_target(note, dirname(path)) if is_placed(note) else note


def _wiki_tokens(link: Mapping[str, object], found: Mapping[str, str | None], path: str) -> Iterator[Token]:
    target, shown = str(link["target"]), str(link["shown"])
    note, heading = _note_of(target, path), target.partition("#")[2]
    note_id = found.get(note) if note else ""
    suffix = note.rpartition(".")[2].lower()
    is_file = "." in note and suffix != "md" and _SUFFIX.fullmatch(suffix) is not None
    if link["embedded"] and note_id is None and suffix in IMAGES:
        alt = note if shown.isdigit() else shown  # in `![[scan.png|300]]`, 300 is the width
        image = Token("image", "img", 0, attrs={"src": _file_address(note), "alt": alt}, content=alt)
        if shown.isdigit():
            image.attrs["width"] = shown[:4]
        image.children = [Token("text", "", 0, content=alt)]
        yield image
        return
    opening = Token("link_open", "a", 1)
    if note_id is None and is_file:
        opening.attrs = {"href": _file_address(note), "class": "wikilink"}
    elif note_id is None:
        opening.attrs = {"href": "/console/notes?" + _query(note), "class": "wikilink broken"}
        opening.attrs["title"] = "A note with this name does not exist yet."
    else:
        anchor = f"#{ID_PREFIX}{slug(heading)}" if heading else ""
        href = f"/console/notes/{quote(note_id, safe='')}{anchor}" if note_id else anchor or "#"
        opening.attrs = {"href": href, "class": "wikilink"}
    yield opening
    yield Token("text", "", 0, content=shown)
    yield Token("link_close", "a", -1)


def _query(name: str) -> str:
    return f"q={quote(name.strip(), safe='')}"


def _file_address(path: str) -> str:
    return "/console/files/" + quote(path.lstrip("/"), safe="/")


def _image(token: Token, path: str) -> None:
    """Show a picture of the vault. Replace any other picture with a link."""
    source = str(token.attrGet("src") or "")
    if source.startswith("/console/files/"):
        return
    if _is_elsewhere(source):
        text = escape(token.content or source)
        token.type, token.tag, token.children = "html_inline", "", None
        token.content = f'<a class="external" rel="{REL}" href="{escape(source)}">{text}</a>'
    else:
        token.attrSet("src", _file_address(_beside(unquote(source), path)))


def _is_elsewhere(address: str) -> bool:
    return bool(_SCHEME.match(address)) or address.startswith("//")


def _beside_of(href: str, path: str) -> str:
    """Return the path in the vault to which an address leads. Return "" if the address leads elsewhere."""
    if not href or _is_elsewhere(href) or href.startswith("#"):
        return ""
    try:
        return _beside(unquote(urlsplit(href.partition("#")[0]).path), path)
    except ValueError:  # for example, the address has `[` in place of a host
        return ""


def _address(href: str, found: Mapping[str, str | None], note: str) -> str:
    if _is_elsewhere(href):
        return href
    anchor = href.partition("#")[2]
    mark = f"#{ID_PREFIX}{slug(unquote(anchor))}" if anchor else ""
    target = _beside_of(href, note)
    if not target:
        return mark or "#"
    note_id = found.get(target.removesuffix(".md")) or found.get(target)
    return f"/console/notes/{quote(note_id, safe='')}{mark}" if note_id else _file_address(target)


def _beside(path: str, note: str) -> str:
    """Resolve a path in the folder of a note. The result is never above the vault."""
    if path.startswith("/"):
        return normpath(path).lstrip("/")
    return normpath(f"/{dirname(note)}/{path}").lstrip("/")


def slug(heading: str) -> str:
    """Return the id of a heading, without `ID_PREFIX`."""
    return re.sub(r"[^\w]+", "-", heading[:200].lower()).strip("-") or "section"
