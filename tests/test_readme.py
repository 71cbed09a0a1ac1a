"""Every Python block of README.md runs, in order and in one namespace."""

import pathlib
import re

import pytest

README = pathlib.Path(__file__).parents[1] / "README.md"


def python_blocks():
    """Return the number of the first line and the code of each Python block."""
    text = README.read_text(encoding="utf-8")
    pattern = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    return [
        (text[: found.start(1)].count("\n"), found.group(1)) for found in pattern.finditer(text)
    ]


@pytest.mark.slow
def test_python_blocks_run_in_order(tmp_path, monkeypatch):
    # The blocks write their files where they are run.
    monkeypatch.chdir(tmp_path)
    blocks = python_blocks()
    assert len(blocks) >= 5
    namespace = {}
    for line, code in blocks:
        # The empty lines make a traceback give the line of README.md.
        exec(compile("\n" * line + code, str(README), "exec"), namespace)


def test_no_other_kind_of_code_block_hides_python():
    kinds = re.findall(r"^```(\w*)$", README.read_text(encoding="utf-8"), re.MULTILINE)
    opening = kinds[::2]
    assert set(opening) <= {"sh", "text", "python"}


def test_set_up_lines_stand_alone():
    text = README.read_text(encoding="utf-8")
    lines = re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(lines) == 2
    for line in lines:
        assert line.count("\n") == 1 and line.startswith("python -m venv ")
        assert "-c constraints.txt" in line
