"""Set-up for the compat tests: packages, Kafka's jars, a container engine and an image of Kafka.

Knows: the operating system's packages, Maven, the container engine, the cache folder. Must not know: pytest, the tests,
pykafkad.

Start reading: `__main__.py`, which does everything: `python -m compat_tests.setup`. `cache.py` and `fresh.py` define
where everything is kept and how to start with an empty cache.
"""
