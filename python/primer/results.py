"""What is learnt from a server, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Optional


@dataclass(frozen=True)
class Card:
    """What a server offers: everything public about its model."""

    model: str
    """The model's name, as its operator calls it."""
    family: str
    """Which encoder it is, as the names of its classes begin: `Bert`, `DistilBert`, `Roberta`, …"""
    task: str
    """What it does, as `transformers` names tasks; `other` if this package has no use for it."""
    labels: tuple[str, ...]
    """The labels of texts or tokens, in the order of the outputs; empty if there are none."""
    lengths: tuple[int, ...]
    """Padded lengths on offer, in tokens; which of them is used is what the server learns."""
    scheme: str
    """How the private protocol is put together."""
    reveals_scores: bool
    """Whether scores are told; otherwise the best label alone is, of a text or of each token."""
    answer_bits: tuple[int, ...]
    """How many bits an answer can carry at each of `lengths`, whatever a client does."""

    @property
    def max_tokens(self) -> int:
        """The longest input; longer ones are cut."""
        return self.lengths[-1]

    @classmethod
    def _of(cls, facts: Mapping[str, Any]) -> Card:
        plain = dict(facts)
        plain["labels"] = tuple(plain["labels"])
        plain["lengths"] = tuple(plain["lengths"])
        plain["answer_bits"] = tuple(plain["answer_bits"])
        return cls(**plain)


@dataclass(frozen=True)
class Cost:
    """What one inference cost the client."""

    offline_seconds: float
    """Seconds of the offline phase if it ran now; zero if a bundle was prepared ahead."""
    online_seconds: float
    """Seconds of the online phase."""
    offline_bytes: int
    """Bytes of the offline phase if it ran now, both directions."""
    online_bytes: int
    """Bytes of the online phase, both directions."""
    tokens: int
    """The padded length: all that the server learnt about the text."""
    prepared_ahead: bool
    """Whether a bundle was prepared ahead."""


@dataclass(frozen=True)
class Classification:
    """The label of a text."""

    label: str
    """The best label."""
    index: int
    """Its index among the card's labels."""
    score: Optional[float]
    """Its probability, or the number itself if the model is a regression; none if the server
    reveals labels alone."""
    scores: tuple[float, ...]
    """What `score` is, of all labels: they add up to one unless the model lets several labels be
    right, or is a regression. Empty if the server reveals labels alone."""
    logits: tuple[float, ...]
    """The model's outputs; empty if the server reveals labels alone."""
    removed: int
    """Tokens that were cut off because the text was too long."""
    in_range: Optional[bool]
    """Whether all values stayed in their ranges; none if the scheme cannot tell."""
    cost: Cost
    """What it cost."""

    @classmethod
    def _of(cls, facts: Mapping[str, Any]) -> Classification:
        plain = dict(facts)
        plain["scores"] = tuple(plain["scores"])
        plain["logits"] = tuple(plain["logits"])
        plain["cost"] = Cost(**plain["cost"])
        return cls(**plain)


@dataclass(frozen=True)
class Extract:
    """The piece of a context that answers a question."""

    answer: str
    """The piece; empty if the model says that there is no answer."""
    score: float
    """The probability of its start times that of its end; of there being none, if it is empty."""
    start: int
    """Where it begins in the context, in characters."""
    end: int
    """Where it ends."""
    windows: int
    """How many overlapping pieces the context was cut into, each an inference of its own."""
    in_range: Optional[bool]
    """As in :class:`Classification`, of all windows."""
    cost: Cost
    """What it cost, of all windows."""

    @classmethod
    def _of(cls, facts: Mapping[str, Any]) -> Extract:
        plain = dict(facts)
        plain["cost"] = Cost(**plain["cost"])
        return cls(**plain)


@dataclass(frozen=True)
class Entity:
    """A token with a label, or several."""

    label: str
    """The label; of several tokens, what is behind its `B-` or `I-`."""
    score: Optional[float]
    """The label's probability; of several tokens, the mean; none if the server reveals labels
    alone."""
    index: Optional[int]
    """The token's place among all tokens of the text; none if tokens were put together."""
    word: str
    """The token as the vocabulary has it, or several as text."""
    start: int
    """Where it begins in the text, in characters."""
    end: int
    """Where it ends."""


@dataclass(frozen=True)
class Tagging:
    """The labels of a text's tokens."""

    entities: tuple[Entity, ...]
    """What was found, in the order of the text."""
    removed: int
    """Tokens that were cut off because the text was too long."""
    in_range: Optional[bool]
    """As in :class:`Classification`."""
    cost: Cost
    """What it cost."""

    @classmethod
    def _of(cls, facts: Mapping[str, Any]) -> Tagging:
        plain = dict(facts)
        plain["entities"] = tuple(Entity(**entity) for entity in plain["entities"])
        plain["cost"] = Cost(**plain["cost"])
        return cls(**plain)


@dataclass(frozen=True)
class Embedding:
    """A text as a vector."""

    vector: tuple[float, ...]
    """The vector, pooled and normalised as the model says."""
    removed: int
    """Tokens that were cut off because the text was too long."""
    in_range: Optional[bool]
    """As in :class:`Classification`."""
    cost: Cost
    """What it cost."""

    @classmethod
    def _of(cls, facts: Mapping[str, Any]) -> Embedding:
        plain = dict(facts)
        plain["vector"] = tuple(plain["vector"])
        plain["cost"] = Cost(**plain["cost"])
        return cls(**plain)
