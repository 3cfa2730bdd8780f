"""Runs a worker whose files the program carries: `sordino bench step --peers`.

Reads {"step_worker": text, "script": text, "questions": text} from standard input, makes step_worker a
module, and runs the script on the questions. What libraries print goes nowhere.
"""
import io
import json
import os
import sys
import types

os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
given = json.load(sys.stdin)
worker = types.ModuleType("step_worker")
sys.modules["step_worker"] = worker
exec(given["step_worker"], worker.__dict__)
sys.stdin = io.StringIO(given["questions"])
try:
    exec(compile(given["script"], "script", "exec"), {"__name__": "__main__"})
except Exception as error:  # such as a library that is not there
    for _ in given["questions"].splitlines():
        print(json.dumps({"error": f"{type(error).__name__}: {error}"[:160]}))
