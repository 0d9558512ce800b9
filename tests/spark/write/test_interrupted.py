"""Ctrl-C in a batch run: tasks that still write are waited for, and nothing that they staged is left."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

RUN = """
import json, os, signal, sys, threading, time
from pathlib import Path
from penstock import App, Files, Json, Route, body
from penstock.spark.tasks import run as direct
from penstock.spark.run import run_batch
from penstock.spark.session import session
from penstock.spark.write.outlets import targets
from penstock.spark.write.staging_files import TaskWriter

home = Path(sys.argv[1])
beats = home / "beats"


class Slow(TaskWriter):
    def open(self, target, partition):
        # Does not hear that it is to stop, and makes its directory anew whenever somebody removes it.
        found = TaskWriter.open(self, target, partition)
        for _ in range(200):
            os.makedirs(os.path.dirname(found[1]), exist_ok=True)
            Path(found[1] + ".beat").write_text("still here")
            beats.write_text(str(time.time()))
            time.sleep(0.05)
        return found


def interrupt():
    while not beats.exists():
        time.sleep(0.05)
    time.sleep(0.3)
    os.killpg(0, signal.SIGINT)  # as a terminal does it: to every process of the group


def left():
    return sorted(str(path.relative_to(home)) for path in home.glob("out*/**/*"))


orders = Files(str(home / "in"), Json("id BIGINT, note STRING"))
route = Route("r", orders).filter(body.id > 0)
app = App("a", route.to("out", Files(str(home / "out"))), dead_letters=Files(str(home / "out-dead")))
spark = session(quick=True)
direct.TaskWriter = Slow
threading.Thread(target=interrupt, daemon=True).start()
said = {"interrupted": False}
try:
    run_batch(app, spark)
except KeyboardInterrupt:
    said["interrupted"], ended = True, time.time()
    said["left"] = left()
time.sleep(3)
said["wrote later"] = float(beats.read_text()) > ended
said["left later"] = left()
direct.TaskWriter = TaskWriter
run_batch(app, spark)
said["again"] = sorted(json.loads(line)["id"] for file in (home / "out").glob("*.jsonl") for line in open(file))
print(json.dumps(said))
spark.stop()
"""


def test_ctrl_c_waits_for_tasks_that_write_and_leaves_nothing_of_them(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text("".join(f'{{"id": {number}, "note": "n"}}\n' for number in (1, 2, 3)))
    done = subprocess.run([sys.executable, "-c", RUN, str(tmp_path)], capture_output=True, text=True, timeout=300,
                          start_new_session=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "interrupted": True, "left": [], "wrote later": False, "left later": [], "again": [1, 2, 3],
    }  # fmt: skip
