"""Third-party suites. They stand beside the repository, not in it."""

from __future__ import annotations

from pathlib import Path

import pytest

SUITES = Path(__file__).parents[3] / "shared" / "suites"
NAMES = ("jsonpath", "yfilter")


def suite(name: str) -> Path:
    """The folder of a suite; without it, the tests that need it are skipped."""
    assert name in NAMES
    folder = SUITES / name
    if not folder.is_dir():
        pytest.skip(f"the third-party suite {name!r} is not at {folder}", allow_module_level=True)
    return folder


def skipped(asked: list[str]) -> list[str]:
    """A line for each suite that is missing, if a run of these paths would have used it."""
    here = Path(__file__).parent
    paths = [Path(one.split("::")[0]).resolve() for one in asked]
    if not any(here.is_relative_to(path) or path.is_relative_to(here) for path in paths):
        return []
    return [f"SKIPPED: the third-party suite {name!r} is not at {SUITES / name}, its tests did not run"
            for name in NAMES if not (SUITES / name).is_dir()]  # fmt: skip
