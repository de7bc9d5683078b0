"""Piece counts of the built-in tokenizer, computed for one run of characters at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import BertPreTokenizer, Whitespace

from lithos.search.embedding.builtin_model import BUILTIN, FORMER
from lithos.search.embedding.tokenizer import (
    LONGEST_KEPT,
    TOKEN,
    RunPieces,
    RunTokens,
    load_pieces,
    load_tokenizer,
    splits_at_runs,
)

TOKENIZER = load_tokenizer(FORMER)
PIECES = load_pieces()
SHORT = load_tokenizer(BUILTIN)
SHORT.enable_truncation(20)
TOKENS = RunTokens(TOKENIZER, kept=64)
SHORT_TOKENS = RunTokens(SHORT, kept=64)

TEXTS = st.text(
    alphabet=st.one_of(st.characters(), st.sampled_from(" \n\t\r\x0b\x1c\x85\u2028\u0301,.'#a1")),
    max_size=200,
)


@given(TEXTS)
@example("ab\x1ccd ef\x0bgh\u2028ij\u00a0kl\u200bmn")
@example("[UNK] [PAD] ##ing " + "x" * 101 + " " + "y" * 100)
@example("\u0301 \ufffd \x00 日本語 Zürich ΟΔΟΣ \u0130stanbul")
@example("word " * 300)
@example("\ud800")
def test_pieces_counted_run_by_run_equal_pieces_of_whole_text(text: str) -> None:
    """behaviour 227"""
    clean = text.encode("utf-8", "replace").decode()
    for _ in range(2):  # The second pass uses the cache.
        for tokenizer, tokens in ((TOKENIZER, TOKENS), (SHORT, SHORT_TOKENS)):
            expected = tokenizer.encode(clean, add_special_tokens=False).ids
            assert np.frombuffer(tokens(clean), TOKEN).tolist() == expected
        assert PIECES(text) == len(TOKENIZER.encode(clean, add_special_tokens=False).ids)


def test_only_a_supported_tokenizer_counts_pieces_run_by_run() -> None:
    assert splits_at_runs(TOKENIZER)
    words = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = BertPreTokenizer()
    special, other, padded, left = (load_tokenizer(BUILTIN) for _ in range(4))
    special.add_special_tokens(["[MASK]"])
    other.pre_tokenizer = Whitespace()
    padded.enable_padding()
    left.enable_truncation(20, direction="left")
    assert not any(map(splits_at_runs, (words, special, other, padded, left)))


def test_cache_is_bounded_and_clearing_the_cache_changes_no_count() -> None:
    asked: list[str] = []

    def lengths(runs: Sequence[str]) -> list[int]:
        asked.extend(runs)
        return [len(run) for run in runs]

    pieces = RunPieces(lengths, kept=8)
    for number in range(100):
        text = f"often word{number} word{number + 1}\n\tand {'z' * (LONGEST_KEPT + number + 1)}"
        assert pieces(text) == len("".join(text.split()))
        assert pieces.kept <= 16
    assert (asked.count("often"), asked.count("word50")) == (1, 1)  # Used entries stay in the cache.
    assert sum("zz" in run for run in asked) == 100  # Long runs are never cached.


@pytest.mark.parametrize("text", ["", " \n\t ", "\n"])
def test_white_space_has_no_pieces(text: str) -> None:
    assert PIECES(text) == 0
