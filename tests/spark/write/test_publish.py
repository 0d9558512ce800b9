from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import BadEndpoint
from penstock.formats import Text
from penstock.spark.write.outlets import KEEP, LINES, Target
from penstock.spark.write.publish import Staged, check_visible


def test_files_that_the_driver_does_not_see_stop_the_run(tmp_path: Path) -> None:
    """As on a cluster whose machines do not share the directory."""
    targets = {
        0: Target(0, "x", LINES, str(tmp_path), Text()),
        1: Target(1, "y", KEEP, None, Text()),
    }
    (tmp_path / "there").touch()
    check_visible([Staged(0, str(tmp_path / "there"), 1, 0)], targets)
    with pytest.raises(BadEndpoint) as caught:
        check_visible([Staged(0, str(tmp_path / "away"), 1, 0)], targets)
    assert str(caught.value) == (
        f"BadEndpoint: a task wrote {tmp_path}/away, and the driver does not see it\n"
        f"  fix  all machines of the cluster have to share {tmp_path}"
    )
    with pytest.raises(BadEndpoint, match="fix  sinks that keep messages in the driver need a TMPDIR that all"):
        check_visible([Staged(1, str(tmp_path / "away"), 1, 0)], targets)
