"""Names of conflict copies, and their relation to notes (docs/spec/copies.md §1)."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.notes.model.copies import (
    DRIVE,
    DROPBOX,
    DROPBOX_WORDS,
    ICLOUD,
    NEXTCLOUD,
    OBSIDIAN,
    ONEDRIVE,
    SYNCTHING,
    CopyName,
    LineCounts,
    are_kin,
    copy_names,
    is_copy_of,
    is_named_after,
    is_weakly_named,
    lines_of,
    may_be_strong,
    says_own_note,
    strong_originals,
)
from tests.kernel.values.bounds import cpu_bound

#: Strong names of conflict copies: the program, and the mark that the program appends to the file name.
STRONG = (
    (SYNCTHING, ".sync-conflict-20260102-030405-ABCDEFG"),
    (SYNCTHING, ".sync-conflict-20260102-030405-A2B3C4D"),
    (SYNCTHING, ".sync-conflict-20260102-030405"),
    (DROPBOX, " (Ann's conflicted copy 2026-01-02)"),
    (DROPBOX, " (Ann’s MacBook (2)'s conflicted copy 2026-01-02)"),
    (DROPBOX, " (DESKTOP-7A6B3C's conflicted copy 2026-01-02 (1))"),
    (DROPBOX, " (In Konflikt stehende Kopie von Ann 2026-01-02)"),
    (DROPBOX, " (Anns in Konflikt stehende Kopie 2026-01-02)"),
    (DROPBOX, " (Copie en conflit de Ann 2026-01-02)"),
    (DROPBOX, " (Copia en conflicto de Ann 2026-01-02)"),
    (DROPBOX, " (Copia in conflitto di Ann 2026-01-02)"),
    (DROPBOX, " (Cópia em conflito de Ann 2026-01-02)"),
    (DROPBOX, " (Conflicterende kopie van Ann 2026-01-02)"),
    (DROPBOX, " (Конфликтующая копия с компьютера Ann 2026-01-02)"),
    (DROPBOX, " (Ann の競合コピー 2026-01-02)"),
    (DROPBOX, " (Ann 的冲突副本 2026-01-02)"),
    (NEXTCLOUD, " (conflicted copy 2026-01-02 030405)"),
    (NEXTCLOUD, " (conflicted copy ann 2026-01-02 030405)"),
    (OBSIDIAN, " (Conflicted copy phone 202601020304)"),
    (OBSIDIAN, " (Conflicted copy Ann's iPad (old) 202601020304)"),
)
WEAK = (
    (ONEDRIVE, "-DESKTOP-7A6B3C"),
    (ONEDRIVE, "-LAPTOP"),
    (ONEDRIVE, "-Anns-MacBook-Pro"),
    (ICLOUD, " 2"),
    (ICLOUD, " 17"),
    (DRIVE, " (1)"),
    (DRIVE, "(1)"),
    (DRIVE, " (23)"),
)
#: Names that no sync program creates.
ORDINARY = (
    ".md", "Plan.md", "Plan 1.md", "Plan 0.md", "Plan2.md", "Plan 2026.md", "Plan 02.md", "Plan (0).md",
    "Plan (2026).md", "Plan (draft).md", "Plan (conflict).md", "Plan (conflicted copy).md", "(1).md", " 2.md",
    "Plan (Ann's copy 2026-01-02).md", "Plan (Ann's conflicted copy).md", "-HOST.md", "Plan -.md",
    "Plan (conflicted copy 2026-01-02 0304).md", "Plan (Conflicted copy phone 2026010203).md",
    "Plan-1.md", "2026-01-02.md", "Plan-2026-01.md", "Plan.sync-conflict-20260102-030405-ABCDEFG.txt",
    "Plan (Ann's conflicted copy 2026-01-02).txt",
    "Plan (Ann's conflicted copy 2026-01-02) and more.md", "(Ann's conflicted copy 2026-01-02).md",
    "Plan(Ann's conflicted copy 2026-01-02).md", "Plan Ann's conflicted copy 2026-01-02).md",
    "Plan (1).md/other.md", "Plan-two words.md",
)  # fmt: skip


def first(path: str) -> CopyName:
    return copy_names(path)[0]


@pytest.mark.parametrize("folder", ["", "a/", "a b/c (1)/"])
@pytest.mark.parametrize("name", ["Plan", "Q1-plan v1.2", "計画 (draft)", "a"])
@pytest.mark.parametrize(("program", "mark"), STRONG)
def test_strong_copy_name_yields_program_and_original(
    program: str, mark: str, name: str, folder: str
) -> None:
    assert first(f"{folder}{name}{mark}.md") == CopyName(f"{folder}{name}.md", program)


@pytest.mark.parametrize(("program", "mark"), WEAK)
def test_weak_copy_name_yields_program_and_original(program: str, mark: str) -> None:
    found = [each for each in copy_names(f"a/Plan{mark}.md") if each.original == "a/Plan.md"]
    assert [(each.program, each.is_weak) for each in found] == [(program, True)]


@pytest.mark.parametrize("name", ORDINARY)
def test_name_resembling_a_copy_name_is_an_ordinary_name(name: str) -> None:
    assert copy_names(name) == ()


@pytest.mark.parametrize(
    "name",
    ["Plan.sync-conflict.md", "Plan.sync-conflict-20260102.md", ".sync-conflict-20260102-030405-ABCDEFG.md"],
)
def test_incomplete_syncthing_name_is_only_a_weak_copy_name(name: str) -> None:
    assert all((each.program, each.is_weak) == (ONEDRIVE, True) for each in copy_names(name))


@pytest.mark.parametrize("words", DROPBOX_WORDS)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_copy_words_match_in_any_language_unicode_form_and_case(words: str, form: str) -> None:
    for said in (words, words.capitalize()):
        remark = unicodedata.normalize(form, said)  # type: ignore[arg-type]
        assert first(f"Plan ({remark} Ann 2026-01-02).md") == CopyName("Plan.md", DROPBOX)
        assert copy_names(f"Plan ({remark}).md") == ()


def test_copy_name_is_split_at_every_hyphen_longest_original_first() -> None:
    found = copy_names("my-plan-DESKTOP-7A6B3C.md")
    assert [each.original for each in found] == ["my-plan-DESKTOP.md", "my-plan.md", "my.md"]


def test_weak_name_is_a_copy_only_of_the_matching_note() -> None:
    for name in ("plan-DESKTOP-7A6B3C.md", "deploy-checklist.md", "Plan 2.md", "Plan (1).md", "Plan.md"):
        assert strong_originals(name) == ()
        assert not is_copy_of(name, "elsewhere.md", ID)
    assert is_copy_of("Plan 2.md", "Plan.md", ID)
    assert not is_copy_of("Plan.md", "Plan.md", ID)
    for _, mark in STRONG:
        assert may_be_strong(f"Plan{mark}.md")
        assert strong_originals(f"Plan{mark}.md")[0] == "Plan.md"
        assert is_copy_of(f"Plan{mark}.md", "elsewhere.md", ID), "the note may have been moved since"


def test_weak_name_with_another_id_is_not_a_copy() -> None:
    """behaviour 340"""
    assert not is_copy_of("Plan 2.md", "Plan.md", "intro")
    assert is_copy_of(f"Plan{STRONG[0][1]}.md", "Plan.md", "intro")


def test_copy_of_a_copy_is_named_after_the_note() -> None:
    """behaviour 342"""
    for name in ("Plan 2 2.md", "Plan 2 (1).md", "Plan-HOST 2.md", f"Plan 2{STRONG[0][1]}.md"):
        assert is_named_after(name, "Plan.md")
        assert is_weakly_named(name, "Plan.md")
    assert not is_named_after("Plan 2 2.md", "Plans.md")
    assert not is_named_after("Plan.md", "Plan.md")
    twice = f"Plan{STRONG[0][1]}{STRONG[0][1]}.md"
    assert is_named_after(twice, "Plan.md")
    assert not is_weakly_named(twice, "Plan.md")


def test_search_for_the_original_of_a_hostile_name_ends() -> None:
    with cpu_bound(2):
        for part in ("-A", " (1)", " 2", "-A 2", " x-"):
            assert not is_named_after(f"a{part * (240 // len(part))}.md", "other.md")


@pytest.mark.parametrize("value", [False, "false", "False", "no", " no "])
def test_frontmatter_can_declare_a_file_an_independent_note(value: object) -> None:
    """behaviour 341"""
    assert says_own_note({"conflict_copy": value})


@pytest.mark.parametrize("values", [{}, {"conflict_copy": True}, {"conflict_copy": None}, {"copy": False}])
def test_other_frontmatter_does_not_declare_an_independent_note(values: dict[str, object]) -> None:
    assert not says_own_note(values)


def test_two_texts_with_the_minimum_common_part_are_kin() -> None:
    """The fast check before the comparison must not reject a pair at the limit of both thresholds."""
    third = Counter({f"line {number}": 1 for number in range(80)})
    copy = third - Counter({f"line {number}": 1 for number in range(16)})
    original = third - Counter({f"line {number}": 1 for number in range(64, 80)})
    copy["own"], original["its own"] = 16, 16
    assert are_kin(WEAKLY, None, "1", copy, original, [third])
    assert not are_kin(WEAKLY, None, "1", copy, original, [])


def test_copy_of_a_copy_also_belongs_to_the_original() -> None:
    once, again = STRONG[0][1], STRONG[3][1]
    found = copy_names(f"Plan{once}{again}.md")
    assert [each.original for each in found] == [f"Plan{once}.md", "Plan.md"]
    assert not any(each.is_weak for each in found)
    taken = copy_names(f"Plan{again} (1).md")
    assert [(each.original, each.is_weak) for each in taken] == [
        (f"Plan{again}.md", True),
        ("Plan.md", False),
    ]
    numbered = copy_names(f"Plan 2{once}.md")
    assert [(each.original, each.is_weak) for each in numbered] == [("Plan 2.md", False), ("Plan.md", True)]


@given(
    st.text(st.sampled_from("aA2 -()."), max_size=40), st.sampled_from([mark for _, mark in STRONG + WEAK])
)
def test_original_is_a_shorter_named_note_in_the_same_folder(name: str, mark: str) -> None:
    for path in (f"a/{name}.md", f"a/{name}{mark}.md"):
        found = copy_names(path)
        assert len(found) <= 20
        for each in found:
            assert each.original.startswith("a/")
            assert each.original.endswith(".md")
            assert len("a/.md") < len(each.original) < len(path)


@pytest.mark.parametrize(
    "part", ["(", ")", " (1)", "-A", " (x's conflicted copy 2026-01-02)", "-", ".sync-conflict-", " x-"]
)
def test_hostile_name_is_parsed_quickly(part: str) -> None:
    """Names longer than a file system allows are not parsed."""
    with cpu_bound(2):
        for _ in range(1_000):
            copy_names(f"a{part * (240 // len(part))}.md")
        assert copy_names(f"a{part * 100_000}.md") == ()


def test_kinship_of_large_texts_takes_linear_time() -> None:
    text = "\n".join(f"line {number % 50_000}" for number in range(200_000)).encode()
    with cpu_bound(3):
        one, other = lines_of(text), lines_of(text + b"\nmore")
        assert are_kin(STRONGLY, None, ID, one, other, [one] * 3)
        assert not are_kin(WEAKLY, None, ID, one, other, [one] * 3)


# -- kinship ---------------------------------------------------------------------------------------

ID, OTHER = "0b6f4f3e-6d3b-4c39-8a8e-5a3f4f1f5d10", "1c6f4f3e-6d3b-4c39-8a8e-5a3f4f1f5d11"
STRONGLY, WEAKLY = CopyName("a.md", SYNCTHING), CopyName("a.md", ICLOUD, is_weak=True)
TEN = [f"line {number}" for number in range(10)]


def kin(
    name: CopyName,
    copy: Sequence[str],
    original: Sequence[str],
    *kept: Sequence[str],
    named: str | None = None,
) -> bool:
    one, other, *versions = (lines_of("\n".join(each).encode()) for each in (copy, original, *kept))
    return are_kin(name, named, ID, one, other, versions)


def test_equal_id_proves_kinship_and_another_id_disproves_it() -> None:
    for name in (STRONGLY, WEAKLY):
        assert kin(name, ["quite", "other"], TEN, named=ID)
        assert not kin(name, TEN, TEN, named=OTHER)


def test_copy_without_id_must_share_most_lines_with_one_version() -> None:
    assert kin(STRONGLY, [*TEN[:6], "x", "y", "z", "u"], TEN)
    assert not kin(STRONGLY, [*TEN[:5], "v", "x", "y", "z", "u"], TEN)
    # An earlier version may have lines that the original lost. The copy is compared with one version only,
    # not with several versions together.
    assert kin(STRONGLY, TEN, ["new"], ["newer"], TEN[:6])
    assert not kin(STRONGLY, TEN, ["new"], TEN[:5], TEN[5:])
    # A copy that lost many lines is still a copy.
    assert kin(STRONGLY, TEN[:1], TEN)


def test_weak_copy_must_have_a_line_that_its_note_lost() -> None:
    """behaviour 340"""
    now = [*TEN[:9], "changed here"]
    assert kin(WEAKLY, [*TEN[:8], "changed there", TEN[9]], now, now, TEN)
    # Similarity alone proves nothing: people also copy a page, or start two pages from one template.
    assert not kin(WEAKLY, TEN, TEN)
    assert not kin(WEAKLY, TEN, TEN, TEN)
    assert not kin(WEAKLY, [*TEN[:9], "changed there"], TEN, TEN)
    assert not kin(WEAKLY, [*TEN[:9], "changed there"], now, now, TEN), "what the note lost is not in it"


def test_weak_copy_must_share_four_fifths_with_one_version() -> None:
    assert kin(WEAKLY, [*TEN[:8], "x", "y"], ["u", "v", *TEN[2:]], TEN)
    assert not kin(WEAKLY, [*TEN[:8], "x", "y"], ["u", "v", "w", *TEN[3:]], TEN)
    assert not kin(WEAKLY, [*TEN[:7], "x", "y", "z"], ["u", "v", *TEN[2:]], TEN)
    # A copy that shares only a few lines with a long note, or that has many more lines than the note, is not
    # kin.
    assert not kin(WEAKLY, TEN[:7], TEN[1:], TEN)
    assert not kin(WEAKLY, [*TEN, "a", "b", "c"], TEN[1:], TEN)


@pytest.mark.parametrize("line", ["## Notes", "Role:", "---", "- [ ]", "* * *", "|---|", "", "Born::"])
def test_heading_label_or_mark_alone_proves_no_kinship(line: str) -> None:
    """behaviour 340"""
    assert not kin(WEAKLY, [*TEN, line], TEN, TEN, [*TEN, line])


def test_line_from_a_template_proves_no_kinship() -> None:
    """behaviour 340"""
    old, now = lines_of("\n".join(TEN).encode()), lines_of("\n".join(TEN[1:]).encode())
    assert are_kin(WEAKLY, None, ID, old, now, [now, old], lambda lines: lines)
    assert not are_kin(WEAKLY, None, ID, old, now, [now, old], lambda lines: lines - {TEN[0]})


def test_repeated_line_counts_as_often_as_both_texts_contain_it() -> None:
    assert not kin(STRONGLY, ["a"] * 10, ["a"] * 5)
    assert kin(STRONGLY, ["a"] * 10, ["a"] * 6)


def test_kinship_ignores_frontmatter_blank_lines_and_trailing_spaces() -> None:
    text = b"---\ntags: [a]\n---\n\n# T\r\n\r\nx  \r\n"
    assert lines_of(text) == {"# T": 1, "x": 1}
    assert lines_of(b"\xff") == lines_of(b"a\0b") == lines_of(b"---\na: 1\n---\n\n") == {}
    assert not kin(STRONGLY, [], [])
    assert not kin(WEAKLY, [], [])


def test_versions_are_not_read_when_id_or_original_decides() -> None:
    def refuse() -> Iterator[LineCounts]:
        yield from ()
        raise AssertionError("nobody needs it")

    some = lines_of(b"a\nb")
    assert are_kin(STRONGLY, ID, ID, some, some, refuse())
    assert not are_kin(STRONGLY, OTHER, ID, some, some, refuse())
    assert are_kin(STRONGLY, None, ID, some, some, refuse())
