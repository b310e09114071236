"""The tutorial's code runs, and says what the tutorial says that it says.

All blocks of `docs/python.md` marked `python` run in order in one namespace. A comment behind or
below a `print` is what it must print; `…` stands for anything.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings

from conftest import ROOT

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTS = re.compile(r"^ *print\(.*\)(?:  |\n)# (.*)$", re.MULTILINE)


def test_the_tutorial_runs(tmp_path, monkeypatch):
    blocks = BLOCK.findall((ROOT / "docs/python.md").read_text())
    assert len(blocks) >= 6
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "tutorial", "CLONE": ROOT}
    compared = 0
    for block in blocks:
        said = io.StringIO()
        with contextlib.redirect_stdout(said), warnings.catch_warnings():
            warnings.simplefilter("ignore", category=ResourceWarning)
            exec(compile(block, "docs/python.md", "exec"), names)
        lines = said.getvalue().splitlines()
        expected = PRINTS.findall(block)
        assert len(lines) == len(expected), f"{block}\nprinted {lines}"
        for line, wanted in zip(lines, expected):
            pattern = ".*".join(re.escape(part) for part in wanted.split("…"))
            assert re.fullmatch(pattern, line), f"printed {line!r}, the tutorial says {wanted!r}"
            compared += 1
    assert compared >= 6
