"""What holds for every unit test."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How long an example takes, and how long it takes to draw one, tells how busy the machine is.
settings.register_profile("any-machine", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")
