"""Every kind of failure has a class, and a sentence that helps."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

import primer
from conftest import client_of


# A token, and what a server's file has of it: BLAKE3 in its mode for deriving keys, with the context
# "primer 2026 access token".
TOKEN = "0123456789abcdef"
HASH = "6c4909d3db8a13d7c96677878973efa0ba63e0f91102113e5108c40864862bca"


def test_nobody_listens(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with pytest.raises(primer.ConnectError, match=str(port)) as caught:
            primer.Client(f"127.0.0.1:{port}", state=tmp_path)
    assert isinstance(caught.value, (primer.Error, ConnectionError))


def test_a_server_has_a_port(tmp_path):
    with pytest.raises(primer.OptionError, match="a host and a port"):
        primer.Client("localhost", state=tmp_path)


def test_a_server_must_be_trusted(server, tmp_path):
    with pytest.raises(primer.TrustError, match="fingerprint=") as caught:
        primer.Client(server.address, state=tmp_path)
    assert server.fingerprint in str(caught.value)
    with pytest.raises(primer.TrustError, match="expected"):
        primer.Client(server.address, fingerprint="ab" * 32, state=tmp_path)
    client_of(server, tmp_path).close()
    primer.Client(server.address, state=tmp_path).close()  # known by now
    with pytest.raises(primer.TrustError, match="leave fingerprint= out"):
        primer.Client(server.address, fingerprint="ab" * 32, state=tmp_path)


def test_access_needs_a_token(tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text(f"blake3:{HASH} a test\n")
    tokens.chmod(0o644)
    with pytest.raises(primer.OptionError, match="chmod 600"):
        primer.serve(access_tokens=tokens, max_tokens=8)
    tokens.chmod(0o600)
    with primer.serve(access_tokens=tokens, max_tokens=8) as server:
        with pytest.raises(primer.RefusedError, match="token"):
            client_of(server, tmp_path / "state")
        client = client_of(server, tmp_path / "state", token=TOKEN)
        assert client.classify("an utter mess").label == "negative"
        client.close()


def test_options_are_checked(server, tmp_path):
    wrongs = {"fingerprint": ["nonsense"], "timeout": [0, float("nan")], "wait": [-1]}
    for wrong in ({name: value} for name, values in wrongs.items() for value in values):
        with pytest.raises(primer.OptionError):
            primer.Client(server.address, state=tmp_path, **wrong)
    with pytest.raises(primer.OptionError, match="no scheme"):
        primer.serve(scheme="base")
    with pytest.raises(OverflowError):
        primer.Client(server.address, state=tmp_path, attempts=-1)


def test_servers_that_cannot_start(tmp_path):
    with pytest.raises(primer.ModelError, match="nowhere"):
        primer.serve(tmp_path / "nowhere")
    with pytest.raises(primer.ListenError):
        primer.serve(listen="192.0.2.1:1")
    with primer.serve(max_tokens=8) as server:
        with pytest.raises(primer.OptionError, match="another program"):
            primer.serve(listen=server.address)


def test_texts_and_tasks(shared):
    with pytest.raises(primer.TaskError, match="span"):
        shared.answer("who ?", "somebody")
    with pytest.raises(primer.RefusedError, match="at most 32 tokens, not 33"):
        shared.prepare(33, 1)
    with pytest.raises(UnicodeEncodeError):
        shared.classify("half a character: \ud800")


def test_a_question_without_room(answering, tmp_path):
    with client_of(answering, tmp_path) as client:
        with pytest.raises(primer.TextError, match="question alone"):
            client.answer("when " * 40, "in 1889")
        assert isinstance(primer.TextError("x"), ValueError)


def test_a_server_that_went_away(tmp_path):
    server = primer.serve(max_tokens=8)
    client = client_of(server, tmp_path, attempts=1)
    server.stop()
    server.stop()
    with pytest.raises(primer.ConnectError):
        client.classify("an utter mess")
    client.close()


def test_state_of_a_server_goes_with_it(tmp_path):
    server = primer.serve(max_tokens=8)
    place = Path(server._state.name)
    assert place.is_dir()
    server.stop()
    assert not place.exists()
    kept = tmp_path / "kept"
    with primer.serve(state=kept, max_tokens=8) as first:
        fingerprint = first.fingerprint
    with primer.serve(state=kept, max_tokens=8) as second:
        assert second.fingerprint == fingerprint


def test_an_interpreter_ends_with_a_server_running(tmp_path):
    """Neither a hang nor a crash if close is forgotten."""
    program = (
        "import primer, tempfile\n"
        "server = primer.serve(max_tokens=8)\n"
        "client = primer.Client(server.address, fingerprint=server.fingerprint,\n"
        "                       state=tempfile.mkdtemp())\n"
        "print(client.card.task)\n"
    )
    command = [sys.executable, "-c", program]
    # Not here, where the sources would be imported.
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "text-classification\n"
