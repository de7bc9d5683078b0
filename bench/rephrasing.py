"""The same need in other words: a question with words dropped, others reordered, and a phrase around it."""

from __future__ import annotations

import random

from lithos.core.text.analysis import FUNCTION_WORDS, fold, words

#: Share of the content words that is dropped.
DROPPED = 0.3
_PHRASES = (
    "what do we know about {}",
    "I need something on {}",
    "how does one deal with {}",
    "is there a note that covers {}",
    "looking for {}, where was that",
    "can somebody explain {}",
    "where did we write down {}",
    "tell me more about {}",
)


def content_words(text: str) -> list[str]:
    """The words of a text, folded, without function words; all words when there are only such."""
    everything = [word for _, word in words(fold(text))]
    return [word for word in everything if word not in FUNCTION_WORDS] or everything


def rephrase(question: str, rng: random.Random, dropped: float = DROPPED) -> str:
    """The question again; at least one content word is left."""
    kept = content_words(question)
    for _ in range(min(round(dropped * len(kept)), len(kept) - 1)):
        kept.pop(rng.randrange(len(kept)))
    rng.shuffle(kept)
    return rng.choice(_PHRASES).format(" ".join(kept))
