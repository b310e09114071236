"""Private BERT inference: the server keeps its weights, you keep your text.

::

    import primer

    pipe = primer.pipeline(
        "text-classification", server="models.example:7447", fingerprint="9f86d0…"
    )
    pipe("a warm and funny film")  # [{'label': 'positive', 'score': 0.99…}]

:func:`pipeline` has the manners of `transformers.pipeline`; :class:`Client` is what it is made of,
and tells what an answer cost; :func:`serve` starts a server in this process, for tests and
notebooks.
"""

from ._primer import version as _version
from .client import Client
from .errors import (
    ClosedError,
    ConnectError,
    Error,
    ListenError,
    ModelError,
    OptionError,
    ProtocolError,
    RangeWarning,
    RefusedError,
    StateError,
    TaskError,
    TextError,
    TruncationWarning,
    TrustError,
)
from .pipelines import (
    FeatureExtractionPipeline,
    Pipeline,
    QuestionAnsweringPipeline,
    TextClassificationPipeline,
    TokenClassificationPipeline,
    pipeline,
)
from .results import Card, Classification, Cost, Embedding, Entity, Extract, Tagging
from .server import Server, serve

__version__ = _version()

__all__ = [
    "Card",
    "Classification",
    "Client",
    "ClosedError",
    "ConnectError",
    "Cost",
    "Embedding",
    "Entity",
    "Error",
    "Extract",
    "FeatureExtractionPipeline",
    "ListenError",
    "ModelError",
    "OptionError",
    "Pipeline",
    "ProtocolError",
    "QuestionAnsweringPipeline",
    "RangeWarning",
    "RefusedError",
    "Server",
    "StateError",
    "Tagging",
    "TaskError",
    "TextClassificationPipeline",
    "TextError",
    "TokenClassificationPipeline",
    "TruncationWarning",
    "TrustError",
    "pipeline",
    "serve",
]
