"""Pipelines: the shapes of transformers 4.44 (compared with it in `test_transformers.py`)."""

from __future__ import annotations

import pytest

import primer

GOOD, BAD = "a warm , funny film", "an utter mess"


@pytest.fixture
def pipe(shared):
    return primer.pipeline("text-classification", client=shared)


def best(entry):
    assert list(entry) == ["label", "score"] and 0.5 <= entry["score"] <= 1
    return entry["label"]


def test_one_text_and_several(pipe):
    assert [best(entry) for entry in pipe(GOOD)] == ["positive"]
    assert [best(entry) for entry in pipe([GOOD, BAD])] == ["positive", "negative"]
    assert pipe([]) == []


def test_pairs(pipe):
    pair = {"text": GOOD, "text_pair": BAD}
    assert isinstance(pipe(pair), dict), "not a list: so it is in transformers"
    assert [type(entry) for entry in pipe([pair, {"text": BAD}])] == [dict, dict]


def test_top_k(pipe, shared):
    everything = pipe(GOOD, top_k=None)
    assert [entry["label"] for entry in everything] == ["positive", "negative"]
    assert sum(entry["score"] for entry in everything) == pytest.approx(1.0)
    assert len(pipe(GOOD, top_k=1)) == 1
    assert [len(entry) for entry in pipe([GOOD, BAD], top_k=5)] == [2, 2]
    fixed = primer.pipeline("sentiment-analysis", client=shared, top_k=None)
    assert [len(entry) for entry in fixed(GOOD)] == [2], "wrapped once more, as in transformers"
    for wrong in (0, -1, "all", True):
        with pytest.raises(ValueError, match="top_k"):
            pipe(GOOD, top_k=wrong)


def test_a_generator_is_asked_as_it_is_read(pipe):
    asked = []

    def texts():
        for text in (GOOD, BAD):
            asked.append(text)
            yield text

    answers = pipe(texts())
    assert asked == []
    assert best(next(answers)) == "positive" and asked == [GOOD]
    assert best(next(answers)) == "negative"


@pytest.mark.parametrize(
    "wrong", [5, None, (GOOD, BAD), {"txt": GOOD}, {"text": 5}, {}, [["a", "b"]], b"bytes"]
)
def test_other_inputs_are_named(pipe, wrong):
    with pytest.raises(ValueError):
        pipe(wrong)


def test_questions(answering, tmp_path):
    context = "the museum opened in 1889 near the river"
    where = {"server": answering.address, "fingerprint": answering.fingerprint}
    with primer.pipeline("question-answering", **where, state=tmp_path) as pipe:
        one = pipe(question="when did it open ?", context=context)
        assert list(one) == ["score", "start", "end", "answer"]
        assert context[one["start"] : one["end"]] == one["answer"]
        as_dict = {"question": "when did it open ?", "context": context}
        assert pipe(as_dict)["answer"] == one["answer"]
        assert isinstance(pipe([as_dict]), dict), "not a list: so it is in transformers"
        several = pipe(question=["when ?", "where ?"], context=context)
        assert [set(answer) for answer in several] == [set(one)] * 2
        for wrong in ({"question": "when ?"}, "when ?", {**as_dict, "top_k": 2}):
            with pytest.raises(ValueError):
                pipe(wrong)
        with pytest.raises(ValueError, match="not match"):
            pipe(question=["when ?", "where ?"], context=[context])
        with pytest.raises(ValueError, match="both"):
            pipe(as_dict, question="when ?")


def test_tasks_and_servers_must_fit(shared, server, tmp_path):
    with pytest.raises(primer.TaskError, match="does text-classification"):
        primer.pipeline("question-answering", client=shared)
    with pytest.raises(primer.TaskError, match="there is no task 'translation'"):
        primer.pipeline("translation", client=shared)
    for other in ("token-classification", "ner", "feature-extraction"):
        with pytest.raises(primer.TaskError, match="does text-classification"):
            primer.pipeline(other, client=shared)
    with pytest.raises(ValueError, match="server="):
        primer.pipeline("text-classification")
    with pytest.raises(ValueError, match="already"):
        primer.pipeline("text-classification", client=shared, server=server.address)
    with pytest.raises(TypeError, match="aggregation"):
        primer.pipeline("text-classification", client=shared, aggregation_strategy="simple")
