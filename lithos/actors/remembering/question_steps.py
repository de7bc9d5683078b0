"""The handlers of the memory of questions, feedback aside: forgetting, rewrites, vectors, loading."""

from __future__ import annotations

from datetime import datetime

from lithos.core.commands import Done, Handlers
from lithos.core.learning.questions import (
    EmbedQuestions,
    ForgetQuestions,
    HalveQuestions,
    LoadQuestions,
    TrimQuestions,
)
from lithos.core.learning.salience import LearningSettings
from lithos.stores.learning.stats import StatsStore


class QuestionUpkeep:
    """The commands on the memory of questions, feedback aside."""

    def __init__(self, stats: StatsStore, settings: LearningSettings) -> None:
        self._stats = stats
        self._settings = settings
        self.handlers: Handlers = {
            ForgetQuestions: self._forget,
            TrimQuestions: self._trim,
            HalveQuestions: self._halve,
            EmbedQuestions: self._embed,
            LoadQuestions: self._load,
        }

    def _forget(self, command: ForgetQuestions, now: datetime) -> Done[int]:
        return Done(self._stats.writing.questions.forget(command.wanted))

    def _trim(self, command: TrimQuestions, now: datetime) -> Done[int]:
        return Done(self._stats.writing.questions.trim(self._settings.questions_kept))

    def _halve(self, command: HalveQuestions, now: datetime) -> Done[int]:
        return Done(self._stats.writing.questions.halve(command.note_id, command.old, command.new))

    def _embed(self, command: EmbedQuestions, now: datetime) -> Done[None]:
        self._stats.writing.questions.embed(command.embedder, command.codes)
        return Done(None)

    def _load(self, command: LoadQuestions, now: datetime) -> Done[int | None]:
        matrix = self._stats.remembered
        if not command.after:
            matrix.begin(command.embedder, command.dims)
        if matrix.embedder != command.embedder:
            return Done(None)  # somebody has begun to load those of another one
        last = self._stats.writing.questions.load(matrix, command.after, command.most)
        if last is None:
            matrix.finish()
        return Done(last)
