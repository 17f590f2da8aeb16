"""Set-up of what the compat tests need: packages, Kafka's jars, a container engine and an image of Kafka.

Knows: the operating system's packages, Maven, the container engine, the cache folder.
Must not know: pytest, the tests, pykafkad.
Start reading: `__main__.py`, which does all of it: `python -m compat_tests.setup`. `cache.py` and `fresh.py` know where
everything is kept and how to begin with nothing.
"""
