"""Formats of Logseq: page names, properties, journal days and settings.

The module follows Logseq's documentation (`pages/Filename format.md`, `pages/Properties.md` of
https://github.com/logseq/docs). Since 0.8.9, a `/` in a page name is `___` in the file name, and characters
that are not allowed in file names are percent-encoded (before 0.8.9, `/` was too). Properties are lines
`key:: value` at the beginning of a page or block. The settings define the journal formats
(`:journal/page-title-format`), which are listed in `pages/logseq.md` of
https://github.com/handuozh/personal_logseq. Links in an earlier format stay unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Final
from urllib.parse import unquote

from attrs import field, frozen

#: Default date format of journal titles and file names, used if the settings define no format.
TITLE_FORMAT: Final = "MMM do, yyyy"
FILE_FORMAT: Final = "yyyy_MM_dd"
#: Additional formats of links to days. None of them is ambiguous.
_FORMATS: Final = (
    "MMM do, yyyy", "MMMM do, yyyy", "do MMM yyyy", "do MMMM yyyy", "MMM d, yyyy", "MMMM d, yyyy",
    "d MMM yyyy", "d MMMM yyyy", "E, yyyy/MM/dd", "EEEE, yyyy/MM/dd", "EEEE, MMM do, yyyy",
    "EEEE, MMMM do, yyyy", "yyyy-MM-dd", "yyyy_MM_dd", "yyyy/MM/dd", "yyyy.MM.dd",
    "yyyy-MM-dd EEEE", "yyyyMMdd", "yyyy年MM月dd日",
)  # fmt: skip
#: Ambiguous formats. They are only recognised if the month or day is above 12.
_DOUBTFUL: Final = (
    ("dd-MM-yyyy", "MM-dd-yyyy"), ("dd/MM/yyyy", "MM/dd/yyyy"), ("dd.MM.yyyy", "MM.dd.yyyy"),
    ("dd_MM_yyyy", "MM_dd_yyyy"), ("E, dd-MM-yyyy", "E, MM-dd-yyyy"), ("E, dd/MM/yyyy", "E, MM/dd/yyyy"),
    ("E, dd.MM.yyyy", "E, MM.dd.yyyy"), ("EEEE, dd-MM-yyyy", "EEEE, MM-dd-yyyy"),
    ("EEEE, dd/MM/yyyy", "EEEE, MM/dd/yyyy"), ("EEEE, dd.MM.yyyy", "EEEE, MM.dd.yyyy"),
)  # fmt: skip
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_TOKEN: Final = re.compile(r"yyyy|MMMM|MMM|MM|EEEE|EEE|EE|E|do|dd|d")
_PATTERNS: Final[Mapping[str, str]] = {
    "yyyy": r"(?P<year>\d{4})",
    "MMMM": f"(?P<name>{'|'.join(_MONTHS)})",
    "MMM": f"(?P<name>{'|'.join(month[:3] for month in _MONTHS)})",
    "MM": r"(?P<month>\d{2})",
    "dd": r"(?P<day>\d{2})",
    "d": r"(?P<day>\d{1,2})",
    "do": r"(?P<day>\d{1,2})(?:st|nd|rd|th)",
    "EEEE": r"[^\W\d]{2,12}",
    "EEE": r"[^\W\d]{2,12}\.?",
    "EE": r"[^\W\d]{2,12}\.?",
    "E": r"[^\W\d]{2,12}\.?",
}
#: Maximum number of characters in a text that may be a day.
_LONGEST_DAY: Final = 40
_YEAR: Final = re.compile(r"\d{4}")
_PROPERTY: Final = re.compile(r"[ \t]*([^\s:,;#\[\](){}\"`]{1,100})::(?:[ \t]+([^\r\n]{0,10000}))?[ \t]*\Z")
_BULLET: Final = re.compile(r"-[ \t]+")
#: A name in a list: a link, or the text between two commas.
_NAME: Final = re.compile(r"[ \t]*#?\[\[([^\[\]\n]{1,1000})\]\]|([^,\n]{1,1000})")
_SETTING: Final = re.compile(r'^[ \t{]*:([a-z/-]{1,60})[ \t]+"([^"\n]{0,200})"', re.MULTILINE)
#: Maximum number of property lines to read at the top of a page.
_MOST_PROPERTIES: Final = 200


@frozen(kw_only=True)
class Settings:
    """The settings in `logseq/config.edn` that concern names."""

    title_format: str = TITLE_FORMAT
    file_format: str = FILE_FORMAT
    pages: str = "pages"
    journals: str = "journals"


def read_settings(text: str) -> Settings:
    """Parse the text of a `config.edn`. Settings that are missing or commented out get their defaults."""
    said = dict(_SETTING.findall(text))
    return Settings(
        title_format=said.get("journal/page-title-format") or TITLE_FORMAT,
        file_format=said.get("journal/file-name-format") or FILE_FORMAT,
        pages=said.get("pages-directory", "").strip("/") or "pages",
        journals=said.get("journals-directory", "").strip("/") or "journals",
    )


def page_name(stem: str) -> str:
    """Return the page name for a file name without its `.md`."""
    return unquote(stem.replace("___", "/"), errors="replace").strip() or stem


@frozen(kw_only=True)
class Properties:
    """The properties of a page: its title, names and tags, and all other properties as written."""

    title: str | None = None
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    others: Mapping[str, str] = field(factory=dict)


def read_properties(content: str) -> Properties:
    """Return the page's properties, from its first lines or its first block. Other blocks are ignored."""
    found: dict[str, str] = {}
    begins_block = False
    for number, line in enumerate(content.split("\n", _MOST_PROPERTIES)[:_MOST_PROPERTIES]):
        bullet = _BULLET.match(line)
        begins_block |= number == 0 and bullet is not None
        if (bullet is not None and number) or not line.strip():
            break
        said = _PROPERTY.match(line.rstrip("\r"), bullet.end() if bullet is not None else 0)
        if said is None:
            if begins_block:  # the block has text, so the properties belong to the block
                found = {}
            break
        found.setdefault(said[1].lower(), (said[2] or "").strip())
    found.pop("id", None)  # this is the id of the block
    return Properties(
        title=found.pop("title", "") or None,
        aliases=names_in(found.pop("alias", "")) + names_in(found.pop("aliases", "")),
        tags=names_in(found.pop("tags", "")) + names_in(found.pop("tag", "")),
        others=found,
    )


def names_in(value: str) -> tuple[str, ...]:
    """Return the names in a list such as `a, [[b, c]], #d`."""
    names = ((found[1] or found[2]).strip().lstrip("#").strip(" \"'") for found in _NAME.finditer(value))
    return tuple(dict.fromkeys(filter(None, names)))


def write_day(day: date, day_format: str) -> str:
    """Return the day in a Logseq date format, in English."""
    suffix = "th" if 10 < day.day % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10, "th")
    weekday, month = _DAYS[day.weekday()], _MONTHS[day.month - 1]
    written = {
        "yyyy": f"{day.year:04}", "MMMM": month, "MMM": month[:3], "MM": f"{day.month:02}", "EEEE": weekday,
        "EEE": weekday[:3], "EE": weekday[:3], "E": weekday[:3], "do": f"{day.day}{suffix}",
        "dd": f"{day.day:02}", "d": str(day.day),
    }  # fmt: skip
    return _TOKEN.sub(lambda found: written[found[0]], day_format)


def read_day(text: str, own_format: str) -> date | None:
    """Return the day that a text names in the graph's own format or in an unambiguous format.

    Return None if the text is not a day.
    """
    text = text.strip()
    if not 8 <= len(text) <= _LONGEST_DAY or _YEAR.search(text) is None:
        return None
    for each in (own_format, *_FORMATS):
        if (day := _read(text, each)) is not None:
            return day
    for one, other in _DOUBTFUL:
        days = {day for each in (one, other) if (day := _read(text, each)) is not None}
        if len(days) == 1:
            return days.pop()
    return None


def _read(text: str, day_format: str) -> date | None:
    pattern, position = "", 0
    for token in _TOKEN.finditer(day_format):
        pattern += re.escape(day_format[position : token.start()]) + _PATTERNS[token[0]]
        position = token.end()
    try:
        found = re.fullmatch(pattern + re.escape(day_format[position:]), text, re.IGNORECASE)
        if found is None:
            return None
        said = found.groupdict()
        name = (said.get("name") or "")[:3].title()
        month = [each[:3] for each in _MONTHS].index(name) + 1 if name else int(said["month"])
        return date(int(said["year"]), month, int(said["day"]))
    except (ValueError, KeyError, re.error):  # not a real day, or an incomplete or repetitive format
        return None
