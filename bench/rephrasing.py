"""The words of a question that say what it is about."""

from __future__ import annotations

from lithos.core.text.analysis import FUNCTION_WORDS, fold, words


def content_words(text: str) -> list[str]:
    """Return the folded words of a text without function words; all words when there are no others."""
    everything = [word for _, word in words(fold(text))]
    return [word for word in everything if word not in FUNCTION_WORDS] or everything
