"""The client: answers, bundles, cost, warnings."""

from __future__ import annotations

import dataclasses
import json

import pytest

import primer
from conftest import ROOT, client_of
from primer.client import _checked

GOLDEN = ROOT / "crates/model/tests/fixtures/sst2-demo.golden.jsonl"


def test_card(shared, server):
    card = shared.card
    assert card == server.card
    assert card.model == "sst2-demo (embedded)"
    assert card.task == "text-classification"
    assert card.labels == ("negative", "positive")
    assert card.lengths[-1] == card.max_tokens == 32
    assert list(card.lengths) == sorted(card.lengths)
    assert card.scheme == "lean" and card.reveals_scores


def test_answers_are_those_of_hugging_face(shared):
    """Logits by transformers, in the clear, are in the fixture."""
    lines = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
    short = [line for line in lines if len(line["input_ids"]) <= 16][:4]
    assert len(short) == 4
    for line in short:
        found = shared.classify(line["text"])
        assert found.index == max(range(2), key=lambda i: line["logits"][i])
        assert found.label == shared.card.labels[found.index]
        assert found.logits == pytest.approx(line["logits"], abs=0.1)
        assert sum(found.scores) == pytest.approx(1.0)
        assert found.score == max(found.scores)
        assert found.in_range is True and found.removed == 0


def test_bundles_are_prepared_kept_and_spent_once(connect, tmp_path):
    with connect() as client:
        assert client.bundles() == {}
        names = client.prepare(9, 2)
        assert len(set(names)) == 2
        length = next(one for one in client.card.lengths if one >= 9)
        assert client.bundles() == {length: 2}
    again = connect()
    ahead = again.classify("an utter mess")
    assert again.bundles() == {length: 1}, "they outlive their client, and one is spent"
    assert ahead.label == "negative"
    assert ahead.cost.prepared_ahead and ahead.cost.offline_bytes == 0
    assert ahead.cost.tokens == length and ahead.cost.online_bytes > 0
    fresh = connect(state=tmp_path / "other").classify("an utter mess")
    assert not fresh.cost.prepared_ahead
    assert fresh.cost.offline_bytes > fresh.cost.online_bytes > 0
    assert fresh.cost.offline_seconds > 0


def test_pairs_and_questions(shared, answering, tmp_path):
    pair = shared.classify_pair("a warm film", "an utter mess")
    single = shared.classify("a warm film")
    assert pair.logits != single.logits and len(pair.scores) == 2
    context = "the museum opened in 1889 near the river"
    with client_of(answering, tmp_path) as client:
        assert client.card.task == "question-answering" and client.card.labels == ()
        found = client.answer("when did it open ?", context)
    assert found.answer == context[found.start : found.end]
    assert 0 <= found.score <= 1 and found.cost.online_bytes > 0


def test_labels_alone(tmp_path):
    with primer.serve(reveal_scores=False, max_tokens=8) as server:
        with client_of(server, tmp_path) as client:
            found = client.classify("an utter mess")
            assert not client.card.reveals_scores
            pipe = primer.pipeline("text-classification", client=client)
            assert pipe("an utter mess", top_k=None) == [{"label": "negative", "score": None}]
    assert (found.label, found.score, found.scores, found.logits) == ("negative", None, (), ())


def test_long_texts_are_cut_with_a_warning(shared):
    with pytest.warns(primer.TruncationWarning, match="cut off"):
        found = shared.classify("a warm and funny film " * 20)
    assert found.removed > 0 and found.cost.tokens == 32


def test_values_out_of_range_warn(shared, recwarn):
    found = shared.classify("a warm film")
    assert not recwarn.list
    with pytest.warns(primer.RangeWarning, match="may be wrong"):
        _checked(dataclasses.replace(found, in_range=False))
    _checked(dataclasses.replace(found, in_range=None))
    assert not recwarn.list


def test_a_closed_client_says_so(connect):
    client = connect()
    client.close()
    client.close()
    with pytest.raises(primer.ClosedError, match="closed"):
        client.classify("a warm film")


def test_nothing_secret_is_printed(connect):
    client = connect(token="a-token-of-some-length")
    assert "token" not in repr(client) and "token" not in repr(client._native)
