"""The interpreter lives on while a client works: threads, progress, Ctrl-C."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time

import pytest

import primer


def test_progress_is_told_from_nothing_to_all(connect):
    told: list[tuple[int, int]] = []
    client = connect(progress=lambda done, expected: told.append((done, expected)))
    client.prepare(8, 1)
    # The model's hint is fetched before the first bundle is prepared.
    begins = [at for at, (done, _) in enumerate(told) if done == 0]
    assert len(begins) == 2
    for phase in (told[: begins[1]], told[begins[1] :]):
        (first, expected), last = phase[0], phase[-1]
        assert first == 0 and last == (expected, expected) and expected > 100_000
        assert [done for done, _ in phase] == sorted(done for done, _ in phase)
    told.clear()
    client.classify("an utter mess")
    assert not told, "a bundle was there"


def test_a_bar_comes_and_goes(connect, capsys):
    pytest.importorskip("tqdm")
    connect(progress=True).prepare(8, 1)
    assert "preparing" in capsys.readouterr().err


def test_without_tqdm_a_bar_is_a_warning(connect, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.warns(UserWarning, match="pip install tqdm"):
        connect(progress=True).prepare(8, 1)


def test_what_a_callback_raises_ends_the_call_alone(connect):
    calls = 0

    def fails(done: int, expected: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise RuntimeError("of the callback")

    client = connect(progress=fails)
    with pytest.raises(RuntimeError, match="of the callback"):
        client.prepare(32, 4)
    assert client.classify("an utter mess").label == "negative"


def test_other_threads_run_meanwhile(connect):
    client, ticks, stop = connect(), [], threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.002)

    thread = threading.Thread(target=tick)
    thread.start()
    before = time.monotonic()
    client.classify("an utter mess")
    took = time.monotonic() - before
    stop.set()
    thread.join()
    during = [tick for tick in ticks if before < tick < before + took]
    # A call that held the lock would leave none but those at its edges.
    assert len(during) > 5, f"{len(during)} ticks in {took:.2f} s"


def test_calls_of_many_threads_take_turns(connect):
    client = connect()
    client.prepare(8, 3)
    labels: dict[str, str] = {}

    def ask(text: str) -> None:
        labels[text] = client.classify(text).label

    texts = {"an utter mess": "negative", "a warm film": "positive", "dull": "negative"}
    threads = [threading.Thread(target=ask, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert labels == texts
    assert client.bundles() == {}


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_ends_a_call_and_the_client_goes_on(connect):
    begun = threading.Event()
    client = connect(progress=lambda done, expected: begun.set())

    def interrupt() -> None:
        begun.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    killer = threading.Thread(target=interrupt)
    killer.start()
    with pytest.raises(KeyboardInterrupt):
        client.prepare(32, 200)
    killer.join()
    left = sum(client.bundles().values())
    assert left < 200
    assert client.classify("an utter mess").label == "negative"
    # No half of a bundle is kept: whatever is listed can be used.
    assert sum(client.bundles().values()) in (left, left - 1)


def test_attempts_are_logged(server, connect, tmp_path, caplog):
    with primer.serve(max_tokens=8) as brief:
        client = primer.Client(
            brief.address, fingerprint=brief.fingerprint, state=tmp_path, attempts=2
        )
    with caplog.at_level(logging.WARNING, logger="primer"):
        with pytest.raises(primer.ConnectError):
            client.classify("an utter mess")
    assert any("attempt 2" in record.message for record in caplog.records)
    client.close()


def test_a_server_that_is_not_there_yet_is_waited_for(tmp_path, caplog):
    with primer.serve(max_tokens=8) as brief:
        address = brief.address
    with caplog.at_level(logging.WARNING, logger="primer"):
        before = time.monotonic()
        with pytest.raises(primer.ConnectError):
            primer.Client(address, state=tmp_path, wait=1.0)
        waited = time.monotonic() - before
    assert waited >= 1.0
    assert any("asking again in" in record.message for record in caplog.records)
