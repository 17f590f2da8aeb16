"""Kafka's rules for quotas written down as they are said, without any shortcut: what the machine is compared with."""

from __future__ import annotations


class PlainRate:
    """A rate over windows. Everything is measured after every record."""

    def __init__(self, sample_count, window_ms, bound):
        self.sample_count, self.window_ms, self.bound = sample_count, window_ms, bound
        self.samples = []
        self.current = 0

    def record(self, value, now):
        if not self.samples:
            self.samples.append({"start": now, "last": now, "sum": 0.0})
        if now - self.samples[self.current]["start"] >= self.window_ms:
            self.current = (self.current + 1) % (self.sample_count + 1)
            fresh = {"start": now, "last": now, "sum": 0.0}
            self.samples[self.current : self.current + 1] = [fresh]
        sample = self.samples[self.current]
        sample["sum"] += value
        sample["last"] = now

    def charge(self, value, now):
        self.record(value, now)
        return self.throttle_ms(now)

    def throttle_ms(self, now):
        for sample in self.samples:
            if now - sample["last"] >= self.sample_count * self.window_ms:
                sample.update(start=now, last=now, sum=0.0)
        elapsed = now - min((sample["start"] for sample in self.samples), default=now)
        full = elapsed // self.window_ms
        if full < self.sample_count - 1:
            elapsed += (self.sample_count - 1 - full) * self.window_ms
        elapsed = max(elapsed, 1)
        rate = sum(sample["sum"] for sample in self.samples) / (elapsed / 1000)
        if self.bound is None or rate <= self.bound:
            return 0
        return int((rate - self.bound) / self.bound * elapsed + 0.5)


class PlainBucket:
    """The tokens of a bucket, as the difference between what came in and what went out, step by step."""

    def __init__(self, sample_count, window_ms, bound):
        self.burst = sample_count * window_ms / 1000 * bound
        self.bound, self.tokens, self.at = bound, self.burst, 0

    def wait(self, now):
        self.tokens = min(self.burst, self.tokens + (now - self.at) * self.bound / 1000)
        self.at = now

    def strict(self, count, now):
        """Whether the change may be made, and the throttle time if not."""
        self.wait(now)
        if self.tokens < 0:
            return False, int(-self.tokens / self.bound * 1000 + 0.5)
        self.tokens -= count
        return True, 0

    def permissive(self, count, now):
        self.wait(now)
        self.tokens -= count
        return True, max(0, int(-self.tokens / self.bound * 1000 + 0.5)) if self.tokens < 0 else 0


PRECEDENCE = [
    ("user", "client"),
    ("user", "default"),
    ("user", None),
    ("default", "client"),
    ("default", "default"),
    ("default", None),
    (None, "client"),
    (None, "default"),
]


def limit_of(limits, user, client_id):
    """The limit for a user and a client id (that is not empty), and who shares it: (limit, user part, client part)."""
    names = {"user": user, "client": client_id, "default": "", None: None}
    for kind, other in PRECEDENCE:
        limit = limits.get((names[kind], names[other]))
        if limit is not None:
            return limit, user if kind else "", client_id if other else ""
    return None
