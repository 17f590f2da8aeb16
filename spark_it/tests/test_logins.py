"""The lines of `pykafkad client-config --for spark`: records by TLS and a login, with each mechanism."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from compat_tests.shop import MECHANISMS, TOKENS, Shop, open_shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALLOWED = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls="


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The broker."""
    with open_shop(tmp_path_factory.mktemp("client-config")) as made:
        yield made


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_spark_logs_in(spark: SparkSession, shop: Shop, mechanism: str) -> None:
    """Records go and come, by a batch each. Where tokens come from is told to Java before its first login."""
    lines = shop.lines("spark", mechanism).splitlines()
    if mechanism == TOKENS:
        name, _, value = lines[0].split()[-1].removeprefix("-D").partition("=")
        assert ALLOWED.endswith(f"{name}=")
        spark._jvm.java.lang.System.setProperty(name, value)
    options = "".join(line for line in lines if line.startswith(".option("))
    rows = spark.range(3).selectExpr(f"concat('{mechanism} ', id) as value")
    eval(f'rows.write.format("kafka").option("topic", "orders"){options}.save()', {"rows": rows})
    reader = spark.read.format("kafka").option("subscribe", "orders")
    read = eval(f"reader{options}.load()", {"reader": reader}).selectExpr("cast(value as string)").collect()
    assert {f"{mechanism} {number}" for number in range(3)} <= {row.value for row in read}
