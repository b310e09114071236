"""The client: asks a server about a text without showing it."""

from __future__ import annotations

import logging
import os
import re
import warnings
from contextlib import contextmanager
from types import TracebackType
from typing import Iterator, Literal, Optional, Type, TypeVar, Union

from . import _primer
from .errors import OptionError, RangeWarning, TruncationWarning
from .progress import Bar, Progress, callback
from .results import Card, Classification, Embedding, Extract, Tagging

_log = logging.getLogger("primer")

_Result = TypeVar("_Result", Classification, Extract, Tagging, Embedding)


class Client:
    """A client of one server.

    Args:
        server: Where it listens, as `host:port`.
        fingerprint: The SHA-256 of its certificate, in hexadecimal digits, as its operator tells
            it; not needed for a server that was trusted before.
        token: The access token, if the server asks for one.
        state: Where trusted servers and prepared bundles are kept; by default where the command
            `primer` keeps them. Two programs may share it: a bundle is used once.
        hint_url: Where a copy of the model's hint is (`http://…`, `https://…` or a file), which is
            fetched once before the first bundle is prepared. It is checked against what the
            server says, which is asked if the copy is not right; by default the server has it.
        timeout: The longest pause of the server, in seconds.
        threads: Threads that prepare; all cores by default.
        attempts: Attempts in all if the connection breaks in the middle of work, each with a fresh
            bundle.
        wait: How many seconds a server is asked again that is full, stopping or not there, also
            behind a balancer that drops connections; by default half a minute if it says so
            itself, and not at all otherwise.
        progress: `True` for a bar of tqdm's while the model's hint is fetched and bundles are
            prepared, or something to call with the bytes that have passed and those expected.

    Other Python threads run while a call works. Calls on one client are served one after the
    other. Ctrl-C ends a call: the connection is broken and comes up again with the next call.
    What was under way is lost, which may be a prepared bundle, since none is used twice.

    The log `primer` (:mod:`logging`) is told when an attempt is repeated, or waited for.
    """

    def __init__(
        self,
        server: str,
        *,
        fingerprint: Optional[str] = None,
        token: Optional[str] = None,
        state: Optional[Union[str, os.PathLike[str]]] = None,
        hint_url: Optional[str] = None,
        timeout: float = 120.0,
        threads: Optional[int] = None,
        attempts: int = 3,
        wait: Optional[float] = None,
        progress: Progress = None,
    ) -> None:
        if not re.fullmatch(r".+:\d+", server):
            raise OptionError(f"server= is a host and a port, 'host:7447', not {server!r}")
        self._server = server
        self._progress = callback(progress)
        self._native = _primer.Client(
            server,
            fingerprint=fingerprint,
            token=token,
            state=state,
            hint_url=hint_url,
            timeout=timeout,
            threads=threads,
            attempts=attempts,
            wait=wait,
            progress=self._progress,
            log=_log.warning,
        )

    def __repr__(self) -> str:
        return f"primer.Client({self._server!r})"

    @property
    def card(self) -> Card:
        """What the server offers."""
        return Card._of(self._native.card())

    def classify(self, text: str) -> Classification:
        """The label of a text.

        Without a bundle prepared ahead, one is prepared first, which takes longer.
        """
        with self._bar():
            return _checked(Classification._of(self._native.classify(text)))

    def classify_pair(self, text: str, text_pair: str) -> Classification:
        """The label of a pair of texts."""
        with self._bar():
            return _checked(Classification._of(self._native.classify(text, text_pair)))

    def answer(
        self, question: str, context: str, *, stride: int = 64, null_threshold: float = 0.0
    ) -> Extract:
        """The piece of a context that answers a question.

        A context that is too long is cut into windows that share `stride` tokens; each is an
        inference of its own, and the server learns how many there are. There is no answer (an
        empty one) if the score of there being none is higher than the best one's by more than
        `null_threshold`; with `math.inf` there always is one.
        """
        with self._bar():
            found = self._native.answer(
                question, context, stride=stride, null_threshold=null_threshold
            )
            return _checked(Extract._of(found))

    def tag(self, text: str, aggregate: Literal["none", "simple"] = "simple") -> Tagging:
        """The labels of a text's tokens, without those labelled `O`.

        With `"simple"` neighbours of one kind are one entity, with `"none"` every token is.
        """
        if aggregate not in ("none", "simple"):
            raise OptionError(f'aggregate is "none" or "simple", not {aggregate!r}')
        with self._bar():
            found = self._native.tag(text, grouped=aggregate == "simple")
            return _checked(Tagging._of(found))

    def embed(self, text: str) -> Embedding:
        """A text as a vector, pooled and normalised as the model says."""
        with self._bar():
            return _checked(Embedding._of(self._native.embed(text)))

    def prepare(self, tokens: int, count: int = 1) -> list[str]:
        """Prepares `count` bundles ahead, for texts of up to `tokens` tokens; returns their names.

        Bundles are kept on disk, encrypted, and used once. Several together take fewer bytes and
        less time than one after the other.
        """
        with self._bar():
            return self._native.prepare(tokens, count)

    def bundles(self) -> dict[int, int]:
        """How many unspent bundles there are for each padded length."""
        return self._native.bundles()

    def close(self) -> None:
        """Leaves in good order. Bundles stay for another client of the same state."""
        self._native.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    @contextmanager
    def _bar(self) -> Iterator[None]:
        try:
            yield
        finally:
            if isinstance(self._progress, Bar):
                self._progress.close()


def _checked(result: _Result) -> _Result:
    if result.in_range is False:
        warnings.warn(
            "a value came near the end of the range that the model was calibrated for: the answer "
            "may be wrong",
            RangeWarning,
            stacklevel=3,
        )
    # Contexts are not cut: they are asked in windows.
    if not isinstance(result, Extract) and result.removed:
        warnings.warn(
            f"the text was too long by {result.removed} tokens, which were cut off",
            TruncationWarning,
            stacklevel=3,
        )
    return result
