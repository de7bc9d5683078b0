"""Texts that try to be more than text, and what a page must not have."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Final

#: Each carries a mark, so that a test sees that it was shown at all.
HOSTILE: Final = (
    "<script>alert('mark')</script>mark",
    '"><img src=x onerror=alert(1)>mark',
    "mark' onmouseover='alert(1)",
    "mark</title></textarea><svg onload=alert(1)><a href=javascript:alert(1)>x</a>",
    "[mark](javascript:alert(1)) <iframe src=//evil.example></iframe>",
    "{{ 7 * 7 }}{% raw %}mark",
    "mark\u202egpj.exe\u2066",
    "mark<style>*{display:none}</style><form action=//evil.example><input name=csrf>",
    "![mark](https://evil.example/x.png) <base href=//evil.example/>",
    "<math><a xlink:href=data:text/html,x>mark</a></math><meta http-equiv=refresh content=0>",
)
_FORBIDDEN: Final = frozenset(
    ("iframe", "object", "embed", "base", "math", "style", "frame", "applet", "audio", "video")
)
_ADDRESSES: Final = ("href", "src", "action", "formaction", "xlink:href", "poster", "data")


class Reading(HTMLParser):
    """What a browser would take from a page: elements, addresses, faults; headings, labels and ids."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.faults: list[str] = []
        self.text: list[str] = []
        self.headings: list[str] = []
        self.ids: list[str] = []
        self._labels = 0
        self._prose = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in _FORBIDDEN or (tag == "script" and not given.get("src", "").startswith("/console/static/")):
            self.faults.append(f"<{tag}>")
        if tag == "meta" and "http-equiv" in given:
            self.faults.append("a refresh")
        for name, value in given.items():
            if name.startswith("on") or name == "style":
                self.faults.append(f"{tag} {name}={value[:60]}")
            if name in _ADDRESSES and not _is_harmless(tag, value):
                self.faults.append(f"{tag} {name}={value[:60]}")
        if tag == "div" and (self._prose or "prose" in given.get("class", "").split()):
            self._prose += 1
        if tag in ("h1", "h2", "h3") and not self._prose:
            self.headings.append(tag)
        if "id" in given:
            self.ids.append(given["id"])
        self._labels += tag == "label"
        is_field = tag in ("input", "select", "textarea") and given.get("type") not in ("hidden", "checkbox")
        if is_field and not self._labels and "id" not in given and "aria-label" not in given:
            self.faults.append(f"{tag} {given.get('name')} has no label")

    def handle_endtag(self, tag: str) -> None:
        self._labels -= tag == "label"
        self._prose -= tag == "div" and self._prose > 0

    def handle_data(self, data: str) -> None:
        if self._prose:  # a text of several lines, which turns its own block at most
            data = "".join(one for one in data if one.isprintable() or one.isspace())
        self.text.append(data)


def _is_harmless(tag: str, address: str) -> bool:
    """Pages of the console; a link (and nothing that loads by itself) may lead elsewhere by http."""
    own = address.startswith(("/console/", "?", "#")) and not address.startswith("//")
    return own or (tag == "a" and address.startswith(("http://", "https://", "mailto:")))


def read_page(html: str) -> Reading:
    """The page as a browser reads it. Fails for anything that runs, loads or is not labelled."""
    page = Reading()
    page.feed(html)
    page.close()
    assert not page.faults, page.faults
    assert page.headings.count("h1") == 1, page.headings
    assert len(page.ids) == len(set(page.ids)), [one for one in page.ids if page.ids.count(one) > 1]
    assert not set("".join(page.text)) & set("\u202e\u2066"), "a text turns the direction of the page"
    assert len(html.encode()) <= 200_000, len(html)
    return page
