"""Write scopes: the paths that globs match, and the callers that count as people."""

from __future__ import annotations

import re
import unicodedata

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from lithos.kernel.values.principals import ANYONE, COMMAND, OWNER, Principal
from lithos.notes.model.scopes import (
    Scope,
    WriteScopes,
    check_globs,
    covers,
    is_person,
    make_scope,
    refusal_of,
    scopes_of_agents,
)


@pytest.mark.parametrize(
    ("globs", "inside", "outside"),
    [
        (["**"], ["a.md", "a/b/c.md"], []),
        (["docs/**"], ["docs/a.md", "docs/x/a.md"], ["docs.md", "docsx/a.md", "x/docs/a.md"]),
        (["docs/"], ["docs/a.md", "docs/x/a.md"], ["docs", "a/docs/b.md"]),
        (["*.md"], ["a.md"], ["a/b.md"]),
        (["**/*.md"], ["a.md", "a/b.md"], ["a.txt"]),
        (["?/a.md"], ["x/a.md"], ["xy/a.md", "a.md"]),
        (["a/**/b/*.md"], ["a/b/c.md", "a/x/y/b/c.md"], ["a/b.md", "a/b/c/d.md"]),
        (["**", "!private/**"], ["a.md"], ["private/a.md"]),
        (["**", "!private/**", "private/open.md"], ["private/open.md"], ["private/a.md"]),
        (["a/**", "!a/b/**", "!a/c.md"], ["a/d.md"], ["a/b/x.md", "a/c.md", "e.md"]),
        (["A/**"], ["A/x.md"], ["a/x.md"]),
        (["caf\u00e9/**"], ["cafe\u0301/a.md", "caf\u00e9/a.md"], ["cafe/a.md"]),
        ([], [], ["a.md"]),
    ],
)
def test_last_matching_glob_decides(globs, inside, outside) -> None:
    assert [path for path in inside if not covers(globs, path)] == []
    assert [path for path in outside if covers(globs, path)] == []


_NAMES = st.text("ab*?", min_size=1, max_size=4)
_PARTS = st.lists(st.one_of(_NAMES, st.just("**")), min_size=1, max_size=4)
_PATHS = st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=5)


def _as_expression(parts: list[str]) -> str:
    """Convert a glob into a regular expression for paths in which every name ends with a slash."""
    signs = {"*": "[^/]*", "?": "[^/]"}
    return "".join(
        "(?:[^/]+/)*" if part == "**" else "".join(signs.get(sign, sign) for sign in part) + "/"
        for part in parts
    )


@given(_PARTS, _PATHS)
def test_glob_matches_the_same_paths_as_its_regular_expression(parts, names) -> None:
    wanted = re.fullmatch(_as_expression(parts), "".join(f"{name}/" for name in names)) is not None
    assert covers(["/".join(parts)], "/".join(names)) == wanted


def test_hostile_glob_is_matched_in_a_bounded_number_of_steps() -> None:
    path = "/".join(["a" * 200] * 20)
    assert not covers(["/".join(["*a" * 100] * 2)], path)
    assert not covers(["**/" * 60 + "b"], path)


@pytest.mark.parametrize(
    ("globs", "reason"),
    [
        ([""], "is empty"),
        (["!"], "is empty"),
        (["/a"], "not a path in the vault"),
        (["a//b"], "not a path in the vault"),
        (["a/../b"], "not a path in the vault"),
        (["a\x00b"], "cannot be printed"),
        (["a\u202eb"], "cannot be printed"),
        (["x" * 501], "more than 500 characters"),
        (["!a/**"], "comes first"),
        (["a"] * 101, "at most 100"),
    ],
)
def test_unusable_glob_is_refused_with_the_reason(globs, reason) -> None:
    with pytest.raises(ValueError, match=reason):
        check_globs(globs)


def test_scope_without_lists_is_unlimited_but_proposal_scope_denies_writes() -> None:
    assert make_scope(None, None) is None
    scope = make_scope(None, ["a/**"])
    assert scope is not None
    assert (scope.place_of("a/x.md"), scope.place_of("b.md")) == ("propose", "outside")
    assert Scope().place_of("any/where.md") == "write"
    both = make_scope(["a/**"], ["**"])
    assert both is not None
    assert (both.place_of("a/x.md"), both.place_of("b.md")) == ("write", "propose")
    assert make_scope(["  a/**  "], None) == Scope(("a/**",), ())
    assert make_scope([unicodedata.normalize("NFD", "é/**")], None) == Scope(("é/**",), ())


CONSOLE = evolve(ANYONE, is_own=True, is_person=True)


@pytest.mark.parametrize(
    ("by", "agent", "person"),
    [
        (None, "lithos-enrich", False),
        (ANYONE, "claude", False),
        (OWNER, "claude", False),
        (COMMAND, "cli", True),
        (COMMAND, "undo", True),
        (COMMAND, "claude", False),
        (CONSOLE, "anna", True),
        (Principal("boss", "admin"), "claude", True),
        (Principal("boss", "admin", "claude"), "claude", False),
        (Principal("pen", "write"), "anna", False),
        (evolve(Principal("pen", "write"), is_own=True, is_person=True), "anna", False),
    ],
)
def test_only_people_change_protected_paths(by, agent, person) -> None:
    """behaviour 279"""
    assert is_person(by, agent) is person
    place = WriteScopes(protected=("law/**",)).place_of(by, agent, "law/a.md")
    assert place == ("write" if person else "protected")


def test_token_scope_takes_precedence_over_the_scope_of_agent_name() -> None:
    token, other = Principal("t", "write"), Principal("o", "write")
    scopes = WriteScopes(
        agents={"claude": Scope(("b/**",))}, of_token=lambda by: Scope(("a/**",)) if by.name == "t" else None
    )
    assert scopes.place_of(token, "claude", "a/x.md") == "write"
    assert scopes.place_of(token, "claude", "b/x.md") == "outside"
    assert scopes.place_of(other, "claude", "b/x.md") == "write"
    assert scopes.place_of(OWNER, "claude", "a/x.md") == "outside"
    assert scopes.place_of(OWNER, "someone", "a/x.md") == "write"
    assert scopes.place_of(CONSOLE, "claude", "a/x.md") == "write"
    assert not scopes.limits(OWNER, "someone")
    assert scopes.limits(OWNER, "claude")


def test_refusal_names_path_and_scope() -> None:
    refusal = refusal_of("outside", "x/y.md", "bot", Scope(("a/**",), ("b/**",)))
    assert "x/y.md" in refusal.message
    assert "write a/**; propose b/**" in refusal.message
    assert refusal.extras == {"path": "x/y.md", "scope": "write a/**; propose b/**"}
    assert "storage.protected" in refusal_of("protected", "x.md", "bot", None).message


@pytest.mark.parametrize(
    "name", ["Junior", "JUNIOR", " junior ", "junior\u200b", "\u2060junior", "\uff4aunior", "j\u00adunior"]
)
def test_similar_names_have_the_scope_of_the_configured_agent(name: str) -> None:
    """behaviour 413"""
    scopes = WriteScopes(agents=scopes_of_agents({"junior": {"propose": ["**"]}}))
    assert scopes.place_of(ANYONE, name, "a.md") == "propose"
    assert scopes.place_of(OWNER, name, "a.md") == "propose"
    assert scopes.place_of(ANYONE, "juniors", "a.md") == "write"


def test_agents_configured_in_two_cases_keep_their_own_scopes() -> None:
    """behaviour 413"""
    given = {"Ann": {"write": ["a/"]}, "ann": {"propose": ["**"]}, "BOT": {"write": ["b/"]}}
    scopes = WriteScopes(agents=scopes_of_agents(given))
    found = [scopes.place_of(ANYONE, name, "a/x.md") for name in ("Ann", "ann", "bot", "Bot")]
    assert found == ["write", "propose", "outside", "outside"]


@pytest.mark.parametrize(
    ("write", "propose", "expected"),
    [
        (("work/shop/**",), (), True),
        (("Work/Shop/",), (), True),
        (("work/**",), (), True),
        (("**",), (), True),
        (("*/shop/*.md",), (), True),
        (("work/shop/drafts/*.md",), (), True),
        (("**/drafts/**",), (), True),
        ((), ("work/shop/**",), True),
        (("work/**", "!work/shop/secret/**"), (), True),
        (("work/**", "!work/shop/*.md"), (), True),
        (("work/**", "!work/shop/", "work/shop/drafts/**"), (), True),
        (("work/**", "!work/shop/"), (), False),
        (("work/**", "!work/shop/**/*.md"), (), False),
        (("work/api/**",), ("junior/**",), False),
        (("work/*.md",), (), False),
        (("work/shop.md",), (), False),
        (("work/shopping/**",), (), False),
        (("shop/**",), (), False),
        ((), (), False),
    ],
)
def test_scope_reaches_folder_if_some_note_below_can_change(
    write: tuple[str, ...], propose: tuple[str, ...], expected: bool
) -> None:
    """docs/spec/scopes.md §1: the project of a folder that a scope does not reach is foreign."""
    assert Scope(write, propose).reaches("Work/shop") is expected


def test_project_is_foreign_only_in_unreachable_configured_folders() -> None:
    scopes = WriteScopes(
        agents={"ann": Scope(("work/api/**",))},
        projects={"work/shop": "github.com/acme/shop", "old/shop": "shop", "work/api": "github.com/acme/api"},
    )
    for project in ("shop", "GitHub.com/acme/shop"):
        assert scopes.keeps_out_of(project, None, "ann") == Scope(("work/api/**",))
        assert scopes.keeps_out_of(project, None, "ben") is None, "without a scope"
    assert scopes.keeps_out_of("api", None, "ann") is None
    assert scopes.keeps_out_of("github.com/acme/site", None, "ann") is None, "without a folder"
    assert scopes.keeps_out_of("github.com/other/shop", None, "ann") is not None, "the short key in a folder"
