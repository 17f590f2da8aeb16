"""The lines of `pykafkad client-config --for spark`: records by TLS and a login, with each mechanism; and the block of
docs/security.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat_tests.security_page import block, page_broker
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


def test_the_page(spark: SparkSession, tmp_path: Path) -> None:
    """As it stands there, but for the place of the broker and of its certificate."""
    with page_broker(tmp_path) as page:
        exec(page.placed(block("python", "spark.sql")).replace("shop/", f"{tmp_path}/shop/"), {"spark": spark})
        reader = spark.read.format("kafka").option("subscribe", "orders")
        options = {
            "kafka.bootstrap.servers": page.address,
            "kafka.security.protocol": "SASL_SSL",
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.location": f"{tmp_path}/shop/tls-ca.pem",
            "kafka.sasl.mechanism": "SCRAM-SHA-256",
            "kafka.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
            "username=admin password=top;",
        }
        (row,) = reader.options(**options).load().selectExpr("cast(value as string)").collect()
        assert row.value == "by Spark"
