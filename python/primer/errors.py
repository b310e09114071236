"""What can go wrong, by kind. All of it is an :class:`Error`.

Messages name who is at fault, with numbers. None of them carries a text, a key or a token.
"""

from __future__ import annotations


class Error(Exception):
    """Something failed between the client and the server."""


class ConnectError(Error, ConnectionError):
    """The server cannot be reached, or the connection broke and further attempts did too."""


class TrustError(Error):
    """The server is not known yet, or presents another certificate than expected."""


class RefusedError(Error):
    """The server refused, and said why: no access token, no place, no room."""


class ProtocolError(Error):
    """The peer said something that it must not say."""


class TextError(Error, ValueError):
    """A text cannot be tokenised, or nothing is left of it."""


class TaskError(Error, ValueError):
    """The server's model does another task."""


class OptionError(Error, ValueError):
    """An option makes no sense."""


class StateError(Error):
    """The store of prepared bundles, or another file of the state, failed."""


class ModelError(Error):
    """There is no model to serve where one should be."""


class ListenError(Error, OSError):
    """The address cannot be listened on."""


class ClosedError(Error):
    """The client or the server was closed before."""


class RangeWarning(UserWarning):
    """A value came near the end of the range that the model was calibrated for.

    The answer may be wrong: values beyond their range wrap around.
    """


class TruncationWarning(UserWarning):
    """The text was too long for the model, and its end was cut off."""
