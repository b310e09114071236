"""Pipelines with the manners of `transformers.pipeline`.

The same calls give the same shapes, odd ones included (they are those of transformers 4.44, and
`tests/test_transformers.py` compares them with it). What differs: there is a server instead of a
model, a text is never sent, texts of a list are asked one after the other, and the features of a
text are one vector.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Callable, Literal, Optional, Type, TypeVar, Union, cast, overload

from .client import Client
from .errors import TaskError
from .inputs import UNSET, count, each, fields, only_text, questions, text_and_pair
from .progress import Progress
from .results import Classification, Entity

_P = TypeVar("_P", bound="Pipeline")
_Strategy = Literal["none", "simple"]


class Pipeline:
    """What all pipelines have: a client, and a task that its server must do."""

    task = ""

    def __init__(self, client: Client) -> None:
        card = client.card
        if card.task != self.task:
            raise TaskError(
                f"the server's model {card.model} does {card.task}, but this pipeline is for "
                f"{self.task}"
            )
        self.client = client
        """Asks the server; to prepare bundles ahead, or to learn what an answer cost."""

    def close(self) -> None:
        """Leaves the server in good order."""
        self.client.close()

    def __enter__(self: _P) -> _P:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()


class TextClassificationPipeline(Pipeline):
    """Labels of texts: `[{"label": …, "score": …}]`.

    An input is a text or, for a pair, `{"text": …, "text_pair": …}`; a list of inputs gives a list,
    a generator gives a generator. `top_k` asks for so many labels instead of the best one (`None`:
    for all), and wraps every answer into a list.

    A server may reveal labels alone; then a `score` is `None` and there is one label.
    """

    task = "text-classification"

    def __init__(self, client: Client, *, top_k: Optional[int] = UNSET) -> None:
        super().__init__(client)
        self._top_k = count(top_k)

    def __call__(self, inputs: Any, *, top_k: Optional[int] = UNSET) -> Any:
        """The labels of one input or of several."""
        wanted = self._top_k if top_k is UNSET else count(top_k)
        if isinstance(inputs, str):
            labels = self._one(inputs, wanted)
            # A single text is answered by a list, whatever it would be in a list of texts.
            return [labels] if top_k is UNSET else labels
        return each(inputs, lambda one: self._one(one, wanted))

    def _one(self, given: Any, top_k: Optional[int]) -> Any:
        text, text_pair = text_and_pair(given)
        if text_pair is None:
            found = self.client.classify(text)
        else:
            found = self.client.classify_pair(text, text_pair)
        if top_k is UNSET:
            return {"label": found.label, "score": found.score}
        ranked = _ranked(found, self.client.card.labels)
        return ranked if top_k is None else ranked[:top_k]


class QuestionAnsweringPipeline(Pipeline):
    """Answers from a context: `{"score": …, "start": …, "end": …, "answer": …}`.

    Asked by `question=` and `context=` (texts, or lists of them; one context serves many
    questions), or by one or several `{"question": …, "context": …}`. Several give a list, one gives
    one, also if it came in a list.

    A long context is cut into windows that share `doc_stride` tokens, each an inference of its own.
    With `handle_impossible_answer` an answer may be none: an empty one, with the score of there
    being none. `null_threshold` says by how much that must score higher, before softmax.
    """

    task = "question-answering"

    def __init__(
        self,
        client: Client,
        *,
        doc_stride: int = 64,
        handle_impossible_answer: bool = False,
        null_threshold: float = 0.0,
    ) -> None:
        super().__init__(client)
        self._stride = doc_stride
        # As in transformers, where an answer is found unless none is asked for.
        self._null_threshold = null_threshold if handle_impossible_answer else math.inf

    def __call__(
        self,
        inputs: Any = None,
        *,
        question: Union[str, list[str], None] = None,
        context: Union[str, list[str], None] = None,
    ) -> Any:
        """The answer to one question, or to several."""
        if inputs is None:
            inputs = questions(question, context)
        elif question is not None or context is not None:
            raise ValueError("a question is given by keywords or as a dict, not both")
        if isinstance(inputs, list) and len(inputs) == 1:
            inputs = inputs[0]
        return each(inputs, self._one)

    def _one(self, given: Any) -> dict[str, Any]:
        if not isinstance(given, Mapping):
            raise ValueError('a question is {"question": …, "context": …}')
        asked, context = fields(given, "question", "context")
        if asked is None or context is None:
            raise ValueError('a question needs both "question" and "context"')
        found = self.client.answer(
            asked, context, stride=self._stride, null_threshold=self._null_threshold
        )
        return {
            "score": found.score,
            "start": found.start,
            "end": found.end,
            "answer": found.answer,
        }


class TokenClassificationPipeline(Pipeline):
    """Labels of a text's tokens, without those labelled `O`.

    With `aggregation_strategy` `"none"` every token stands for itself: `[{"entity": …, "score": …,
    "index": …, "word": …, "start": …, "end": …}]`; with `"simple"` neighbours of one kind stand
    together: `[{"entity_group": …, "score": …, "word": …, "start": …, "end": …}]`. Places are
    characters of the text. A server may reveal labels alone; then a `score` is `None`. A list of texts gives a list of lists.
    """

    task = "token-classification"

    def __init__(self, client: Client, *, aggregation_strategy: str = "none") -> None:
        super().__init__(client)
        self._aggregate = _strategy(aggregation_strategy)

    def __call__(self, inputs: Any, *, aggregation_strategy: Optional[str] = None) -> Any:
        """The labelled tokens of one text or of several."""
        aggregate = self._aggregate
        if aggregation_strategy is not None:
            aggregate = _strategy(aggregation_strategy)
        return each(inputs, lambda one: self._one(only_text(one), aggregate))

    def _one(self, text: str, aggregate: _Strategy) -> list[dict[str, Any]]:
        return [_entity(found) for found in self.client.tag(text, aggregate).entities]


class FeatureExtractionPipeline(Pipeline):
    """Texts as vectors, for sentence encoders.

    A text gives one list of numbers, pooled and normalised as the model says, as
    `sentence_transformers` gives it. `transformers` gives the vectors of all tokens instead, nested
    once more; these are not revealed. A list of texts gives a list of lists.
    """

    task = "feature-extraction"

    def __call__(self, inputs: Any) -> Any:
        """The vector of one text, or of several."""
        return each(inputs, lambda one: list(self.client.embed(only_text(one)).vector))


_TASKS: dict[str, Callable[..., Pipeline]] = {
    "text-classification": TextClassificationPipeline,
    "question-answering": QuestionAnsweringPipeline,
    "token-classification": TokenClassificationPipeline,
    "feature-extraction": FeatureExtractionPipeline,
}
_ALIASES = {"sentiment-analysis": "text-classification", "ner": "token-classification"}


@overload
def pipeline(
    task: Literal["text-classification", "sentiment-analysis"], **options: Any
) -> TextClassificationPipeline: ...


@overload
def pipeline(
    task: Literal["question-answering"], **options: Any
) -> QuestionAnsweringPipeline: ...


@overload
def pipeline(
    task: Literal["token-classification", "ner"], **options: Any
) -> TokenClassificationPipeline: ...


@overload
def pipeline(
    task: Literal["feature-extraction"], **options: Any
) -> FeatureExtractionPipeline: ...


@overload
def pipeline(task: str, **options: Any) -> Pipeline: ...


def pipeline(
    task: str,
    *,
    server: Optional[str] = None,
    client: Optional[Client] = None,
    fingerprint: Optional[str] = None,
    token: Optional[str] = None,
    state: Optional[Union[str, os.PathLike[str]]] = None,
    hint_url: Optional[str] = None,
    timeout: float = 120.0,
    threads: Optional[int] = None,
    attempts: int = 3,
    wait: Optional[float] = None,
    progress: Progress = None,
    **options: Any,
) -> Pipeline:
    """A pipeline for a task, as `transformers.pipeline` makes one.

    Args:
        task: `"text-classification"` (also called `"sentiment-analysis"`),
            `"question-answering"`, `"token-classification"` (also called `"ner"`) or
            `"feature-extraction"`.
        server: Where the server listens, as `host:port`; what follows is as in
            :class:`primer.Client`.
        client: A client to use instead of connecting to a server.
        options: Options of the task, such as `top_k` or `aggregation_strategy`.
    """
    task = _ALIASES.get(task, task)
    if task not in _TASKS:
        names = ", ".join(sorted([*_TASKS, *_ALIASES]))
        raise TaskError(f"there is no task {task!r}; the tasks are {names}")
    if client is not None:
        given = (server, fingerprint, token, state, hint_url)
        if any(one is not None for one in given):
            raise ValueError("a client has its server already: give one or the other")
        return _TASKS[task](client, **options)
    if server is None:
        raise ValueError("a pipeline needs server= or client=")
    client = Client(
        server,
        fingerprint=fingerprint,
        token=token,
        state=state,
        hint_url=hint_url,
        timeout=timeout,
        threads=threads,
        attempts=attempts,
        wait=wait,
        progress=progress,
    )
    try:
        return _TASKS[task](client, **options)
    except BaseException:
        client.close()
        raise


def _ranked(found: Classification, labels: tuple[str, ...]) -> list[dict[str, Any]]:
    if not found.scores:
        return [{"label": found.label, "score": None}]
    entries = [{"label": label, "score": score} for label, score in zip(labels, found.scores)]
    # Stable, as transformers' sort is: of equals, the first stays first.
    return sorted(entries, key=lambda entry: -cast(float, entry["score"]))


def _strategy(given: str) -> _Strategy:
    if given not in ("none", "simple"):
        raise ValueError(f'aggregation_strategy is "none" or "simple", not {given!r}')
    return cast(_Strategy, given)


def _entity(found: Entity) -> dict[str, Any]:
    named: dict[str, Any] = {"entity_group": found.label, "score": found.score}
    if found.index is not None:
        named = {"entity": found.label, "score": found.score, "index": found.index}
    return {**named, "word": found.word, "start": found.start, "end": found.end}
