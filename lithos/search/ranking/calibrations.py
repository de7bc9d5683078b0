"""Keys of the embedding models in all tables of fitted values: weights, least similarities, match strengths.

Similarities of two models have different distributions, so no value that is fitted to one model is right for
another. All models of the static tier share a key, because the fitted values belong to the built-in model.
"""

from __future__ import annotations

from typing import Final

STATIC: Final = "static"
#: The models of the accurate tier: MiniLM for English vaults, and e5-small for vaults in other languages.
ACCURATE: Final = "accurate"
MULTILINGUAL: Final = "accurate-multi"
