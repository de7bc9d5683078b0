"""Sections of the configuration: each capability declares its own sections.

A missing capability declares no section.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from attrs import field, frozen

from lithos.app.capabilities import CAPABILITIES
from lithos.kernel.configuration.catalogue import DECLARED, Config
from lithos.kernel.settings import StorageConfig
from lithos.search.settings import SearchConfig
from tests.house import PACKAGE

WITHOUT_ATTACHMENTS = """
import sys
from pathlib import Path

sys.modules["lithos.attachments"] = None
from lithos.kernel.configuration.catalogue import SETTINGS, SECTIONS
from lithos.kernel.configuration.load import load_config

file = Path(sys.argv[1])
file.write_text("attachments: {enabled: true}\\nsearch: {max_results: 7}\\n")
loaded = load_config(config_path=file, environment={"LITHOS_ATTACHMENTS__ENABLED": "yes"})
assert "attachments" not in SECTIONS and "search.max_results" in SETTINGS
print("\\n".join(loaded.warnings))
"""


def test_disabled_capability_removes_its_section(tmp_path: Path) -> None:
    """The keys of the section become unknown keys, which are reported at startup and ignored."""
    file = tmp_path / "config.yaml"
    command = [sys.executable, "-c", WITHOUT_ATTACHMENTS, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        f"attachments in file {file} is not a setting and is ignored",
        "environment variable LITHOS_ATTACHMENTS__ENABLED is not a setting and is ignored",
    ]


def test_sections_have_unique_positions_and_names() -> None:
    """With equal positions, the order of sections would depend on the file system."""
    for values in ([each.place for each in DECLARED], [each.name for each in DECLARED]):
        assert len(set(values)) == len(DECLARED) > 0


def test_all_sections_belong_to_listed_capabilities() -> None:
    """A settings module of an unlisted package would declare a section that the app's list lacks."""
    owners = {each.kind.__module__.split(".")[1] for each in DECLARED}
    assert owners == {path.parent.name for path in PACKAGE.glob("*/settings.py")}
    assert owners - {each.name for each in CAPABILITIES} == {"kernel", "server"}


def test_declared_keys_belong_to_their_section() -> None:
    """Older names, short variables and retired keys belong to the section that they concern."""
    for section in DECLARED:
        keys = [*section.older, *section.older.values(), *section.short.values(), *section.retired]
        assert [key for key in keys if not key.startswith(section.prefix)] in ([], ["telemetry"])


def test_replacing_a_section_keeps_values_of_other_sections() -> None:
    """`of` finds a section by its class, regardless of how the section was passed in."""
    config = Config(StorageConfig(knowledge_subdir="mine"), search=SearchConfig(max_results=7))
    changed = config.replace(SearchConfig(max_results=8))
    assert (config.of(SearchConfig).max_results, changed.of(SearchConfig).max_results) == (7, 8)
    assert changed.of(StorageConfig).knowledge_subdir == "mine"
    assert changed.replace(config.of(SearchConfig)) == config != changed


def test_undeclared_section_is_refused() -> None:
    """Without the refusal, the values of a misspelt section would be lost."""

    @frozen
    class OtherConfig:
        size: int = field(default=1)

    with pytest.raises(TypeError, match="OtherConfig"):
        Config(other=OtherConfig())
