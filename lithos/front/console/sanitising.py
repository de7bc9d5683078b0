"""HTML that can do nothing: nh3 with the elements, attributes, classes and addresses that notes may have."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

import nh3

#: Before the ids of headings and footnotes: nothing in a note can pass for a part of the page.
ID_PREFIX: Final = "n-"
#: What links to elsewhere carry.
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
    """Classes of this module only, pictures of the vault only, checkboxes that cannot be used."""
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
    """The HTML without what could run, load or lead where it must not."""
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
            # They scroll by themselves: the keyboard must reach them.
            "pre": {"tabindex": "0"},
            "table": {"tabindex": "0"},
        },
    )
