"""Other clients' suites pass on pykafkad where they pass on a real Kafka; and tests of `compat_tests/suites` itself."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compat_tests.conftest import AGAINST, unavailable
from compat_tests.suites import ahead, card, rust
from compat_tests.suites.catalogue import LEFT_OUT, SUITES
from compat_tests.suites.counting import from_junit, from_libtest, from_test2json
from compat_tests.suites.packages import unpack
from compat_tests.suites.run import own_network, run_suite
from compat_tests.suites.suite import FAILED, PASSED, SKIPPED, Comparison, Suite, SuiteUnavailable, reason_for

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "suites.md"
EXAMPLE = Suite(
    "example", "1", "PyPI", "Python", Path, lambda _: {}, differences={"*sasl*": "no SASL", "*gone*": "no more"}
)


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_what_passes_on_kafka_passes_here(suite: Suite, pytestconfig: pytest.Config, kafka_jars: Path) -> None:
    """Every test of the suite that passes on a real Kafka passes on pykafkad, or the suite names the reason why not.

    Tests of other projects assume certain speeds, which a busy machine breaks on either broker. So a test that fails
    only on pykafkad runs once more and must fail both times; each run's log is kept. The first runs of both brokers
    share their time, as far as they are short and have networks of their own, because they mostly wait.
    """
    whole = pytestconfig.getoption("--whole-suites")
    if not (whole or suite.quick):
        pytest.skip("this suite takes long: make test-long, or --whole-suites")
    try:
        with ThreadPoolExecutor(2 if own_network() and not whole else 1) as pool:
            runs = [pool.submit(run_suite, suite, against, quick=not whole) for against in AGAINST["both"]]
        on_kafka, here = (each.result() for each in runs)
        again = here
    except SuiteUnavailable as error:
        unavailable(str(error))
    compared = Comparison(suite, on_kafka.outcomes, here.outcomes)
    if compared.unexplained():
        again = run_suite(suite, "pykafkad", quick=not whole, attempt=2)
        compared = compared.seen_again(again.outcomes)
    assert compared.passed_on_kafka() > 0, f"no test passes on the real Kafka: {on_kafka.log}"
    assert compared.unexplained() == [], f"see {here.log} and {again.log}"
    assert compared.outdated() == [], "these reasons are outdated"


def test_the_document_has_a_row_for_every_suite() -> None:
    """The table of docs/suites.md has the suites, their versions and the suites that are left out."""
    text = DOCUMENT.read_text()
    shown = text[text.index(card.BEGIN) : text.index(card.END)]
    for suite in SUITES:
        assert f"| {suite.name} (" in shown and f"{suite.version.lstrip('v')}, {suite.registry}" in shown, suite.name
    assert "\n".join(card.left_out_lines()) in shown
    assert card.UNKNOWN not in shown
    assert len({each.name for each in LEFT_OUT}) == len(LEFT_OUT)


def test_junit_is_counted(tmp_path: Path) -> None:
    """A failure in the teardown fails a test that passed before it."""
    path = tmp_path / "junit.xml"
    cases = '<testcase classname="t.a" name="x[1]"/><testcase classname="t.a" name="y"><skipped/></testcase>'
    cases += '<testcase classname="t.a" name="z"/><testcase classname="t.a" name="z"><error/></testcase>'
    path.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    assert from_junit(path) == {"a::x[1]": PASSED, "a::y": SKIPPED, "a::z": FAILED}
    assert from_junit(tmp_path / "absent.xml") == {}


def test_test2json_is_counted() -> None:
    """Subtests count instead of their parent, unless only the parent failed; an unfinished test has failed."""
    events = [("run", "A"), ("run", "A/x"), ("pass", "A/x"), ("pass", "A"), ("run", "B"), ("run", "B/x")]
    events += [("pass", "B/x"), ("fail", "B"), ("run", "C"), ("output", "C")]
    lines = [json.dumps({"Action": action, "Test": test}) for action, test in events]
    assert from_test2json([*lines, "no json"], "p.") == {"p.A/x": PASSED, "p.B/x": PASSED, "p.B": FAILED, "p.C": FAILED}


def test_libtest_is_counted() -> None:
    """A test's own output between its name and its outcome does not hide the outcome."""
    text = "running 3 tests\ntest a::b ... ok\ntest c ... FAILED\ntest d ... ignored\n"
    assert from_libtest(text, "m::") == {"m::a::b": PASSED, "m::c": FAILED, "m::d": SKIPPED}


def test_differences_need_a_reason_and_end_with_it() -> None:
    """A difference without a reason is a bug; a reason whose tests all pass is outdated; one without tests is
    neither.
    """
    compared = Comparison(
        EXAMPLE, {"a_sasl": PASSED, "b": PASSED, "c": FAILED}, {"a_sasl": FAILED, "b": FAILED, "c": PASSED}
    )
    assert compared.only_on_kafka() == {"a_sasl": "no SASL", "b": None}
    assert (compared.unexplained(), compared.only_here(), compared.outdated()) == (["b"], ["c"], [])
    assert Comparison(EXAMPLE, {"a_sasl": PASSED}, {"a_sasl": PASSED}).outdated() == ["*sasl*"]
    assert card.report(compared)[1] == f"b: {card.UNKNOWN}"


def test_what_fails_twice_is_a_difference() -> None:
    """A second run removes differences that pass in it, and adds none."""
    once = Comparison(EXAMPLE, {"a": PASSED, "b": PASSED, "c": PASSED}, {"a": FAILED, "b": FAILED, "c": PASSED})
    assert once.seen_again({"a": PASSED, "b": FAILED, "c": FAILED}).unexplained() == ["b"]
    assert once.seen_again({}).unexplained() == ["a", "b"]


def test_brackets_of_parameters_are_themselves() -> None:
    """`test[gzip]` is not read as a pattern of one letter."""
    assert reason_for("test[gzip]", {"test[gzip]": "x"}) == "x"
    assert reason_for("testg", {"test[gzip]": "x"}) is None


def test_renewing_one_row_keeps_the_others(tmp_path: Path) -> None:
    """A run of one suite changes only its own row."""
    path = tmp_path / "suites.md"
    path.write_text(f"before\n{card.BEGIN}\n| other (C) | 1, x | 5 | 4 |  |\n{card.END}\nafter\n")
    card.into_document(path, [Comparison(EXAMPLE, {"a": PASSED}, {"a": PASSED})])
    text = path.read_text()
    assert "| other (C) | 1, x | 5 | 4 |  |" in text and "| example (Python) | 1, PyPI | 1 | 1 |  |" in text
    card.into_document(path, [Comparison(EXAMPLE, {"a": PASSED}, {"a": FAILED})])
    assert path.read_text().count("example (Python)") == 1 and path.read_text().endswith(f"{card.END}\nafter\n")


def tar_of(path: Path, *members: tuple[str, bytes, bytes | str]) -> Path:
    """An archive with `members`: a name, a type, and a file's content or a link's target."""
    with tarfile.open(path, "w:gz") as archive:
        for name, kind, content in members:
            member = tarfile.TarInfo(name)
            member.type, member.mode = kind, 0o755
            if isinstance(content, bytes):
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
            else:
                member.linkname = content
                archive.addfile(member)
    return path


def test_a_source_distribution_is_unpacked(tmp_path: Path) -> None:
    """Files and folders are unpacked with their content, also if the archive has no member for the folder."""
    archive = tar_of(
        tmp_path / "a.tar.gz",
        ("a", tarfile.DIRTYPE, b""),
        ("a/x", tarfile.REGTYPE, b"1"),
        ("a/b/y", tarfile.REGTYPE, b"2"),
    )
    unpack(archive, tmp_path / "out")
    files = {
        str(each.relative_to(tmp_path / "out")): each.read_bytes()
        for each in tmp_path.glob("out/**/*")
        if each.is_file()
    }
    assert files == {"a/x": b"1", "a/b/y": b"2"}
    assert os.access(tmp_path / "out" / "a" / "x", os.X_OK)


@pytest.mark.parametrize(
    ("name", "kind", "content"),
    [
        ("/absolute", tarfile.REGTYPE, b"x"),
        ("../beside", tarfile.REGTYPE, b"x"),
        ("a/../../beside", tarfile.REGTYPE, b"x"),
        ("a/..", tarfile.DIRTYPE, b""),
        ("link", tarfile.SYMTYPE, "/etc/passwd"),
        ("link", tarfile.SYMTYPE, "inside"),
        ("hard", tarfile.LNKTYPE, "inside"),
        ("device", tarfile.CHRTYPE, ""),
        ("pipe", tarfile.FIFOTYPE, ""),
    ],
)
def test_an_archive_that_leaves_its_folder_is_refused(
    tmp_path: Path, name: str, kind: bytes, content: bytes | str
) -> None:
    """A member with an absolute path or `..`, a link or a device ends the unpacking.

    Nothing is written outside of the folder.
    """
    archive = tar_of(tmp_path / "bad.tar.gz", ("inside", tarfile.REGTYPE, b"1"), (name, kind, content))
    with pytest.raises(SuiteUnavailable, match=re.escape(name)):
        unpack(archive, tmp_path / "out")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bad.tar.gz", "out"]
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["inside"]


def test_unused_dependencies_are_not_compiled() -> None:
    """The named dependencies leave the manifest with all their lines, and no other does; a missing one is named."""
    manifest = '[dependencies.a]\nversion = "1"\n\n[dev-dependencies.b]\nversion = "1"\nfeatures = [\n    "x",\n]\n\n'
    manifest += '[dev-dependencies.b-c]\nversion = "2"\n'
    kept = '[dependencies.a]\nversion = "1"\n\n'
    assert rust.without(manifest, ["b"]) == kept + '[dev-dependencies.b-c]\nversion = "2"\n'
    assert rust.without(manifest, ["b-c", "b"]) == kept
    with pytest.raises(SuiteUnavailable, match="does not depend on a any more"):
        rust.without(manifest, ["a"])


def test_suites_are_built_ahead(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a process of the lowest priority that passes over a suite without its tool chain, and can be ended early."""
    os.symlink(shutil.which("nice") or "", tmp_path / "nice")
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", os.fspath(tmp_path))
    building = ahead.start(["kafka-go", "rskafka"])
    assert building.wait(100) == 0
    building = ahead.start(["kafka-go"])
    ahead.end(building)
    assert building.returncode in (0, -signal.SIGTERM)


def test_a_missing_tool_chain_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without Go its suites are skipped with the reason and how to get Go."""
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", os.fspath(tmp_path))
    (suite,) = [suite for suite in SUITES if suite.name == "kafka-go"]
    with pytest.raises(SuiteUnavailable, match="go is missing.*Go clients.*go.dev"):
        suite.prepare()
