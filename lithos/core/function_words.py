"""English words that hold sentences together and say nothing of what is asked, as `text.fold` spells them."""

from __future__ import annotations

from typing import Final

_WORDS = """
    a about after all also am an and any are as at be been before being between but by can could did do does
    during for from get had has have he how i if in into is it its may me might must my no not of on or our
    over shall she should so some such than that the their then there these they this through to under use
    used using was we were what when where which who whom whose why will with would you your
"""
FUNCTION_WORDS: Final = frozenset(_WORDS.split())
