"""What holds for all tests: how properties are tried, and an environment that sets nothing."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# The settings of who runs the tests stay out of them.
for name in [name for name in os.environ if name.startswith("ORCHESTRA_MEM__")]:
    del os.environ[name]

# No deadline: a property is not wrong because the machine is busy. In CI the same examples are drawn each time, so that
# a change fails for what it changes; elsewhere new ones are.
settings.register_profile("home", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("home"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "home")
