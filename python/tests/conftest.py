"""One server of the embedded model for all tests, and clients with a state of their own."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import primer

ROOT = Path(__file__).resolve().parents[2]
FAMILY = ROOT / "crates/model/tests/fixtures/family"


@pytest.fixture(scope="session")
def server() -> Iterator[primer.Server]:
    with primer.serve(max_tokens=32) as running:
        yield running


@pytest.fixture(scope="session")
def shared(server: primer.Server, tmp_path_factory: Any) -> Iterator[primer.Client]:
    """A client for tests that only ask."""
    state = tmp_path_factory.mktemp("shared")
    with primer.Client(server.address, fingerprint=server.fingerprint, state=state) as client:
        client.prepare(16, 8)
        yield client


@pytest.fixture
def connect(server: primer.Server, tmp_path: Path) -> Iterator[Callable[..., primer.Client]]:
    """Clients of the server that share a state of this test's."""
    made: list[primer.Client] = []

    def connected(**options: Any) -> primer.Client:
        options.setdefault("state", tmp_path / "state")
        client = primer.Client(server.address, fingerprint=server.fingerprint, **options)
        made.append(client)
        return client

    yield connected
    for client in made:
        client.close()


@pytest.fixture(scope="session")
def answering(tmp_path_factory: Any) -> Iterator[primer.Server]:
    """A server of a small random model that answers questions."""
    model = tmp_path_factory.mktemp("model") / "random-qa"
    shutil.copytree(ROOT / "crates/model/tests/fixtures/random-qa", model)
    shutil.copy(ROOT / "models/sst2-demo/tokenizer.json", model)
    with primer.serve(model, max_tokens=32) as running:
        yield running


@pytest.fixture(scope="session")
def tagging(tmp_path_factory: Any) -> Iterator[primer.Client]:
    """A client of a shrunk RoBERTa with labels for tokens."""
    with primer.serve(FAMILY / "roberta-ner", max_tokens=16) as running:
        with client_of(running, tmp_path_factory.mktemp("tagging")) as client:
            yield client


@pytest.fixture(scope="session")
def encoding(tmp_path_factory: Any) -> Iterator[primer.Client]:
    """A client of a shrunk sentence encoder."""
    with primer.serve(FAMILY / "sentence", max_tokens=16) as running:
        with client_of(running, tmp_path_factory.mktemp("encoding")) as client:
            yield client


def client_of(server: primer.Server, state: Path, **options: Any) -> primer.Client:
    """A client of any server."""
    return primer.Client(server.address, fingerprint=server.fingerprint, state=state, **options)
