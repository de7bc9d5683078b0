"""Examples in README.md and docs/, run against a real server."""

import re
import shlex
from pathlib import Path

import pytest

from lithos.app.capabilities import all_tools
from lithos.app.options import parse_arguments
from lithos.kernel.configuration.catalogue import OLDER_NAMES, SECTIONS, SETTINGS, SHORT_VARIABLES
from lithos.kernel.configuration.retired import RETIRED
from lithos.kernel.configuration.sources import LOG_VARIABLES
from tests.e2e.pages import Person, find_difference, first_steps, following, put_claude, read_blocks
from tests.repeats import first_of

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
RUNNABLE = [page for page in PAGES if "<!-- run -->" in page.read_text(encoding="utf-8")]
#: Pages that contain only explanations or lists. `docs/index.md` repeats the commands of README.md.
WITHOUT_EXAMPLES = {"compare.md", "concepts.md", "faq.md", "glossary.md", "index.md", "style.md"}
WITHIN = 90.0


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.slow
@pytest.mark.parametrize("page", first_of(RUNNABLE, 6), ids=name_of)
def test_page_examples_print_the_expected_output(page: Path, tmp_path: Path) -> None:
    """Starts in an empty home folder after the first steps of README.md. A free port replaces 8765."""
    (tmp_path / "checkout").mkdir()
    person = Person.at(tmp_path / "checkout", tmp_path / "home", put_claude(tmp_path / "programs"))
    blocks = read_blocks(page.read_text(encoding="utf-8"))
    before = [] if page == README else first_steps(read_blocks(README.read_text(encoding="utf-8")))
    with following(person):
        steps = person.follow([*before, *blocks], WITHIN)
        shown = list(map(person.with_port, blocks))
    missing = find_difference(page, shown, steps)
    assert missing is None, missing


def test_every_task_page_has_examples() -> None:
    tasks = [page for page in PAGES if page.name not in WITHOUT_EXAMPLES]
    assert [name_of(page) for page in tasks if page not in RUNNABLE] == []


@pytest.mark.needs("access", "clients", "imports", "proposals", "upkeep.evaluation")
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_shown_command_can_be_parsed(page: Path) -> None:
    """Also covers blocks that cannot be executed in a test."""
    for block in read_blocks(page.read_text(encoding="utf-8")):
        if block.language != "sh":
            continue
        for line in block.text.replace("\\\n", " ").splitlines():
            for words in commands_in(line):
                if words != ["--version"]:
                    parse_arguments(words)  # raises SystemExit for an unknown option


def commands_in(line: str) -> list[list[str]]:
    """Return the arguments of every `lithos` command in a shell line."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|()<>")
    lexer.whitespace_split, lexer.commenters = True, "#"
    found: list[list[str]] = []
    current: list[str] | None = None
    for word in lexer:
        if re.fullmatch(r"[;&|()<>]+", word):
            current = None
        elif current is not None:
            current.append(word)
        elif word == "lithos" or word.endswith("/bin/lithos"):
            current = []
            found.append(current)
    return found


@pytest.mark.needs("proposals")
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_settings_tools_and_variables_named_in_pages_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    sections = "|".join(sorted((re.escape(name) for name in SECTIONS), key=len, reverse=True))
    keys = set(re.findall(rf"`((?:{sections})\.[a-z_]+)", text)) - SECTIONS
    # Pages about other versions name retired settings, or a prefix of several retired settings.
    gone = {key for key in keys if any(retired.startswith(key) for retired in RETIRED)}
    keys -= gone if page.name in ("back-up.md", "import.md") else set()
    # `events.db`, `memory.json` and similar names are files.
    files = (".db", ".md", ".json", ".jsonl", ".py")
    assert {key for key in keys if not key.endswith(files)} <= {*SETTINGS, *OLDER_NAMES}
    assert set(re.findall(r"\blithos_[a-z_]*[a-z]\b", text)) - {"lithos_data", "lithos_note_words"} <= {
        tool.name for tool in all_tools()
    }
    known = {setting.variable for setting in SETTINGS.values()} | {*SHORT_VARIABLES, *LOG_VARIABLES}
    known |= {"LITHOS_AUTH_TOKEN_FILE", "LITHOS_TOKEN_FILE"}  # the file of a secret, here and for Compose
    assert set(re.findall(r"\b(?:LITHOS|OTEL)_[A-Z_]+\b", text)) - {"LITHOS_EVAL"} <= known
