"""The command that runs the knowledge tests of a file."""

from __future__ import annotations

from typing import Final

from lithos.server.command.declaring import CliCommand, flag, number, take

#: Equals `model_questions.MODES`, which takes long to import. `tests/upkeep/evaluation/test_questions.py`
#: compares the two.
TEST_MODES = ("hybrid", "fulltext", "semantic", "graph", "retrieve")
rank = number("_rank", int, lambda rank: 1 <= rank <= 50)

COMMANDS: Final = (
    CliCommand("evaluate", "ask the questions of a file and check that the right notes are found",
        "lithos.upkeep.evaluation.commands_evaluate:run_evaluate", (
        take("file FILE", "YAML or JSON lines file of questions and expected notes"),
        take("--mode", "search mode for all questions (default: the mode of each question, else hybrid)",
            choices=TEST_MODES),
        take("--k N", "k of hit@k and recall@k: number of results that count, 1 to 50 (default: 5)", rank),
        take("--save PATH", "file in which to save the ranks as a baseline; replaces an older baseline"),
        take("--against PATH", "baseline file to compare with; exit 1 if a test is worse"),
        flag("--from-receipts",
            "write FILE, which must not exist, from questions and citations of agents, and run no test"),
        ),
        "Ask the questions of a file and check that the right notes are found. A running server "
        "is asked over HTTP. Without a server, a copy of the files is asked, and the files are "
        "not changed. Exit 1 if a test fails or is worse than the baseline. The command uses the "
        "agent id `evaluate`; mode retrieve leaves receipts and statistics on the server, as "
        "every retrieval does.",
        group="upkeep", place=220, reads_databases=True,
    ),
)  # fmt: skip
