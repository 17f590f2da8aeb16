"""kafka-python's record and compression code: another project's codec, imported without its deprecation warnings."""

import warnings

with warnings.catch_warnings():
    # It reads its schemas through a function that Python 3.11 and 3.12 call deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import codec
    from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

__all__ = ["DefaultRecordBatch", "DefaultRecordBatchBuilder", "codec"]
