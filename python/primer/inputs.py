"""What pipelines are called with, made plain: one input or several, texts and pairs, questions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Callable, Optional, Union

UNSET: Any = object()
"""What an option is if it was not given, where `None` means something."""


def each(inputs: Any, one: Callable[[Any], Any]) -> Any:
    """One input, a list of them, or as many as come out of an iterator."""
    if isinstance(inputs, list):
        return [one(given) for given in inputs]
    if isinstance(inputs, Iterator):
        return (one(given) for given in inputs)
    if isinstance(inputs, Iterable) and not isinstance(inputs, (str, Mapping)):
        raise ValueError("several inputs come as a list or as a generator")
    return one(inputs)


def only_text(given: Any) -> str:
    """An input that is a text and nothing else."""
    if not isinstance(given, str):
        raise ValueError("an input is a text")
    return given


def text_and_pair(given: Any) -> tuple[str, Optional[str]]:
    """An input that is a text or a pair of texts."""
    if isinstance(given, str):
        return given, None
    if not isinstance(given, Mapping):
        raise ValueError('an input is a text or {"text": …, "text_pair": …}')
    text, text_pair = fields(given, "text", "text_pair")
    if text is None:
        raise ValueError('an input needs a "text"')
    return text, text_pair


def fields(given: Mapping[Any, Any], *names: str) -> list[Optional[str]]:
    """The texts under these names, and nothing beside them."""
    others = [name for name in given if name not in names]
    if others:
        raise ValueError(f"an input has {' and '.join(names)}, and no {others[0]!r}")
    values = [given.get(name) for name in names]
    for name, value in zip(names, values):
        if value is not None and not isinstance(value, str):
            raise ValueError(f'"{name}" is not a text')
    return values


def questions(
    question: Union[str, list[str], None], context: Union[str, list[str], None]
) -> Union[dict[str, str], list[dict[str, str]]]:
    """Questions with their contexts; one context serves many questions."""
    if question is None or context is None:
        raise ValueError("a question needs question= and context=")
    if isinstance(question, str) and isinstance(context, str):
        return {"question": question, "context": context}
    asked = [question] if isinstance(question, str) else question
    contexts = [context] * len(asked) if isinstance(context, str) else context
    if len(asked) != len(contexts):
        raise ValueError(f"{len(asked)} questions and {len(contexts)} contexts do not match")
    return [{"question": q, "context": c} for q, c in zip(asked, contexts)]


def count(top_k: Any) -> Any:
    """How many labels are wanted, if it was said."""
    if top_k is UNSET or top_k is None:
        return top_k
    if isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 1:
        raise ValueError(f"top_k is a number from 1 on, or None for all labels, not {top_k!r}")
    return top_k
