"""What the driver does with what tasks have staged."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import Json
from penstock.errors import BadEndpoint
from penstock.spark.write.outlets import KEEP, LINES, Target
from penstock.spark.write.staging import Staging


def test_a_file_that_the_driver_does_not_see_is_an_error(tmp_path: Path) -> None:
    staging = Staging("key", str(tmp_path), str(tmp_path))
    shared = Target(0, "out", LINES, str(tmp_path / "out"), Json("id STRING"))
    with pytest.raises(BadEndpoint, match="does not see it") as failed:
        staging.check_visible(shared, str(tmp_path / "gone"))
    assert failed.value.fix == f"all machines of the cluster have to share {tmp_path / 'out'}"
    kept = Target(0, "out", KEEP, None, Json("id STRING"))
    with pytest.raises(BadEndpoint, match="does not see it") as failed:
        staging.check_visible(kept, str(tmp_path / "gone"))
    assert "TMPDIR" in str(failed.value.fix)
