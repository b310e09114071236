"""Labels of tokens, embeddings, and what scores mean, on shrunk checkpoints of every family.

What Hugging Face's own code says of the same texts is kept beside the checkpoints.
"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

import primer
from conftest import FAMILY, client_of

TEXT = "a quiet , moving film"


def golden(name: str) -> Any:
    lines = (FAMILY / name / "golden.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    return next(one for one in found if one["text"] == TEXT)


def softmax(row: list[float]) -> list[float]:
    powers = [math.exp(value) for value in row]
    return [power / sum(powers) for power in powers]


def test_tokens_have_the_labels_of_hugging_face(tagging):
    pipe = primer.pipeline("token-classification", client=tagging)
    found = pipe(TEXT)
    # All but the special tokens; none of this model's labels is `O`.
    rows = [softmax(row) for row in golden("roberta-ner")["logits"][1:-1]]
    assert len(found) == len(rows)
    for index, (entity, row) in enumerate(zip(found, rows), start=1):
        assert list(entity) == ["entity", "score", "index", "word", "start", "end"]
        assert entity["entity"] == f"LABEL_{row.index(max(row))}"
        assert entity["score"] == pytest.approx(max(row), abs=0.02)
        assert entity["index"] == index
        assert TEXT[entity["start"] : entity["end"]] == entity["word"].lstrip("Ġ")


def test_neighbours_are_put_together(tagging):
    simple = tagging.tag(TEXT)
    alone = tagging.tag(TEXT, "none").entities
    labels = [entity.label for entity in simple.entities]
    assert all(a != b for a, b in zip(labels, labels[1:])), "neighbours of one kind are one"
    assert 0 < len(labels) < len(alone)
    for entity in simple.entities:
        parts = [one for one in alone if entity.start <= one.start and one.end <= entity.end]
        assert {one.label for one in parts} == {entity.label}
        mean = sum(one.score for one in parts) / len(parts)
        assert entity.score == pytest.approx(mean, abs=0.02)
        assert entity.index is None
        assert (entity.start, entity.end) == (parts[0].start, parts[-1].end)
    assert simple.in_range is True and simple.cost.tokens == 16


def test_shapes_of_labelled_tokens(tagging):
    pipe = primer.pipeline("ner", client=tagging, aggregation_strategy="simple")
    assert pipe.client.card.task == "token-classification" and pipe.client.card.family == "Roberta"
    assert tagging.card.labels == ("LABEL_0", "LABEL_1", "LABEL_2")
    one = pipe("ok")
    assert [list(entity) for entity in one] == [["entity_group", "score", "word", "start", "end"]]
    assert (one[0]["entity_group"], one[0]["word"], one[0]["end"]) == ("LABEL_0", "ok", 2)
    assert [type(entry) for entry in pipe(["ok"])] == [list]
    assert "index" in pipe("ok", aggregation_strategy="none")[0], "a call overrules the pipeline"
    for wrong in (5, {"text": "ok"}, [["ok"]], ("ok", "ok")):
        with pytest.raises(ValueError, match="input"):
            pipe(wrong)
    for wrong in ("first", "max", None):
        with pytest.raises(ValueError, match="aggregation_strategy"):
            primer.pipeline("ner", client=tagging, aggregation_strategy=wrong)
    with pytest.raises(primer.OptionError, match="aggregate"):
        tagging.tag("ok", "average")
    with pytest.warns(primer.TruncationWarning):
        assert tagging.tag("ok " * 30).removed > 0


def test_a_text_becomes_a_vector(encoding):
    found = encoding.embed(TEXT)
    assert found.vector == pytest.approx(golden("sentence")["embedding"], abs=0.05)
    assert math.hypot(*found.vector) == pytest.approx(1.0)
    assert found.in_range is True and found.removed == 0 and found.cost.tokens == 8
    assert encoding.card.task == "feature-extraction" and encoding.card.labels == ()
    pipe = primer.pipeline("feature-extraction", client=encoding)
    one, (first, second) = pipe(TEXT), pipe([TEXT, "the plot is thin"])
    assert one == pytest.approx(list(found.vector), abs=0.05) and isinstance(one, list)
    assert sum(a * b for a, b in zip(one, first)) > 0.99
    assert second != pytest.approx(first, abs=0.01)
    with pytest.raises(ValueError, match="text"):
        pipe({"text": TEXT})


def test_another_task_is_named(tagging, encoding):
    with pytest.raises(primer.TaskError, match="RobertaForTokenClassification"):
        tagging.embed("ok")
    with pytest.raises(primer.TaskError, match="sentence embeddings"):
        encoding.tag("ok")
    with pytest.raises(primer.TaskError, match="sentence embeddings"):
        encoding.classify("ok")


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


@pytest.mark.parametrize(
    "problem, meaning",
    [
        ("single_label_classification", softmax),
        ("multi_label_classification", lambda logits: [sigmoid(value) for value in logits]),
        ("regression", list),
    ],
)
def test_scores_are_what_the_problem_says(tmp_path: Path, problem, meaning):
    model = tmp_path / "electra"
    shutil.copytree(FAMILY / "electra", model)
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "problem_type": problem}))
    with primer.serve(model, max_tokens=8) as server, client_of(server, tmp_path) as client:
        client.prepare(8, 2)
        found = client.classify(TEXT)
        assert found.logits == pytest.approx(golden("electra")["logits"], abs=0.05)
        assert found.scores == pytest.approx(meaning(list(found.logits)))
        assert found.score == max(found.scores)
        ranked = primer.pipeline("text-classification", client=client)(TEXT, top_k=None)
    scores = meaning(golden("electra")["logits"])
    assert [entry["score"] for entry in ranked] == pytest.approx(
        sorted(scores, reverse=True), abs=0.05
    )


def test_long_contexts_are_windows_and_there_may_be_no_answer(answering, tmp_path):
    context = "the plot is thin but the cast is a joy and it is a quiet , moving film . " * 2
    with client_of(answering, tmp_path) as client:
        found = client.answer("who made it", context, stride=4, null_threshold=math.inf)
        assert found.windows > 1 and found.answer
        assert context[found.start : found.end] == found.answer
        none = client.answer("who made it", context, stride=4, null_threshold=-1000)
        assert (none.answer, none.start, none.end) == ("", 0, 0) and 0 <= none.score < 1
        assert client.answer("who made it", context, stride=20).windows > found.windows
        with pytest.raises(primer.OptionError, match="null_threshold"):
            client.answer("who made it", context, null_threshold=math.nan)
        with pytest.raises(OverflowError):
            client.answer("who made it", context, stride=-1)
        asked = {"question": "who made it", "context": "a joy"}
        never = primer.pipeline("question-answering", client=client, null_threshold=-1000)
        assert never(asked)["answer"], "an answer is none only if that is asked for"
        impossible = primer.pipeline(
            "question-answering",
            client=client,
            handle_impossible_answer=True,
            null_threshold=-1000,
        )
        assert impossible(asked)["answer"] == ""
