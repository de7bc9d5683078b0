"""Generated conversations: the same for a seed, with answers where the questions say."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.conversations import LAYOUTS, as_collection
from bench.dialogues import CONVERSATIONS, SESSIONS, TURNS, Conversation, generate_conversations


@pytest.fixture(scope="module")
def conversations() -> list[Conversation]:
    return generate_conversations()


def test_the_same_seed_makes_the_same_conversations(conversations: list[Conversation]) -> None:
    assert generate_conversations() == conversations
    assert generate_conversations(2, seed=8) != conversations[:2]


def test_there_are_five_thousand_turns_and_a_thousand_questions(conversations: list[Conversation]) -> None:
    turns = [turn for each in conversations for turn in each.turns]
    kinds = Counter(question.kind for each in conversations for question in each.questions)
    assert len(conversations) == CONVERSATIONS
    assert len({turn.id for turn in turns}) == len(turns) == CONVERSATIONS * SESSIONS * TURNS == 5_000
    assert kinds == {"single": 600, "several": 200, "time": 200}


def test_turns_are_in_order_and_sessions_on_days_of_their_own(conversations: list[Conversation]) -> None:
    for each in conversations:
        times = [turn.when for turn in each.turns]
        assert times == sorted(times)
        days = {turn.session: turn.when.date() for turn in each.turns}
        assert len(set(days.values())) == SESSIONS


def test_questions_name_who_told_the_answer(conversations: list[Conversation]) -> None:
    for each in conversations:
        turns = {turn.id: turn for turn in each.turns}
        for question in each.questions:
            tellers = {turns[turn].speaker for turn in question.turns}
            assert tellers == {name for name in each.speakers if name in question.text}


def test_a_question_of_now_wants_the_later_of_two_facts(conversations: list[Conversation]) -> None:
    """Superseded facts are only told in the first half."""
    for each in conversations:
        times = [question for question in each.questions if question.kind == "time"]
        asked = [q for q in times if not q.text.startswith(("When", "In what")) and "2024?" not in q.text]
        assert len(asked) == 4
        sessions = [int(question.turns[0].split("-")[1]) for question in asked]
        assert min(sessions) > SESSIONS // 2


def test_a_question_of_a_month_has_one_answer_in_it(conversations: list[Conversation]) -> None:
    for each in conversations:
        turns = {turn.id: turn for turn in each.turns}
        for question in each.questions:
            if "2024?" in question.text:
                (turn,) = question.turns
                assert f"{turns[turn].when:%B %Y}" in question.text


def test_questions_do_not_repeat_the_turn(conversations: list[Conversation]) -> None:
    """At most a fifth of the single facts share three words of five letters or more with the question."""
    shared = 0
    singles = 0
    for each in conversations:
        turns = {turn.id: turn for turn in each.turns}
        for question in (q for q in each.questions if q.kind == "single"):
            asked, told = (
                {word.strip(".,:?!").lower() for word in text.split() if len(word.strip(".,:?!")) >= 5}
                for text in (question.text, turns[question.turns[0]].text)
            )
            singles += 1
            shared += len(asked & told) >= 3
    assert shared / singles < 0.2


def test_every_layout_has_a_note_for_every_answer(conversations: list[Conversation]) -> None:
    for layout in LAYOUTS:
        collection = as_collection(conversations, layout)
        known = set(collection.documents().values())
        assert len(collection.chunks) == (200 if layout == "sessions" else 5_000), layout
        assert len({chunk.path for chunk in collection.chunks}) == len(collection.chunks), layout
        assert all(query.grades.keys() <= known for query in collection.queries), layout


def test_a_note_of_a_turn_is_titled_with_its_speaker_and_date(conversations: list[Conversation]) -> None:
    turn = conversations[0].turns[30]
    chunk = as_collection(conversations, "turns").chunks[30]
    assert chunk.title == f"{turn.speaker}, {turn.when:%Y-%m-%d %H:%M}"
    assert chunk.text == turn.text
    assert chunk.path == f"ada-and-ben/{turn.when:%Y-%m-%d}/{turn.id}.md"
