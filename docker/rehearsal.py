"""Build the stages of the Dockerfile in root directories, check the last one, and start it.

`docker/rehearse.sh` starts this program after it has checked what is needed. The program uses only the
standard library. It must not contain steps of the image: they are read from the Dockerfile.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from steps import Stage, read_stages, set_variables, stage_environment

ROOT = Path(__file__).parent.parent
#: Address of Debian's mirror, if it is not the default of debootstrap.
MIRROR = [each for each in [os.environ.get("LITHOS_REHEARSAL_MIRROR")] if each]
#: Seconds for which the base image is kept.
KEEP = 7 * 86400
#: Variables of this machine's network that the build steps need here, and a Docker engine has by itself.
NETWORK = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "PIP_INDEX_URL",
           "UV_INDEX_URL", "UV_DEFAULT_INDEX")  # fmt: skip
#: Makes the mounts of a build step in its own mount namespace, then runs the step. $1 is the root directory.
BUILD = """
mount -t proc proc "$1/proc"
mount -t tmpfs tmpfs "$1/dev"
for each in null zero full random urandom; do
    touch "$1/dev/$each"
    mount --bind "/dev/$each" "$1/dev/$each"
done
touch "$1/etc/resolv.conf"
mount --bind /etc/resolv.conf "$1/etc/resolv.conf"
mkdir -p "$1/run/rehearsal"
mount -t tmpfs tmpfs "$1/run/rehearsal"
if [ -n "${SSL_CERT_FILE:-}" ]; then cp "$SSL_CERT_FILE" "$1/run/rehearsal/ca.pem"; fi
exec chroot "$1" /usr/bin/env -i "${@:4}" /bin/sh -ec 'cd "$0" && eval "$1"' "$2" "$3"
"""
#: Programs and packages of Python that the image must not contain.
TOOLS = ("gcc", "cc", "g++", "make", "ld", "as", "pip", "pip3", "uv", "curl", "wget", "git")
PACKAGES = ("pip", "ensurepip", "setuptools", "wheel", "uv")


class Failed(Exception):
    """Error because the image is not as it should be. The message says what, and where."""


def say(text: str) -> None:
    print(f"--- {text}", flush=True)


def run(*command: str) -> None:
    """Run a command quietly. Show its output only if it fails. Raises `Failed`."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False
    )
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)[:300]} ended with {done.returncode}:\n{done.stdout[-6000:]}")


def megabytes(*paths: Path) -> int:
    """Return the disk use of folders in MB of 10^6 bytes, without mounted file systems."""
    used = subprocess.run(["du", "-scxk", *map(str, paths)], capture_output=True, text=True, check=True)
    return round(int(used.stdout.splitlines()[-1].split()[0]) * 1024 / 1e6)


def make_base(image: str, root: Path) -> None:
    """Make the root directory of a base image `debian:SUITE-slim`, as Debian makes it: with debootstrap."""
    name, _, suite = image.partition(":")
    if name != "debian" or not suite.endswith("-slim"):
        raise Failed(f"The base image is {image}. The rehearsal can only make debian:SUITE-slim.")
    suite = suite.removesuffix("-slim")
    default = Path.home() / ".cache" / "lithos-rehearsal"
    cache = Path(os.environ.get("LITHOS_REHEARSAL_CACHE") or default)
    kept = cache / f"{suite}.tar"
    if not kept.exists() or time.time() - kept.stat().st_mtime > KEEP:
        cache.mkdir(parents=True, exist_ok=True)
        say(f"debootstrap {suite}: the base image {image}")
        fresh = root.parent / "debootstrap"
        run("debootstrap", "--variant=minbase", suite, str(fresh), *MIRROR)
        partial = cache / f"{suite}.{os.getpid()}.tmp"
        run("tar", "--numeric-owner", "--exclude=./dev/*", "--exclude=./var/cache/apt/archives/*.deb",
            "--exclude=./var/lib/apt/lists/*", "-C", str(fresh), "-cf", str(partial), ".")  # fmt: skip
        partial.replace(kept)
        shutil.rmtree(fresh)
    root.mkdir()
    run("tar", "--numeric-owner", "-C", str(root), "-xpf", str(kept))
    say(f"base {image}: {megabytes(root)} MB by debootstrap (the slim image has no manuals and translations)")


class Builder:
    """The root directories of the stages, below one temporary directory."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.stages = read_stages()
        self.roots: dict[str, Path] = {}

    def build(self) -> Path:
        """Execute all stages. Return the root directory of the last one."""
        for number, stage in enumerate(self.stages):
            root = self.place / f"stage-{number}"
            if stage.base in self.roots:
                run("cp", "-a", "--reflink=auto", str(self.roots[stage.base]), str(root))
            else:
                make_base(stage.base, root)
            self._execute(stage, root)
            if stage.name:
                self.roots[stage.name] = root
        return root

    def _execute(self, stage: Stage, root: Path) -> None:
        below = [each for each in self.stages if each.name == stage.base]
        environment = (
            stage_environment(self.stages, below[0]) if below else stage_environment([], Stage("", None))
        )
        folder = "/"
        for step in stage.steps:
            began = time.monotonic()
            if step.kind == "ENV":
                set_variables(step, environment)
            elif step.kind == "WORKDIR":
                folder = step.text
                (root / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
            elif step.kind == "COPY":
                self._copy(step.words(), step.flag("from"), root, folder)
                say(f"COPY {step.text}")
            elif step.kind == "RUN":
                self._run(step.text, root, folder, environment)
                say(f"RUN {step.text} ({time.monotonic() - began:.0f} s)")

    def _copy(self, words: list[str], source_stage: str | None, root: Path, folder: str) -> None:
        origin = self.roots[source_stage] if source_stage else ROOT
        target = root / os.path.join(folder, words[-1]).lstrip("/")
        for word in words[:-1]:
            source = origin / word.lstrip("/")
            if source.is_dir():
                run("mkdir", "-p", str(target))
                run("cp", "-a", "--no-preserve=ownership", f"{source}/.", str(target))
                for cache in (
                    [] if source_stage else [*target.rglob("__pycache__")]
                ):  # .dockerignore leaves them out
                    shutil.rmtree(cache)
            else:
                run("cp", "--no-preserve=ownership", str(source), str(target))

    @staticmethod
    def _run(text: str, root: Path, folder: str, environment: dict[str, str]) -> None:
        given = {**environment, "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"}
        given |= {name: os.environ[name] for name in NETWORK if name in os.environ}
        if os.environ.get("SSL_CERT_FILE"):
            given |= dict.fromkeys(("SSL_CERT_FILE", "PIP_CERT"), "/run/rehearsal/ca.pem")
        variables = [f"{name}={value}" for name, value in given.items()]
        enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-ec", BUILD, "-"]
        run(*enter, str(root), folder, text, *variables)


def check_contents(root: Path) -> None:
    """Raise `Failed` if tools, package managers of Python or package lists are in the image."""
    folders = [root / each for each in ("usr/bin", "usr/sbin", "usr/local/bin", "opt/lithos/.venv/bin")]
    found = [folder / tool for folder in folders for tool in TOOLS if (folder / tool).exists()]
    for place in (root / "usr/lib", root / "usr/local/lib", root / "opt"):
        for parent in (
            *place.rglob("site-packages"),
            *place.rglob("dist-packages"),
            *place.glob("python3.*"),
        ):
            found += [parent / name for name in PACKAGES if (parent / name).exists()]
    found += [each for each in (root / "var/lib/apt/lists").rglob("*") if each.is_file()]
    found += [*(root / "var/cache/apt").rglob("*.deb"), *root.glob("usr/include/python*")]
    if found:
        names = ", ".join(str(each.relative_to(root)) for each in found[:10])
        raise Failed(f"The image contains tools, package managers or lists: {names}.")
    say(f"contents: none of {', '.join((*TOOLS, *PACKAGES))}; no package lists")


def main() -> int:
    """Build, check and start the image. Return the exit code."""
    place = Path(tempfile.mkdtemp(prefix="lithos-rehearsal.", dir=os.environ.get("TMPDIR", "/var/tmp")))
    os.chmod(place, 0o755)  # the user of the image must reach its files
    try:
        root = Builder(place).build()
        parts = [root / "opt/lithos/.venv"]
        say(f"size: {megabytes(root)} MB, of which {megabytes(*parts)} MB are Lithos and its dependencies")
        check_contents(root)
        inside = Path(__file__).with_name("start.py")
        # Mounts and processes end with the namespaces, so the directory can be deleted afterwards.
        spaces = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"]
        started = subprocess.run([*spaces, sys.executable, str(inside), str(root)], check=False)
        if started.returncode != 0:
            return 1
    except Failed as failure:
        say(f"FAILED: {failure}")
        return 1
    finally:
        shutil.rmtree(place)
    print("rehearsal passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
