"""Commands on finished runs: ``evaluate``, ``recommend``, ``similar``, ``report``, ``export`` and ``serve``."""
