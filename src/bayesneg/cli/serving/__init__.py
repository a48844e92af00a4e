"""Commands that put a finished run to work elsewhere: ``export`` and ``serve``."""
