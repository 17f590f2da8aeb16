"""The engine that is guided by coverage: atheris. It has its own process, because it ends the process when it ends.

`python -m tests.fuzz.coverage -runs=N [other options of libFuzzer]` runs it. The first byte of an input chooses the
target.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

SEEDS_PER_TARGET = 12
MAX_LENGTH = 2000
LIMIT_SECONDS = 60
LIMIT_MB = 1024
# The variable with the numbers of the targets, for the process that runs them.
TARGETS_VARIABLE = "PYKAFKAD_FUZZ_TARGETS"


def run(inputs: int, names: Sequence[str] = (), seed: int | None = None) -> int:
    """Feeds `inputs` inputs and prints libFuzzer's output and the input of a finding; returns the exit code of its
    process."""
    from tests.fuzz import mutation

    draw = random.Random(seed)
    chosen = [index for index, target in enumerate(mutation.TARGETS) if not names or target.name in names]
    with tempfile.TemporaryDirectory() as corpus:
        for at, index in enumerate(chosen):
            for number in range(SEEDS_PER_TARGET):
                example = mutation.TARGETS[index].example(draw)[:MAX_LENGTH]
                (Path(corpus) / f"{at}-{number}").write_bytes(bytes((at,)) + example)
        command = [
            sys.executable,
            "-m",
            "tests.fuzz.coverage",
            corpus,
            f"-runs={inputs}",
            f"-max_len={MAX_LENGTH}",
            f"-timeout={LIMIT_SECONDS}",
            f"-rss_limit_mb={LIMIT_MB}",
            f"-artifact_prefix={corpus}/finding-",
            "-print_final_stats=1",
        ]
        if seed is not None:
            command.append(f"-seed={seed}")
        environment = {**os.environ, TARGETS_VARIABLE: ",".join(map(str, chosen))}
        code = subprocess.run(command, env=environment).returncode
        for path in sorted(Path(corpus).glob("finding-*")):
            data = path.read_bytes()
            name = mutation.TARGETS[chosen[data[0] % len(chosen)]].name
            print(f"repeat with: python -m tests.fuzz --input '{name}:{data[1:].hex()}'")
    return code


def _instrument_compiled() -> None:
    """Instruments each function of the schemas when it is compiled, because it has no file that atheris could
    instrument."""
    import atheris

    from pykafkad.wire import messages

    compile_one = messages._compile

    def instrumented(cls: type, version: int, direction: str) -> Callable:
        function = atheris.instrument_func(compile_one(cls, version, direction))
        messages._registry.functions[cls, version, direction] = function
        return function

    messages._compile = instrumented


def main() -> None:
    """The main function of libFuzzer's process."""
    import atheris

    with atheris.instrument_imports(include=["pykafkad"]):
        from tests.fuzz import mutation
    _instrument_compiled()
    targets = mutation.TARGETS
    chosen = [int(number) for number in os.environ[TARGETS_VARIABLE].split(",")]

    def one_input(data: bytes) -> None:
        if data:
            targets[chosen[data[0] % len(chosen)]].check(data[1:])

    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
