"""Merges of whole files for git (docs/spec/copies.md §3)."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lithos.history.model.conflict_markers import Markers, mark_texts
from lithos.history.model.file_merge import FileMerge, merge_files
from lithos.history.model.head_merge import merge_heads
from lithos.notes.format.merging import MOST_LINES, merge_texts
from tests.history.model.divergences import BY_VALUE, Divergence, diverge, lost_lines
from tests.kernel.values.bounds import cpu_bound
from tests.notes.format.test_merging import TEXTS
from tests.repeats import repeats

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
#: Number of divergences per test, and number of divergences in the nightly run.
SOME, MANY = repeats("DIVERGENCES", 300), 10_000
ALSO_MANY = [SOME, pytest.param(MANY, marks=pytest.mark.nightly)]


def merged(base: str, ours: str, theirs: str) -> str:
    found = merge_files(base.encode(), ours.encode(), theirs.encode())
    assert found.data is not None
    return found.data.decode()


def note(head: str, body: str = "text\n") -> str:
    return f"---\n{head}---\n{body}"


# -- divergences -----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", ALSO_MANY)
def test_merge_loses_no_line_of_either_side(count: int) -> None:
    """A line counts as lost only if the other side did not remove it.

    Keys that are merged by value have a separate test below.
    """
    clean = 0
    for seed in range(count):
        found = diverge(seed)
        result = merge_files(found.base, found.ours, found.theirs)
        assert result.data is not None
        assert lost_lines(found, result.data) == [], seed
        assert (result.conflicts > 0) == (b"<<<<<<< ours" in result.data), seed
        clean += not result.conflicts
    assert count * 0.4 < clean < count * 0.7, "both kinds are there"


@pytest.mark.parametrize("count", ALSO_MANY)
def test_merge_result_does_not_depend_on_the_order_of_sides(count: int) -> None:
    """If the sides are exchanged, the conflicts stay the same.

    The body without the conflicts also stays the same.

    An exchange of the sides may change only the order of keys.
    """
    for seed in range(count):
        found = diverge(seed)
        one = merge_files(found.base, found.ours, found.theirs)
        other = merge_files(found.base, found.theirs, found.ours)
        assert bool(one.conflicts) == bool(other.conflicts), seed
        if not one.conflicts:
            assert one.data is not None
            assert other.data is not None
            assert Counter(_words(one.data)) == Counter(_words(other.data)), seed


def _words(data: bytes) -> list[str]:
    """Return all words, including those of comments. Both list styles yield the same words."""
    text = data.decode()
    return [word.strip("[],") for word in text.split() if word.strip("[],") not in ("-", "")]


@needs_git
@pytest.mark.parametrize(
    "count", [pytest.param(SOME, marks=pytest.mark.slow), pytest.param(MANY, marks=pytest.mark.nightly)]
)
def test_merge_equals_git_merge_file_except_known_differences(count: int, tmp_path: Path) -> None:
    """The result equals `git merge-file` byte for byte if all lines differ and have equal line breaks.

    Known differences:

    * frontmatter: Lithos merges by key, while git finds conflicts between neighbouring keys, versions and
      lists;
    * line breaks: a side that changed only their kind, or the last one, causes no conflict;
    * repeated lines (blank lines, `---`): Lithos uses lines that occur once as anchors (patience), while git
      computes the shortest diff (Myers), so that other lines may count as moved.

    In 7 of 12,000 divergences, Lithos finds a conflict but git does not. All 7 divergences have repeated
    lines.
    """
    equal = refused = 0
    for seed in range(count):
        found = diverge(seed)
        result = merge_files(found.base, found.ours, found.theirs)
        code, data = _merge_with_git(tmp_path, found)
        is_plain = all(map(_is_plain, (found.base, found.ours, found.theirs)))
        if is_plain:
            assert (result.data, result.conflicts) == (data, code), seed
            equal += 1
        elif code == 0:
            refused += bool(result.conflicts)
    assert equal >= count // 50
    assert refused <= 1 + count // 500


def _is_plain(data: bytes) -> bool:
    """Return whether there is no frontmatter, and all lines are different and end with LF."""
    lines = data.split(b"\n")
    return (
        not data.startswith((b"---\nid", b"---\r\nid"))
        and b"\r" not in data
        and not lines[-1]
        and len(set(lines[:-1])) == len(lines) - 1
    )


def _merge_with_git(folder: Path, found: Divergence) -> tuple[int, bytes]:
    names = ("ours", "base", "theirs")
    for name, data in zip(names, (found.ours, found.base, found.theirs), strict=True):
        (folder / name).write_bytes(data)
    labels = [word for name in names for word in ("-L", name)]
    told = subprocess.run(
        ["git", "merge-file", "-p", *labels, *names], cwd=folder, capture_output=True, check=False
    )
    return told.returncode, told.stdout


# -- the text --------------------------------------------------------------------------------------


@given(TEXTS, TEXTS, TEXTS)
def test_merge_with_markers_equals_plain_merge_without_overlaps(base: str, ours: str, theirs: str) -> None:
    plain, marked = merge_texts(base, ours, theirs), mark_texts(base, ours, theirs, Markers("o", "t", 30))
    if plain.result is not None:
        assert (marked.text, marked.conflicts) == (plain.result, 0)
    else:
        assert 1 <= marked.conflicts <= plain.total or marked.conflicts >= 1
        assert marked.text.count("<" * 30) == marked.text.count("=" * 30) == marked.conflicts


@given(TEXTS, TEXTS, TEXTS)
def test_marked_text_contains_both_sides(base: str, ours: str, theirs: str) -> None:
    """If one side is chosen everywhere, the result has every line of that side.

    Lines that the other side changed are not checked.
    """
    marked = mark_texts(base, ours, theirs, Markers("o", "t", 30)).text
    for number, side in enumerate((ours, theirs)):
        chosen = Counter(_chosen(marked, number))
        added = Counter(_bare(side)) - Counter(_bare(base))
        added.pop("", None)
        assert added <= chosen


def _bare(text: str) -> list[str]:
    return [line.rstrip("\r") for line in text.split("\n")]


def _chosen(marked: str, number: int) -> Iterator[str]:
    """Yield the lines of the result if one side of each conflict is chosen."""
    side: int | None = None
    for line in _bare(marked):
        if line == "<" * 30 + " o":
            side = 0
        elif line == "=" * 30 and side == 0:
            side = 1
        elif line == ">" * 30 + " t":
            side = None
        elif side in (None, number):
            yield line


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "result"),
    [
        ("a\nb\nc\n", "a\nB\nc\n", "a\n2\nc\n", "a\n<<<<<<< ours\nB\n=======\n2\n>>>>>>> theirs\nc\n"),
        ("", "a\n", "b\n", "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n"),
        # Lines that both sides share are outside the markers. A line without an end is terminated before a
        # marker.
        ("x\n", "a\nb\nc", "a\n2\nc", "a\n<<<<<<< ours\nb\n=======\n2\n>>>>>>> theirs\nc"),
        ("x\n", "a\nb", "a\n2", "a\n<<<<<<< ours\nb\n=======\n2\n>>>>>>> theirs\n"),
        (
            "a\r\nb\r\n",
            "a\r\nB\r\n",
            "a\r\n2\r\n",
            "a\r\n<<<<<<< ours\r\nB\r\n=======\r\n2\r\n>>>>>>> theirs\r\n",
        ),
        ("a\nb\n", "a\n", "a\nB\n", "a\n<<<<<<< ours\n=======\nB\n>>>>>>> theirs\n"),
    ],
)
def test_overlap_is_written_between_conflict_markers(base: str, ours: str, theirs: str, result: str) -> None:
    assert merged(base, ours, theirs) == result


def test_near_conflicts_are_joined_but_distant_conflicts_stay_separate() -> None:
    lines = [f"{number}\n" for number in range(9)]

    def changed(sign: str, *places: int) -> str:
        return "".join(f"{sign}\n" if at in places else line for at, line in enumerate(lines))

    def merging(ours: str, theirs: str) -> FileMerge:
        return merge_files("".join(lines).encode(), ours.encode(), theirs.encode())

    near = merging(changed("o", 1, 5), changed("t", 1, 5))
    far = merging(changed("o", 1, 6), changed("t", 1, 6))
    apart = merging(changed("o", 1, 3, 5), changed("t", 1, 5))
    assert (near.conflicts, far.conflicts, apart.conflicts) == (1, 2, 2)


def test_conflict_markers_have_configurable_length_and_names() -> None:
    found = merge_files(b"", b"a\n", b"b\n", Markers("HEAD", "branch", 9))
    assert found == FileMerge(b"<<<<<<<<< HEAD\na\n=========\nb\n>>>>>>>>> branch\n", 1)


def test_text_with_too_many_lines_is_marked_as_a_whole() -> None:
    many = "".join(f"{number}\n" for number in range(MOST_LINES + 1))
    with cpu_bound(20):
        found = mark_texts(many, f"x\n{many}", f"{many}y\n", Markers())
    assert found.conflicts
    assert {"x", "y", "0", str(MOST_LINES)} <= set(found.text.split("\n"))


# -- the frontmatter -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "result"),
    [
        # Changes of neighbouring keys do not overlap.
        ("a: 1\nb: 2\n", "a: 3\nb: 2\n", "a: 1\nb: 4\n", "a: 3\nb: 4\n"),
        ("a: 1\n", "a: 1\nb: 2\n", "a: 1\nc: 3\n", "a: 1\nc: 3\nb: 2\n"),
        ("a: 1\nb: 2\nc: 3\n", "b: 2\nc: 3\n", "a: 1\nb: 2\n", "b: 2\n"),
        # New keys of the other side keep their position.
        ("a: 1\nb: 2\n", "a: 1\nb: 5\n", "x: 0\na: 1\ny: 0\nb: 2\n", "x: 0\na: 1\ny: 0\nb: 5\n"),
        # Lists of either style are merged as sets. Each item keeps its spelling.
        ("tags: [a, b]\n", "tags: [a, b, o]\n", "tags: [t, b]\n", "tags: [b, o, t]\n"),
        ("tags:\n- a\n- b\n", "tags:\n- a\n- b\n- 'o'\n", "tags:\n- b\n- t\n", "tags:\n- b\n- 'o'\n- t\n"),
        ("tags: a, b\n", "tags: a, b, o\n", "tags: a, b, t\n", "tags: [a, b, o, t]\n"),
        ("x:\n  - 1\n", "x:\n  - 1\n  - 2\n", "x:\n  - 0\n  - 1\n", "x:\n  - 0\n  - 1\n  - 2\n"),
        # For values that the write sets, the greater value wins.
        ("version: 3\n", "version: 5\n", "version: 12\n", "version: 12\n"),
        (
            "updated_at: 2026-01-01\n",
            "updated_at: '2026-03-01T00:00:00+02:00'\n",
            "updated_at: 2026-02-28T23:00:00Z\n",
            "updated_at: 2026-02-28T23:00:00Z\n",
        ),
        # Cases: the same value in another spelling, comments, and texts of several lines.
        ("a: x\n", "a: 'y'\n", "a: y\n", "a: 'y'\n"),
        ("# one\na: 1\n", "# one\n# o\na: 1\n", "# one\n# t\na: 2\n", "# one\n# o\n# t\na: 2\n"),
        ("a: |\n  x\n  y\n  z\n", "a: |\n  X\n  y\n  z\n", "a: |\n  x\n  y\n  Z\n", "a: |\n  X\n  y\n  Z\n"),
        ("m:\n  x: 1\n  y: 2\n  z: 3\n", "m:\n  x: 0\n  y: 2\n  z: 3\n", "m:\n  x: 1\n  y: 2\n",
         "m:\n  x: 0\n  y: 2\n"),
        ("a: 1\n# end\n", "a: 2\n# end\n", "a: 1\n# end\n# more\n", "a: 2\n# end\n# more\n"),
    ],
)  # fmt: skip
def test_frontmatter_keys_are_merged_separately(base: str, ours: str, theirs: str, result: str) -> None:
    assert merged(note(base), note(ours), note(theirs)) == note(result)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "result"),
    [
        ("a: 1\nb: 1\n", "a: 2\nb: 1\n", "a: 3\nb: 2\n",
         "<<<<<<< ours\na: 2\n=======\na: 3\n>>>>>>> theirs\nb: 2\n"),
        ("a: 1\nb: 1\n", "b: 1\n", "a: 3\nb: 1\n", "<<<<<<< ours\n=======\na: 3\n>>>>>>> theirs\nb: 1\n"),
        ("", "id: x\n", "id: y\n", "<<<<<<< ours\nid: x\n=======\nid: y\n>>>>>>> theirs\n"),
        # No comment is lost when a list is merged.
        (
            "tags: [a] # why\n",
            "tags: [a, o] # why\n",
            "tags: [a, t] # because\n",
            "<<<<<<< ours\ntags: [a, o] # why\n=======\ntags: [a, t] # because\n>>>>>>> theirs\n",
        ),
        # A number is not a text, and true is not a number.
        ("a: 0\n", "a: 1\n", "a: true\n", "<<<<<<< ours\na: 1\n=======\na: true\n>>>>>>> theirs\n"),
    ],
)  # fmt: skip
def test_key_changed_by_both_sides_becomes_a_conflict(base: str, ours: str, theirs: str, result: str) -> None:
    found = merge_files(note(base).encode(), note(ours).encode(), note(theirs).encode())
    assert found == FileMerge(note(result).encode(), 1)


@pytest.mark.parametrize(
    ("base", "ours", "theirs"),
    [
        ("{a: 1, b: 2}\n", "{a: 2, b: 2}\n", "{a: 1, b: 3}\n"),
        ("a: 1\na: 2\nb: 3\n", "a: 1\na: 5\nb: 3\n", "a: 1\na: 2\nb: 4\n"),
        ("a: [\nb: 1\n", "a: [\nb: 2\n", "c\na: [\nb: 1\n"),
        ("a: &x 1\nb: *x\n", "a: &x 2\nb: *x\n", "a: &x 1\nb: *x\nc: 1\n"),
        ("- a\n- b\n", "- o\n- b\n", "- a\n- t\n"),
    ],
)
def test_frontmatter_without_plain_keys_is_merged_line_by_line(base: str, ours: str, theirs: str) -> None:
    found = merge_heads(base, ours, theirs, Markers())
    by_lines = mark_texts(base, ours, theirs, Markers())
    assert found == by_lines or found.conflicts
    assert set(ours.split("\n")) - set(base.split("\n")) <= set(found.text.split("\n"))
    assert set(theirs.split("\n")) - set(base.split("\n")) <= set(found.text.split("\n"))


def test_duplicate_key_from_a_line_merge_becomes_a_conflict() -> None:
    """Line by line, no changes overlap.

    However, a note with two keys `a` would have only one of the values.
    """
    base = "x: &x 1\nb: *x\nc: 3\nd: 4\n"
    found = merge_heads(base, "a: 1\n" + base, base + "a: 2\n", Markers())
    assert found.conflicts == 1
    assert found.text.count("a: 1") == found.text.count("a: 2") == 1


def test_frontmatter_added_or_removed_by_one_side_is_merged() -> None:
    assert merged("text\n", note("a: 1\n"), "text\nmore\n") == note("a: 1\n", "text\nmore\n")
    assert merged(note("a: 1\n"), "text\n", note("a: 1\n", "text\nmore\n")) == "text\nmore\n"
    found = merge_files(note("a: 1\n").encode(), b"text\n", note("a: 2\n").encode())
    assert found.conflicts == 1
    assert b"a: 2" in (found.data or b"")


def test_merge_keeps_line_breaks_byte_order_mark_and_frame() -> None:
    base = "\ufeff--- \r\na: 1\r\nb: 1\r\n---\r\ntext"
    assert merged(base, base.replace("a: 1", "a: 2"), base.replace("b: 1", "b: 2")) == (
        "\ufeff--- \r\na: 2\r\nb: 2\r\n---\r\ntext"
    )
    plain = note("a: 1\nb: 1\n")
    assert merged(plain, plain.replace("\n", "\r\n"), note("a: 1\nb: 2\n")) == (
        note("a: 1\nb: 2\n").replace("\n", "\r\n")
    )


def test_values_merged_as_sets_contain_the_additions_of_both_sides() -> None:
    for seed in range(SOME):
        found = diverge(seed)
        result = merge_files(found.base, found.ours, found.theirs)
        sides = [found.base, found.ours, found.theirs, result.data or b""]
        if result.conflicts or any(not each.startswith((b"---\nid", b"---\r\nid")) for each in sides):
            continue
        base, ours, theirs, said = (
            yaml.safe_load(each.decode().replace("\r\n", "\n").split("---\n")[1]) for each in sides
        )
        for key in BY_VALUE:
            was, one, other, now = (each.get(key) for each in (base, ours, theirs, said))
            if isinstance(now, list):
                kept = set(was or ()) & set(one or ()) & set(other or ())
                assert set(now) == kept | (set(one or ()) | set(other or ())) - set(was or ()), (seed, key)
            elif one is not None and other is not None:
                assert str(now) == max(str(one), str(other)), (seed, key)


# -- files that are not notes ----------------------------------------------------------------------


def test_non_utf8_file_is_merged_line_by_line_without_loss() -> None:
    found = merge_files(b"a\xff\nm\nz\n", b"a\xff\nm\nz\xfe\n", b"\xfda\nm\nz\n")
    assert found == FileMerge(b"\xfda\nm\nz\xfe\n")
    assert merge_files(b"\xff\n", b"\xff1\n", b"\xff2\n") == FileMerge(
        b"<<<<<<< ours\n\xff1\n=======\n\xff2\n>>>>>>> theirs\n", 1
    )


def test_binary_file_is_not_merged_unless_one_side_is_unchanged() -> None:
    assert merge_files(b"a\0", b"b\0", b"c\0") == FileMerge(None, 1)
    assert merge_files(b"a\0", b"a\0", b"c\0") == merge_files(b"a\0", b"c\0", b"a\0") == FileMerge(b"c\0")


@given(st.lists(st.binary(max_size=60) | st.sampled_from([
    b"---\na: 1\n---\n", b"---\n", b"a: [1\n", b"\xef\xbb\xbf", b"? a\n: b\n", b"a: &x *x\n", b"<<: {}\n",
    b"\r\n", b"\r", b"x\n", b"---", b"a: |+\n\n\n", b"%YAML 1.1\n", b"a:\n- b\n", b"# c\n", b"\tz: 1\n",
]), min_size=3, max_size=12))  # fmt: skip
def test_merge_accepts_any_file(parts: list[bytes]) -> None:
    third = len(parts) // 3
    sides = [b"".join(each) for each in (parts[:third], parts[third : 2 * third], parts[2 * third :])]
    found = merge_files(sides[0], sides[1], sides[2])
    assert found.data is not None or any(b"\0" in side for side in sides)
