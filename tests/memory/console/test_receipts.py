"""Receipt list and the page of one receipt (docs/spec/console.md §2)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import trio

from lithos.memory.model.memory import FinalNode, Receipt
from lithos.memory.rows import receipts as receipt_rows
from lithos.memory.rows.receipts import ReceiptFilter
from lithos.memory.rows.stats import StatsStore
from tests.server.console.injections import HOSTILE
from tests.server.console.visiting import Visitor, visiting

NOW = datetime(2026, 1, 2, tzinfo=UTC)


async def retrieve(person: Visitor, query: str = "zebra stripes", **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = await person.lithos.call(
        "lithos_retrieve", **{"query": query, "agent_id": "ann"} | more
    )
    return answer


async def make_task(person: Visitor, title: str = "Find out") -> str:
    answer = await person.lithos.call("lithos_task_create", title=title, agent="ann")
    return str(answer["task_id"])


async def test_receipt_page_shows_the_question_scouts_and_results(tmp_path: Path) -> None:
    """behaviour 235: the receipt page renders."""
    async with visiting(tmp_path, settled=True) as person:
        one = await person.lithos.create("Zebra", "stripes of a zebra")
        other = await person.lithos.create("Horse", "a zebra without stripes")
        edge = {"type": "contradicts", "weight": 1.0, "namespace": "default"}
        await person.lithos.call("lithos_edge_upsert", from_id=one, to_id=other, **edge)
        task = await make_task(person)
        answer = await retrieve(person, task_id=task, surface_conflicts=True)
        page = await person.look(f"/console/receipts/{answer['receipt_id']}")
        for text in ("zebra stripes", "Zebra", "Horse", "vector", "lexical", "Find out", "contradicts"):
            assert text in page.all("main")[0].text
        assert f"/console/notes/{one}" in page.links
        assert f"/console/tasks/{task}" in page.links
        assert "/console/agents/ann" in page.links
        assert "there is no feedback yet" in page.text


async def test_receipt_page_shows_later_citations(tmp_path: Path) -> None:
    async with visiting(tmp_path, settled=True) as person:
        call = person.lithos.call
        ids = [await person.lithos.create(f"Zebra {n}", f"zebra stripes {n}") for n in range(3)]
        elsewhere = await person.lithos.create("Unrelated", "noodles")
        task = await make_task(person)
        other = await retrieve(person, "zebra")
        before = await retrieve(person, "zebra 1", task_id=task)
        answer = await retrieve(person, task_id=task, limit=3)
        await call(
            "lithos_task_complete",
            task_id=task,
            agent="ann",
            cited_nodes=[ids[0], elsewhere],
            misleading_nodes=[ids[1]],
            receipt_id=answer["receipt_id"],
        )
        address = f"/console/receipts/{answer['receipt_id']}"
        page = await person.look(address)
        verdicts = {
            one.text.split("remembered")[0].strip()
            for one in page.all(class_="badge")
            if one.text in ("cited", "misleading", "not cited")
        }
        assert verdicts == {"cited", "misleading", "not cited"}
        assert "of 3 notes, 1 cited and 1 marked as misleading" in page.text
        assert "Unrelated" in page.text
        while "remembered: 1.0 for" not in await person.page(address):
            await trio.sleep(0.02)  # the feedback is learned after the completion
        elder = await person.look(f"/console/receipts/{before['receipt_id']}")
        assert "about" in elder.text
        assert address in elder.links
        assert "This retrieval names no task" in await person.page(f"/console/receipts/{other['receipt_id']}")
        # A completion without a receipt id refers to the newest receipt.
        task = await make_task(person)
        answer = await retrieve(person, task_id=task)
        await call("lithos_task_complete", task_id=task, agent="ann", cited_nodes=ids[:1])
        assert "1 cited" in await person.page(f"/console/receipts/{answer['receipt_id']}")
        silent = await make_task(person)
        answer = await retrieve(person, task_id=silent)
        await call("lithos_task_complete", task_id=silent, agent="ann")
        assert "without feedback" in await person.page(f"/console/receipts/{answer['receipt_id']}")


async def test_receipt_list_is_sorted_newest_first_filtered_and_paged(tmp_path: Path) -> None:
    """Private retrievals are marked. Retrievals of deleted notes are still listed."""
    async with visiting(tmp_path, settled=True) as person:
        assert "No agent has retrieved anything yet." in await person.page("/console/receipts")
        zebra = await person.lithos.create("Zebra", "zebra stripes")
        await person.lithos.create("Noodle", "noodle soup")
        task = await make_task(person)
        await retrieve(person, "zebra stripes")
        await retrieve(person, "noodle soup", agent_id="ben", task_id=task, limit=1)

        async def questions(**args: str) -> list[str]:
            page = await person.look(f"/console/receipts?{urlencode(args)}")
            return [one.text for one in page.all("a") if "/receipts/rcpt_" in one.attributes["href"]]

        both = ["noodle soup", "zebra stripes"]
        told: list[tuple[dict[str, str], list[str]]] = [
            ({}, both), ({"agent": "ann"}, both[1:]), ({"task": task}, both[:1]), ({"note": zebra}, both[1:]),
            ({"agent": "ben", "note": zebra}, []), ({"before": "2"}, both[1:]), ({"before": "-1"}, both),
            ({"before": "x"}, both), ({"before": "9" * 40}, both),
        ]  # fmt: skip
        assert [(args, await questions(**args)) for args, _ in told] == told
        note = await person.lithos.create("Diary", "lion", agent="ann", access_scope="agent_private")
        address = f"/console/receipts/{(await retrieve(person, 'lion'))['receipt_id']}"
        assert "This receipt is private" in await person.page(address)
        assert ">private<" in await person.page("/console/receipts")
        await person.lithos.call("lithos_delete", id=note, agent="ann")
        assert "deleted since" in await person.page(address)
        await person.look("/console/receipts/rcpt_0", 404)


def test_receipt_pages_are_read_through_an_index(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(receipt_rows, "SCANNED", 10)
    store = StatsStore.open(tmp_path / "stats.db", NOW)
    store.try_writing()
    with store.transaction():
        for number in range(25):
            nodes = (FinalNode("rare" if number == 3 else f"n{number}", (), ()),)
            receipt = Receipt(
                id=f"rcpt_{number}", ts=NOW, query=f"q{number}", limit=5, final_nodes=nodes,
                agent_id="ann" if number % 2 else "ben", task_id="t" if number == 7 else None,
            )  # fmt: skip
            store.writing.receipts.add(receipt)

    def read(before: int | None = None, most: int = 10, **wanted: str) -> tuple[list[str], int | None]:
        page = store.reading.receipts.page(ReceiptFilter(**wanted), before, most)
        return [receipt.query for receipt in page.receipts], page.before

    first, after = read()
    assert first == [f"q{number}" for number in range(24, 14, -1)]
    second, after = read(after)
    assert second == [f"q{number}" for number in range(14, 4, -1)]
    assert read(after) == ([f"q{number}" for number in range(4, -1, -1)], None)
    assert read(task_id="t") == (["q7"], None)
    assert read(agent_id="ann", most=2)[0] == ["q23", "q21"]
    # The search for a note reads ten receipts at a time.
    looked, before = [], None
    for _ in range(3):
        found, before = read(before, note_id="rare")
        looked.append(found)
    assert (looked, before) == ([[], [], ["q3"]], None)
    for where in ("agent_id='ann'", "task_id='t'"):
        sql = f"EXPLAIN QUERY PLAN SELECT * FROM receipts WHERE rowid<9 AND {where} ORDER BY rowid DESC"
        plan = str(store._writer.execute(sql).fetchall())
        assert "USING INDEX receipts_" in plan
    store.close()


async def test_hostile_questions_agents_and_titles_do_not_run_scripts(tmp_path: Path) -> None:
    """behaviour 236: the receipt pages show hostile text as plain text."""
    async with visiting(tmp_path, settled=True) as person:
        for number, text in enumerate(HOSTILE):
            await person.lithos.write(f"{text} {number}", f"zebra {text}")
        task = await make_task(person, HOSTILE[0])
        for text in HOSTILE:
            answer = await retrieve(person, f"zebra {text}", agent_id=text, task_id=task)
            await person.look(f"/console/receipts/{answer['receipt_id']}")
            await person.look(f"/console/receipts?{urlencode({'agent': text, 'note': text})}")
            await person.look(f"/console/receipts/{urlencode({'': text})}", 404)
        page = await person.look("/console/receipts")
        assert len([link for link in page.links if "/receipts/rcpt_" in link]) == len(HOSTILE)
