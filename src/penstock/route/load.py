"""Find an app: in a Python file, in a module, in a YAML file."""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import os
import sys
import traceback
from types import ModuleType

from penstock.errors import BadFile, Origin, PenstockError, did_you_mean
from penstock.route.app import App

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

_files: dict[str, ModuleType] = {}
_directories: set[str] = set()


def load(target: str) -> App:
    """The app behind "app.py", "app.py:name", "package.module:name" or "routes.yaml".

    The file's directory joins the import path, so that its own modules import. Paths inside the routes stay
    relative to the current directory.
    """
    path, name = _split(target)
    if path.endswith((".yaml", ".yml")):
        return _from_yaml(_existing(path))
    if path.endswith(".py"):
        return _app_of(_run_file(_existing(path)), path, name)
    if os.path.exists(path) or os.sep in path:
        raise BadFile(f"{path} is not a route file", None, "give a .py or .yaml file, or package.module:name")
    return _app_of(_import(path), path, name)


def loaded_files() -> list[ModuleType]:
    """The modules that were made from files, as far as they are still in use."""
    return [module for name, module in _files.items() if sys.modules.get(name) is module]


def loaded_from() -> frozenset[str]:
    """The directories that apps came from: their own modules are there."""
    return frozenset(_directories)


def _split(target: str) -> tuple[str, str]:
    before, colon, after = target.rpartition(":")
    return (before, after) if colon and after.isidentifier() else (target, "")


def _existing(path: str) -> str:
    if not os.path.isfile(path):
        directory = os.path.dirname(path)
        try:
            near = [name for name in os.listdir(directory or ".") if name.endswith((".py", ".yaml", ".yml"))]
        except OSError:
            raise BadFile(f"there is no directory {directory}") from None
        fix = did_you_mean(os.path.basename(path), near) if near else "penstock new NAME makes a first one"
        raise BadFile(f"there is no file {path}", None, fix)
    _importable(os.path.dirname(os.path.abspath(path)))
    return path


def _importable(directory: str) -> None:
    _directories.add(directory)
    if directory not in sys.path:
        sys.path.insert(0, directory)


def _from_yaml(path: str) -> App:
    from penstock.route.yaml import from_yaml

    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"cannot read {path}: {error}") from None
    return from_yaml(text, path)


def _run_file(path: str) -> ModuleType:
    """Import a file under its own name, so that its functions can be found again by that name."""
    full = os.path.abspath(path)
    name = os.path.splitext(os.path.basename(path))[0]
    while name in sys.modules and getattr(sys.modules[name], "__file__", None) != full:
        name += "_"
    spec = importlib.util.spec_from_file_location(name, full)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except PenstockError:
        sys.modules.pop(name, None)
        raise
    except (Exception, SystemExit) as error:
        sys.modules.pop(name, None)
        raise _broken(path, error, os.path.dirname(full)) from None
    _files[name] = module
    return module


def _import(module: str) -> ModuleType:
    _importable(os.getcwd())
    try:
        return importlib.import_module(module)
    except PenstockError:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}."):
            raise BadFile(f"there is no module {error.name!r}", None,
                          "give a .py or .yaml file, or package.module:name") from None  # fmt: skip
        raise _broken(module, error, os.getcwd()) from None


def _broken(target: str, error: BaseException, directory: str) -> BadFile:
    said = str(error).splitlines()[0] if str(error) else ""
    if isinstance(error, SyntaxError):
        origin = _line(error.filename or target, error.lineno or 1)
        return BadFile(f"{target} is not Python: {error.msg}", origin)
    fix = None
    if isinstance(error, ModuleNotFoundError) and error.name:
        fix = f"install {error.name}, or put {error.name}.py beside {os.path.basename(target)}"
    elif isinstance(error, SystemExit):
        fix = 'put what only a script should do under if __name__ == "__main__":'
    what = f"{target} does not load: {type(error).__name__}" + (f": {said}" if said else "")
    return BadFile(what, _user_line(error, directory), fix)


def _user_line(error: BaseException, directory: str) -> Origin | None:
    """The innermost line of the user's own files on the way to the error."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(directory + os.sep)
           and "site-packages" not in frame.filename and not frame.filename.startswith(_PACKAGE + os.sep)]  # fmt: skip
    return _line(own[-1].filename, own[-1].lineno or 1) if own else None


def _line(file: str, line: int) -> Origin:
    return Origin.within(file, line, "".join(linecache.getlines(file)))


def _app_of(module: ModuleType, target: str, name: str) -> App:
    apps = {key: value for key, value in vars(module).items() if isinstance(value, App)}
    if name:
        if isinstance(found := getattr(module, name, None), App):
            return found
        if found is not None:
            raise BadFile(f"{name!r} in {target} is not an App but {type(found).__name__}", None, _choose(target, apps))
        raise BadFile(f"{target} has no {name!r}", None, did_you_mean(name, apps) if apps else _choose(target, apps))
    different = {id(value): key for key, value in reversed(apps.items())}
    if len(different) != 1:
        said = "defines no App" if not apps else f"defines {len(different)} Apps: {', '.join(apps)}"
        raise BadFile(f"{target} {said}", None, _choose(target, apps))
    return next(iter(apps.values()))


def _choose(target: str, apps: dict[str, App]) -> str:
    if not apps:
        return 'write app = App("name", Route(...)) at the top level of the file'
    return "name one of them: " + ", ".join(f"{target}:{key}" for key in apps)
