"""Bugs to plant in what enforces client quotas."""

from __future__ import annotations

from tests.planted.plant import Plant

RATE = ("tests/quotas/test_rate_sensor.py",)
BUCKET = ("tests/quotas/test_token_bucket.py",)
LIMITS = ("tests/quotas/test_client_quota.py",)
ADDRESSES = ("tests/server/test_address_quotas.py",)
BROKER = ("tests/server/test_quotas.py", "tests/server/test_quota_fast_paths.py")

PLANTS = (
    Plant(
        "a rate forgets a sample when its window is over",
        "quotas/rate_sensor.py",
        "self._all_windows_ms // self._window_ms + 1",
        "self._all_windows_ms // self._window_ms",
        RATE,
    ),
    Plant(
        "a rate is over the time that has passed, however short",
        "quotas/rate_sensor.py",
        "return max(elapsed_ms + max(missing_ms, 0), 1)",
        "return max(elapsed_ms, 1)",
        RATE,
    ),
    Plant(
        "a rate is not measured though it may be too high",
        "quotas/rate_sensor.py",
        "return 0 if self.at_most <= self.safe else self.throttle_ms(now_ms)",
        "return 0 if value <= self.safe else self.throttle_ms(now_ms)",
        RATE,
    ),
    Plant(
        "a pause of the client is a credit",
        "quotas/rate_sensor.py",
        "if now_ms - sample[1] >= self._all_windows_ms:\n    sample[:] = now_ms, now_ms, 0.0",
        "if now_ms - sample[1] >= self._all_windows_ms:\n    sample[2] = 0.0",
        RATE,
    ),
    Plant(
        "an empty bucket refuses, too",
        "quotas/token_bucket.py",
        "return self._tokens_at(now_ms) < 0",
        "return self._tokens_at(now_ms) <= 0",
        BUCKET,
    ),
    Plant(
        "a refused change takes tokens",
        "quotas/token_bucket.py",
        "if not is_refused:\n    bucket.take(partitions, now_ms)",
        "bucket.take(partitions, now_ms)",
        BUCKET,
    ),
    Plant(
        "a bucket overflows into more than a burst",
        "quotas/token_bucket.py",
        "self._tokens = min(self._burst_seconds * bound, self._tokens + bound * (now_ms - self._last_ms) / 1000)",
        "self._tokens = min(1e300, self._tokens + bound * (now_ms - self._last_ms) / 1000)",
        BUCKET,
    ),
    Plant(
        "the default user's pair beats the user",
        "quotas/limits.py",
        'if (user, None) in limits:\n    return user, ""\nif (DEFAULT, client_id) in limits or (DEFAULT, DEFAULT) in limits:\n'
        "    return user, client_id",
        "if (DEFAULT, client_id) in limits or (DEFAULT, DEFAULT) in limits:\n    return user, client_id\n"
        'if (user, None) in limits:\n    return user, ""',
        LIMITS,
    ),
    Plant(
        "changed limits do not count for clients that were seen before",
        "quotas/client_quota.py",
        "sensor.set_bound(found.of(sharers))",
        "pass",
        LIMITS,
    ),
    Plant(
        "each client id has a sensor for ever",
        "quotas/client_quota.py",
        "self._make_room(characters, now_ms)",
        "pass",
        LIMITS,
    ),
    Plant(
        "who is over a quota is served all the same",
        "server/quotas.py",
        "connection.throttle(True)",
        "pass",
        BROKER,
    ),
    Plant(
        "who was throttled once is never served again",
        "server/quotas.py",
        "connection.throttle(False)",
        "pass",
        BROKER,
    ),
    Plant(
        "what a throttled fetch did not give counts",
        "server/quotas.py",
        "sent.record(-size_bytes, now_ms)",
        "pass",
        BROKER,
    ),
    Plant(
        "a throttled share fetch gives its records",
        "handlers/share_fetch.py",
        "if self._is_throttled(rows):",
        "if self._is_throttled(rows) and not rows:",
        ("tests/handlers/test_share_fetch.py",),
    ),
    Plant(
        "a share fetch takes more than its quota ever lets through",
        "handlers/share_fetch.py",
        "return most if quota is None else min(most, quota.max_fetch_bytes)",
        "return most",
        ("tests/handlers/test_share_fetch.py",),
    ),
    Plant(
        "a throttled fetch begins a session",
        "handlers/fetch.py",
        "self._ctx.fetch_sessions.remove(session.id)\nsession = None",
        "pass",
        BROKER,
    ),
    Plant(
        "a throttled fetch has told its session the news",
        "handlers/fetch.py",
        "return self.throttled(rows) or self.answer_with(rows)",
        "answer = self.answer_with(rows)\nreturn self.throttled(rows) or answer",
        BROKER,
    ),
    Plant(
        "small batches do not count",
        "server/produce_fast_path.py",
        "sent.at_most = at_most = sent.at_most + (end - start)",
        "at_most = sent.at_most",
        BROKER,
    ),
    Plant(
        "what is added in a turn counts for the turn before",
        "server/produce_fast_path.py",
        "sent.turn = turn",
        "pass",
        BROKER,
    ),
    Plant(
        "a batch that the fast path can't append counts twice",
        "server/produce_fast_path.py",
        "sent.at_most -= end - start",
        "pass",
        BROKER,
    ),
    Plant(
        "the processor time of the fast path does not count",
        "server/produce_fast_path.py",
        "request.at_most += (self._now() - began) * PERCENT_PER_SECOND",
        "pass",
        BROKER,
    ),
    Plant(
        "fast paths with quotas remember what a caller may no longer",
        "server/produce_fast_path.py",
        "for metered in self._metered or ():\n    metered.forget()",
        "pass",
        BROKER,
    ),
    Plant(
        "what was added in a window counts in another one",
        "quotas/rate_sensor.py",
        "self.until = (now_ms + self._window_ms) / 1000 - _ROUNDING_SECONDS",
        'self.until = float("inf")',
        RATE,
    ),
    Plant(
        "batches without an answer do not count",
        "server/dispatch.py",
        "context.quota.finish(None)",
        "pass",
        BROKER,
    ),
    Plant(
        "quotas that change leave the sessions that are there alone",
        "server/quotas.py",
        "connection.session.lend_again()",
        "pass",
        BROKER,
    ),
    Plant(
        "the broker does not hear of changed quotas",
        "server/broker.py",
        'if "client_quotas" in delta.others:',
        'if "client_quotas" in delta.features:',
        BROKER,
    ),
    Plant(
        "refused connections count",
        "server/address_quotas.py",
        "sensor.record(-1.0, now_ms)",
        "pass",
        ADDRESSES,
    ),
    Plant(
        "refused connections stay open",
        "server/address_quotas.py",
        "self._held.pop(number).close()",
        "self._held.pop(number)",
        ADDRESSES,
    ),
    Plant(
        "listeners take every connection",
        "server/socket_server.py",
        "if self.address_quotas is not None and self.address_quotas.refuses(accepted, address[0]):",
        "if self.address_quotas is not None and not address:",
        ADDRESSES,
    ),
    Plant(
        "topics are created whatever the quota",
        "metadata/creation.py",
        "self._mutations.record(len(assignments))",
        "pass",
        BROKER,
    ),
    Plant(
        "topics are deleted whatever the quota",
        "metadata/controller.py",
        "event.mutations.record(len(known.partitions))",
        "pass",
        BROKER,
    ),
    Plant(
        "topics grow whatever the quota",
        "metadata/creation.py",
        "self._mutations.record(additional)",
        "pass",
        BROKER,
    ),
    Plant(
        "who shows a certificate keeps the fast paths of a stranger",
        "server/session.py",
        "self.principal = principal\nself.lend_again()",
        "self.principal = principal",
        BROKER,
    ),
)
