"""A client that asks one question after the other, through the messages of `pykafkad.wire`."""

from __future__ import annotations

import time

from pykafkad.wire import frames, messages

from .loadgen import LoadFailed

CONCURRENT_TRANSACTIONS = 51
# Errors of a coordinator that is not ready yet.
NOT_YET = (14, 15, 16, CONCURRENT_TRANSACTIONS)
RETRY_SECONDS = 0.005


def encoded(api, version, /, **fields):
    """A whole request: size, header of the flexible versions and body."""
    request = getattr(messages, f"{api}Request")(**fields)
    key = messages.record_type(type(request))
    chunks = [frames.start_request(key, version, 0, "bench", True)]
    messages.encoder(type(request), version)(request, chunks)
    frames.finish_frame(chunks)
    return b"".join(chunks)


class Asker:
    """Asks on a `Session`. Only flexible versions."""

    def __init__(self, session):
        self.session = session

    def ask(self, api, version, /, **fields):
        """Sends one request and returns its answer."""
        answer = memoryview(self.session.call(encoded(api, version, **fields)))
        _, position = frames.read_response_header(answer, True)
        return messages.decoder(getattr(messages, f"{api}Response"), version)(answer, position)[0]

    def until_ready(self, api, version, /, **fields):
        """Asks until the coordinator is ready. Raises LoadFailed for any other error."""
        while True:
            answer = self.ask(api, version, **fields)
            if answer.error_code not in NOT_YET:
                break
            time.sleep(RETRY_SECONDS)
        if answer.error_code:
            raise LoadFailed(f"{api}: error {answer.error_code}")
        return answer

    def find_coordinator(self, key_type, key):
        """Asks until the coordinator of `key` is known."""
        while self.ask("FindCoordinator", 4, key_type=key_type, coordinator_keys=[key]).coordinators[0].error_code:
            time.sleep(RETRY_SECONDS)
