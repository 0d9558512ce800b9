"""Finding an app by the name of its file or module."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from penstock import App
from penstock.errors import BadFile, PenstockError
from penstock.route.load import load

APP = """\
from penstock import App, Memory, Route, Void

app = App("first", Route("r", Memory()).to("x", Void()))
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def said(target: str) -> str:
    with pytest.raises(PenstockError) as caught:
        load(target)
    return str(caught.value)


def test_the_only_app_of_a_file(here: Path) -> None:
    (here / "routes.py").write_text(APP)
    assert load("routes.py").name == "first"
    assert load(str(here / "routes.py")).name == "first"


def test_an_app_by_its_variable(here: Path) -> None:
    (here / "routes.py").write_text(APP + 'other = App("second", Route("r", Memory()).to("x", Void()))\nnumber = 5\n')
    assert load("routes.py:other").name == "second"
    assert said("routes.py") == (
        "BadFile: routes.py defines 2 Apps: app, other\n  fix  name one of them: routes.py:app, routes.py:other"
    )
    assert said("routes.py:othr") == "BadFile: routes.py has no 'othr'\n  fix  did you mean 'other'? known: app, other"
    assert said("routes.py:number") == (
        "BadFile: 'number' in routes.py is not an App but int\n  fix  name one of them: routes.py:app, routes.py:other"
    )


def test_an_app_with_two_names_is_one_app(here: Path) -> None:
    (here / "routes.py").write_text(APP + "same = app\n")
    assert load("routes.py").name == "first"


def test_an_app_of_a_module(here: Path) -> None:
    (here / "shop").mkdir()
    (here / "shop" / "__init__.py").write_text("")
    (here / "shop" / "orders.py").write_text(APP)
    assert load("shop.orders:app").name == "first"
    assert load("shop.orders").name == "first"
    assert said("shop.nothing:app") == (
        "BadFile: there is no module 'shop.nothing'\n  fix  give a .py or .yaml file, or package.module:name"
    )


def test_an_app_in_yaml(here: Path) -> None:
    route = "{route: r, from: {memory: true}, steps: [{to: x}]}"
    (here / "routes.yaml").write_text(f"app: y\nroutes:\n  - {route}\nsinks: {{x: void}}\n")
    assert isinstance(load("routes.yaml"), App)
    (here / "routes.yaml").write_text("app: y\nroutez: []\n")
    assert said("routes.yaml") == (
        "BadFile: the file has no key 'routez'\n"
        "  at   routes.yaml:2  routez: []\n"
        "  fix  did you mean 'routes'? known: app, dead_letters, error_budget, routes, sinks"
    )


def test_modules_beside_the_file_import(here: Path) -> None:
    (here / "deep").mkdir()
    (here / "deep" / "penstock_test_neighbour.py").write_text("NAME = 'from the neighbour'\n")
    (here / "deep" / "app.py").write_text("from penstock_test_neighbour import NAME\n" + APP.replace('"first"', "NAME"))
    assert load("deep/app.py").name == "from the neighbour"


def test_two_files_of_one_name_are_two_modules(here: Path) -> None:
    for name in ("one", "two"):
        (here / name).mkdir()
        (here / name / "penstock_test_app.py").write_text(APP.replace("first", name))
    assert [load(f"{name}/penstock_test_app.py").name for name in ("one", "two", "one")] == ["one", "two", "one"]


def test_a_file_that_is_not_there(here: Path) -> None:
    (here / "orders.py").write_text(APP)
    assert said("order.py") == "BadFile: there is no file order.py\n  fix  did you mean 'orders.py'? known: orders.py"
    assert said("none/order.py") == "BadFile: there is no directory none"
    (here / "notes.txt").write_text("")
    assert said("notes.txt") == (
        "BadFile: notes.txt is not a route file\n  fix  give a .py or .yaml file, or package.module:name"
    )


def test_a_file_without_an_app(here: Path) -> None:
    (here / "empty.py").write_text("x = 1\n")
    assert said("empty.py") == (
        'BadFile: empty.py defines no App\n  fix  write app = App("name", Route(...)) at the top level of the file'
    )


def test_an_exception_points_at_the_users_own_line(here: Path) -> None:
    (here / "penstock_test_helper.py").write_text("import json\n\ndef read():\n    return json.loads('{')\n")
    (here / "broken.py").write_text("import penstock_test_helper\n\nvalue = penstock_test_helper.read()\n")
    assert said("broken.py") == (
        "BadFile: broken.py does not load: JSONDecodeError: Expecting property name enclosed in double quotes: "
        "line 1 column 2 (char 1)\n"
        "  at   penstock_test_helper.py:4  return json.loads('{')"
    )


def test_a_file_that_is_not_python(here: Path) -> None:
    (here / "broken.py").write_text("x = (1,\n")
    assert said("broken.py") == "BadFile: broken.py is not Python: '(' was never closed\n  at   broken.py:1  x = (1,"


def test_a_missing_package(here: Path) -> None:
    (here / "broken.py").write_text("import no_such_package\n")
    assert said("broken.py") == (
        "BadFile: broken.py does not load: ModuleNotFoundError: No module named 'no_such_package'\n"
        "  at   broken.py:1  import no_such_package\n"
        "  fix  install no_such_package, or put no_such_package.py beside broken.py"
    )


def test_a_script_that_exits(here: Path) -> None:
    (here / "broken.py").write_text("import sys\nsys.exit(3)\n")
    assert said("broken.py") == (
        "BadFile: broken.py does not load: SystemExit: 3\n"
        "  at   broken.py:2  sys.exit(3)\n"
        '  fix  put what only a script should do under if __name__ == "__main__":'
    )


def test_a_mistake_in_a_route_keeps_its_own_error(here: Path) -> None:
    (here / "broken.py").write_text('from penstock import Memory, Route\nRoute("r", Memory()).multicast()\n')
    text = said("broken.py")
    assert text.startswith("BadRoute: route 'r': multicast to []\n  at   broken.py:2  ")
    with pytest.raises(BadFile):
        load("nothing.py")
