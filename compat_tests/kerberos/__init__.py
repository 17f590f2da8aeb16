"""Logins by GSSAPI beside a real Kafka, with tickets of an MIT KDC that the tests start.

Start reading: `kdc.py`, the KDC; `test_kerberos.py`, the logins; `ShortNames.java` asks Kafka for names.
"""
