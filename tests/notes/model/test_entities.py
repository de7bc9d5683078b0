"""Entity extraction: words that count as names, and notes that get entities (docs/spec/memory.md §4)."""

from __future__ import annotations

import pytest

from lithos.notes.model.entities import MARKER, decide_extraction, extract_entities
from lithos.notes.model.note import Note
from tests.kernel.values.bounds import cpu_bound

#: Maximum CPU seconds for a text that takes a tenth of a second in linear time.
BOUND = 5.0
LENGTH = 150_000


def names(body: str, limit: int = 1_000_000) -> list[str]:
    return list(extract_entities(body, limit))


def note(*entities: str, marker: int | None = None) -> Note:
    return Note(id="n", title="N", entities=entities, entities_extractor=marker)


def test_link_targets_are_entities_regardless_of_spelling() -> None:
    body = "See [[raft log]], [[K8]] and [[Mercury (planet)]], or [[the very long name of one thing|it]]."
    assert names(body) == ["K8", "Mercury (planet)", "raft log", "the very long name of one thing"]


@pytest.mark.parametrize("target", ["main.py", "notes/plan.md", "f(x)", "a_b", "std::map", "data[0]", "a/b"])
def test_link_targets_that_are_files_or_code_are_not_entities(target: str) -> None:
    assert names(f"See [[{target}]] there.") == []


def test_anchor_is_not_part_of_the_entity() -> None:
    assert names("See [[Raft#Leader election|there]].") == ["Raft"]


def test_names_in_code_spans_count_only_when_also_in_prose() -> None:
    assert names("The class `NoteTexts` wraps `Tantivy Index` here, see `HEAD` and `HEAD`.") == []
    body = "Here `Redis` is used. Redis is fast. The `Tantivy Index` is not. Tantivy Index is a name."
    assert names(body) == ["Redis", "Tantivy Index"]


@pytest.mark.parametrize(
    "body",
    [
        "We ask `redis`. Lookups are fast. We ask `redis`! Lookups are cheap.",
        "See https://example.com/a. Lookups are fast; see [it](x.md). Lookups are cheap.",
        "It told us: Lookups are fast. And then: Lookups are cheap.",
        'She said "Lookups are fast" and he said "Lookups are cheap".',
        "First – Lookups are fast. Then -- Lookups are cheap. At last - Lookups are dear.",
        "State: Pending Review of it. Next:: Waiting Room and more.",
        "(see the page.) Lookups are fast. [^1] (It is so.) Lookups are cheap.",
    ],
)
def test_words_after_a_sentence_start_or_key_are_ignored(body: str) -> None:
    assert names(body) == []


@pytest.mark.parametrize(
    "body",
    [
        "We like https://Example.org/Big_Picture and www.Small.Picture/A much, on Example.com, Example.com.",
        "Read [the whole story of a Big Machine](https://x.org) or [Ours](https://x.org/Big%20Machine).",
        "We like <https://Big.Machine/Of Ours> and a@Big.Machine today.",
    ],
)
def test_addresses_and_page_titles_contain_no_entities(body: str) -> None:
    assert names(body) == []


def test_phrase_also_written_in_lower_case_is_not_an_entity() -> None:
    assert names("We open the Dropdown Menu now. Each dropdown menu has items.") == []
    assert names("We use Forward Error Correction here. The error correction works.") == [
        "Forward Error Correction"
    ]


@pytest.mark.parametrize(
    "code",
    [
        "trio", "get_user()", "a.b.c = 1", "main.py", "app.js", "v1.2.3", "git push", "--flag", "it works",
        "{x}",
    ],
)  # fmt: skip
def test_words_files_and_code_in_code_spans_are_not_entities(code: str) -> None:
    assert names(f"Then `{code}` is used.") == []


def test_phrase_used_once_within_a_sentence_is_an_entity() -> None:
    assert names("This was written by Ada Lovelace in one night.") == ["Ada Lovelace"]
    assert names("Ada Lovelace wrote this in one night.") == []
    assert names("Ada Lovelace wrote this. We admire Ada Lovelace.") == ["Ada Lovelace"]


def test_sentence_opener_is_removed_from_the_entity() -> None:
    assert names("Install Apache Kafka first. The Raft Protocol came later.") == [
        "Apache Kafka",
        "Raft Protocol",
    ]


def test_small_words_within_an_entity_are_kept() -> None:
    body = "It is funded by the Bank of America and plays Ludwig van Beethoven all day."
    assert names(body) == ["Bank of America", "Ludwig van Beethoven"]


def test_single_proper_noun_requires_two_mentions() -> None:
    assert names("We run Redis here.") == []
    assert names("We run Redis here. The cache in Redis is warm.") == ["Redis"]


def test_word_also_written_in_lower_case_is_not_a_noun() -> None:
    body = "We do Review here. They like Deployment and its Deployment. A deployment, the deployment."
    assert names(body) == []


def test_product_token_is_an_entity_after_one_mention() -> None:
    assert names("We ask GPT-4.1 from Node.js over IPv6.") == ["GPT-4.1", "IPv6", "Node.js"]


@pytest.mark.parametrize("token", ["v1.2.3", "V2.0", "Week2", "Q3", "Step-1", "DEADBEEF01", "2026-01-05"])
def test_versions_and_counts_are_not_products(token: str) -> None:
    assert names(f"Since {token} and {token} it is so.") == []


@pytest.mark.parametrize(
    "body",
    [
        "It ran on Monday and again every Monday in March and next March.",
        "We met However and However, then The and The.",
        "It was the One Two Three Four Five Six and so on.",
        f"It was {'Aa' * 31} and {'Aa' * 31} again.",
        "We say Go and Go.",
        "All IMPORTANT and IMPORTANT things.",
    ],
)
def test_calendar_words_stop_words_and_extreme_lengths_are_rejected(body: str) -> None:
    assert names(body) == []


def test_words_in_headings_and_labels_must_also_occur_in_prose() -> None:
    assert names("## Data Flow\n\n**Key Insight**: it is fast.\n\n- **Open Ends:** none so far\n") == []
    assert names("## Data Flow\n\nWe look at the Data Flow again.") == ["Data Flow"]


def test_title_lines_are_not_sentences() -> None:
    assert names("- Local Development Node\n- Running The Big Machine\n\nSETUP OF THE BIG MACHINE") == []


def test_possessive_endings_are_removed() -> None:
    assert names("We read Leslie Lamport's paper and Leslie Lamport’s thesis.") == ["Leslie Lamport"]


def test_word_within_a_longer_entity_is_dropped_unless_linked() -> None:
    body = "Leslie Lamport wrote it. So Leslie Lamport did; we like Lamport, and Lamport likes [[Leslie]]."
    assert names(body) == ["Leslie", "Leslie Lamport"]


def test_code_fences_tables_and_reference_sections_are_ignored() -> None:
    """Behaviour 158."""
    body = """\
We like [[Raft]].

```python
[[Fenced]] with Alan Turing and `Turing`
```
| name | who |
|------|-----|
| x | by Grace Hopper and [[Tabled]] |

a | b
--- | ---
it is [[Bare Table]] | y

## References

We cite [[Cited]] and Barbara Liskov here.

### Deeper

Still [[Cited Deeper]].

## After

It goes on with [[Later]].

~~~
[[Unclosed]]
"""
    assert names(body) == ["Later", "Raft"]


def test_markup_comments_and_addresses_are_ignored() -> None:
    body = (
        "<!-- by Ada Lovelace --> See [the Analytical Engine](https://x.org/Charles Babbage) "
        "![a Difference Engine](x.png) at https://x.org/Some Place or mail Some.One@x.org now."
    )
    assert names(body) == ["Analytical Engine"]


def test_most_frequent_entities_are_kept_sorted_and_unique() -> None:
    body = "We use Zeta Tool, Zeta Tool, Zeta Tool, Alpha Tool, Alpha Tool and Beta Tool."
    assert names(body, 2) == ["Alpha Tool", "Zeta Tool"]
    assert names(body) == ["Alpha Tool", "Beta Tool", "Zeta Tool"]


def test_name_in_several_cases_is_one_entity() -> None:
    body = "We use GitLab and GitLab daily, and some write Gitlab or Gitlab; [[gitlab]] too."
    assert names(body) == ["gitlab"]
    assert names(body.replace("[[gitlab]]", "nobody")) == ["GitLab"]


@pytest.mark.parametrize(
    "part",
    [
        "[[a|", "`", "<!--", "<b ", "a_", "**a", "[a](", "X", "A1-", "|-", "a|b\n|-", "Ab of ", "> ",
        "Name is Name ",
    ],
)  # fmt: skip
def test_extraction_takes_linear_time(part: str) -> None:
    text = (part * (LENGTH // len(part))) + "x"
    with cpu_bound(BOUND):
        names(text)


def test_extraction_of_runs_of_one_letter_takes_linear_time() -> None:
    with cpu_bound(BOUND):
        names("a" + "_" * LENGTH + "b\n- " + " " * LENGTH + "x\na|b\n|" + "-" * LENGTH + "x")


@pytest.mark.parametrize(
    ("stored", "body", "decision"),
    [
        (note(), "See [[Raft]].", ("Raft",)),
        (note(), "Nothing here.", None),
        (note("Old", marker=MARKER - 1), "See [[Raft]].", ("Raft",)),
        (note("Old", marker=MARKER - 1), "Nothing here.", ()),
        (note("Chosen"), "See [[Raft]].", None),
        (note("Kept", marker=MARKER), "See [[Raft]].", None),
        (note(marker=MARKER), "See [[Raft]].", ("Raft",)),
        (note(marker=MARKER), "Nothing here.", None),
        (note(marker=MARKER - 1), "Nothing here.", ()),
    ],
)
def test_extraction_decision_follows_the_table_of_actions(
    stored: Note, body: str, decision: tuple[str, ...] | None
) -> None:
    """Behaviour 158: curated entities are kept, and stale machine entities are replaced or cleared."""
    assert decide_extraction(stored, body) == decision


@pytest.mark.parametrize(
    ("stored", "body", "decision"),
    [
        (note("Chosen"), "See [[Raft]].", ("Raft",)),
        (note("Chosen"), "Nothing here.", None),
        (note("Old", marker=MARKER), "See [[Raft]].", ("Raft",)),
        (note("Raft", marker=MARKER), "See [[Raft]].", None),
        (note("Old", marker=MARKER), "Nothing here.", ()),
    ],
)
def test_forced_extraction_also_covers_notes_with_curated_or_current_entities(
    stored: Note, body: str, decision: tuple[str, ...] | None
) -> None:
    assert decide_extraction(stored, body, force=True) == decision
