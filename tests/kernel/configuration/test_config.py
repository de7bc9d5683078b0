"""Sources, precedence and errors of the configuration (specification: cli-config, sections 3 to 5)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lithos.kernel.configuration.catalogue import SECTIONS, SETTINGS, Config, as_public_dict
from lithos.kernel.configuration.load import LoadedConfig, LogSettings, load_config, load_log_settings
from lithos.kernel.configuration.retired import RETIRED
from lithos.kernel.configuration.rules import PATTERNS
from lithos.kernel.configuration.sources import ConfigError
from lithos.kernel.settings import StorageConfig
from lithos.notes.model.scopes import Scope, check_typed, scopes_of_agents
from lithos.notes.settings import AgentsConfig
from lithos.server.settings import ServerConfig
from lithos.tasks.settings import CoordinationConfig

SECRET = "s3cr3t-pass-w0rd"


def load(
    tmp_path: Path,
    text: str = "",
    *,
    env: Mapping[str, str] | None = None,
    typed: Mapping[str, Any] | None = None,
) -> LoadedConfig:
    """Load the configuration, with `text` as the file given by --config."""
    path = tmp_path / "lithos.yaml"
    path.write_text(text, encoding="utf-8")
    return load_config(config_path=path, environment=env or {}, overrides=typed or {})


def refusal(tmp_path: Path, text: str = "", **more: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text, **more)
    return str(caught.value)


def test_empty_configuration_yields_default_values(tmp_path: Path) -> None:
    loaded = load_config(data_dir=tmp_path, environment={})
    assert loaded.source is None
    assert loaded.warnings == ()
    assert loaded.config.of(StorageConfig).data_dir == tmp_path
    assert as_public_dict(loaded.config)["server"] == as_public_dict(Config())["server"]


def test_later_source_overrides_earlier_source(tmp_path: Path) -> None:
    """behaviour 163: environment beats YAML; typed options beat both."""
    text = "server:\n  port: 1001\n"
    short = {"LITHOS_PORT": "1002"}
    long = {**short, "LITHOS_SERVER__PORT": "1003"}
    assert load(tmp_path).config.of(ServerConfig).port == 8765
    assert load(tmp_path, text).config.of(ServerConfig).port == 1001
    assert load(tmp_path, text, env=short).config.of(ServerConfig).port == 1002
    assert load(tmp_path, text, env=long).config.of(ServerConfig).port == 1003
    assert load(tmp_path, text, env=long, typed={"server.port": 1004}).config.of(ServerConfig).port == 1004


def test_invalid_port_error_names_its_setting(tmp_path: Path) -> None:
    """behaviour 163: non-integer LITHOS_PORT stops the start (the caller exits 2 on `ConfigError`)."""
    for text in ("abc", "80.5", "1_000", "0x10", "70000", "-1", "true"):
        assert refusal(tmp_path, env={"LITHOS_PORT": text}) == (
            f"server.port: '{text}' from environment variable LITHOS_PORT is not allowed; "
            "give a whole number from 0 to 65535"
        )


def test_overridden_invalid_value_is_still_refused(tmp_path: Path) -> None:
    assert "LITHOS_PORT" in refusal(tmp_path, env={"LITHOS_PORT": "abc"}, typed={"server.port": 9000})


def test_all_invalid_values_are_reported_at_once(tmp_path: Path) -> None:
    text = "server:\n  port: nine\nsearch:\n  fusion: max\n"
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text, env={"LITHOS_HISTORY__ENABLED": "perhaps"})
    keys = [problem.split(":")[0] for problem in caught.value.problems]
    assert keys == ["server.port", "search.fusion", "history.enabled"]
    assert "lithos.yaml" in caught.value.problems[0]
    assert "one of blend, rrf" in caught.value.problems[1]
    assert "true or false" in caught.value.problems[2]


WRONG = (
    ("server", "port", ("true", "'9000'", "1.0", "null")),
    ("server", "watch_files", ("1", "'yes'")),
    ("server", "host", ("5", "''")),
    ("server", "transport", ("tcp", "[stdio]")),
    ("server", "allowed_hosts", ("a.example", "[1]", "['']")),
    ("storage", "knowledge_subdir", ("/notes", "a/../..", ".lithos")),
    ("storage", "data_dir", ("''",)),
    ("storage", "max_content_size_bytes", ("0",)),
    ("search", "semantic_threshold", ("1.5", ".nan", "'0.4'")),
    ("search", "max_results", ("0",)),
    ("lcma", "sweep_interval_hours", ("0",)),
)


def test_value_of_wrong_type_or_range_is_refused(tmp_path: Path) -> None:
    for section, key, values in WRONG:
        for value in values:
            assert refusal(tmp_path, f"{section}: {{{key}: {value}}}").startswith(f"{section}.{key}: "), value


def test_environment_accepts_words_as_switches_and_json_or_comma_lists(tmp_path: Path) -> None:
    words = dict.fromkeys(("1", "true", "YES", "on"), True) | dict.fromkeys(("0", "False", "no"), False)
    for text, value in words.items():
        assert (
            load(tmp_path, env={"LITHOS_SERVER__CONSOLE": text}).config.of(ServerConfig).console is value
        ), text
    hosts = "LITHOS_SERVER__ALLOWED_HOSTS"
    for text in ('["a.example", "b.example:80"]', "a.example, b.example:80,"):
        loaded = load(tmp_path, env={hosts: text})
        assert loaded.config.of(ServerConfig).allowed_hosts == ("a.example", "b.example:80")
    assert "allowed_hosts" in refusal(tmp_path, env={hosts: "[a, b"})


def test_every_setting_can_be_set_in_the_environment(tmp_path: Path) -> None:
    defaults = Config()
    shown = as_public_dict(defaults)
    for key, setting in SETTINGS.items():
        value: Any = shown
        for part in key.split("."):
            value = value[part]
        if value is None:
            continue
        text = yaml.safe_dump(value, default_flow_style=True) if isinstance(value, list) else str(value)
        text = text.replace("'", '"')
        loaded = load(tmp_path, env={setting.variable: text})
        assert loaded.warnings == (), key
        assert loaded.config == defaults, key


def test_short_variable_names_change_their_settings(tmp_path: Path) -> None:
    config = load_config(
        environment={
            "LITHOS_DATA_DIR": str(tmp_path),
            "LITHOS_HOST": "0.0.0.0",
            "LITHOS_TRANSPORT": "http",
            "LITHOS_AUTH_TOKEN": SECRET,
            "PATH": "/bin",
        }
    ).config
    assert config.of(StorageConfig).data_dir == tmp_path
    server = config.of(ServerConfig)
    assert (server.host, server.transport, server.auth_token) == ("0.0.0.0", "http", SECRET)


def test_empty_variable_counts_as_unset(tmp_path: Path) -> None:
    env = {"LITHOS_AUTH_TOKEN": "", "LITHOS_PORT": " ", "LITHOS_SERVER__ALLOWED_HOSTS": ""}
    loaded = load(tmp_path, f"server: {{auth_token: {SECRET}, port: 9001}}", env=env)
    assert (loaded.config.of(ServerConfig).auth_token, loaded.config.of(ServerConfig).port) == (SECRET, 9001)


def test_command_line_options_may_be_given_as_text(tmp_path: Path) -> None:
    typed = {"server.port": "9002", "server.watch_files": False, "storage.data_dir": tmp_path}
    config = load(tmp_path, typed=typed).config
    assert (config.of(ServerConfig).port, config.of(ServerConfig).watch_files) == (9002, False)
    assert "the command line" in refusal(tmp_path, typed={"server.port": "x"})


def test_unknown_keys_are_ignored_with_a_warning(tmp_path: Path) -> None:
    env = {"LITHOS_SERVER__PRT": "1", "LITHOS_PROT": "1", "LITHOS_LOG_LEVEL": "debug", "OTHER__KEY": "1"}
    loaded = load(tmp_path, "server: {prot: 1}\nextra: {a: 1}\nlcma: {enabld: x}\n7: 8\n", env=env)
    assert loaded.config == Config()
    file = tmp_path / "lithos.yaml"
    assert loaded.warnings == (
        f"server.prot in file {file} is not a setting and is ignored; did you mean server.port?",
        f"extra in file {file} is not a setting and is ignored",
        f"lcma.enabld in file {file} is not a setting and is ignored; did you mean lcma.enabled?",
        f"7 in file {file} is not a setting and is ignored",
        "environment variable LITHOS_PROT is not a setting and is ignored; did you mean LITHOS_PORT?",
        "environment variable LITHOS_SERVER__PRT is not a setting and is ignored; "
        "did you mean LITHOS_SERVER__PORT?",
    )


def test_retired_settings_are_reported_and_ignored(tmp_path: Path) -> None:
    env = {"LITHOS_LCMA__LLM__API_KEY": SECRET, "LITHOS_LCMA__RANKING": "weights"}
    text = f"lcma: {{ranking: weights, llm: {{api_key: '{SECRET}'}}, salience_floor: high}}\n"
    loaded = load(tmp_path, text, env=env)
    assert loaded.config == Config()
    told = [warning.partition(" is no longer used and is ignored: ")[0] for warning in loaded.warnings]
    file = tmp_path / "lithos.yaml"
    assert told == [
        f"lcma.ranking in file {file}",
        f"lcma.llm in file {file}",
        f"lcma.salience_floor in file {file}",
        "environment variable LITHOS_LCMA__LLM__API_KEY",
        "environment variable LITHOS_LCMA__RANKING",
    ]
    assert SECRET not in str(loaded.warnings)


def test_retired_sections_and_short_variables_are_reported_and_ignored(tmp_path: Path) -> None:
    env = {"LITHOS_OTEL_ENABLED": "1", "LITHOS_TELEMETRY__ENDPOINT": "collector:4318"}
    loaded = load(tmp_path, "telemetry: {enabled: true}", env=env)
    assert loaded.config == Config()
    assert [warning.partition(" is no longer used")[0] for warning in loaded.warnings] == [
        f"telemetry in file {tmp_path / 'lithos.yaml'}",
        "environment variable LITHOS_OTEL_ENABLED",
        "environment variable LITHOS_TELEMETRY__ENDPOINT",
    ]


def test_retired_settings_are_sorted_and_unused() -> None:
    assert list(RETIRED) == sorted(RETIRED)
    assert not RETIRED.keys() & {*SETTINGS, *SECTIONS}


def test_older_setting_names_are_read_but_new_names_take_precedence(tmp_path: Path) -> None:
    text = "storage: {knowledge_dir: notes}\ncoordination: {claim_ttl_minutes: 30}\n"
    loaded = load(tmp_path, text)
    assert loaded.warnings == ()
    assert loaded.config.of(StorageConfig).knowledge_subdir == "notes"
    assert loaded.config.of(CoordinationConfig).claim_default_ttl_minutes == 30
    both = "storage: {knowledge_subdir: new, knowledge_dir: old}"
    assert load(tmp_path, both).config.of(StorageConfig).knowledge_subdir == "new"
    env = {"LITHOS_STORAGE__KNOWLEDGE_DIR": "old", "LITHOS_COORDINATION__CLAIM_TTL_MINUTES": "20"}
    config = load(tmp_path, both, env=env).config
    assert (
        config.of(StorageConfig).knowledge_subdir,
        config.of(CoordinationConfig).claim_default_ttl_minutes,
    ) == ("old", 20)
    env["LITHOS_STORAGE__KNOWLEDGE_SUBDIR"] = "newest"
    assert load(tmp_path, both, env=env).config.of(StorageConfig).knowledge_subdir == "newest"


def test_configuration_file_in_data_directory_is_found(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("server: {port: 9003}\nstorage: {data_dir: /elsewhere}\n")
    for found in (
        load_config(data_dir=tmp_path, environment={}),
        load_config(environment={"LITHOS_DATA_DIR": str(tmp_path)}),
        load_config(environment={"LITHOS_DATA_DIR": "/no", "LITHOS_STORAGE__DATA_DIR": str(tmp_path)}),
    ):
        assert found.source == tmp_path / "config.yaml"
        assert found.config.of(ServerConfig).port == 9003
        assert found.config.of(StorageConfig).data_dir == tmp_path
        assert "storage.data_dir" in found.warnings[0]


def test_named_file_replaces_found_file_and_sets_data_directory(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("server: {port: 9003}")
    loaded = load(tmp_path, f"storage: {{data_dir: {tmp_path / 'other'}}}", env={"LITHOS_DATA_DIR": ""})
    assert loaded.config.of(StorageConfig).data_dir == tmp_path / "other"
    assert loaded.config.of(ServerConfig).port == 8765
    assert loaded.warnings == ()


def test_named_configuration_file_must_exist_and_be_readable(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none.yaml", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(ConfigError, match=reason):
            load_config(config_path=path, environment={})


def test_invalid_configuration_file_is_refused(tmp_path: Path) -> None:
    for text, part in (
        ("server: [", "not valid YAML at line 1"),
        ("server:\n\tport: 1", "not valid YAML at line 2"),
        ("- a\n- b\n", "sections"),
        ("server: 5", "server in file"),
        ("a: 2026-99-99", "not valid YAML"),
        ("a: " + "[" * 5000, "not valid YAML"),
    ):
        assert part in refusal(tmp_path, text)


def test_configuration_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes(b"server: {host: '\xff'}")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_config(data_dir=tmp_path, environment={})


def test_empty_files_and_sections_yield_default_values(tmp_path: Path) -> None:
    for text in ("", "# nothing\n", "server:\n", "server:\n  oauth:\n"):
        assert load(tmp_path, text).config == Config(), text


def test_inconsistent_settings_are_refused_with_their_sources(tmp_path: Path) -> None:
    message = refusal(tmp_path, "server: {oauth: {issuer: 'https://id.example'}}")
    assert "server.public_url is not" in message
    assert "lithos.yaml" in message
    assert "server.public_url is from the defaults" in message


def test_values_set_in_code_are_checked() -> None:
    with pytest.raises(ValueError, match=r"ServerConfig\.port: 70000"):
        ServerConfig(port=70000)


def test_configuration_secrets_are_never_shown(tmp_path: Path) -> None:
    config = load(tmp_path, f"server: {{auth_token: '{SECRET}'}}").config
    assert config.of(ServerConfig).auth_token == SECRET
    public = as_public_dict(config)
    assert SECRET not in repr(config) + str(public)
    assert public["server"]["auth_token"] == "(hidden)"
    assert as_public_dict(Config())["server"]["auth_token"] is None


def test_config_error_never_quotes_a_secret(tmp_path: Path) -> None:
    for text in (
        f"server: {{auth_token: '{SECRET} {SECRET}'}}",
        f"server: {{auth_token: ['{SECRET}']}}",
        f"server:\n  auth_token: !{SECRET}\n",
        f"server:\n  auth_token: *{SECRET}\n",
        f"server:\n  auth_token: '{SECRET}\n  port: 1",
        f"server:\n  auth_token: !{SECRET}!x y\n",
        f"server: {SECRET}",
        f"server: {{auth_token: 'é{SECRET}'}}",
        f"server: {{public_url: 'ftp://user:{SECRET}@lithos.example'}}",
    ):
        assert SECRET not in refusal(tmp_path, text)


def test_invalid_secret_set_in_code_is_not_quoted() -> None:
    for end in (" ", "\n"):
        with pytest.raises(ValueError, match="visible ASCII") as caught:
            ServerConfig(auth_token=SECRET + end)
        assert SECRET not in str(caught.value)


def test_log_settings_are_read_before_other_settings() -> None:
    assert load_log_settings({}) == LogSettings(level="info", format="json")
    env = {"LITHOS_LOG_LEVEL": "DEBUG", "LITHOS_LOG_FORMAT": "text"}
    assert load_log_settings(env) == LogSettings(level="debug", format="text")
    with pytest.raises(ConfigError, match="LITHOS_LOG_LEVEL is 'loud'; give one of debug, info"):
        load_log_settings({"LITHOS_LOG_LEVEL": "loud"})


NODES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(key=st.sampled_from(sorted(SETTINGS)), value=NODES)
def test_any_value_is_accepted_or_refused_with_its_key(tmp_path: Path, key: str, value: Any) -> None:
    *sections, name = key.split(".")
    tree: Any = {name: value}
    for section in reversed(sections):
        tree = {section: tree}
    outcome = key
    try:
        load(tmp_path, yaml.safe_dump(tree))
    except ConfigError as error:
        outcome = str(error)
    assert key in outcome


@given(
    key=st.sampled_from(sorted(SETTINGS)),
    text=st.text(max_size=12) | st.from_regex(r"[-+0-9.e]+", fullmatch=True),
)
def test_any_environment_text_is_accepted_or_refused_with_variable_name(key: str, text: str) -> None:
    variable = SETTINGS[key].variable
    outcome = key
    try:
        load_config(config_path=Path("/dev/null"), environment={variable: text})
    except ConfigError as error:
        outcome = str(error)
    assert key in outcome


def test_agents_and_protected_notes_accept_patterns(tmp_path: Path) -> None:
    """behaviours 278 and 279"""
    text = (
        "agents:\n  claude: {write: [notes/], propose: ['**']}\n"
        "storage: {protected: [law/, '**/*.secret.md']}"
    )
    config = load(tmp_path, text).config
    assert config.of(AgentsConfig).agents == {"claude": {"write": ("notes/",), "propose": ("**",)}}
    assert config.of(StorageConfig).protected == ("law/", "**/*.secret.md")
    from_text = load(tmp_path, env={"LITHOS_AGENTS": '{"a": {"propose": ["x/"]}}'}).config
    assert from_text.of(AgentsConfig).agents == {"a": {"propose": ("x/",)}}
    assert scopes_of_agents(config.of(AgentsConfig).agents)["claude"] == Scope(("notes/",), ("**",))


@pytest.mark.parametrize(
    "globs", [["notes"], ["/a/"], ["!a/", "b/"], ["a//b.md"], ["../x.md"], [""], ["x" * 501], ["a/"] * 101]
)
def test_invalid_pattern_is_refused_with_the_error_of_scopes(tmp_path: Path, globs: list[str]) -> None:
    with pytest.raises(ValueError, match="pattern"):
        check_typed(globs)
    assert "storage.protected" in refusal(tmp_path, yaml.safe_dump({"storage": {"protected": globs}}))
    assert "agents" in refusal(tmp_path, yaml.safe_dump({"agents": {"a": {"write": globs}}}))
    assert "agents" in refusal(tmp_path, yaml.safe_dump({"agents": {"a": {"wirte": ["a/"]}}}))


@given(st.lists(st.text("ab*?/.!d\u0301", max_size=6), max_size=3))
def test_accepted_patterns_are_valid_for_scopes(globs: list[str]) -> None:
    try:
        check_typed(globs)
        is_taken = True
    except ValueError:
        is_taken = False
    assert PATTERNS.accepts(tuple(globs)) == is_taken
