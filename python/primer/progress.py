"""Showing how far an offline phase is: a callback of the user's, or a bar of tqdm's."""

from __future__ import annotations

import warnings
from typing import Any, Callable, Optional, Union

Callback = Callable[[int, int], object]
"""Called with the bytes that have passed and those expected.

Every offline phase, and the fetch of a hint, begins with `(0, expected)` and, unless it breaks, ends with
`(expected, expected)`. What it raises ends the call that it tells about.
"""

Progress = Union[bool, Callback, None]
"""Nothing, a bar (`True`), or a callback."""


class Bar:
    """A bar of tqdm's for each offline phase."""

    def __init__(self, tqdm: Callable[..., Any]) -> None:
        self._tqdm = tqdm
        self._bar: Optional[Any] = None

    def __call__(self, done: int, expected: int) -> None:
        if done == 0:
            self.close()
            self._bar = self._tqdm(
                total=expected, desc="preparing", unit="B", unit_scale=True, leave=False
            )
        if self._bar is None:
            return
        self._bar.update(done - self._bar.n)
        if done == expected:
            self.close()

    def close(self) -> None:
        """Removes a bar that is still there."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def callback(progress: Progress) -> Optional[Callback]:
    """What is called for an option `progress`."""
    if progress is None or progress is False:
        return None
    if progress is not True:
        return progress
    try:
        from tqdm.auto import tqdm
    except ImportError:
        warnings.warn(
            "progress=True shows a bar of tqdm's, which is not installed: pip install tqdm",
            stacklevel=3,
        )
        return None
    return Bar(tqdm)
