"""The reason to skip where a library is missing; tests import libraries, so that their warnings are quiet."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


def needs(*libraries: str) -> list[pytest.MarkDecorator]:
    missing = [name for name in libraries if find_spec(name) is None]
    reason = f"{', '.join(missing)} not installed (make test-integrations)"
    return [pytest.mark.skipif(bool(missing), reason=reason), pytest.mark.filterwarnings("ignore")]
