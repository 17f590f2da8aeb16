"""A topic as a table in pandas and Polars: what `Broker.table` returns is theirs as it is."""

import pandas
import polars

from pykafkad.testing import Broker


def test_pandas_and_polars_take_a_topic():
    values = ('{"city": "Bern", "amount": 5}', '{"city": "Uri", "amount": 7}', '{"city": "Bern", "amount": 1}')
    with Broker() as broker:
        broker.produce("orders", *values)
        table = broker.table("orders", value="json")
    frame = table.to_pandas()
    orders = pandas.json_normalize(frame["value"].tolist())
    assert orders.groupby("city")["amount"].sum().to_dict() == {"Bern": 6, "Uri": 7}
    assert str(frame["timestamp"].dt.tz) == "UTC"
    sums = polars.from_arrow(table).unnest("value").group_by("city").agg(polars.col("amount").sum())
    assert dict(sums.iter_rows()) == {"Bern": 6, "Uri": 7}
