"""What the workers of step.py share: questions in, measurements out, one line of JSON each."""
import json
import os
import statistics
import sys
import time


def time_steps(step, wait, seconds, device="cpu"):
    """The median of the steady state, by the rules of `sordino bench step`: a warm-up of a tenth
    of the time, then at least 5 steps, or 3 once ten times the time has passed. `wait` returns
    when the device has computed the result of a step; on a GPU ten steps are made before it."""
    steps = 1 if device == "cpu" else 10

    def once():
        start = time.perf_counter()
        for _ in range(steps):
            result = step()
        wait(result)
        return (time.perf_counter() - start) / steps

    once()  # compiles, fills caches
    start = time.perf_counter()
    once()
    while time.perf_counter() - start < 0.1 * seconds:
        once()
    times = []
    start = time.perf_counter()
    while True:
        times.append(once())
        passed = time.perf_counter() - start
        if (len(times) >= 5 and passed >= seconds) or (len(times) >= 3 and passed >= 10 * seconds):
            return {"ms": 1e3 * statistics.median(times), "steps": len(times)}


def serve(answer):
    """Answers questions until standard input ends. What libraries print goes to standard error."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            result = answer(json.loads(line))
        except Exception as error:  # a peer that cannot do a model is a result of the table
            words = str(error).strip().splitlines() or [""]
            result = {"error": f"{type(error).__name__}: {words[0][:160]}"}
        print(json.dumps(result), file=out, flush=True)
    return 0
