"""`lithos doctor`: one line per check, whatever state the installation is in."""

from __future__ import annotations

import os
import sys
from functools import partial

import trio

from lithos.app.doctor import Doctor, Patient
from lithos.cli.options import Invocation
from lithos.cli.output import print_json, print_line
from lithos.config import ConfigError, LogSettings, load_log_settings, load_usable_config
from lithos.core.diagnosis import CheckResult, worst
from lithos.telemetry import configure_logging


def run_doctor(invocation: Invocation) -> int:
    """Examine and print; 1 when a check failed. A wrong configuration is one of the findings."""
    patient = _load_patient(invocation)
    tell = partial(_print_result, invocation.as_json)
    results = trio.run(Doctor(patient, tell).examine)
    statuses = [result.status for result in results]
    numbers = {status: statuses.count(status) for status in ("ok", "warn", "fail")}
    if invocation.as_json:
        checks = [result.as_json() for result in results]
        print_json({"status": worst(statuses), "summary": numbers, "checks": checks})
    else:
        print_line(", ".join(f"{number} {status}" for status, number in numbers.items()))
    return 1 if numbers["fail"] else 0


def _load_patient(invocation: Invocation) -> Patient:
    loaded, problems = load_usable_config(
        config_path=invocation.config, data_dir=invocation.data_dir, environment=os.environ
    )
    logs = LogSettings(level="error")
    if "LITHOS_LOG_LEVEL" in os.environ or "LITHOS_LOG_FORMAT" in os.environ:
        try:
            given = load_log_settings(os.environ)
            logs = LogSettings(
                level=given.level if "LITHOS_LOG_LEVEL" in os.environ else logs.level, format=given.format
            )
        except ConfigError as error:
            problems += error.problems
    secrets = [loaded.config.server.auth_token, loaded.config.lcma.llm.api_key]
    configure_logging(logs.level, logs.format, sys.stderr, secrets=[text for text in secrets if text])
    return Patient(config=loaded.config, problems=problems, warnings=loaded.warnings)


def _print_result(as_json: bool, result: CheckResult) -> None:
    if not as_json:
        print_line(f"{result.status:<4}  {result.name + ':':<15} {result.message}")
