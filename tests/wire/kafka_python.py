"""kafka-python's record and compression code as a second opinion, imported without its deprecation warnings."""

import warnings

with warnings.catch_warnings():
    # kafka-python reads its schemas with a function that Python 3.11 and 3.12 deprecate.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import codec
    from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

__all__ = ["DefaultRecordBatch", "DefaultRecordBatchBuilder", "codec"]
