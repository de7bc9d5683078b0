"""Preparation of a note's text for entity extraction: prose, labels, link targets and code spans.

See docs/spec/memory.md §4. Code fences, tables and reference sections are removed. This module also contains
the rules that reject names: stop words, file names, versions and code. The word lists are in lower case. All
functions take time linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from attrs import define, field

from lithos.notes.links.links import scan_links
from lithos.text.markdown import code_fences


def word_set(text: str) -> frozenset[str]:
    """Return the set of words in a text."""
    return frozenset(text.split())


CALENDAR: Final = word_set(
    """
    january february march april may june july august september october november december jan feb mar
    apr jun jul aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon
    tue tues wed thu thur thurs fri sat sun today tomorrow yesterday spring summer autumn winter
    """
)
#: Words that are capitalised only because of their position. A name never begins or ends with such a word.
FILLERS: Final = word_set(
    """
    a about above after again against all almost already also although always am an and another any
    anyone anything are aren as at back be because been before behind being below besides between beyond
    both but by can cannot come could currently did didn do does doesn doing don done down due during
    each either else especially etc even every everyone everything except few finally for from further
    furthermore generally get given go had has hasn have haven having he hello hence her here hers
    herself hey hi him himself his hopefully how however i idea if in indeed initially inside instead
    into is isn it item its itself just keep know lastly later least less let like likewise many maybe
    me meanwhile might mine more moreover most mostly much must my myself near neither never
    nevertheless no nobody none nor normally not nothing now nowhere obviously of off often ok okay on
    once one only onto or originally others otherwise our ours out outside over per perhaps personally
    please possibly previously probably quite rather really recently regarding secondly see several
    shall she should similarly simply since so some somebody someone something sometimes somewhere soon
    still such sure take than thank thanks that the their theirs them themselves then there therefore
    these they thing things this those though through throughout thus to together too toward towards two
    typically under unfortunately unless unlike until up upon us usually various versus very via vs want
    was wasn we welcome well were weren what whatever when whenever where whereas wherever whether which
    whichever while who whoever whole whom whose why will with within without won would wouldn yes yet
    you your yours yourself
    """
)
#: Words that are not names on their own, but may be part of a name, as in New York and Key West.
GENERIC: Final = word_set(
    """
    best better case chapter first general good key last level new next old other own part right same
    second third three four five six seven eight nine ten abstract acknowledgements action actions
    active agenda answer answers appendix archived assumption assumptions author authors background
    blocked bug bugs caution closed comment comments completed conclusion conclusions context cons
    criteria critical danger date deadline decision decisions default definition deprecated description
    details discussion draft error errors example examples failed false faq figure final findings fix
    fixed fixme goal goals hint hypothesis important info introduction issue issues limitations link
    links list log main meeting method methods milestone motivation name note notes objective objectives
    observation observations open option options output overview owner page people phase plan plans
    point points priority problem problems proposal pros purpose question questions rationale readme
    reason recommendation recommendations related resolved result results review risk risks scope
    section setup situation solution solutions status step steps summary table task tasks tbd team tip
    tldr title todo topic topics total true type unknown untitled update updated updates usage value
    version warning wip api apis cli copyright faqs gui html http https id ids internet ip json os path pdf ui
    uri url urls ux xml yaml licence license licenses universal waiver work works
    """
)
#: Words that often begin commands and instructions. They are removed only from the front, because no name
#: ends with such a word.
OPENERS: Final = word_set(
    """
    accept access according add adding adjust allow apply ask assign assume avoid based begin bring
    build built call change check choose clean click clone close compare complete configure confirm
    connect consider contact contrast convert copy create created define delete deploy determine develop
    did disable discuss download draw edit enable ensure enter establish evaluate explain export extend
    extract feel fetch fill find follow fork generate give given grant handle help identify ignore
    implement import improve include inspect install invoke join launch learn leave link load look
    maintain make manage measure merge migrate modify monitor move navigate notice observe obtain offer
    open pass paste perform pick place prefer prepare press prevent protect provide publish pull push
    put read receive record reduce refer register reject reload remember remove rename replace report
    request require resolve restart restore return reuse review run save say search select send serve
    set share show sign skip source specify spend start stop store submit suppose switch test tell think
    track train treat try turn understand unzip upgrade upload use used using verify view visit wait
    watch whilst work write written
    """
)
COMMANDS: Final = word_set(
    """
    apt apt-get aws bash brew bun bundle cargo cat cd chmod chown conda cp curl deno docker dotnet echo
    export git go gradle grep helm kill kubectl ln ls make mkdir mv mvn nix node npm npx pip pip3 pipx
    pnpm poetry pytest python python3 rm ruby sed sh source ssh ssh-keygen sudo systemctl tar terraform
    touch uv uvx wget yarn
    """
)
COUNTED: Final = word_set(
    """
    q v day week month year quarter round sprint node test item row line page act art group unit fy vol
    volume
    """
)


SHORTEST: Final = 3
LONGEST: Final = 60
MOST_WORDS: Final = 5

_FILE_SUFFIX: Final = re.compile(
    r"\.(?:md|markdown|mdx|txt|rst|org|adoc|pdf|docx?|xlsx?|pptx?|odt|csv|tsv|json|jsonl|ya?ml|toml|ini|cfg|conf"
    r"|env|lock|log|xml|html?|css|scss|less|svg|png|jpe?g|gif|webp|ico|mp[34]|mov|wav|py|pyi|pyc|ipynb|tsx?|jsx"
    r"|mjs|cjs|rs|go|java|kt|kts|swift|c|cc|cpp|cxx|h|hpp|rb|php|pl|lua|sh|bash|zsh|fish|ps1|bat|exe|dll|so"
    r"|sql|db|sqlite|parquet|proto|graphql|tf|vue|svelte|canvas|zip|t?gz|tar|bz2|xz|7z|deb|rpm|dmg|iso|bak|tmp)$",
    re.IGNORECASE,
)
_DOMAIN: Final = re.compile(r"(?:[\w-]+\.)+(?:com|org|net|edu|gov|dev|app|info|xyz|co)")
_SCRIPT: Final = re.compile(r"\.js$", re.IGNORECASE)
_VERSION: Final = re.compile(r"[vV]?\d+(?:[.\-]\w+)*\+?")
#: Characters and sequences that never occur in a name in prose.
_CODE: Final = re.compile(r"""[(){}\[\]<>=;:\\/|*_$@#"`~^%!?,]|--|\.\.|->|^[-.&+']|[-&]$""")
#: Characters and sequences that occur only in code. Link targets may contain the remaining special
#: characters, because a person chose the targets as names.
_LINK_CODE: Final = re.compile(r"[(){}\[\]<>=;\\/|*_$@`~^]|::|--|->|\.\.")
_QUALIFIER: Final = re.compile(r"(?<=\S) \([^()]+\)$")
_STEM: Final = re.compile(r"[a-z]+")
_HEXADECIMAL: Final = re.compile(r"(?=.*\d)[0-9A-Fa-f]{6,}")


def is_filler(word: str) -> bool:
    """Return whether a word cannot be the first or last word of a name."""
    return word.casefold() in FILLERS


def is_stop_word(word: str) -> bool:
    """Return whether a word is not a name on its own, regardless of case."""
    lower = word.casefold()
    return lower in FILLERS or lower in GENERIC


def is_opener(word: str) -> bool:
    """Return whether a word may precede a name at the start of a sentence, as in `Install Apache Kafka`."""
    lower = word.casefold()
    return lower in FILLERS or lower in OPENERS or (word.endswith("ing") and not word.isupper())


def is_calendar(word: str) -> bool:
    """Return whether a word is a month, a day of the week or a season."""
    return word.casefold() in CALENDAR


def is_numbering(word: str) -> bool:
    """Return whether a word is only a number with a label, such as `Step-1`, `Week2`, `Q3` or `V2`."""
    stems = _STEM.findall(word.casefold())
    return any(map(str.isdigit, word)) and all(stem in COUNTED or is_stop_word(stem) for stem in stems)


def is_file_name(text: str) -> bool:
    """Return whether a text is a file name, such as `main.py` or `app.js`.

    A product name such as `Node.js` is not a file name, because it is capitalised.
    """
    if _SCRIPT.search(text):
        return not text[0].isupper() or " " in text
    return bool(_FILE_SUFFIX.search(text))


def is_entity(text: str) -> bool:
    """Return whether a text may be a name. A text that a general rule rejects is not a name."""
    words = text.split()
    if not SHORTEST <= len(text) <= LONGEST or not words or len(words) > MOST_WORDS:
        return False
    if not any(character.isalpha() for character in text):
        return False
    if _CODE.search(text) or is_file_name(text) or any(map(_VERSION.fullmatch, words)):
        return False
    is_other = text.islower() or _HEXADECIMAL.fullmatch(text) or _DOMAIN.fullmatch(text)
    if len(words) == 1 and (is_other or is_numbering(text)):
        return False
    return not all(is_stop_word(word) or is_calendar(word) for word in words)


def is_code_name(text: str) -> bool:
    """Return whether the content of a code span is a name rather than a command or plain words."""
    words = text.split()
    if not is_entity(text) or any(word.startswith("-") for word in words):
        return False
    return not (text.islower() and (words[0] in COMMANDS or any(map(is_filler, words))))


def is_link_name(target: str) -> bool:
    """Return whether a link target is a name. A qualifier in brackets at the end belongs to the name."""
    bare = _QUALIFIER.sub("", target)
    is_word = any(map(str.isalpha, bare))  # A date can be a link target, but it is not a name.
    return is_word and not _LINK_CODE.search(bare) and not is_file_name(bare)


#: Character that marks where a name must end in cleaned text: at links, code and removed markup.
EDGE: Final = "\x1f"
LABEL_WORDS: Final = 3
#: Maximum number of words in a link text that counts as a name.
LINK_WORDS: Final = 4

_HEADING: Final = re.compile(r"(#{1,6})(?:[ \t]+(.*))?")
_UNDERLINE: Final = re.compile(r"(?:=+|-+)[ \t]*")
_ITEM: Final = re.compile(r"(?:(?:[-*+•]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)+")
_DELIMITER_ROW: Final = frozenset("|:- \t")
_DEFINITION: Final = re.compile(r"\[[^\[\]]+\]:\s")
_NUMBERING: Final = re.compile(r"^[\d.)\s]+")
_REFERENCES: Final = frozenset(("references", "bibliography", "citations", "works cited", "sources"))
_CODE_SPAN: Final = re.compile(r"`{1,2}([^`]+)`{1,2}")
_WIKI_LINK: Final = re.compile(r"!?\[\[([^\[\]|]+)(?:\|([^\[\]]*))?\]\]")
_FOOTNOTE: Final = re.compile(r"\[\^[^\[\]]*\]")
_LINK: Final = re.compile(r"(!?)\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
_TAG: Final = re.compile(r"</?[A-Za-z][^<>]*>|&#?\w{1,10};")
_LABEL: Final = re.compile(r"[\s" + EDGE + r"]*(\*\*|__)(.+?)\1[ \t]*(:|--?(?=\s)|[–—]|$)?")
_EMPHASIS: Final = re.compile(r"\*+|~~|==|(?<!\w)_+|(?<!_)_++(?!\w)")
_DASH: Final = re.compile(r"[–—…]|\.{3,}|--+")


@define
class BodyText:
    """The parts of a body. A repeated link or code span is listed once per occurrence."""

    #: Paragraphs and list items without markup, each on one line.
    prose: list[str] = field(factory=list)
    #: Headings and bold labels, without markup.
    labels: list[str] = field(factory=list)
    links: list[str] = field(factory=list)
    code: list[str] = field(factory=list)


def read_body(body: str) -> BodyText:
    """Split a body into its parts."""
    text = BodyText()
    for level, block in _without_references(_blocks(_without_comments(body))):
        label = None if level else _LABEL.match(block)
        if level:
            text.labels.append(_clean(block, text))
        elif label is not None and _is_label(label):
            text.labels.append(_clean(label[2], text))
            text.prose.append(_clean(block[label.end() :], text))
        else:
            text.prose.append(_clean(block, text))
    return text


def _without_comments(body: str) -> str:
    """Return the text without HTML comments. A comment that is not closed remains in the text."""
    parts, position = [], 0
    while (begin := body.find("<!--", position)) >= 0 and (end := body.find("-->", begin)) >= 0:
        parts.append(body[position:begin])
        position = end + 3
    return "".join([*parts, body[position:]])


def _without_references(blocks: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the blocks that are not in a reference section.

    A reference section ends at the next heading of the same level or of a higher level.
    """
    skipped = 0
    for level, block in blocks:
        if level and (not skipped or level <= skipped):
            skipped = level if _is_reference_heading(block) else 0
        if not skipped:
            yield level, block


def _blocks(body: str) -> Iterator[tuple[int, str]]:
    """Yield (heading level, text) for headings, and (0, text) for paragraphs and list items, in order."""
    paragraph: list[str] = []
    for level, line in _plain_lines(_without_code(body).split("\n")):
        is_underline = bool(level and paragraph and not line)
        heading = paragraph.pop() if is_underline else line
        item = None if level else _ITEM.match(line)
        if paragraph and (level or item or not line):
            yield 0, " ".join(paragraph)
            paragraph = []
        if level:
            yield level, heading
        elif line:
            paragraph.append(line[item.end() :] if item else line)
    if paragraph:
        yield 0, " ".join(paragraph)


def _plain_lines(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield (level, text) for each line outside code and tables, without quote markers.

    The level is 0 for a line that is not a heading.

    An underlined heading is yielded as two lines: its text with level 0, and an empty line with the heading
    level.
    """
    in_table = False
    previous = ""
    for number, line in enumerate(lines):
        text = line.strip().lstrip("> \t")
        following = lines[number + 1].strip() if "|" in text and number + 1 < len(lines) else ""
        begins_table = "|" in following and "-" in following and _DELIMITER_ROW.issuperset(following)
        in_table = (in_table and "|" in text) or text.startswith("|") or begins_table
        if in_table or _DEFINITION.match(text):
            previous = ""
            yield 0, ""
            continue
        heading = _HEADING.fullmatch(text)
        if heading:
            yield len(heading[1]), (heading[2] or "").rstrip("# \t")
        elif previous and _UNDERLINE.fullmatch(text) and len(line) - len(line.lstrip()) < 4:
            yield (1 if text[0] == "=" else 2), ""
        else:
            yield 0, text
        previous = "" if heading or _ITEM.match(text) else text


def _without_code(body: str) -> str:
    """Return the text with each fenced code block replaced by an empty line."""
    parts, position = [], 0
    for start, end in code_fences(body):
        parts.append(body[position:start])
        position = end
    return "".join([*parts, body[position:]])


def _is_reference_heading(heading: str) -> bool:
    bare = _NUMBERING.sub("", heading.replace("*", "").replace("_", " "))
    return " ".join(bare.strip(" :.").casefold().split()) in _REFERENCES


def _is_label(label: re.Match[str]) -> bool:
    text = label[2].strip()
    ends = label[3] is not None or text.endswith(":")
    return ends and len(text.split()) <= LABEL_WORDS


def _clean(block: str, text: BodyText) -> str:
    """Return the words of a block without markup. Its links and code spans are added to `text`."""

    def take_code(span: re.Match[str]) -> str:
        text.code.append(span[1].strip())
        return f" {EDGE} "

    def take_link(link: re.Match[str]) -> str:
        found = scan_links(link[0].removeprefix("!"))
        if link[0].startswith("!") or not found:
            return f" {EDGE} "
        text.links.append(found[0].target)
        return f" {EDGE} {found[0].display} {EDGE} "

    block = _WIKI_LINK.sub(take_link, _CODE_SPAN.sub(take_code, block))
    block = _LINK.sub(_link_text, _FOOTNOTE.sub("", block))
    block = _EMPHASIS.sub("", _TAG.sub(f" {EDGE} ", block))
    return _DASH.sub(" - ", block)


def _link_text(link: re.Match[str]) -> str:
    """Return the words of a link. For an embed or a text that is too long for a name, return `EDGE`."""
    return f" {EDGE} " if link[1] or len(link[2].split()) > LINK_WORDS else link[2]
