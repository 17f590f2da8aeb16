"""What loads have in common that measure a broker of their own, beside the ones that all others share."""

from __future__ import annotations

from .load import Load


class OwnBrokerLoad(Load):
    """Has a broker of its own from `prepare`, which makes it by `own`, until `finish`."""

    def __init__(self):
        self.owned = {}

    def own(self, broker, bench, *settings):
        """A broker of the same kind as `broker`, with more settings, on a fresh folder, not started."""
        made = self.owned[broker.name] = bench.fresh(broker.name)
        made.settings = (*made.settings, *settings)
        return made

    def finish(self, broker, bench):
        """Ends and removes the broker, as far as it came to one."""
        if broker.name in self.owned:
            self.owned.pop(broker.name).discard()
