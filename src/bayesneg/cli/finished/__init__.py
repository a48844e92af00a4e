"""Commands on finished runs: ``evaluate``, ``recommend``, ``similar`` and ``report``."""
