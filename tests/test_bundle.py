"""Published files: server.json, .mcpb manifest and marketplace must match their schemas (behaviour 245).

The rules are JSON schemas in our own words: server.json has version 2025-12-11, and the manifest version 0.4.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from lithos import __version__
from lithos.app.options import parse_arguments
from tests.clients.plugin.test_plugin import check_plugin, files_of, read
from tests.release import bundle

ROOT = Path(__file__).parents[1]
TEXT: dict[str, Any] = {"type": "string"}


def closed(needed: str, /, **properties: Any) -> dict[str, Any]:
    """Return the schema of an object that has these properties, all required properties, and no others."""
    return {
        "type": "object",
        "required": needed.split(),
        "properties": properties,
        "additionalProperties": False,
    }


INPUT = {
    "description": TEXT, "isRequired": {"type": "boolean"}, "isSecret": {"type": "boolean"}, "value": TEXT,
    "format": {"enum": ["string", "number", "boolean", "filepath"]}, "default": TEXT, "placeholder": TEXT,
    "choices": {"type": "array", "items": TEXT}, "variables": {"type": "object"},
}  # fmt: skip
ARGUMENT = {
    "oneOf": [
        {
            **closed("type", type={"const": "positional"}, valueHint=TEXT, isRepeated={}, **INPUT),
            "anyOf": [{"required": ["value"]}, {"required": ["valueHint"]}],
        },
        closed("type name", type={"const": "named"}, name=TEXT, isRepeated={}, **INPUT),
    ]
}
ARGUMENTS = {"type": "array", "items": ARGUMENT}
SERVER_PACKAGE = closed(
    "registryType identifier transport",
    registryType={"enum": ["npm", "pypi", "oci", "nuget", "mcpb"]},
    identifier=TEXT,
    version={"type": "string", "minLength": 1, "not": {"pattern": "latest|[\\^~*<>=]|\\bx\\b"}},
    runtimeHint=TEXT,
    fileSha256={"type": "string", "pattern": "^[a-f0-9]{64}$"},
    transport=closed("type", type={"const": "stdio"}),
    packageArguments=ARGUMENTS,
    runtimeArguments=ARGUMENTS,
    environmentVariables={"type": "array", "items": closed("name", name=TEXT, **INPUT)},
)
SERVER = closed(
    "$schema name description version",
    **{"$schema": {"const": bundle.SCHEMA}},
    name={"type": "string", "maxLength": 200, "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$"},
    title={"type": "string", "minLength": 1, "maxLength": 100},
    description={"type": "string", "minLength": 1, "maxLength": 100},
    version={"type": "string", "maxLength": 255},
    repository=closed("url source", url=TEXT, source={"const": "github"}),
    packages={"type": "array", "items": SERVER_PACKAGE, "minItems": 1},
)
MCP_CONFIG = closed(
    "command",
    command=TEXT,
    args={"type": "array", "items": TEXT},
    env={"type": "object", "additionalProperties": TEXT},
)
SETTING = closed(
    "type title description",
    type={"enum": ["string", "number", "boolean", "directory", "file"]},
    title=TEXT,
    description=TEXT,
    required={"type": "boolean"},
    default=TEXT,
    multiple={"type": "boolean"},
    sensitive={"type": "boolean"},
)
MANIFEST = closed(
    "manifest_version name version description author server",
    manifest_version={"const": "0.4"},
    name=TEXT,
    display_name=TEXT,
    version={"type": "string", "pattern": r"^\d+\.\d+\.\d+"},
    description=TEXT,
    author=closed("name", name=TEXT, email=TEXT, url=TEXT),
    license=TEXT,
    keywords={"type": "array", "items": TEXT},
    server=closed("type entry_point", type={"const": "uv"}, entry_point=TEXT, mcp_config=MCP_CONFIG),
    tools_generated={"type": "boolean"},
    prompts_generated={"type": "boolean"},
    compatibility=closed(
        "",
        claude_desktop=TEXT,
        platforms={"type": "array", "items": {"enum": ["darwin", "win32", "linux"]}},
        runtimes=closed("", python=TEXT, node=TEXT),
    ),
    user_config={"type": "object", "additionalProperties": SETTING},
)
KEBAB = {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"}
MARKETPLACE = closed(
    "name owner plugins",
    # The client refuses "inline" and every name that contains the name of its maker.
    name={**KEBAB, "not": {"pattern": "claude|anthropic|^inline$"}},
    owner=closed("name", name=TEXT, email=TEXT),
    metadata=closed("", description=TEXT, version=TEXT, pluginRoot=TEXT),
    plugins={
        "type": "array",
        "minItems": 1,
        "items": closed(
            "name source",
            name=KEBAB,
            source={"type": "string", "pattern": r"^\./(?!.*\.\.)"},
            version=TEXT,
            description=TEXT,
            author=closed("name", name=TEXT, email=TEXT),
            license=TEXT,
            keywords={"type": "array", "items": TEXT},
            category=TEXT,
        ),
    },
)
#: As Codex 0.171 reads them. The path must be below the marketplace: Codex ignores a plugin in its root.
CODEX_MARKETPLACE = closed(
    "name interface plugins",
    name=KEBAB,
    interface=closed("displayName", displayName=TEXT),
    plugins={
        "type": "array",
        "minItems": 1,
        "items": closed(
            "name source policy category",
            name=KEBAB,
            source=closed(
                "source path",
                source={"const": "local"},
                path={"type": "string", "pattern": r"^\./(?!.*\.\.).+"},
            ),
            policy=closed(
                "installation authentication",
                installation={"enum": ["AVAILABLE", "INSTALLED_BY_DEFAULT", "NOT_AVAILABLE"]},
                authentication={"enum": ["ON_INSTALL", "ON_USE"]},
            ),
            category=TEXT,
        ),
    },
)
CODEX_PLUGIN = closed(
    "name version description interface",
    name=KEBAB,
    version=TEXT,
    description=TEXT,
    author=closed("name", name=TEXT, email=TEXT, url=TEXT),
    repository=TEXT,
    license=TEXT,
    keywords={"type": "array", "items": TEXT},
    skills={"const": "./skills/"},
    mcpServers={"const": "./.mcp.json"},
    interface=closed(
        "displayName shortDescription",
        displayName=TEXT,
        shortDescription=TEXT,
        longDescription=TEXT,
        developerName=TEXT,
        category=TEXT,
        capabilities={"type": "array", "items": {"enum": ["Interactive", "Read", "Write"]}},
        websiteURL=TEXT,
    ),
)


def check(document: Any, schema: dict[str, Any]) -> None:
    Draft7Validator.check_schema(schema)
    Draft7Validator(schema).validate(document)


def command_of(package: dict[str, Any]) -> list[str]:
    """Return the arguments that a client passes to the program."""
    words: list[str] = []
    for argument in package["packageArguments"]:
        words += [argument["name"]] if argument["type"] == "named" else []
        words.append(argument["value"])
    return words


def test_published_files_match_their_schemas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Behaviour 245."""
    folder = tmp_path / "forms"
    assert bundle.main([str(folder)]) == 0
    printed = capsys.readouterr().out
    assert all(f"  {name}\n" in printed for name in files_of(folder))
    check(read(folder / "server.json"), SERVER)
    with zipfile.ZipFile(folder / f"lithos-{__version__}.mcpb") as archive:
        check(json.loads(archive.read("manifest.json")), MANIFEST)
    check(read(folder / ".agents" / "plugins" / "marketplace.json"), CODEX_MARKETPLACE)
    check(read(folder / ".codex-plugin" / "lithos" / ".codex-plugin" / "plugin.json"), CODEX_PLUGIN)
    marketplace = read(folder / ".claude-plugin" / "marketplace.json")
    check(marketplace, MARKETPLACE)
    (plugin,) = marketplace["plugins"]
    check_plugin(folder / plugin["source"])
    assert read(folder / plugin["source"] / ".claude-plugin" / "plugin.json")["name"] == plugin["name"]
    before = files_of(folder)
    assert bundle.main([str(folder)]) == 0
    assert files_of(folder) == before


def test_published_packages_start_a_server_on_stdio() -> None:
    """Behaviour 245."""
    document = bundle.make_server_json(bundle.NAME, "owner/lithos:1.2.3")
    python, image = document["packages"]
    for package in (python, image):
        parsed = parse_arguments(command_of(package))
        assert (parsed.command, parsed.typed["transport"]) == ("serve", "stdio")
    assert (python["version"], document["version"]) == (__version__, __version__)
    assert image["identifier"] == "owner/lithos:1.2.3"  # the image tag is the version
    assert "version" not in image
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert python["identifier"] == project["name"]
    # uvx runs the program whose name equals the package name.
    assert project["scripts"][python["identifier"]] == project["scripts"]["lithos"]


def test_published_files_do_not_name_a_package_registry(tmp_path: Path) -> None:
    assert bundle.main([str(tmp_path / "forms")]) == 0
    for name, content in files_of(tmp_path / "forms").items():
        addresses = re.findall(rb"https?://([^/\"\s]+)", content)
        assert set(addresses) <= {b"static.modelcontextprotocol.io", b"github.com"}, name
        assert b"registryBaseUrl" not in content


def test_readme_and_image_contain_the_registry_name() -> None:
    """docs/spec/integration.md §2: checks the name marker in README and the label of the image."""
    assert f"mcp-name: {bundle.NAME} " in (ROOT / "README.md").read_text(encoding="utf-8")
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    assert f'LABEL io.modelcontextprotocol.server.name="{bundle.NAME}"' in dockerfile
    assert bundle.DEFAULT_IMAGE.endswith(f":{__version__}")


def test_bundle_contains_all_files_in_its_manifest(tmp_path: Path) -> None:
    """Behaviour 245."""
    manifest = bundle.make_manifest()
    with zipfile.ZipFile(io.BytesIO(bundle.make_bundle())) as archive:
        names = set(archive.namelist())
        project = tomllib.loads(archive.read("pyproject.toml").decode())["project"]
        source = archive.read(manifest["server"]["entry_point"]).decode()
    assert names == {"manifest.json", "pyproject.toml", "src/server.py", ".mcpbignore"}
    assert manifest["server"]["mcp_config"]["args"][-1] in names
    assert project["dependencies"] == [f"lithos-server=={__version__}"]
    assert project["requires-python"] == manifest["compatibility"]["runtimes"]["python"]
    for name in re.findall(r"\$\{user_config\.(\w+)\}", json.dumps(manifest)):
        assert name in manifest["user_config"]
    compile(source, "server.py", "exec")
    assert bundle.make_bundle() == bundle.make_bundle()


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [(None, "Lithos"), ("", "Lithos"), ("${user_config.data_dir}", "Lithos"), ("~/notes", "notes")],
)
def test_entry_point_serves_the_folder_that_the_client_chose(
    chosen: str | None, expected: str, tmp_path: Path
) -> None:
    zipfile.ZipFile(io.BytesIO(bundle.make_bundle())).extractall(tmp_path)
    fake = tmp_path / "lithos" / "app"
    fake.mkdir(parents=True)
    (tmp_path / "lithos" / "__init__.py").write_text("")
    (fake / "main.py").write_text(
        "import os\ndef main(words):\n    print(os.environ['LITHOS_DATA_DIR'], *words)\n"
    )
    environment = {"HOME": "/home/ann", "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "src" / "server.py")],
        capture_output=True, text=True, check=True,
        env=environment if chosen is None else environment | {"LITHOS_DATA_DIR": chosen},
    )  # fmt: skip
    assert done.stdout == f"/home/ann/{expected} serve --transport stdio\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--name", "lithos"], "is not a name of the MCP registry"),
        (["--name", "a/b/c"], "is not a name of the MCP registry"),
        (["--image", "owner/lithos"], "is not an image with a tag"),
        (["--image", "owner/lithos:latest"], "is not an image with a tag"),
    ],
)
def test_bundle_command_refuses_wrong_names(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        bundle.main([str(tmp_path / "forms"), *arguments])
    assert words in capsys.readouterr().err
    assert not (tmp_path / "forms").exists()


def test_bundle_command_does_not_change_folders_of_other_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "server.json").write_text("theirs")
    with pytest.raises(SystemExit, match="2"):
        bundle.main([str(tmp_path)])
    assert "Nothing was written" in capsys.readouterr().err
    assert files_of(tmp_path) == {"server.json": b"theirs"}
