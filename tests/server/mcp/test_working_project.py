"""The project of a folder (docs/spec/projects.md §1), with real repositories and with written ones."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.kernel.databases.lock import lock_of
from lithos.server.mcp.working_project import PROJECT_FILE, _read_origin, project_of

SHOP = "github.com/acme/shop"
with_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in which git ignores the configuration of the user."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return Path(os.path.realpath(tmp_path))


def git(folder: Path, *arguments: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    own = ("-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *own, *arguments], cwd=folder, check=True, capture_output=True, timeout=60)


def repository(folder: Path, origin: str | None = None) -> Path:
    git(folder, "init", "--quiet")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "first")
    if origin is not None:
        git(folder, "remote", "add", "origin", origin)
    return folder


def written(folder: Path, config: str) -> Path:
    """Write the files of a repository that this module reads."""
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git" / "config").write_text(config)
    return folder


@with_git
def test_worktrees_clones_and_subfolders_are_one_project(tmp_path: Path) -> None:
    """Behaviour 310."""
    one = repository(tmp_path / "one", "git@github.com:acme/shop.git")
    two = repository(tmp_path / "two", "https://ann:secret@GitHub.com:443/acme/shop/")
    git(one, "worktree", "add", str(tmp_path / "one-fix"))
    git(two, "worktree", "add", str(two / "below" / "fix"))
    git(tmp_path, "clone", "--quiet", str(one), "copy")
    git(tmp_path, "clone", "--quiet", str(tmp_path / "copy"), "copy-of-copy")
    (one / "src" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(one / "src")
    folders = [one, one / "src/deep", one / ".git", two, two / "below/fix", two / "below"]
    folders += [tmp_path / name for name in ("one-fix", "link", "link/deep", "copy", "copy-of-copy")]
    assert {str(folder): project_of(folder) for folder in folders} == dict.fromkeys(map(str, folders), SHOP)


@with_git
def test_repository_without_origin_has_the_name_of_its_folder(tmp_path: Path) -> None:
    """Behaviour 310: its worktrees have the name of the repository, not their own."""
    shop = repository(tmp_path / "shop")
    git(shop, "worktree", "add", str(tmp_path / "fix"))
    git(shop, "clone", "--quiet", "--bare", str(shop), str(tmp_path / "bare.git"))
    git(tmp_path, "init", "--quiet", "--bare", "blog.git")
    git(tmp_path, "init", "--quiet", "--separate-git-dir", str(tmp_path / "store.git"), "apart")
    git(tmp_path / "blog.git", "fetch", "--quiet", str(shop), "HEAD:refs/heads/main")
    git(tmp_path / "blog.git", "worktree", "add", str(tmp_path / "blog-fix"), "main")
    assert project_of(shop) == project_of(tmp_path / "fix") == "shop"
    assert project_of(tmp_path / "blog.git") == project_of(tmp_path / "blog-fix") == "blog"
    assert project_of(tmp_path / "bare.git") == f"localhost{tmp_path}/shop"
    assert project_of(tmp_path / "apart") == "store"
    (shop / ".git" / "config").rename(shop / "config")
    assert project_of(tmp_path / "fix") == "shop"


@with_git
def test_submodule_is_a_project_of_its_own(tmp_path: Path) -> None:
    part = repository(tmp_path / "part", "ssh://git@host.example:2222/acme/part.git")
    shop = repository(tmp_path / "shop", "https://github.com/acme/shop.git")
    git(shop, "submodule", "add", str(part), "libs/part")
    git(shop / "libs/part", "worktree", "add", str(tmp_path / "part-fix"))
    assert project_of(shop / "libs") == SHOP
    assert project_of(shop / "libs/part") == project_of(tmp_path / "part-fix") == "host.example/acme/part"
    git(shop / "libs/part", "remote", "remove", "origin")
    assert project_of(shop / "libs/part") == project_of(tmp_path / "part-fix") == "part"


@with_git
def test_worktree_without_its_repository_has_the_name_of_the_repository(tmp_path: Path) -> None:
    """A container may have only the worktree."""
    shop = repository(tmp_path / "shop", "https://github.com/acme/shop.git")
    git(shop, "worktree", "add", str(tmp_path / "fix"))
    shop.rename(tmp_path / "elsewhere")
    assert project_of(tmp_path / "fix") == "shop"


@pytest.mark.parametrize("origin", ["../srv/shop.git", "file:///{root}/srv/shop.git", "{root}/srv/shop.git/"])
def test_remote_on_this_machine_has_one_key_for_all_clones(tmp_path: Path, origin: str) -> None:
    """Behaviour 310."""
    clone = written(tmp_path / "clone", f'[remote "origin"]\nurl = {origin.format(root=tmp_path)}\n')
    assert project_of(clone) == f"localhost{tmp_path}/srv/shop"
    srv = tmp_path / "srv" / "shop.git"
    (srv / "objects").mkdir(parents=True)
    (srv / "HEAD").touch()
    (srv / "config").write_text("[core]\nbare = true\n")
    assert project_of(clone) == f"localhost{tmp_path}/srv/shop"
    (srv / "config").write_text('[remote "origin"]\nurl = https://github.com/acme/shop\n')
    assert project_of(clone) == SHOP


def test_clones_of_each_other_end(tmp_path: Path) -> None:
    one = written(tmp_path / "one", '[remote "origin"]\nurl = ../two\n')
    written(tmp_path / "two", '[remote "origin"]\nurl = ../one\n')
    assert project_of(one) == f"localhost{tmp_path}/two"


def test_project_file_precedes_the_origin(tmp_path: Path) -> None:
    shop = written(tmp_path / "shop", '[remote "origin"]\nurl = https://github.com/acme/shop\n')
    (shop / "web" / "src").mkdir(parents=True)
    (shop / "web" / PROJECT_FILE).write_bytes(b"\xef\xbb\xbf shop web \r\nmore\r\n")
    (tmp_path / PROJECT_FILE).write_text("outside")
    assert project_of(shop) == SHOP
    assert project_of(shop / "web/src") == project_of(shop / "web") == "shop web"
    (shop / PROJECT_FILE).write_text("git@github.com:acme/monorepo.git")
    assert project_of(shop) == "github.com/acme/monorepo"
    assert project_of(tmp_path) == "outside"


@pytest.mark.parametrize("content", [b"", b"\n shop", b"a\0b", b"\xff\xfe", b"x" * 600_000, b"..", None])
def test_invalid_project_file_is_passed_over(tmp_path: Path, content: bytes | None) -> None:
    shop = written(tmp_path / "shop", '[remote "origin"]\nurl = https://github.com/acme/shop\n')
    if content is None:  # Opening a pipe would wait for a writer.
        os.mkfifo(shop / PROJECT_FILE)
    else:
        (shop / PROJECT_FILE).write_bytes(content)
    assert project_of(shop) == SHOP


def test_folder_without_git_has_its_own_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "My notes").mkdir()
    (tmp_path / "empty" / ".git").mkdir(parents=True)
    assert project_of(tmp_path / "My notes") == "My notes"
    assert project_of(tmp_path / "empty") == "empty"
    assert project_of(tmp_path / "deleted") == "deleted"
    monkeypatch.chdir(tmp_path / "My notes")
    assert project_of(Path()) == "My notes"
    assert project_of(Path("a\0b")) is None
    (tmp_path / "My notes").rmdir()
    assert project_of(Path()) is None


def test_home_and_folders_above_it_have_no_project(tmp_path: Path) -> None:
    """An agent that starts in the home folder works on no project called after the user."""
    home = tmp_path / "home"
    home.mkdir()
    assert project_of(home) is project_of(tmp_path) is project_of(Path("/")) is None
    assert project_of(home / "talk") == "talk"
    written(home, "")
    assert project_of(home) is None
    assert project_of(home / "talk") == "talk"
    (home / ".git" / "config").write_text('[remote "origin"]\nurl = https://github.com/ann/dotfiles\n')
    assert project_of(home) == project_of(home / "talk") == "github.com/ann/dotfiles"


def test_vault_that_is_served_has_no_project(tmp_path: Path) -> None:
    """An agent that starts in the vault works on the notes of all projects."""
    vault = written(tmp_path / "notes", '[remote "origin"]\nurl = https://github.com/ann/notes\n')
    written(vault / "code" / "shop", '[remote "origin"]\nurl = https://github.com/acme/shop\n')
    (vault / "web").mkdir()
    (vault / "web" / PROJECT_FILE).write_text("web")
    assert project_of(vault) == project_of(vault / "daily") == "github.com/ann/notes"
    lock = lock_of(tmp_path / "data", vault)
    lock.acquire("now")
    assert project_of(vault) is project_of(vault / "daily") is None
    assert project_of(tmp_path / "data" / "knowledge") is None
    assert project_of(vault / "code" / "shop") == SHOP
    assert project_of(vault / "web") == "web"
    lock.release()
    assert project_of(vault) == "github.com/ann/notes"


@pytest.mark.parametrize(
    ("git_file", "key"),
    [
        ("gitdir: ../shop/.git", SHOP),
        ("gitdir: ../shop/.git\n", SHOP),
        ("gitdir: a\0b", None),
        ("gitdir: " + "x" * 5_000, "w"),
        ("something else", "w"),
        ("gitdir: ", "w"),
    ],
)
def test_git_file_names_the_repository(tmp_path: Path, git_file: str, key: str | None) -> None:
    written(tmp_path / "shop", '[remote "origin"]\nurl = https://github.com/acme/shop\n')
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / ".git").write_text(git_file)
    assert project_of(tmp_path / "w") == key


@pytest.mark.parametrize(
    ("config", "origin"),
    [
        ("", None),
        ('[remote "origin"]\n\turl = https://h/a # the shop\n', "https://h/a"),
        ('[remote "origin"] url=https://h/a;x\n', "https://h/a"),
        ('\n  [REMOTE "origin"]\n  ; url = no\n  URL = "https://h/a#b;c"  \n', "https://h/a#b;c"),
        ('[remote "Origin"]\nurl = https://h/a\n', None),
        ('[remote "upstream"]\nurl = https://h/a\n', None),
        ("[remote.origin]\nurl = https://h/a\n", "https://h/a"),
        ('[remote "origin"]\nurl = https://h/\\\na\\\n  b\n', "https://h/a  b"),
        ('[remote "origin"]\nurl = "a \\"b\\" \\\\ c"d\n', 'a "b" \\ cd'),
        ('[remote "origin"]\r\nurl = https://h/a\r\n', "https://h/a"),
        (
            '[remote "origin"]\npushurl = https://h/p\nfetch\nurl = https://h/a\nurl = https://h/b\n',
            "https://h/a",
        ),
        ('[remote "origin"]\nurl = https://h/a\nurl =\nurl = https://h/b\n', "https://h/b"),
        (
            '[alias]\nx = "!f() { \\\n[remote \\"origin\\"]\\\nurl = no\\\n}"\n[remote "origin"]\nurl = y\n',
            "y",
        ),
        ('[remote "origin"\nurl = no\n', None),
        ('[remote "origin"]\n= x\n%\nurl = https://h/a', "https://h/a"),
        ('[url "git@h:"]\ninsteadOf = gh:\n[remote "origin"]\nurl = gh:a/b\n', "git@h:a/b"),
        (
            '[remote "origin"]\nurl = gh:a/b\n[url "x:"]\ninsteadOf = g\n'
            '[url "https://h/"]\ninsteadof = gh:\npushInsteadOf = gh:a\n',
            "https://h/a/b",
        ),
        ('[include]\npath = other\n[remote "o\\rigin"]\nurl = https://h/a\n', "https://h/a"),
    ],
)
def test_origin_is_read_as_git_reads_it(config: str, origin: str | None) -> None:
    assert _read_origin(config.replace("\r\n", "\n")) == origin


@with_git
@pytest.mark.parametrize(
    "config",
    [
        '[remote "origin"] url = a b  # c\n',
        '[Remote "origin"]\n url = "a  " b\\\n  c;d\n',
        '[remote "o\\"rigin"]\nurl=x\n[remote "or\\igin"]\nurl = "\\\\ \\" #"\n',
        '[url "https://h/"]\n insteadOf = gh:\n insteadOf = g\n[remote "origin"]\n\turl = gh:a\n',
    ],
)
def test_origin_equals_that_of_git(tmp_path: Path, config: str) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / ".git" / "config").write_text(config)
    told = subprocess.run(
        ["git", "remote", "get-url", "origin"], cwd=tmp_path, check=True, capture_output=True, timeout=60
    )
    assert _read_origin(config) == told.stdout.decode().strip()


@given(st.text(alphabet='[]"\\#;=\n uremotlign.\r\t', max_size=300))
def test_any_configuration_is_read(config: str) -> None:
    _read_origin(config)


def test_reading_a_configuration_is_linear() -> None:
    """Each of these would take hours if a pattern went back over what it has read."""
    for part in (
        "[",
        '[a "',
        '"',
        "\\",
        "#",
        ";",
        " ",
        "a",
        "a =",
        '[a "\\',
        "a = \\\n",
        '[url "a"]\ninsteadOf = ',
    ):
        _read_origin('[remote "origin"]\nurl = ' + part * (500_000 // len(part)))
