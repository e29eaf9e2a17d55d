"""A listener as a guest in a process: pickled, at exit, and what a callback costs."""

import math
import os
import pickle
import subprocess
import sys
import time
import unittest

import fakes

import stategauge_listener as subject

CALLS = 2000

SCRIPT = """
import sys
sys.path[:0] = {path!r}
import fakes, stategauge_listener
listener = stategauge_listener.StategaugeListener({url!r}, flush_interval=30, stop_timeout={stop})
for batch in range(30):
    listener.onQueryProgress(fakes.progress(batch))
"""


class ExitTest(unittest.TestCase):
    def run_script(self, url, stop):
        script = SCRIPT.format(path=[fakes.HERE, fakes.FOLDER], url=url, stop=stop)
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return time.monotonic() - began

    def test_what_is_queued_goes_out_when_python_exits(self):
        with fakes.Collector() as collector:
            self.run_script(collector.url, stop=30)
            batches = [e["event"]["batchId"] for e in collector.events("progress")]
        self.assertEqual(batches, list(range(30)))

    def test_a_black_hole_does_not_keep_python_from_exiting(self):
        with fakes.black_hole() as port:
            self.assertLess(self.run_script("http://127.0.0.1:%d" % port, stop=0.5), 60)


class PickleTest(unittest.TestCase):
    def check(self, listener, copied):
        self.assertEqual(vars(copied._settings), vars(listener._settings))
        with fakes.Collector() as collector:
            copied._settings.url = collector.url + "/api/v1/events"
            copied.onQueryProgress(fakes.progress(4))
            self.assertTrue(copied.flush(20))
            self.assertEqual(collector.events()[0]["event"]["batchId"], 4)
        copied.close(0)

    def test_a_new_listener_can_be_pickled_and_its_copy_sends(self):
        listener = subject.StategaugeListener("http://h", spark=fakes.Session(), cluster="c")
        self.check(listener, pickle.loads(pickle.dumps(listener)))

    def test_a_listener_at_work_can_be_pickled_without_its_threads_and_session(self):
        with fakes.Collector() as collector:
            listener = subject.StategaugeListener(collector.url, spark=fakes.Session())
            listener.onQueryProgress(fakes.progress(0))
            listener._sparkSession = object()
            copied = pickle.loads(pickle.dumps(listener))
            self.assertTrue(listener.close(20))
        self.assertEqual(sorted(vars(copied)), ["_given_session", "_settings"])
        self.check(listener, copied)

    @unittest.skipUnless(fakes.HAS_SPARK, "needs PySpark")
    def test_a_process_without_this_module_can_run_what_was_pickled(self):
        from pyspark import cloudpickle

        with fakes.Collector() as collector:
            listener = subject.StategaugeListener(collector.url, stop_timeout=30)
            code = (
                "import pickle, sys; listener = pickle.load(sys.stdin.buffer)\n"
                "class E: id = runId = name = timestamp = 'x'\n"
                "listener.onQueryStarted(E())"
            )
            env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
            subprocess.run(
                [sys.executable, "-c", code], input=cloudpickle.dumps(listener),
                check=True, timeout=120, env=env, cwd=os.path.dirname(fakes.FOLDER),
            )  # fmt: skip
            self.assertEqual([e["type"] for e in collector.events()], ["started"])


class CostTest(unittest.TestCase):
    """Measures a callback with the collector in four states. The figures are printed, not judged:
    a busy machine must not fail a test."""

    def measure(self, name, url):
        listener = subject.StategaugeListener(
            url, flush_interval=0.01, queue_size=500, read_timeout=5
        )
        events = [fakes.progress(batch) for batch in range(CALLS)]
        costs = []
        for event in events:
            began = time.perf_counter_ns()
            listener.onQueryProgress(event)
            costs.append(time.perf_counter_ns() - began)
        stats = listener.stats()
        listener.close(0)
        costs.sort()
        p50, p99 = (costs[math.ceil(CALLS * q) - 1] / 1e3 for q in (0.5, 0.99))
        print("callback, collector %-11s p50 %6.0f us, p99 %6.0f us" % (name, p50, p99))
        self.assertEqual(stats["taken"], CALLS)
        self.assertLessEqual(stats["queued"], 500)

    def test_a_callback_costs_little_whatever_the_collector_does(self):
        pause = fakes.threading.Event()
        with fakes.Collector() as healthy:
            self.measure("healthy", healthy.url)
        with fakes.Collector(lambda n, lines: pause.wait(0.5) or None) as slow:
            self.measure("slow", slow.url)
        with fakes.refusing_port() as port:
            self.measure("refusing", "http://127.0.0.1:%d" % port)
        with fakes.black_hole() as port:
            self.measure("black-holed", "http://127.0.0.1:%d" % port)


if __name__ == "__main__":
    unittest.main()
