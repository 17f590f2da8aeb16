"""`make bench`: pykafkad and a real Kafka 4.3.1 side by side on one machine.

Knows how to start both brokers on fresh directories, to load them in alternation with the same bytes, and to read
what that cost them. Knows nothing of pykafkad's inside: the requests are encoded here, by hand, so that the judge
and the judged share no code.

Start reading at `cases.py` (what is measured and the floors), then `runner.py` (in which order), `loadgen.c` (the
generator), `report.py` (what comes out). `python -m tests.bench --help` lists the options.
"""
