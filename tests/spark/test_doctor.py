from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from penstock.spark.doctor import Check, diagnose


def test_a_good_machine_passes_every_check(spark: SparkSession) -> None:
    checks = {check.name: check for check in diagnose()}
    assert [name for name, check in checks.items() if not check.ok] == []
    assert "100 rows through Python" in checks["spark"].found


def test_spark_is_not_started_without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_JAVA", "/nowhere")
    checks = {check.name: check for check in diagnose()}
    assert checks["java"] == Check(
        "java",
        False,
        "Spark needs Java 17, 21 or 25, and there is none (PENSTOCK_JAVA: /nowhere is no Java runtime)",
        'pip install "penstock[java]", or point JAVA_HOME at Java 17, 21 or 25',
    )
    assert "spark" not in checks


def test_a_package_that_is_too_new_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "99.0.0")
    checks = {check.name: check for check in diagnose()}
    assert checks["pandas"] == Check("pandas", False, "99.0.0", 'pip install "pandas>=2.2,<3"')
    assert checks["pyarrow"].ok


def test_numba_is_recommended_and_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_JAVA", "/nowhere")
    assert {check.name: check for check in diagnose()}["compiled json"].found.startswith("with numba ")
    monkeypatch.setattr("penstock.spark.doctor.is_possible", lambda: False)
    found = {check.name: check for check in diagnose()}["compiled json"]
    assert found == Check("compiled json", True, 'no, which is slower for large runs: pip install "penstock[fast]"')
