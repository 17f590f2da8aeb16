"""Programs with typical bugs of Kafka's users, each with the fault that makes the bug visible, and mended.

`case.py` says what a case is; `producers.py`, `consumers.py` and `administration.py` have them."""
