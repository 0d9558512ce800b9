"""A peer that follows the protocol, or breaks it as it is told: python fake_peer.py KIND arguments.json"""

import json
import os
import sys
import time
from pathlib import Path

kind, given = sys.argv[1], json.loads(Path(sys.argv[2]).read_text())
if kind == "unable":
    sys.exit("there is no Java here")
print("a line that is not JSON", flush=True)
failed = False
for job in given if isinstance(given, list) else [given]:
    name = {"workload": job["workload"]} if isinstance(given, list) else {}
    lines = [line for file in job["inputs"] for line in Path(file).read_text().splitlines()]

    def say(name=name, **line):
        print(json.dumps({**name, **line}), flush=True)

    if kind == "partial" and job["workload"] == "RT-1-B":
        say(missing="no branches")
        continue
    say(ready={"name": kind, "version": "1.0", "load_seconds": 0.01})
    if job["check_out"]:
        wrong = kind == "wrong" and job["workload"] == "RT-1-A"
        (Path(job["check_out"]) / "out.jsonl").write_text("\n".join(lines[1:] if wrong else lines) + "\n")
        say(checked={"out": len(lines)})
        continue
    if kind == "crashing" and job["workload"] == "RT-1-A":
        print("out of memory", file=sys.stderr)
        os._exit(3)
    if kind == "failing":
        failed = True
        say(error="it does not want to\n  at line 3")
        continue
    if kind == "hanging" and job["workload"] == "RT-1-A":
        time.sleep(60)
    for number in range(job["warmup"] + job["iterations"]):
        time.sleep(0.001)
        count = len(lines) + (number if kind == "uneven" else 0)
        say(
            iteration=number, warmup=number < job["warmup"], messages=len(lines), seconds=0.5 / (1 + number),
            delivered={"out": count}, filtered=0,
        )  # fmt: skip
sys.exit(int(failed))
