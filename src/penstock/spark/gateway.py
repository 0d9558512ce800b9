"""Start the Java process behind a session, with the options and environment we need; it ignores Ctrl-C."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from penstock.spark.archive import archive_options
from penstock.spark.java import Java, find_java, launch_home

_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")


def launch(settings: Mapping[str, str], quick: bool) -> Any:
    """Start Java for a session with `settings`; `quick` compiles less, so that it starts sooner."""
    java = find_java()
    options = [*_java_options(quick), *archive_options(java)]
    configuration = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    chosen = settings.get("spark.driver.extraJavaOptions", "")
    configuration.set("spark.driver.extraJavaOptions", " ".join([*map(quoted, options), chosen]).strip())
    for logger in (logging.getLogger(), logging.getLogger("py4j.clientserver")):
        logger.addFilter(_not_an_interrupt)
    with _environment(spark_environment(java)):
        # In a session of its own: Ctrl-C in a terminal is for us, not for Java and its Python workers.
        return launch_gateway(configuration, {"start_new_session": True})  # type: ignore[no-untyped-call]


def spark_environment(java: Java) -> dict[str, str]:
    """The environment in which the scripts of the pyspark package find this Java and this Spark."""
    return {
        "JAVA_HOME": str(launch_home(java)),
        # Another Spark on this machine need not be the one that pyspark can talk to.
        "SPARK_HOME": os.path.dirname(os.path.abspath(pyspark.__file__)),
        # This short-lived process only puts together a command line.
        "SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable",
    }


def use_this_python(local: bool) -> None:
    """Run Python workers with the interpreter of this process; on a cluster a choice made before is kept."""
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if local or "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = sys.executable


def executor_options(quick: bool, here: bool) -> str:
    """Options for Java on the workers of a cluster; `here` are workers on this machine, with its files."""
    archive = archive_options(find_java()) if here else []
    return " ".join(map(quoted, [*_computing_options(quick), *archive]))


def _java_options(quick: bool) -> list[str]:
    few_cores = (os.cpu_count() or 1) <= 2
    return [
        f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}",
        "-Xlog:disable",
        "-Xlog:all=error,cds*=off:stderr",
        *(["-XX:+UseSerialGC" if few_cores else "-XX:+UseParallelGC"] if not quick else []),
        *_computing_options(quick),
    ]


def _computing_options(quick: bool) -> list[str]:
    return [
        # The whole app is one generated method, often past the size from which Java only interprets.
        "-XX:-DontCompileHugeMethods",
        # Spark searches the text of a Python error with a regular expression that needs a deep stack.
        "-Xss8m",
        *(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"] if quick else []),
    ]


_AFTER_AN_INTERRUPT = (
    "KeyboardInterrupt while sending command.",
    "Exception occurred while shutting down connection",
)


def _not_an_interrupt(record: logging.LogRecord) -> bool:
    """Ctrl-C during a call to Java is no error, but py4j logs it, and what follows from it, with a stack."""
    return record.msg not in _AFTER_AN_INTERRUPT


def quoted(option: str) -> str:
    return f'"{option}"' if " " in option else option


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = {key: os.environ.get(key) for key in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value
