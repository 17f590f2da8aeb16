"""Messages that kafka-python does not have, in its notation: one JSON file per message, with Kafka's field names.

Knows: names, types and versions of fields, as the schemas of `pykafkad/wire` have them. Must not know: anything of the
package; kafka-python reads the files."""
