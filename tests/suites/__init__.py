"""Third-party suites. They stand beside the repository, not in it."""

from __future__ import annotations

from pathlib import Path

import pytest

SUITES = Path(__file__).parents[3] / "shared" / "suites"


def suite(name: str) -> Path:
    """The folder of a suite; without it, the tests that need it are skipped."""
    folder = SUITES / name
    if not folder.is_dir():
        pytest.skip(f"the third-party suite {name!r} is not at {folder}", allow_module_level=True)
    return folder
