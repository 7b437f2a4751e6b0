"""Many at a time: order, bound, defects, Ctrl-C."""

import ast
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from fabric.push.fanout import fan_out


def crashed(item: int, error: Exception) -> str:
    return f"{item} crashed: {error}"


def skipped(item: int) -> str:
    return f"{item} skipped"


def test_results_come_in_the_order_of_the_items() -> None:
    first_may_end = threading.Event()

    def work(item: int, stop: Callable[[], bool]) -> str:
        if item == 0:
            assert first_may_end.wait(10)
        if item == 3:
            first_may_end.set()
        return f"{item} done"

    results = fan_out(range(4), work, workers=2, crashed=crashed, skipped=skipped)

    assert results == ("0 done", "1 done", "2 done", "3 done")


def test_no_more_than_the_workers_run_at_a_time() -> None:
    running, most, guard = 0, 0, threading.Lock()
    together = threading.Barrier(3)

    def work(item: int, stop: Callable[[], bool]) -> str:
        nonlocal running, most
        with guard:
            running += 1
            most = max(most, running)
        together.wait(10)
        with guard:
            running -= 1
        return ""

    fan_out(range(9), work, workers=3, crashed=crashed, skipped=skipped)

    assert most == 3


def test_a_defect_is_the_result_of_its_item_alone() -> None:
    def work(item: int, stop: Callable[[], bool]) -> str:
        if item == 1:
            raise KeyError("x")
        return "done"

    assert fan_out(range(3), work, workers=2, crashed=crashed, skipped=skipped) == ("done", "1 crashed: 'x'", "done")


def test_nothing_to_do_starts_no_thread() -> None:
    def work(item: int, stop: Callable[[], bool]) -> str:
        pytest.fail("called")

    before = threading.active_count()

    assert fan_out((), work, workers=4, crashed=crashed, skipped=skipped) == ()
    assert threading.active_count() == before


INTERRUPTED = """
import sys
from fabric.push.fanout import fan_out

def work(item, stop):
    print("begun", item, flush=True)
    while not stop():
        pass
    return f"{item} ended in its own way"

results = fan_out(range(4), work, workers=1, crashed=lambda i, e: f"{i} crashed", skipped=lambda i: f"{i} skipped")
print("; ".join(results), flush=True)
"""


@pytest.mark.parametrize("times", range(3))
def test_ctrl_c_skips_what_has_not_begun_and_lets_the_rest_end(times: int) -> None:
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun 0\n"
        process.send_signal(signal.SIGINT)
        try:
            rest, _ = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            raise

    assert process.returncode == 0
    assert rest == "0 ended in its own way; 1 skipped; 2 skipped; 3 skipped\n"


UNSEEN = """
import signal, threading
from fabric.push.fanout import fan_out

def work(item, stop):
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # noted, and the main thread's wait goes on
    while not stop():
        pass
    return "ended in its own way"

print(fan_out(range(1), work, workers=1, crashed=lambda i, e: repr(e), skipped=lambda i: "skipped"))
"""


def test_ctrl_c_that_broke_no_wait_is_seen_all_the_same() -> None:
    """As one that comes between the main thread's call and the kernel's wait: seen once on a busy machine."""
    done = subprocess.run([sys.executable, "-c", UNSEEN], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "('ended in its own way',)\n", done.stderr[-2000:]


AT_ANY_TIME = """
import random, signal, sys
from fabric.push.fanout import fan_out

def work(item, stop):
    return "done"

def trace(frame, event, argument):  # Python goes slowly, so that the moments between two steps are long
    for _ in range(20):
        pass
    return trace

def press(number, frame):
    if is_armed:
        raise KeyboardInterrupt

signal.signal(signal.SIGALRM, press)
is_armed = False
chance, ends = random.Random(int(sys.argv[1])), set()
sys.settrace(trace)
for _ in range(500):
    try:
        is_armed = True
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.00001, 0.002))
        ends |= set(fan_out(range(3), work, workers=2, crashed=lambda i, e: repr(e), skipped=lambda i: "skipped"))
        while signal.getitimer(signal.ITIMER_REAL)[0]:
            pass
        is_armed = False
    except KeyboardInterrupt:  # before it, or behind it
        is_armed = False
print(sorted(ends))
"""


def test_ctrl_c_at_any_time_neither_hangs_nor_breaks() -> None:
    words = [sys.executable, "-c", AT_ANY_TIME, str(secrets.randbelow(1 << 30))]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, (words[-1], done.stderr[-2000:])
    assert set(ast.literal_eval(done.stdout)) <= {"done", "skipped"}
