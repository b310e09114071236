"""The native half, as `src/` defines it."""

import os
from typing import Any, Callable, Optional, Union, final

_Path = Union[str, os.PathLike[str]]

__all__ = ["Client", "Server", "version"]

def version() -> str: ...

@final
class Client:
    def __new__(
        cls,
        server: str,
        *,
        fingerprint: Optional[str],
        token: Optional[str],
        state: Optional[_Path],
        hint_url: Optional[str],
        timeout: float,
        threads: Optional[int],
        attempts: int,
        wait: Optional[float],
        progress: Optional[Callable[[int, int], object]],
        log: Callable[[str], object],
    ) -> Client: ...
    def card(self) -> dict[str, Any]: ...
    def classify(self, text: str, text_pair: Optional[str] = None) -> dict[str, Any]: ...
    def answer(
        self, question: str, context: str, *, stride: int, null_threshold: float
    ) -> dict[str, Any]: ...
    def tag(self, text: str, *, grouped: bool) -> dict[str, Any]: ...
    def embed(self, text: str) -> dict[str, Any]: ...
    def prepare(self, tokens: int, count: int) -> list[str]: ...
    def bundles(self) -> dict[int, int]: ...
    def close(self) -> None: ...

@final
class Server:
    def __new__(
        cls,
        *,
        model: Optional[_Path],
        prepared: Optional[_Path],
        calibration: Optional[_Path],
        listen: str,
        state: _Path,
        access_tokens: Optional[_Path],
        scheme: str,
        reveal_scores: bool,
        threads: Optional[int],
        max_tokens: Optional[int],
        sessions: int,
    ) -> Server: ...
    @property
    def address(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    def card(self) -> dict[str, Any]: ...
    def stop(self) -> None: ...
