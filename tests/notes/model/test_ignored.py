"""Ignored paths: globs from the configuration and filters from Obsidian."""

from __future__ import annotations

import pytest

from lithos.notes.model.ignored import Ignored, check_filter, read_filters


@pytest.mark.parametrize(
    ("glob", "path", "is_covered"),
    [
        ("templates/**", "templates/daily.md", True),
        ("templates/**", "templates/deep/daily.md", True),
        ("templates/**", "work/templates/daily.md", False),
        ("templates/**", "templates.md", False),
        ("**/drafts/**", "a/b/drafts/x.md", True),
        ("**/drafts/**", "drafts/x.md", True),
        ("*.excalidraw.md", "plan.excalidraw.md", True),
        ("*.excalidraw.md", "a/plan.excalidraw.md", False),
        ("**/*.excalidraw.md", "a/plan.excalidraw.md", True),
        ("archive", "archive/2020/x.md", True),
        ("/archive/", "archive/x.md", True),
        ("archive", "archives/x.md", False),
        ("day?/x.md", "day1/x.md", True),
        ("day?/x.md", "day/1/x.md", False),
        ("a+(b)/**", "a+(b)/x.md", True),
    ],
)
def test_ignore_glob_matches_paths_relative_to_the_notes_folder(
    glob: str, path: str, is_covered: bool
) -> None:
    assert Ignored.of([glob]).covers(path) is is_covered


def test_obsidian_filter_is_a_prefix_or_expression_ignoring_case() -> None:
    ignored = Ignored.of(filters=["Archive/", "/draft[0-9]/"])
    assert ignored.covers("archive/x.md")
    assert ignored.covers("notes/Draft7.md")
    assert not ignored.covers("notes/archive/x.md")
    assert not ignored.covers("notes/draft.md")


def test_folder_is_skipped_only_when_everything_in_it_is_ignored() -> None:
    ignored = Ignored.of(["templates/**", "a/*.md"], ["Old/", "/x/"])
    assert ignored.covers_folder("templates/")
    assert ignored.covers_folder("old/")
    assert not ignored.covers_folder("a/")
    assert not ignored.covers_folder("x/")  # The regular expression must be checked for each file.


def test_no_path_is_ignored_by_default() -> None:
    assert not Ignored.of([""], [])
    assert not Ignored().covers("templates/x.md")


@pytest.mark.parametrize("text", ["", "/(/", "/(a+)+$/", "/a*b*c*d*/", r"/(a)\1/", "x" * 501])
def test_unusable_or_endless_filter_is_refused(text: str) -> None:
    assert check_filter(text) is not None


def test_usable_filters_are_read_and_unusable_filters_are_reported() -> None:
    usable, complaints = read_filters({"userIgnoreFilters": ["Old/", 7, "/(/"]})
    assert usable == ["Old/"]
    assert len(complaints) == 2
    assert read_filters({"userIgnoreFilters": "Old/"}) == ([], ["userIgnoreFilters is not a list"])
    assert read_filters({}) == ([], [])
    assert read_filters({"userIgnoreFilters": ["a"] * 1_001})[1] == ["only the first 1000 filters are used"]


def test_filter_causing_a_python_warning_matches_as_in_obsidian() -> None:
    assert check_filter("/[[a]x/") is None
    ignored = Ignored.of(filters=["/[[a]x/"])
    assert ignored.covers("[x.md")
    assert not ignored.covers("bx.md")
