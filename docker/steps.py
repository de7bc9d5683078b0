"""Parser of the Dockerfile, for the rehearsal and the tests. It knows the instructions that the file uses."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

DOCKERFILE = Path(__file__).parent / "Dockerfile"
#: Instructions that the rehearsal executes or checks. Any other instruction is an error, so none is skipped.
KNOWN = {
    "FROM", "LABEL", "ENV", "RUN", "WORKDIR", "COPY", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "STOPSIGNAL",
    "ENTRYPOINT", "CMD",
}  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One instruction with its arguments, continuation lines joined."""

    kind: str
    text: str

    def words(self) -> list[str]:
        """Return the arguments without flags."""
        return [word for word in shlex.split(self.text) if not word.startswith("--")]

    def flag(self, name: str) -> str | None:
        """Return the value of a flag such as `--from`, or None."""
        found = re.match(rf"(?:--\S+ )*--{name}=(\S+)", self.text)
        return found[1] if found else None

    def command(self) -> list[str]:
        """Return the command of ENTRYPOINT, CMD or HEALTHCHECK, which must be a JSON list."""
        words: list[str] = json.loads(self.text[self.text.index("[") :])
        return words


@dataclass
class Stage:
    """One stage: its base (an image or an earlier stage), its name if it has one, and its steps."""

    base: str
    name: str | None
    steps: list[Step] = field(default_factory=list)

    def of(self, kind: str) -> list[Step]:
        """Return the steps of one kind."""
        return [step for step in self.steps if step.kind == kind]


def read_stages(text: str | None = None) -> list[Stage]:
    """Return the stages of the Dockerfile. Raise `ValueError` for an instruction that is not known."""
    stages: list[Stage] = []
    for line in _join(DOCKERFILE.read_text() if text is None else text):
        kind, _, rest = line.partition(" ")
        if kind not in KNOWN:
            raise ValueError(
                f"The rehearsal does not know the instruction {kind}. Add it to docker/rehearsal.py"
            )
        if kind == "FROM":
            words = rest.split()
            stages.append(Stage(words[0], words[2] if len(words) == 3 else None))
        else:
            stages[-1].steps.append(Step(kind, rest.strip()))
    return stages


def _join(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return [re.sub(r"\s+", " ", line).strip() for line in "\n".join(lines).replace("\\\n", " ").splitlines()]


def set_variables(step: Step, environment: dict[str, str]) -> None:
    """Apply an ENV step. `$NAME` in a value is the value before this step."""
    before = dict(environment)
    for word in shlex.split(step.text):
        name, _, value = word.partition("=")
        environment[name] = re.sub(r"\$\{?(\w+)\}?", lambda found: before.get(found[1], ""), value)


def stage_environment(stages: list[Stage], stage: Stage) -> dict[str, str]:
    """Return the environment of a finished stage, with that of the stages below it."""
    below = [each for each in stages if each.name == stage.base]
    environment = stage_environment(stages, below[0]) if below else {}
    environment.setdefault("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    for step in stage.of("ENV"):
        set_variables(step, environment)
    return environment
