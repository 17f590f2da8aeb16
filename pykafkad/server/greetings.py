"""How other protocols begin, so that the log says what somebody spoke in place of Kafka's."""

TLS_GREETING = (b"\x16\x03", "a TLS handshake on a PLAINTEXT listener")
KNOWN_GREETINGS = (
    *((method, "an HTTP request") for method in (b"GET ", b"POST", b"HEAD", b"PUT ")),
    (b"PRI ", "an HTTP/2 preface"),
    (b"SSH-", "an SSH greeting"),
)
