"""The readers of public collections, on made-up samples in the published formats."""

import json
from pathlib import Path

import pytest

from bench import public
from bench.public_sets import read_beam, read_cosqa, read_locomo

LOCOMO = [
    {
        "conversation": {
            "speaker_a": "Ann", "speaker_b": "Bo",
            "session_10_date_time": "2 May 2023",
            "session_10": [{"speaker": "Bo", "dia_id": "D10:1", "text": "The kiln arrived."}],
            "session_2_date_time": "1 May 2023",
            "session_2": [
                {"speaker": "Ann", "dia_id": "D2:1", "text": "I paint boats."},
                {"speaker": "Bo", "dia_id": "D2:2", "text": "I bake bread."},
            ],
        },
        "qa": [
            {"question": "What does Ann paint?", "answer": "boats", "evidence": ["D2:1"], "category": 4},
            {"question": "Who has a kiln, who paints boats?", "answer": "kiln", "evidence": ["D10:1; D2:2"],
             "category": 1},
            {"question": "What does Bo paint?", "evidence": ["D2:1"], "category": 5},
            {"question": "And without evidence?", "answer": "-", "evidence": [], "category": 3},
            {"question": "Evidence that is lost?", "answer": "-", "evidence": ["D99:1"], "category": 3},
        ],
    }
]  # fmt: skip
SAID = "My sprint ends on Friday. ->-> 1,1"
CHAT = [
    {
        "batch_number": 1,
        "turns": [
            [
                {"role": "user", "id": 0, "time_anchor": "March-15-2024", "content": SAID},
                {"role": "assistant", "id": 1, "content": "Noted."},
            ],
            [{"role": "user", "id": 2, "content": "The port is 5000 ->-> 1,2"}],
        ],
    }
]  # fmt: skip
PROBES = {
    "abstention": [{"question": "What is my name?"}],
    "knowledge_update": [
        {"question": "Which port?", "source_chat_ids": {"original_info": [2], "updated_info": [0]}}
    ],
    "information_extraction": [{"question": "When does the sprint end?", "source_chat_ids": [0]}],
}


@pytest.fixture
def published(tmp_path: Path) -> Path:
    chat = tmp_path / "100K" / "1"
    (chat / "probing_questions").mkdir(parents=True)
    for path, content in (
        (tmp_path / "locomo10.json", LOCOMO),
        (chat / "chat.json", CHAT),
        (chat / "probing_questions" / "probing_questions.json", PROBES),
        (
            tmp_path / "code_idx_map.txt",
            {"def add(a, b):\n    return a + b": 0, "def pop(x):\n    x.pop()": 7},
        ),
        (
            tmp_path / "cosqa-retrieval-test-500.json",
            [{"idx": "cosqa-1", "doc": "python sum of two", "code": "", "retrieval_idx": 0}],
        ),
    ):
        path.write_text(json.dumps(content), encoding="utf-8")
    return tmp_path


def test_locomo_is_read_in_the_order_of_its_sessions(published: Path) -> None:
    (found,) = read_locomo(published / "locomo10.json", "sessions")
    assert [chunk.doc for chunk in found.chunks] == ["session_2", "session_10"]
    assert found.chunks[0].text == "Date: 1 May 2023\n\nAnn: I paint boats.\n\nBo: I bake bread."
    assert [(query.id, query.kind, dict(query.grades)) for query in found.queries] == [
        ("0-0", "4", {"session_2": 1}),
        ("0-1", "1", {"session_10": 1, "session_2": 1}),
    ]
    (turns,) = read_locomo(published / "locomo10.json", "turns")
    assert dict(turns.queries[1].grades) == {"D10:1": 1, "D2:2": 1}


def test_beam_is_read_with_the_evidence_of_its_probes(published: Path) -> None:
    (found,) = read_beam(published / "100K", "sessions")
    assert [chunk.text for chunk in found.chunks] == [
        "Date: March-15-2024\n\nuser: My sprint ends on Friday.\n\nassistant: Noted.",
        "user: The port is 5000",
    ]
    assert {query.kind: dict(query.grades) for query in found.queries} == {
        "knowledge_update": {"session 1": 1, "session 2": 1},
        "information_extraction": {"session 1": 1},
    }


def test_cosqa_has_one_note_per_function(published: Path) -> None:
    (found,) = read_cosqa(published)
    assert [chunk.doc for chunk in found.chunks] == ["0", "7"]
    assert dict(found.queries[0].grades) == {"0": 1}


def test_a_file_that_is_not_json_is_named(published: Path) -> None:
    (published / "locomo10.json").write_text("<html>", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"locomo10\.json cannot be read as JSON"):
        list(read_locomo(published / "locomo10.json", "turns"))


def test_every_question_is_measured_and_kept(
    published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [
        "--locomo",
        str(published / "locomo10.json"),
        "--modes",
        "hybrid",
        "--out",
        str(tmp_path / "out"),
    ]
    monkeypatch.setattr("sys.argv", ["bench.public", *arguments])
    public.main()
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert [(row["kind"], row["queries"]) for row in rows] == [("all", 2), ("1", 1), ("4", 1)]
    assert rows[0]["figures"]["recall"] == 100
    kept = (tmp_path / "out" / "static-locomo-sessions-hybrid.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["right"] for line in kept] == [["session_2"], ["session_10", "session_2"]]
