"""Apache Camel: a Maven project of the source tree, built once."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from penstock.bench.machine import source_tree
from penstock.bench.peers.base import BATCH, SIZE, USERS, Say
from penstock.errors import BadMachine
from penstock.spark.java import find_java

MAIN = "penstock.camel.Main"
_GIGABYTE = 1 << 30


@dataclass(frozen=True, slots=True)
class CamelPeer:
    """`java -cp bench/peers/camel/target/... arguments.json`"""

    name: str = "camel"
    title: str = "Apache Camel"
    one_by_one: bool = True
    factors: frozenset[str] = frozenset({USERS, BATCH, SIZE})

    @property
    def project(self) -> Path | None:
        root = source_tree()
        project = root / "bench" / "peers" / "camel" if root else None
        return project if project and (project / "pom.xml").exists() else None

    def availability(self) -> str | None:
        project = self.project
        if project is None:
            return "its project bench/peers/camel is only in the source tree of Penstock"
        try:
            find_java()
        except BadMachine:
            return "it needs Java, and there is none that Penstock knows: penstock doctor says more"
        if not _is_built(project) and shutil.which("mvn") is None:
            return "it is not built, and there is no mvn (Maven) to build it"
        return None

    def prepare(self, say: Say) -> str | None:
        project = self.project
        if project is None or _is_built(project):
            return self.availability()
        say("building the Camel peer: mvn package; the first time it loads Camel")
        command = ["mvn", "-q", "-B", "-f", str(project / "pom.xml"), "package"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode == 0 and _jar(project).exists():
            return None
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        return f"it cannot be built: {said[0] if said else 'mvn package failed'}"

    def command(self, arguments: Path) -> list[str]:
        assert self.project is not None
        target = self.project / "target"
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _GIGABYTE
        java = str(find_java().home / "bin" / "java")
        path = f"{_jar(self.project)}{os.pathsep}{target / 'lib' / '*'}"
        return [java, f"-Xmx{max(1, memory // 2)}g", "-cp", path, MAIN, str(arguments)]

    def environment(self, cores: int) -> dict[str, str]:
        return {}


def _jar(project: Path) -> Path:
    return project / "target" / "camel-peer.jar"


def _is_built(project: Path) -> bool:
    """The jar is there, and no source is younger."""
    jar = _jar(project)
    if not jar.exists():
        return False
    sources = [project / "pom.xml", *(path for path in (project / "src").rglob("*") if path.is_file())]
    return max(path.stat().st_mtime for path in sources) <= jar.stat().st_mtime
