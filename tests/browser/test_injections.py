"""Hostile texts of agents and files. They must not run scripts, send requests or add elements on any page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest
from attrs import define, field

from tests.browser.driving import Browser
from tests.browser.test_pages import crawl
from tests.e2e.feeds import call_tool
from tests.e2e.process import Lithos, running_lithos
from tests.server.console.injections import PAYLOADS

pytestmark = [pytest.mark.slow, pytest.mark.takes(20)]

#: Minimum number of payloads that each page with texts must show.
ENOUGH: Final = 60
#: Maximum number of page loads until the page shows enough payloads.
TRIES = 5
#: Address without a server. A request to it fails and appears in the browser log.
ELSEWHERE: Final = "127.0.0.1:9"
ADA: Final = "ada <img src=x onerror=window.pwned=1>"
_SVG: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" onload="window.pwned=1"><script>window.pwned=1;alert(1)</script>'
    f'<image href="http://{ELSEWHERE}/a.png"/><a href="javascript:alert(1)"><text y="20">x</text></a></svg>'
)
#: Script that returns the active elements of the page, whether a payload ran, and the payload marks on the
#: page.
_LOOK: Final = r"""
const never = ["iframe", "frame", "object", "embed", "applet", "style", "base", "math", "audio", "video",
  "source", "picture", "template", "marquee", "plaintext", "xmp", "noembed", "foreignobject",
  "animate", "use", "set"];
const leads = ["href", "src", "action", "formaction", "xlink:href", "poster", "data", "cite"];
const mine = ["script", "link", "img", "form", "input", "button", "image"];
const bad = [];
for (const one of document.querySelectorAll("*")) {
  const tag = one.localName.toLowerCase();
  const tell = () => bad.push(one.outerHTML.slice(0, 200));
  if (never.includes(tag) || (tag === "meta" && one.httpEquiv)) tell();
  const is_own = () => one.src.startsWith(`${location.origin}/console/static/`) && !one.textContent;
  if (tag === "script" && !is_own()) tell();
  for (const { name, value } of one.attributes) {
    if (/^on/i.test(name) || ["style", "srcdoc", "srcset", "ping", "background"].includes(name)) tell();
    if (!leads.includes(name)) continue;
    const url = URL.parse(value, location.href);
    if (!url || !["http:", "https:", "mailto:"].includes(url.protocol)) tell();
    else if (mine.includes(tag) && url.origin !== location.origin) tell();
  }
}
const marks = new Set(document.documentElement.outerHTML.match(/m\d{3}m/g));
return {bad: bad.slice(0, 5), ran: typeof window.pwned, marks: [...marks]};
"""
#: Script that types one text after another into the search and waits for the results.
_TYPE_ALL: Final = """
const [texts, done] = arguments;
const field = document.querySelector("main input[type=search]");
const wait = (milliseconds) => new Promise((go) => setTimeout(go, milliseconds));
(async () => {
  const lost = [];
  for (const text of texts) {
    field.value = text;
    field.dispatchEvent(new Event("input", {bubbles: true}));
    const wanted = field.value, until = Date.now() + 5000;
    while (new URLSearchParams(location.search).get("q") !== wanted && Date.now() < until) await wait(10);
    if (Date.now() >= until) lost.push(text);
  }
  done(lost);
})();
"""


def armed(number: int) -> str:
    """Return a payload that can be detected.

    The payload sets `window.pwned`, opens an alert, or requests another address.
    """
    act = "alert(1)" if number % 5 == 4 else "window.pwned=1"
    return PAYLOADS[number].replace("pwned()", act).replace("evil.example", ELSEWHERE)


def line(number: int, room: int = 190) -> str:
    """Return a payload with its mark on one line, for a name or a title."""
    return f"m{number:03}m {armed(number)}"[:room]


NUMBERS: Final = range(len(PAYLOADS))


def bodies() -> list[str]:
    """Return note texts with every payload, once as a separate block and once within a line."""
    return [f"m{number:03}m\n\n{armed(number)}\n\nand {armed(number)} there" for number in NUMBERS]


@define
class Filled:
    """Server on which every writable field contains payloads."""

    server: Lithos
    notes: list[str] = field(factory=list)
    paths: list[str] = field(factory=list)
    tasks: list[str] = field(factory=list)
    hub: str = ""
    receipts: list[str] = field(factory=list)
    refused: dict[str, int] = field(factory=dict)

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its answer.

        If the text is refused, try it again as one line of printable characters.
        """
        answer = call_tool(self.server, tool, **arguments)
        if answer.get("status") == "error" or "code" in answer:
            self.refused[tool] = self.refused.get(tool, 0) + 1
            answer = call_tool(self.server, tool, **_plain(arguments))
            assert answer.get("status") != "error", (tool, arguments, answer)
        return answer

    def fill(self) -> None:
        """Write payloads into every field."""
        self._write_notes()
        self._write_hub()
        self._work()
        for number in NUMBERS[:70]:
            answer = self.call("lithos_retrieve", query=line(number), agent_id=line(number + 1), limit=3)
            assert answer.get("receipt_id"), answer
        for numbers in (NUMBERS, NUMBERS[::-1]):
            everything = "\n".join(line(number, 120) for number in numbers)
            answer = self.call("lithos_retrieve", query=everything, agent_id=ADA, limit=50)
            self.receipts.append(answer["receipt_id"])
        for number in NUMBERS[:70]:
            self.call("lithos_delete", id=self._note(number, "gone ")["id"], agent=line(number + 20))
        for number in NUMBERS[:40]:  # these are only the notes that the overview shows first
            self._note(number, "late ")

    def _note(self, number: int, before: str = "") -> dict[str, Any]:
        other, third = (number + 37) % len(PAYLOADS), (number + 74) % len(PAYLOADS)
        return self.call(
            "lithos_write", title=before + line(number), agent=ADA,
            content=f"{armed(third)}\n\n{line(other, 900)}", tags=[line(other), line(third)],
            metadata={line(other): line(third)}, namespace=line(other),
            summaries={"short": line(third), "long": line(other)},
        )  # fmt: skip

    def _write_notes(self) -> None:
        for number in NUMBERS:
            answer = self._note(number)
            self.notes.append(answer["id"])
            self.paths.append(answer["path"])
            self.call(
                "lithos_agent_register", id=line(number), name=line(number), type=line((number + 5) % 110)
            )
            if number < 3:
                why = line(number + 80)
                self.call("lithos_impact", id=self.notes[-1], action="quarantine", agent=ADA, reason=why)

    def _write_hub(self) -> None:
        texts = bodies()
        links = "\n".join(
            f"[[{path.removesuffix('.md')}|{line(at, 60)}]]" for at, path in enumerate(self.paths)
        )
        answer = self.call(
            "lithos_write", title=f"hub {line(10)}", content=f"{links}\n\nold\n", agent=ADA, tags=["hub"],
            derived_from_ids=self.notes[100:],
        )  # fmt: skip
        self.hub = answer["id"]
        for number in NUMBERS[:64]:
            self.call("lithos_note_edit", id=self.hub, op="append", agent=line(number), text=texts[number])
        self.call("lithos_note_edit", id=self.hub, op="append", agent=ADA, text="\n\n".join(texts[64:]))
        for number, note in enumerate(self.notes):
            edge = line(number) if number % 3 else "contradicts"
            self.call(
                "lithos_edge_upsert", from_id=self.hub, to_id=note, type=edge, weight=0.5, namespace="n",
                provenance_actor=line(number), provenance_type=line(number),
                evidence={line(number): [line(number)]},
            )  # fmt: skip

    def _work(self) -> None:
        for number in NUMBERS[:90]:
            other = (number + 37) % len(PAYLOADS)
            answer = self.call(
                "lithos_task_create", title=line(number), description=armed(number), agent=line(other),
                tags=[line(other)], metadata={"project": line(other), line(number): line(number)},
                depends_on=self.tasks[-1:] if number % 4 == 3 else [],
            )  # fmt: skip
            self.tasks.append(answer["task_id"])
        first = self.tasks[0]
        for number in NUMBERS:
            told = f"{line(number)}\n\n{armed(number)}"
            self.call("lithos_finding_post", task_id=first, agent=line(number), summary=told)
        for number in range(1, 60, 4):
            self.call(
                "lithos_task_claim", task_id=self.tasks[number], agent=line(number), aspect=line(number + 1)
            )
        for number in range(0, 60, 8):
            self.call(
                "lithos_task_complete", task_id=self.tasks[number], agent=line(number),
                outcome=line(number + 2), cited_nodes=[self.hub],
            )  # fmt: skip
        self.call("lithos_task_cancel", task_id=self.tasks[2], agent=line(3), reason=line(4))


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return " ".join("".join(one if one.isprintable() else " " for one in value).split())
    if isinstance(value, Mapping):
        return {_plain(key): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def put_files(folder: Path) -> None:
    """Write notes and images into the vault, as a person or another program does."""
    folder.mkdir(parents=True)
    for number in NUMBERS:
        name = "".join(one for one in line(number, 100) if one not in "/\x00")
        keys = {name: line(number), "source_url": armed(number), "title": f"file {line(number)}",
                "author": line(number), "aliases": [line(number)], "tags": [line(number)],
                "status": line(number)}  # fmt: skip
        head = keys if number % 2 else {"title": f"file {line(number)}"}
        (folder / f"{name}.md").write_text(f"---\n{json.dumps(head)}\n---\n{armed(number)}\n")
        if number % 10 == 0:
            (folder / f"{name}.svg").write_text(_SVG)
            (folder / f"{name} broken.md").write_text(f"---\n{{{armed(number)}: [\n---\nx\n")
    (folder / "plain.svg").write_text(_SVG)
    (folder / "page.html").write_text("<script>window.pwned=1;alert(1)</script>")
    (folder / "pictures.md").write_text(
        "# pictures\n\n![[plain.svg]] ![x](plain.svg) [[page.html]] [y](page.html)\n"
    )


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """Yield one server for all tests in the module."""
    data = tmp_path_factory.mktemp("filled") / "data"
    put_files(data / "knowledge")
    with running_lithos(data) as server:
        filled = Filled(server)
        filled.fill()
        yield filled


@pytest.fixture
def at(window: Browser, filled: Filled) -> Browser:
    """Return the browser, which shows the server with the payloads."""
    return window.visit(filled.server.url)


def inert(browser: Browser) -> set[str]:
    """Assert that no payload on the page was active. Return the marks of the visible payloads."""
    page = f"{browser.driver.current_url} - Failed to load resource: the server responded with a status of 40"
    told = [one for one in browser.complaints() if page not in one]  # the page itself may be an error page
    assert not told, (browser.path, told)  # an open alert would make every later command fail
    assert not (elsewhere := browser.asked_elsewhere()), (browser.path, elsewhere)
    seen = browser.driver.execute_script(_LOOK)
    assert not seen["bad"], (browser.path, seen["bad"])
    assert seen["ran"] == "undefined", browser.path
    browser.checks += 4
    return set(seen["marks"])


def search_for(numbers: Sequence[int]) -> str:
    return quote("\n".join(line(number, 90) for number in numbers))


def pages_of(filled: Filled) -> dict[str, tuple[str, ...]]:
    """Return page addresses by page name. Each of these pages must show enough payloads."""
    hub, ada = f"/console/notes/{filled.hub}", quote(ADA, safe="")
    asked = ("window.pwned", search_for(NUMBERS[:40]))
    found = {
        name: tuple(f"/console/search?q={text}&limit=50&{more}" for text in asked)
        for name, more in {
            "search": "", "retrieve": "mode=retrieve", "compared": "mode=hybrid&against=semantic",
        }.items()
    }  # fmt: skip
    return found | {
        "overview": ("/console/?shown=200",),
        "note": (hub,),
        "diff": (f"{hub}/diff?from=1&to=66",),
        "restore": (f"{hub}/restore?version=1",),
        "graph": (f"/console/graph?note={filled.hub}",),
        "graph of a search": ("/console/graph?q=hub+window.pwned",),
        "notes": ("/console/notes",),
        "deleted": ("/console/notes?view=deleted",),
        "tasks": ("/console/tasks",),
        "ready": ("/console/tasks?column=ready",),
        "task": (f"/console/tasks/{filled.tasks[0]}",),
        "agents": ("/console/agents",),
        "agent": (f"/console/agents/{ada}", f"/console/agents/{ada}?show=writes"),
        "undo": (f"/console/undo?agent={ada}&span=custom&since=2020-01-01T00:00",),
        "receipts": ("/console/receipts",),
        "receipt": tuple(f"/console/receipts/{one}" for one in filled.receipts),
    }


@pytest.mark.deadline(300)
def test_payloads_on_console_pages_have_no_effect(at: Browser, filled: Filled) -> None:
    """behaviour 236"""
    counts: dict[str, int] = {}
    for name, addresses in pages_of(filled).items():
        marks: set[str] = set()
        for number, address in enumerate(addresses * TRIES):  # a busy server may show fewer payloads at first
            if number < len(addresses) or len(marks) < ENOUGH:
                at.open(address)
                marks |= inert(at)
        counts[name] = len(marks)
    assert not {name: count for name, count in counts.items() if count < ENOUGH}, counts


@pytest.mark.nightly
@pytest.mark.deadline(300)
def test_payloads_on_every_linked_kind_of_page_have_no_effect(at: Browser, filled: Filled) -> None:
    """behaviour 236"""
    hub, tasks = f"/console/notes/{filled.hub}", [f"/console/tasks/{one}" for one in filled.tasks]
    starts = (
        *(addresses[0] for addresses in pages_of(filled).values()), "/console/system",
        "/console/system?run=1", "/console/identity", "/console/tasks/new", f"{hub}/quarantine",
        f"{hub}?version=60", tasks[0],
        f"/console/notes/{filled.notes[0]}", f"/console/notes/{filled.notes[0]}/clear", tasks[2],
        f"{tasks[9]}/cancel", f"{tasks[9]}/release?aspect={quote(line(10), safe='')}",
    )  # fmt: skip
    found = crawl(at, starts, most=52, each=1)
    at.complaints()
    at.asked_elsewhere()
    for address in found:
        at.open(address)
        inert(at)
    assert len(found) == 52


@pytest.mark.nightly
def test_payloads_in_addresses_have_no_effect(at: Browser) -> None:
    """behaviour 236: covers filters, unknown ids and file names."""
    filters = (
        "/console/?type={0}&agent={0}&tag={0}",
        "/console/notes?q={0}&tag={0}&path_prefix={0}&author={0}&sort={0}",
        "/console/graph?q={0}&note={0}&by={0}", "/console/tasks?project={0}&tags={0}&agent={0}",
        "/console/tasks?column={0}", "/console/tasks/new?parent={0}&draft={0}",
        "/console/agents?type={0}&q={0}",
        "/console/receipts?q={0}&agent={0}&before={0}", "/console/undo?agent={0}&since={0}&span={0}",
        "/console/search?q={0}&mode=graph&seed_ids={0}&tags={0}&author={0}&threshold={0}&task_id={0}",
        "/console/notes/{0}", "/console/tasks/{0}", "/console/agents/{0}", "/console/receipts/{0}",
        "/console/undo/{0}", "/console/notes/by-path?path={0}", "/console/{0}", "/console/login?next={0}",
    )  # fmt: skip
    asked = 0
    for at_first, address in enumerate(filters):
        for number in NUMBERS[at_first :: len(filters)]:
            at.open(address.format(quote(line(number), safe="")))
            inert(at)
            asked += 1
    assert asked == len(PAYLOADS)


def test_payloads_in_followed_links_and_vault_files_have_no_effect(at: Browser, filled: Filled) -> None:
    """behaviour 236: clicks every link of the note that contains all payloads."""
    hub = f"/console/notes/{filled.hub}"
    at.open(hub)
    count = at.driver.execute_script("return document.querySelectorAll('.prose a').length")
    assert count > ENOUGH
    script = """
      // What a click would lead to is noted, and stopped after all handlers.
      const gone = [];
      addEventListener("click", (event) => {
        const link = event.target.closest("a");
        if (link) { gone.push(link.protocol); event.preventDefault(); }
      });
      for (const one of document.querySelectorAll(".prose *, main button, main summary")) {
        const names = ["mouseover", "focus", "toggle", "error", "load"];
        for (const name of names) one.dispatchEvent(new Event(name));
        if (one.closest(".prose") && one.localName !== "button") one.click();
      }
      return [...new Set(gone)];
    """
    # The link ":" has no target.
    assert set(at.driver.execute_script(script)) <= {"http:", "https:", "mailto:", ":"}
    assert at.path == hub
    inert(at)
    for name in ("plain.svg", "page.html", quote(f"{line(0, 100)}.svg".replace("/", ""), safe="")):
        at.open("/console/system")  # the download of an attachment leaves the previous page open
        at.open(f"/console/files/{name}")
        assert at.driver.execute_script("return typeof window.pwned") == "undefined"
        assert not at.asked_elsewhere()
    at.complaints()
    for address in ("/console/notes/by-path?path=pictures.md", "/console/notes?q=pictures"):
        at.open(address)
        inert(at)


def test_payloads_in_fetched_page_parts_have_no_effect(at: Browser, filled: Filled) -> None:
    """behaviour 236: covers the live feed and the live search."""
    at.open("/console/")
    at.shows("live", "[data-live]")
    for number in NUMBERS[:ENOUGH]:
        filled.call(
            "lithos_task_create", title=f"fed {line(number)}", agent=line(number), tags=[line(number)]
        )
    at.until(lambda: at.text_now("[data-head]").count("fed m") >= 40, "the feed has them")
    fed = inert(at)
    assert len(fed) >= ENOUGH
    at.open("/console/search")
    lost = at.driver.execute_async_script(_TYPE_ALL, [line(number) for number in NUMBERS[::-2]])
    assert not lost, lost
    typed = inert(at)
    assert typed


def test_agent_links_work_with_every_agent_name(at: Browser) -> None:
    at.open("/console/agents")
    script = """
      const done = arguments[0], links = [...document.querySelectorAll("main a.agent")];
      const ask = ({href}) => fetch(href).then((answer) => [href, answer.status, answer.url]);
      const is_wrong = ([href, status, url]) => status !== 200 || href !== url;
      Promise.all(links.map(ask)).then((told) => done(told.filter(is_wrong)));
    """
    assert len(at.all("main a.agent")) > ENOUGH
    assert at.driver.execute_async_script(script) == []
    inert(at)
