"""`lithos evaluate` with files: ranks, failures, baselines, and test files that are made from citations."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import trio

import lithos.upkeep.maintenance.doctor
from lithos.upkeep.evaluation.evaluating import AskingFailed
from tests.app.program import Program, make_program
from tests.e2e.vault import snapshot
from tests.servers import Lithos, load_once, put_note, serving

program = pytest.fixture(make_program)

PORTS = "- question: Which port does the server use?\n  expect: [net/ports.md]\n"


@pytest.fixture(autouse=True)
def house(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("LITHOS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LITHOS_SEARCH__TIER", "static")
    put_note(program.data, "net/ports.md", "# Ports\n\nThe server uses port 8765.\n")
    put_note(program.data, "bread.md", "# Bread\n\nKnead the dough and bake it.\n")
    put_note(program.data, "raft.md", "# Raft\n\nA leader is elected by a majority of votes.\n")
    put_note(program.data, "old/raft.md", "# Raft\n\nSuperseded text on elected leaders.\n")


def write(program: Program, content: str, name: str = "tests.yaml") -> str:
    path = program.data.parent / f"{program.data.name}-{name}"
    path.write_text(content, encoding="utf-8")
    return str(path)


def judged(program: Program, content: str, *options: str, code: int) -> Any:
    done = program.run("evaluate", write(program, content), "--json", *options)
    assert done.code == code, done.out + done.err
    return done.answer


def test_question_passes_when_an_expected_note_ranks_high_enough(program: Program) -> None:
    """Behaviour 234: expected notes are given by path, id or title. Checks ranks and measures."""
    before = snapshot(program.data)
    ids = judged(program, PORTS, code=0)["questions"][0]["expect"][0]["id"]
    for name in ("net/ports.md", "net/ports", ids, "Ports", "ports"):
        told = judged(program, f"- question: server port\n  within: 1\n  expect: ['{name}']\n", code=0)
        (question,) = told["questions"]
        assert (question["rank"], question["passed"], question["reasons"]) == (1, True, [])
        assert question["expect"] == [
            {"asked": name, "id": ids, "path": "net/ports.md", "title": "Ports", "rank": 1}
        ]
        assert told["scores"] == {"hit_at_k": 1, "recall_at_k": 1, "mrr": 1, "ndcg_at_10": 1}
    assert snapshot(program.data) == before, "reading the files must change nothing, nor make any"


def test_evaluation_reads_a_vault_like_the_server(
    program: Program, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Behaviour 234: covers links and files that the owner ignores. The vault is not changed."""
    vault = tmp_path_factory.mktemp("vault")
    for path, text in {
        "net/ports.md": "The server uses port 8765.\n",
        "templates/ports.md": "The server uses port NNNN.\n",
        ".obsidian/app.json": '{"userIgnoreFilters": ["templates/"]}',
        "picture.png": "no note",
    }.items():
        (vault / path).parent.mkdir(exist_ok=True)
        (vault / path).write_text(text)
    (vault / "linked").symlink_to("net")
    before = snapshot(vault)
    content = "- question: server port\n  expect: [ports]\n  forbid: [templates/ports.md]\n"
    told = judged(program, content, "--vault", str(vault), code=0)
    (question,) = told["questions"]
    assert (question["expect"][0]["path"], question["remarks"]) == (
        "net/ports.md", ["forbidden note does not exist: templates/ports.md"]
    )  # fmt: skip
    assert snapshot(vault) == before


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ("expect: [bread.md]\n  within: 1", "rank 2, wanted within 1"),
        ("expect: [gone.md]", "no such note: gone.md"),
        ("expect: [net/ports.md, gone.md]", "no such note: gone.md"),
        ("expect: [Raft]", "ambiguous title 'Raft': old/raft.md, raft.md; give the path"),
        ("expect: [bread.md]\n  tags: [nowhere]", "expected note not among the first 10"),
        ("expect: [net/ports.md]\n  forbid: [Ports]", "forbidden note at rank 1: Ports"),
    ],
)
def test_failed_evaluation_reports_its_reason_and_exits_with_1(
    program: Program, item: str, reason: str
) -> None:
    """Behaviour 234."""
    put_note(program.data, "bread.md", "# Bread\n\nKnead it. No port needed, nor server.\n")
    told = judged(program, f"- question: server port\n  {item}\n", code=1)
    assert reason in told["questions"][0]["reasons"]
    assert (told["passed"], told["failed"]) == (0, 1)


def test_result_table_shows_ranks_and_escapes_control_characters(program: Program) -> None:
    """Behaviour 234."""
    put_note(program.data, "evil.md", '---\ntitle: "Red \\e[31m"\n---\nA door.\n')
    content = PORTS + '- question: "door \\e[31m"\n  expect: [evil.md]\n  forbid: ["x \\e[2J.md"]\n'
    done = program.run("evaluate", write(program, content))
    assert done.code == 0
    assert "\x1b" not in done.out + done.err
    lines = done.out.splitlines()
    assert lines[0].split() == ["rank", "within", "result", "question"]
    assert lines[1].split(maxsplit=3) == ["1", "5", "pass", "Which port does the server use?"]
    assert "door \\x1b[31m" in done.out
    assert "forbidden note does not exist: x \\x1b[2J.md" in done.out
    assert "2 of 2 passed (mode hybrid, 10 rows looked at)" in done.out
    assert "hit@5 1.000  recall@5 1.000  MRR 1.000  nDCG@10 1.000" in done.out


def test_mode_option_overrides_the_modes_of_questions(program: Program) -> None:
    content = PORTS + "- question: bake\n  expect: [bread.md]\n  mode: fulltext\n"
    modes = [each["mode"] for each in judged(program, content, code=0)["questions"]]
    assert modes == ["hybrid", "fulltext"]
    for mode in ("semantic", "graph", "retrieve", "fulltext"):
        told = judged(program, content, "--mode", mode, code=0)
        assert (told["mode"], [each["mode"] for each in told["questions"]]) == (mode, [mode, mode])


def test_within_and_k_options_set_the_search_depth(program: Program) -> None:
    for number in range(30):
        put_note(program.data, f"many/{number}.md", f"# Port {number}\n\nA server port.\n")
    told = judged(program, PORTS.replace("net/", "net/") + "  within: 20\n", "--k", "30", code=0)
    assert (told["k"], told["depth"]) == (30, 30)


def test_result_worse_than_the_baseline_makes_a_test_fail(
    program: Program, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Behaviour 234."""
    baseline = tmp_path_factory.mktemp("kept") / "base.json"
    content = PORTS + "- question: dough\n  expect: [bread.md]\n"
    told = judged(program, content, "--save", str(baseline), code=0)
    assert told["saved"] == str(baseline)
    assert judged(program, content, "--against", str(baseline), code=0)["against"]["same"] == 2
    put_note(program.data, "dough.md", "# Dough\n\nDough dough: dough of dough, kneaded dough.\n")
    told = judged(program, content, "--against", str(baseline), code=1)
    assert told["failed"] == 0
    (worse,) = told["against"]["worse"]
    assert (worse["question"], worse["before"], worse["now"]) == ("dough", 1, 2)
    done = program.run("evaluate", write(program, content), "--against", str(baseline))
    assert done.code == 1
    assert "  worse: dough: rank 1 -> 2" in done.out.splitlines()
    told = judged(program, "- question: bread\n  expect: [bread.md]\n", "--against", str(baseline), code=0)
    assert (told["against"]["only_now"], len(told["against"]["only_before"])) == (["bread"], 2)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "The file has no questions"),
        (b"- question: a\n  expect: [x\n", "is not valid YAML"),
        (b"- question: a\n  expct: [x]\n", "did you mean `expect`?"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"-" * 3_000_000, "at most 2,097,152"),
        (None, "There is no file"),
    ],
)
def test_unusable_test_file_is_a_usage_error(
    program: Program, tmp_path: Path, content: bytes | None, told: str
) -> None:
    """Behaviour 234: an empty file must not count as a success."""
    file = tmp_path / "given.yaml"
    if content is not None:
        file.write_bytes(content)
    done = program.run("evaluate", str(file))
    assert (done.code, done.out) == (2, "")
    assert str(file) in done.err
    assert told in done.err


def test_unreadable_test_file_is_reported(program: Program, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "no question" in program.run("evaluate", str(pipe)).err  # The command does not wait for a writer.
    assert "cannot be read" in program.run("evaluate", str(tmp_path)).err
    locked = tmp_path / "locked.yaml"
    locked.write_text(PORTS)
    locked.chmod(0)
    if not os.access(locked, os.R_OK):  # The superuser can read every file.
        assert "cannot be read" in program.run("evaluate", str(locked)).err


def test_invalid_baseline_is_a_usage_error(program: Program, tmp_path: Path) -> None:
    file = write(program, PORTS)
    for content in (None, "{", "{}"):
        path = tmp_path / "base.json"
        if content is not None:
            path.write_text(content)
        done = program.run("evaluate", file, "--against", str(path))
        assert (done.code, done.out) == (2, "")
        assert "Save one with --save" in done.err


async def cite(lithos: Lithos, question: str, note: str, agent: str = "ann") -> None:
    task = (await lithos.call("lithos_task_create", title=question, agent=agent))["task_id"]
    found = await lithos.call("lithos_retrieve", query=question, agent_id=agent, task_id=task)
    assert note in [row["id"] for row in found["results"]]
    await lithos.call("lithos_task_complete", task_id=task, agent=agent, cited_nodes=[note])


def learn(data: Path) -> None:
    async def run() -> None:
        async with serving(data) as lithos:
            rows = (await lithos.call("lithos_list"))["items"]
            ids = {row["path"]: row["id"] for row in rows}
            hidden = {"access_scope": "agent_private"}
            secret = await lithos.create("Ann's secret", "The secret code word.", **hidden)
            gone = await lithos.create("Going", "It goes away soon.")
            await cite(lithos, "who is the   leader?", ids["raft.md"])
            await cite(lithos, "who is the leader?", ids["old/raft.md"])
            await cite(lithos, "what goes away soon?", gone)
            await cite(lithos, "what is the secret code word?", secret, agent="tester")
            await cite(lithos, "port: which?\nof the server # 1", ids["net/ports.md"])
            await lithos.call("lithos_delete", id=gone, agent="tester")

    trio.run(run)


@pytest.mark.parametrize("name", ["made.yaml", "made.jsonl"])
def test_citations_of_agents_become_a_test_file_that_runs(
    program: Program, tmp_path: Path, name: str
) -> None:
    """Behaviour 234: each question is listed once, newest first.

    Private notes and deleted notes are left out.
    """
    learn(program.data)
    before = snapshot(program.data)
    made = tmp_path / "made" / name
    made.parent.mkdir()
    done = program.run("evaluate", str(made), "--from-receipts", "--json")
    assert (done.code, done.answer) == (0, {"file": str(made), "questions": 2}), done.err
    text = made.read_text()
    assert "secret" not in text
    ran = program.run("evaluate", str(made), "--json")
    assert ran.code == 0, ran.out
    asked = [(each["question"], len(each["expect"])) for each in ran.answer["questions"]]
    assert asked == [("port: which? of the server # 1", 1), ("who is the leader?", 2)]
    assert {path: what for path, what in snapshot(program.data).items() if path != f"made/{name}"} == before
    again = program.run("evaluate", str(made), "--from-receipts")
    assert again.code == 2
    assert "already exists and was not changed" in again.err
    assert made.read_text() == text
    assert list(made.parent.iterdir()) == [made]


def test_missing_citations_are_reported_and_create_no_file(program: Program, tmp_path: Path) -> None:
    done = program.run("evaluate", str(tmp_path / "made.yaml"), "--from-receipts")
    assert done.code == 1
    assert "No agent has cited" in done.err
    assert not (tmp_path / "made.yaml").exists()
    done = program.run("evaluate", str(tmp_path / "made.yaml"), "--from-receipts", "--save", "x")
    assert (done.code, "cannot be combined with --save" in done.err) == (2, True)


def doctor(program: Program, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("LITHOS_PORT", "0")
    monkeypatch.setenv("LITHOS_INDEX__WATCH_MODE", "poll")
    monkeypatch.setattr(lithos.upkeep.maintenance.doctor, "load_embedder", load_once)
    done = program.run("doctor", "--json")
    return {check["name"]: check for check in done.answer["checks"]} | {"code": done.code}


def test_doctor_runs_the_test_file_of_the_data_directory(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 234: if the file does not exist, doctor does not mention it."""
    assert "knowledge_tests" not in doctor(program, monkeypatch)
    tests = program.data / "knowledge-tests.yaml"
    tests.write_text(PORTS)
    found = doctor(program, monkeypatch)
    assert found["code"] == 0
    assert found["knowledge_tests"]["message"] == "1 of 1 knowledge tests pass."
    tests.write_text(PORTS + "- question: dough\n  expect: [gone.md]\n")
    found = doctor(program, monkeypatch)
    assert found["code"] == 1
    told = found["knowledge_tests"]
    assert told["status"] == "fail"
    assert "1 of 2 knowledge tests pass. These tests fail: 'dough'." in told["message"]
    assert f"lithos evaluate {tests}" in told["message"]
    tests.write_text("")
    assert "The file has no questions" in doctor(program, monkeypatch)["knowledge_tests"]["message"]


def test_evaluation_reads_and_writes_only_regular_files(
    program: Program, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Pipes do not block, and only files are overwritten. Errors are reported before the first question."""
    folder = tmp_path_factory.mktemp("odd")
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to("loop")
    (folder / "kept.json").write_text("")
    (folder / "link.json").symlink_to("kept.json")
    tests = write(program, PORTS)
    for name in ("pipe", "folder", "loop", "missing"):
        assert program.run("evaluate", str(folder / name)).code == 2
        assert program.run("evaluate", tests, "--against", str(folder / name)).code == 2
    before = {path: path.lstat().st_ino for path in folder.iterdir()}
    for name in ("pipe", "folder", "loop", "missing/new.json"):
        done = program.run("evaluate", tests, "--save", str(folder / name))
        assert (done.code, done.out) == (2, ""), name
    assert {path: path.lstat().st_ino for path in folder.iterdir()} == before
    assert program.run("evaluate", tests, "--save", str(folder / "link.json")).code == 0
    assert (folder / "link.json").is_symlink()
    assert '"lithos_baseline"' in (folder / "kept.json").read_text()


def test_refused_question_is_reported_in_one_sentence(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's tasks raise errors in exception groups."""
    hostile = "- question: port\n  expect: ['../../../etc/passwd', '/etc/passwd', '(a+)+$', '%2e%2e/']\n"
    assert "no such note" in program.run("evaluate", write(program, hostile)).out

    async def refuse(*_: object) -> None:
        raise AskingFailed("not today")

    monkeypatch.setattr("lithos.upkeep.evaluation.evaluating._Asking._ask", refuse)
    done = program.run("evaluate", write(program, PORTS))
    assert (done.code, "The tests could not be run: not today" in done.err) == (1, True)
    (program.data / "knowledge-tests.yaml").write_text(PORTS)
    assert "The knowledge tests could not be run: not today" in program.run("doctor").out
