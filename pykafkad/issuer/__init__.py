"""An issuer of tokens for tests: `pykafkad serve --oauth` has one beside its broker, which believes what it signs.

`tokens.py` says who gets which token, and what the issuer publishes of itself; `application.py` answers requests over
HTTP; `served.py` runs it. The package knows OAuth 2.0 (RFC 6749, section 4.4) and JSON Web Tokens (RFC 7519); it must
not know Kafka's protocol, nor a broker.

Start reading at `tokens.py`.
"""
