"""behaviour 293: a console below `/v/work` equals a single-vault server's console, except for URLs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import httpx2
import pytest
from attrs import evolve

from lithos.kernel.values.principals import Principal
from lithos.server.console.sessions import COOKIE
from lithos.server.http.ports import VaultLink
from tests.access.test_tokens import read_to_end
from tests.server.console import visiting as visiting_module
from tests.server.console.pages import check, parse
from tests.server.console.prefixing import BASE, prefixed
from tests.server.console.proposing import bind, propose_text
from tests.server.console.test_rights import prepare, routes
from tests.server.console.visiting import Visitor, browser, form_of, make_token, visiting
from tests.servers import Clock

#: Attributes that contain URLs to which a page links, submits or sends requests.
_ADDRESSES: Final = ("href", "src", "action", "formaction", "data-address")
#: Parts that differ between two loads of a page: the form key, and the number of reads of a note.
_ONCE: Final = re.compile(r'name="once" value="[^"]*"|[0-9]+ times?,')
_NUMBER: Final = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
#: Pages that show times and sizes of the process.
CHANGING: Final = frozenset({"/system", "/state", "/"})
QUOTING: Final = 'Says "/console/x", \'/console/x\', `/console/x` and href="/console/x" here.'


def bare(text: str, rule: str) -> str:
    """Return a page without the parts that differ on each load."""
    text = _ONCE.sub("", text)
    return _NUMBER.sub("0", text) if rule in CHANGING else text


def plain_of(text: str) -> str:
    """Return a page from which the prefix is removed."""
    return text.replace(f'"{BASE}/console', '"/console')


def judge_addresses(text: str, where: str) -> int:
    """Assert that every URL stays inside the vault. Return the number of URLs."""
    found = [one.attributes[name] for name in _ADDRESSES for one in parse(text).has(name)]
    for address in found:
        is_relative = not address.startswith("/")
        assert is_relative or address.startswith(f"{BASE}/console"), (where, address)
    return len(found)


async def enter(person: Visitor, client: httpx2.AsyncClient) -> str:
    """Start a session below the prefix, and continue without the prefix. Return the id of the session."""
    answer = await client.get(f"{BASE}/console/")
    assert answer.status_code == 200
    assert "Path=/v/work/console;" in answer.headers["set-cookie"] + ";"
    session_id = client.cookies.get(COOKIE)
    assert session_id
    client.cookies.clear()
    return session_id


@pytest.mark.needs("proposals")
async def test_routes_below_the_prefix_equal_routes_without_it(tmp_path: Path) -> None:
    """behaviour 293: links, forms and redirects stay inside the vault. All other bytes are equal."""
    with prefixed():
        async with visiting(tmp_path, clock=Clock()) as person, browser(person.url) as client:
            made = await prepare(person)
            made["quoting"] = await person.lithos.create("Quoting", QUOTING)
            cookie = {"cookie": f"{COOKIE}={await enter(person, client)}"}
            paths = [(one.rule, f"/console{one.path}") for one in routes(made) if one.get or one.leads]
            paths += [("/notes/<note_id>", f"/console/notes/{made['quoting']}"), ("/console", "/console")]
            count = 0
            for rule, path in paths:
                plain = await client.get(path, headers=cookie)
                below = await client.get(f"{BASE}{path}", headers=cookie)
                assert below.status_code == plain.status_code, (path, below.text[:500])
                if "location" in plain.headers:
                    assert below.headers["location"] == BASE + plain.headers["location"], path
                if plain.headers["content-type"].startswith("text/html"):
                    count += judge_addresses(below.text, path)
                    assert int(below.headers["content-length"]) == len(below.content)
                    assert bare(plain_of(below.text), rule) == bare(plain.text, rule), path
                else:
                    assert below.content == plain.content, path
                    assert below.headers["content-length"] == plain.headers["content-length"], path
            assert count > 1_000


@pytest.mark.needs("proposals")
async def test_note_text_below_the_prefix_is_unchanged(tmp_path: Path) -> None:
    """behaviour 293: URLs in notes, titles and fields are text, so they are not changed."""
    title = '"/console/x" `/console/x`'
    with prefixed():
        async with visiting(tmp_path) as person:
            note = await person.lithos.create(title, f'{QUOTING}\n\n```\n<a href="/console/x">\n```\n')
            bind(person.lithos, "bot")
            proposal = await propose_text(person.lithos, note, f"{QUOTING} More.")
            shown = check(plain_of(await person.page(f"{BASE}/console/notes/{note}")))
            assert QUOTING.replace("`", "") in shown.text
            assert '<a href="/console/x">' in shown.text
            found = await person.page(f"{BASE}/console/search?q=%22/console/x%22")
            assert BASE not in check(plain_of(found)).text
            review = await person.page(f"{BASE}/console/review/{proposal}")
            (edited,) = parse(review).all("textarea", name="text")
            assert f"{QUOTING} More." in edited.text


async def test_login_below_the_prefix_leads_to_the_requested_page(tmp_path: Path) -> None:
    """behaviour 293: `next`, the cookie, changes and the logout stay inside the vault."""
    with prefixed():
        async with visiting(tmp_path, token="secret") as person:
            client = person.client
            answer = await client.get(f"{BASE}/console/notes?q=a")
            where = answer.headers["location"]
            assert where == f"{BASE}/console/login?next=/console/notes%3Fq%3Da"
            action, fields = form_of((await client.get(where)).text)
            assert action == f"{BASE}/console/login"
            headers = {"origin": person.url, "sec-fetch-site": "same-origin"}
            given = fields | {"token": "secret", "agent": "ann"}
            answer = await client.post(action, data=given, headers=headers)
            assert (answer.status_code, answer.headers["location"]) == (303, f"{BASE}/console/notes?q=a")
            assert (await client.get(answer.headers["location"])).status_code == 200
            # The same browser has no session in the console of the other vault.
            assert (await client.get("/console/notes")).status_code == 302
            made = await person.submit(f"{BASE}/console/tasks/new", title="From below")
            assert str(made.url).startswith(f"{person.url}{BASE}/console/tasks/")
            page = (await client.get(f"{BASE}/console/")).text
            action, fields = form_of(page, f"{BASE}/console/logout", all_forms=True)
            answer = await client.post(action, data=fields)
            assert answer.headers["location"] == f"{BASE}/console/login"
            assert f"Path={BASE}/console" in answer.headers["set-cookie"]
            assert (await client.get(f"{BASE}/console/")).status_code == 302


async def test_vault_feed_streams_events_below_the_prefix(tmp_path: Path) -> None:
    """behaviour 293: events arrive unchanged."""
    with prefixed():
        async with visiting(tmp_path) as person:
            await person.page(f"{BASE}/console/")
            async with person.client.stream("GET", f"{BASE}/console/events") as stream:
                assert stream.headers["content-type"].startswith("text/event-stream")
                await person.lithos.create('"/console/x"')
                await make_token(person, "boss", "admin")  # the first token ends open access
                assert b'\\"/console/x\\"' in await read_to_end(stream)


LINKS: Final = (VaultLink("home", "/v/home/console/"), VaultLink("work", "/v/work/console/", is_current=True))


async def test_vault_switcher_lists_the_vaults_of_the_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 293: a page links to the overview and to each vault of the token."""
    asked: list[Principal] = []

    def vaults(principal: Principal) -> tuple[VaultLink, ...]:
        asked.append(principal)
        return LINKS if principal.rights == "admin" else LINKS[1:]

    monkeypatch.setattr(visiting_module, "SETTINGS", evolve(visiting_module.SETTINGS, vaults=vaults))
    with prefixed():
        async with visiting(tmp_path) as person:
            chief = await make_token(person, "chief", "admin")
            reader = await make_token(person, "reader", "read")
            login = await person.page(f"{BASE}/console/login")
            assert "/v/home" not in login
            for secret, shows in ((chief, True), (reader, False)):
                async with browser(person.url) as client:
                    await client.post(f"{BASE}/console/login", data={"token": secret})
                    text = (await client.get(f"{BASE}/console/")).text
                    assert ("/v/home/console/" in text) is shows
                    assert ('aria-label="Vaults"' in text) is shows
                    assert ('<a data-outside href="/console/">All vaults</a>' in text) is shows
                    assert (
                        '<a data-outside href="/v/work/console/" aria-current="true">work</a>' in text
                    ) is shows
    assert {each.name for each in asked} == {"chief", "reader"}
