"""Bring Python code to the machines of a cluster: this package, and the modules of the app."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import site
import sys
import sysconfig
import tempfile
import weakref
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from pyspark import SparkContext, cloudpickle
from pyspark.sql import SparkSession

import penstock
from penstock.route.load import loaded_files, loaded_from
from penstock.spark.master import is_local

_NOT_IN_TASKS = ("bench", "cli", "demo")
_APPS = ("penstock.bench.", "penstock.demo.")

_shipped: weakref.WeakKeyDictionary[SparkContext, set[str]] = weakref.WeakKeyDictionary()


def ship(spark: SparkSession) -> None:
    """Make the app's own modules, and on a cluster this package, importable in every task.

    The file of the app itself is not imported there: as with a script, its functions travel with the plan. Other
    packages have to be installed on the workers. What was sent before is not sent again.
    """
    for module in loaded_files():
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    context = spark.sparkContext
    files = dict(_beside_the_app() if is_local(str(context.master)) else (*_package(), *_not_installed()))
    if not files:
        return
    name = f"penstock-{_digest(files)}.zip"
    sent = _shipped.setdefault(context, set())
    if name not in sent:
        context.addPyFile(_zipped(files, os.path.join(kept_directory(), name)))
        sent.add(name)


@cache
def kept_directory() -> str:
    """A directory for files that executors fetch, also those that start later, so it stays as long as the process."""
    directory = tempfile.mkdtemp(prefix="penstock-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


def _package() -> Iterator[tuple[str, Path]]:
    """The files of this package that a task may need, and the apps of the package that are loaded."""
    root = Path(penstock.__file__).parent
    for file in sorted(root.rglob("*.py")):
        if file.relative_to(root).parts[0] not in _NOT_IN_TASKS:
            yield str(Path("penstock") / file.relative_to(root)), file
    for name, module in sorted(sys.modules.items()):
        if f"{name}.".startswith(_APPS) and module.__file__:
            yield _place(name, module), Path(module.__file__)


def _beside_the_app() -> Iterator[tuple[str, Path]]:
    return _not_installed(tuple(os.path.join(directory, "") for directory in loaded_from()))


def _not_installed(directories: tuple[str, ...] = ("",)) -> Iterator[tuple[str, Path]]:
    """The loaded modules that belong to no Python installation, under the names of their files in an archive."""
    if not directories:
        return
    installed = tuple(os.path.join(os.path.realpath(path), "") for path in _installed())
    others = {module.__name__ for module in loaded_files()} | {"__main__", "penstock"}
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not file or not file.endswith(".py") or name.partition(".")[0] in others:
            continue
        path = os.path.abspath(file)
        if path.startswith(directories) and not os.path.realpath(file).startswith(installed) and os.path.isfile(file):
            yield _place(name, module), Path(path)


def _installed() -> list[str]:
    return [*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages(), sys.base_prefix]


def _place(name: str, module: ModuleType) -> str:
    path = name.replace(".", "/")
    return f"{path}/__init__.py" if hasattr(module, "__path__") else f"{path}.py"


def _digest(files: dict[str, Path]) -> str:
    digest = hashlib.sha256()
    for name, file in sorted(files.items()):
        digest.update(f"{name} {file.stat().st_size}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def _zipped(files: dict[str, Path], archive: str) -> str:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, file in sorted(files.items()):
            packed.write(file, name)
    return archive
