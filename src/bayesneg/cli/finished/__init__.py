"""Commands on finished runs: ``evaluate``, ``recommend`` and ``report``."""
