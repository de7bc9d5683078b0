"""The choice between the two models of the accurate tier, by the languages of the vault."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from attrs import frozen

from lithos.search.embedding.transformer_models import ENGLISH, MULTILINGUAL, TransformerModel

#: Shares of notes that are not English. From the first share on, the vault gets the multilingual model. Below
#: the second share it gets the English one again. A vault between the two keeps its model.
MANY: Final = 0.10
FEW: Final = 0.05

#: Values of `search.accurate_model`.
Wanted: TypeAlias = Literal["auto", "english", "multilingual"]


@frozen
class ModelChoice:
    """A model, and the reason for it as a part of a sentence.

    `lacks` is the better model for the vault if that is not installed.
    """

    model: TransformerModel
    because: str
    lacks: TransformerModel | None = None


def choose_model(wanted: Wanted, share: float, *, was_multilingual: bool) -> ModelChoice:
    """Return the model for a vault in which this share of the notes is not English."""
    if wanted != "auto":
        model = MULTILINGUAL if wanted == "multilingual" else ENGLISH
        return ModelChoice(model, f"search.accurate_model is {wanted}")
    told = f"{share:.0%} of the notes are not English"
    if share < (FEW if was_multilingual else MANY):
        return ModelChoice(ENGLISH, told)
    if not MULTILINGUAL.is_installed:
        told = f"{told}, but the multilingual model is not installed. To install it: {MULTILINGUAL.install}"
        return ModelChoice(ENGLISH, told, lacks=MULTILINGUAL)
    return ModelChoice(MULTILINGUAL, told)
