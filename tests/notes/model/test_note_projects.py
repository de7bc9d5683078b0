"""The projects of notes, from their properties and from configured folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lithos.kernel.configuration.sources import ConfigError
from lithos.kernel.values.projects import ProjectFilter
from lithos.notes.model.note_projects import NoteProjects, ProjectRules
from lithos.notes.opening import project_rules
from lithos.notes.settings import AgentsConfig, IndexConfig
from tests.fakes import make_entry
from tests.kernel.configuration.test_config import load

SHOP = "github.com/acme/shop"
FOLDERS = {"work/Shop": f"git@{SHOP.replace('/', ':', 1)}.git", "work/shop/old/": "attic", "blog": "blog"}
RULES = ProjectRules("project", FOLDERS)


@pytest.mark.parametrize(
    ("value", "keys"),
    [
        ("shop", ("shop",)),
        (f"https://{SHOP}.git", (SHOP,)),
        ("[[Projects/Shop|the shop]]", ("Shop",)),
        ([["Shop"]], ("Shop",)),
        (["shop", "[[Blog]]", 3], ("shop", "Blog")),
    ],
)
def test_property_names_the_projects_of_a_note(value: Any, keys: tuple[str, ...]) -> None:
    """Behaviour 318: the property decides, whatever the folder of the note is."""
    assert RULES.keys("blog/a.md", {"project": value}) == keys


@pytest.mark.parametrize("value", [None, 7, True, "", "  ", "a\nb", [], [3], {"name": "shop"}, "x" * 2_000])
def test_unusable_property_leaves_the_choice_to_the_folder(value: Any) -> None:
    """Behaviour 318: a person may use the property for something else."""
    assert RULES.keys("blog/a.md", {"project": value}) == ("blog",)
    assert RULES.keys("a.md", {"project": value}) == ()


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("work/shop/a.md", (SHOP,)),
        ("Work/SHOP/deep/down/a.md", (SHOP,)),
        ("work/shop/old/a.md", ("attic",)),
        ("work/shops/a.md", ()),
        ("work/a.md", ()),
        ("blog.md", ()),
        ("a/blog/a.md", ()),
    ],
)
def test_innermost_configured_folder_gives_the_project(path: str, keys: tuple[str, ...]) -> None:
    """Behaviour 318"""
    assert RULES.keys(path, {}) == keys


def test_property_can_be_renamed_or_switched_off() -> None:
    assert ProjectRules("repo").keys("a.md", {"project": "shop", "repo": "blog"}) == ("blog",)
    assert ProjectRules("").keys("a.md", {"project": "shop", "": "blog"}) == ()


def test_configuration_names_folders_and_property(tmp_path: Path) -> None:
    config = load(tmp_path, "projects:\n  work/shop/: shop\nindex:\n  project_property: repo\n").config
    rules = project_rules(config.of(IndexConfig), config.of(AgentsConfig))
    assert rules.keys("work/shop/a.md", {"project": "blog"}) == ("shop",)
    assert rules.keys("work/shop/a.md", {"repo": "blog"}) == ("blog",)


@pytest.mark.parametrize(
    "given", ["{/a: b}", "{../a: b}", "{'': b}", "{a//b: b}", "{a: ''}", "{a: 3}", "[a]", '{a: "b\\nc"}']
)
def test_unusable_folder_or_project_is_refused(tmp_path: Path, given: str) -> None:
    with pytest.raises(ConfigError, match="projects"):
        load(tmp_path, f"projects: {given}\n")


def test_counts_and_filter_follow_each_change() -> None:
    projects, notes = NoteProjects(RULES), [make_entry(serial, f"{serial}.md") for serial in (1, 2, 3)]
    projects.put(1, ("Shop",))
    projects.put(2, ("shop", "blog"))
    projects.put(1, ("shop",))
    assert projects.counts() == {"blog": 1, "shop": 2}
    assert [projects.passes(each, ProjectFilter("shop")) for each in notes] == [True, True, False]
    assert [projects.passes(each, ProjectFilter("")) for each in notes] == [False, False, True]
    assert all(projects.passes(each, None) for each in notes)
    for each in notes:
        projects.put(each.serial, ())
    assert projects.counts() == {}
    assert projects.of(notes[0]) == ()


def test_settings_have_usable_defaults() -> None:
    assert project_rules(IndexConfig(), AgentsConfig()) == ProjectRules()
    assert ProjectRules().keys("a/b.md", {}) == ()
