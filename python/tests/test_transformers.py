"""The same checkpoint through `transformers.pipeline`, in the clear: same shapes, same scores.

Needs `pip install ./python[compare]` and `../shared/models/minilm-sst2` beside the clone (or
`PRIMER_COMPARE_MODEL`); skipped, and says so, where they are not there. `scripts/test-python
--with-transformers` installs what is needed.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import primer
from conftest import FAMILY, ROOT, client_of

SENTENCES = [
    "a warm , funny film",
    "an utter mess",
    "one of the best films of the year",
    "the plot is thin and the jokes are old",
    "it never quite comes together",
    "i laughed until i cried",
    "two hours that i will not get back",
    "beautifully shot and deeply moving",
    "a tired remake without a single idea",
    "the cast is wonderful",
    "clumsy , loud and far too long",
    "a small miracle of a movie",
    "nothing happens , and slowly",
    "sharp writing and sharper acting",
    "i wanted to like it more than i did",
    "the ending ruins everything before it",
    "tender and honest to the last minute",
    "a waste of talent and money",
    "surprisingly good fun",
    "neither scary nor clever",
]


def model() -> Path:
    given = os.environ.get("PRIMER_COMPARE_MODEL")
    place = Path(given) if given else ROOT.parent / "shared/models/minilm-sst2"
    if not (place / "config.json").is_file():
        pytest.skip(f"there is no model in {place}")
    return place


def shape(value: Any) -> Any:
    """A value without its numbers; labels stay."""
    if isinstance(value, dict):
        return {name: shape(part) for name, part in value.items()}
    if isinstance(value, list):
        return [shape(part) for part in value]
    return value if isinstance(value, str) else type(value).__name__


def scores(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [value["score"]]
    return [score for part in value for score in scores(part)]


@pytest.fixture(scope="module")
def both(tmp_path_factory: Any) -> Any:
    pytest.importorskip("torch", reason="torch is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    place = model()
    theirs = transformers.pipeline("text-classification", model=str(place), device="cpu")
    with primer.serve(place, max_tokens=32) as server:
        with client_of(server, tmp_path_factory.mktemp("state"), timeout=600) as client:
            client.prepare(16, len(SENTENCES))  # together they take less
            yield theirs, primer.pipeline("text-classification", client=client)


def test_twenty_sentences_have_the_same_labels_and_scores(both, capsys):
    theirs, ours = both
    expected, got = theirs(SENTENCES), ours(SENTENCES)
    assert shape(got) == shape(expected)
    off = [abs(a - b) for a, b in zip(scores(got), scores(expected))]
    mean = sum(off) / len(off)
    with capsys.disabled():
        print(f"\n{len(off)} sentences: scores differ by {mean:.4f} (mean), {max(off):.4f} at most")
    pairs = zip(SENTENCES, scores(got), scores(expected))
    assert [pair for pair in pairs if abs(pair[1] - pair[2]) >= 0.01] == []


@pytest.mark.parametrize("options", [{}, {"top_k": None}, {"top_k": 1}, {"top_k": 5}], ids=str)
@pytest.mark.parametrize(
    "inputs",
    [
        SENTENCES[0],
        [SENTENCES[0]],
        {"text": SENTENCES[0], "text_pair": SENTENCES[1]},
        [{"text": SENTENCES[0], "text_pair": SENTENCES[1]}],
    ],
    ids=["text", "list", "pair", "pairs"],
)
def test_every_call_has_the_same_shape(both, inputs, options):
    theirs, ours = both
    expected, got = theirs(inputs, **options), ours(inputs, **options)
    assert shape(got) == shape(expected)
    assert scores(got) == pytest.approx(scores(expected), abs=0.01)


def test_an_option_of_the_pipeline_has_the_same_shape(both):
    transformers = pytest.importorskip("transformers")
    theirs = transformers.pipeline("text-classification", model=str(model()), top_k=None)
    ours = primer.pipeline("text-classification", client=both[1].client, top_k=None)
    for inputs in (SENTENCES[1], [SENTENCES[1]]):
        assert shape(ours(inputs)) == shape(theirs(inputs))


@pytest.mark.parametrize("strategy", ["none", "simple"])
def test_labelled_tokens_are_the_same(tagging, tmp_path, strategy):
    """On a shrunk checkpoint, which transformers wants to be told the format of."""
    files = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    place = tmp_path / "roberta-ner"
    shutil.copytree(FAMILY / "roberta-ner", place)
    weights = files.load_file(place / "model.safetensors")
    files.save_file(weights, place / "model.safetensors", metadata={"format": "pt"})
    options = {"aggregation_strategy": strategy}
    theirs = transformers.pipeline("ner", model=str(place), device="cpu", **options)
    ours = primer.pipeline("ner", client=tagging, **options)
    for inputs in ("a quiet , moving film", ["ok", "a joy"]):
        expected, got = theirs(inputs), ours(inputs)
        assert outline(got) == outline(expected)
        assert scores(got) == pytest.approx(scores(expected), abs=0.02)


def outline(value: Any) -> Any:
    """Everything in its order but scores, and the words of several tokens."""
    if isinstance(value, list):
        return [outline(part) for part in value]
    unlike = {"score": None} if "index" in value else {"score": None, "word": None}
    return list({**value, **unlike}.items())
