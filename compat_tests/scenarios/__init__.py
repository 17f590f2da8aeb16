"""Raw requests, built with our own wire library and sent to a real Kafka and to pykafkad; the answers have to be equal.

A scenario is a function that takes an `Exchange` and asks things; what it asked and was answered is a transcript. Both
transcripts are normalised (ids, times, addresses: `normalise.py`) and compared field by field. Reasoned differences are
in one table, `differences.py`. To add a scenario, write a decorated function in the file of its API family:

    @scenario
    def unknown_topic(broker: Exchange) -> None:
        \"\"\"A topic that is not there is UNKNOWN_TOPIC_OR_PARTITION in every version.\"\"\"
        for version in versions("Metadata"):
            broker.ask("Metadata", version, topics=[part(MetadataRequest, "MetadataRequestTopic", name="nothing")])

Knows: `pykafkad.wire` and a bootstrap address. Must not know: anything else of pykafkad.
Start reading: `exchange.py`, then `metadata.py` as an example. `compat_tests/test_scenarios.py` runs them all.
"""
