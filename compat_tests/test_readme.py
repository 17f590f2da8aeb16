"""The examples of the README run exactly as printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
SHOWN = "".join((PROJECT / name).read_text() for name in ("README.md", "docs/using.md"))
USE_OF_THE_FIXTURE = """
from kafka import KafkaConsumer, KafkaProducer

def test_order_arrives(bootstrap):
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        producer.send("orders", b"one").get(100)
    with KafkaConsumer("orders", bootstrap_servers=bootstrap, group_id="g", auto_offset_reset="earliest") as consumer:
        assert next(consumer).value == b"one"
"""


def example(beginning: str) -> str:
    """The only Python example in the README and docs/using.md with this beginning."""
    (found,) = [text for text in re.findall(r"```python\n(.*?)```", SHOWN, re.DOTALL) if text.startswith(beginning)]
    return found


def test_the_quick_start(bootstrap: str, fresh_name: Callable[..., str]) -> None:
    """The first example prints the record that it sent, on either broker; then it waits for more records."""
    program = example("from kafka import").replace("localhost:9092", bootstrap).replace("greetings", fresh_name())
    with subprocess.Popen([sys.executable, "-u", "-c", program], stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == "0 b'hello'\n"
            assert running.poll() is None
        finally:
            running.kill()


def test_the_fixture_for_other_projects(tmp_path: Path) -> None:
    """The fixture starts a broker that works, and leaves no process behind."""
    (tmp_path / "conftest.py").write_text(example("import subprocess"))
    (tmp_path / "test_use.py").write_text(USE_OF_THE_FIXTURE)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-s",
        "-p",
        "no:cacheprovider",
        "--basetemp",
        str(tmp_path / "temporary"),
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0 and "1 passed" in ran.stdout, ran.stdout + ran.stderr
    assert "server stopped" in ran.stdout + ran.stderr
