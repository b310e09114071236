"""A server on threads of this process, for tests and notebooks.

For anything else there is `primer serve` with its own process, limits, metrics and log: a client
in the same process as its server has nothing to hide from it.
"""

from __future__ import annotations

import os
import tempfile
from types import TracebackType
from typing import Optional, Type, Union

from . import _primer
from .results import Card

_Path = Union[str, os.PathLike[str]]


class Server:
    """A server that runs until it is stopped. Made by :func:`serve`."""

    def __init__(
        self, native: _primer.Server, state: Optional[tempfile.TemporaryDirectory[str]]
    ) -> None:
        self._native = native
        self._state = state

    def __repr__(self) -> str:
        return f"<primer.Server at {self.address}>"

    @property
    def address(self) -> str:
        """Where it listens, as `host:port`."""
        return self._native.address

    @property
    def fingerprint(self) -> str:
        """What clients have to trust."""
        return self._native.fingerprint

    @property
    def card(self) -> Card:
        """What it offers."""
        return Card._of(self._native.card())

    def stop(self) -> None:
        """Takes no more requests, and waits for inferences under way."""
        self._native.stop()
        if self._state is not None:
            self._state.cleanup()
            self._state = None

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.stop()


def serve(
    model_dir: Optional[_Path] = None,
    *,
    prepared: Optional[_Path] = None,
    calibration: Optional[_Path] = None,
    listen: str = "127.0.0.1:0",
    state: Optional[_Path] = None,
    access_tokens: Optional[_Path] = None,
    scheme: str = "lean",
    reveal_scores: bool = True,
    threads: Optional[int] = None,
    max_tokens: Optional[int] = None,
    sessions: int = 16,
) -> Server:
    """Starts a server and returns when it listens.

    Args:
        model_dir: A model as Hugging Face keeps it; the small embedded one by default.
        prepared: Its integer weights, as `primer inspect --save-prepared` wrote them.
        calibration: A file of texts whose ranges set the scales.
        listen: Where to listen; port 0 lets the system choose.
        state: Where identity and bundles are kept; by default a temporary directory that is
            deleted when the server stops.
        access_tokens: A file of tokens' hashes as `primer token new` writes it, which its owner
            alone may read; without it everyone may connect.
        scheme: How the private protocol is put together.
        reveal_scores: Whether clients learn scores, or the best label alone.
        threads: Threads that prepare; all cores by default.
        max_tokens: The longest input that is offered.
        sessions: Clients at once.
    """
    temporary: Optional[tempfile.TemporaryDirectory[str]] = None
    if state is None:
        temporary = tempfile.TemporaryDirectory(prefix="primer-")
        state = temporary.name
    try:
        native = _primer.Server(
            model=model_dir,
            prepared=prepared,
            calibration=calibration,
            listen=listen,
            state=state,
            access_tokens=access_tokens,
            scheme=scheme,
            reveal_scores=reveal_scores,
            threads=threads,
            max_tokens=max_tokens,
            sessions=sessions,
        )
    except BaseException:
        if temporary is not None:
            temporary.cleanup()
        raise
    return Server(native, temporary)
