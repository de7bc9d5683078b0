"""Keys of projects (docs/spec/projects.md §1)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.kernel.values import projects
from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.projects import (
    LONGEST_KEY,
    ProjectFilter,
    normalise_project,
    projects_of,
    read_project,
    same_project,
)

SHOP = "github.com/acme/shop"


@pytest.mark.parametrize(
    "address",
    [
        "https://github.com/acme/shop",
        "https://github.com/acme/shop.git",
        "https://github.com/acme/shop/",
        "https://github.com/acme/shop.git/",
        "https://ann:secret@GitHub.com:443/acme/shop.git",
        "http://github.com//acme/shop?x=1#top",
        "ssh://git@github.com/acme/shop.git",
        "ssh://git@github.com:2222/acme/shop",
        "ssh://git@ssh.github.com:443/acme/shop.git",
        "git+ssh://github.com/acme/shop",
        "git://github.com/acme/shop",
        "git@github.com:acme/shop.git",
        "git@github.com:/acme/shop.git",
        "GITHUB.COM:acme/shop/",
        "github.com./acme/shop",
        "GitHub.com/acme/shop",
        "  github.com/acme/shop  ",
    ],
)
def test_address_of_a_repository_gives_one_key(address: str) -> None:
    """Behaviour 310: all clones of a repository have one key."""
    assert normalise_project(address) == SHOP


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("file:///srv/git/shop.git", "localhost/srv/git/shop"),
        ("file://localhost/srv/git/shop.git/", "localhost/srv/git/shop"),
        ("/srv/git/shop.git", "localhost/srv/git/shop"),
        ("https://host/my%20shop", "host/my shop"),
        ("https://[::1]:8080/shop", "::1/shop"),
        ("ssh://git@host/~ann/shop", "host/~ann/shop"),
        ("shop", "shop"),
        ("shop.git", "shop"),
        ("team/shop", "team/shop"),
        ("My shop", "My shop"),
    ],
)
def test_other_address_gives_its_own_key(address: str, key: str) -> None:
    assert normalise_project(address) == key


@pytest.mark.parametrize(
    "text", ["", "  ", "/", "..", "a\nb", "a\0b", "x" * 301, "https://[::1/shop", "a\u200bb"]
)
def test_text_that_names_no_project_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        normalise_project(text)


@given(st.text(max_size=400))
def test_key_is_short_and_normalising_it_changes_nothing(text: str) -> None:
    try:
        key = normalise_project(text)
    except InvalidInput:
        return
    assert 0 < len(key) <= LONGEST_KEY
    assert same_project(key, key)
    assert ProjectFilter(key).passes((key,))


def test_name_matches_the_keys_that_end_with_it() -> None:
    assert same_project("shop", SHOP)
    assert same_project(SHOP, "Shop")
    assert same_project(SHOP, "github.com/Acme/Shop")
    assert not same_project(SHOP, "github.com/other/shop")
    assert not same_project("hop", SHOP)


def test_property_of_a_note_gives_its_keys() -> None:
    assert projects_of("git@github.com:acme/shop.git") == (SHOP,)
    assert projects_of([SHOP, "blog", SHOP, 3, ["x"], ""]) == (SHOP, "blog")
    assert projects_of("[[areas/Shop|our shop]]") == projects_of([["areas/Shop|our shop"]]) == ("Shop",)
    assert projects_of(None) == projects_of(7) == projects_of({"a": 1}) == projects_of("a\nb") == ()


def test_filter_passes_own_notes_and_notes_without_project() -> None:
    """Behaviour 311: notes of the project and notes without a project pass, others do not."""
    own, common = ProjectFilter(SHOP), ProjectFilter(SHOP, has_common=True)
    assert own.passes((SHOP,))
    assert own.passes(("blog", "shop"))
    assert not own.passes(())
    assert common.passes(())
    assert common.passes(("shop",))
    assert not common.passes(("github.com/other/shop",))
    assert ProjectFilter("").passes(())
    assert not ProjectFilter("").passes((SHOP,))


def test_name_of_the_own_project_in_an_argument_means_its_key() -> None:
    assert read_project("shop", SHOP) == SHOP
    assert read_project("blog", SHOP) == "blog"
    assert read_project("*", SHOP) == "*"
    assert read_project(" ", SHOP) == ""
    assert read_project(None, SHOP) is None


def test_long_text_is_refused_before_it_is_normalised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Normalising 90,000 combining marks takes 12 s."""
    monkeypatch.setattr(projects, "normalize", lambda form, text: pytest.fail("normalised"))
    with pytest.raises(InvalidInput):
        normalise_project("a" + "\u0300\u0323" * 45_000)
