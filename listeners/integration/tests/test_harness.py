"""What the suite itself must get right: a comparison that cannot fail proves nothing."""

import gzip
import json
import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import eventlog
import expected
import install
import leg
import matrix
import neutral
import recorder


def operator(**more):
    """An operator of two stores."""
    values = {
        "operatorName": "dedupe",
        "numRowsTotal": 7,
        "numRowsUpdated": 3,
        "commitTimeMs": 250,
        "numShufflePartitions": 2,
        "numStateStoreInstances": 2,
        "memoryUsedBytes": 0,
        "customMetrics": {
            "rocksdbGetCount": 10,
            "rocksdbCommitFileSyncLatencyMs": 300,
            "rocksdbBytesCopied": 1000,
            "rocksdbWriterStallLatencyMs": 2_000_000_000,
        },
    }
    return values | more


def batch(number, rows=5, **more):
    """An executed batch with one operator and one source."""
    values = {
        "id": "q",
        "batchId": number,
        "numInputRows": rows,
        "inputRowsPerSecond": 5.0,
        "durationMs": {"addBatch": 900, "triggerExecution": 1000},
        "eventTime": {"max": "2026-03-01T00:00:01.500Z", "watermark": "1970-01-01T00:00:00.000Z"},
        "stateOperators": [operator()],
        "sources": [{"numInputRows": rows}],
    }
    return values | more


def series(values, name, **labels):
    """A value by its name without the common prefix, and all its labels."""
    return values["spark_streaming_" + name, tuple(sorted(labels.items()))]


class ExpectedSeries(unittest.TestCase):
    """What Spark said, as series."""

    def setUp(self):
        self.values = expected.Expected([batch(0, rows=0), batch(1)], changelog=True).values
        self.labels = {"operator": "dedupe", "operator_index": "0"}

    def test_work_adds_up_and_levels_are_the_last(self):
        self.assertEqual(series(self.values, "state_rows_updated_total", **self.labels), 6)
        self.assertEqual(series(self.values, "state_rows", **self.labels), 7)
        self.assertEqual(series(self.values, "input_rows_total", source_index="0"), 5)

    def test_times_are_seconds_and_the_stall_is_nanoseconds(self):
        self.assertEqual(series(self.values, "state_commit_task_seconds_total", **self.labels), 0.5)
        self.assertEqual(series(self.values, "rocksdb_writer_stall_seconds_total", **self.labels), 4)
        self.assertEqual(series(self.values, "trigger_execution_seconds_total"), 2)

    def test_batches_are_counted_by_whether_they_had_data(self):
        self.assertEqual(series(self.values, "batches_total", kind="data"), 1)
        self.assertEqual(series(self.values, "batches_total", kind="no_data"), 1)

    def test_uploads_add_up_only_where_each_commit_uploads(self):
        self.assertNotIn("spark_streaming_rocksdb_uploaded_bytes_total", {name for name, _ in self.values})
        without = expected.Expected([batch(0), batch(1)], changelog=False).values
        self.assertEqual(series(without, "rocksdb_uploaded_bytes_total", **self.labels), 2000)

    def test_means_divide_by_the_stores_that_report(self):
        mean = series(self.values, "rocksdb_last_batch_commit_store_seconds", phase="file_sync", **self.labels)
        self.assertEqual(mean, 0.15)
        joined = operator(operatorName="symmetricHashJoin", numStateStoreInstances=8)
        values = expected.Expected([batch(0, stateOperators=[joined])], changelog=True).values
        name = "rocksdb_last_batch_commit_store_seconds"
        labels = self.labels | {"operator": "symmetricHashJoin", "phase": "file_sync"}
        self.assertAlmostEqual(series(values, name, **labels), 0.075)

    def test_a_watermark_of_1970_and_hidden_memory_have_no_series(self):
        names = {name for name, _ in self.values}
        self.assertNotIn("spark_streaming_watermark_timestamp_seconds", names)
        self.assertNotIn("spark_streaming_state_memory_bytes", names)

    def test_event_times_keep_their_milliseconds(self):
        self.assertEqual(series(self.values, "event_time_max_timestamp_seconds"), 1772323201.5)


class Comparison(unittest.TestCase):
    """Expected series against samples."""

    def setUp(self):
        self.want = {("rows", (("operator", "a"),)): 3.0, ("batches", ()): 2.0}
        self.got = [
            ({"__name__": "rows", "operator": "a", "job": "x"}, 3.0),
            ({"__name__": "batches", "query_id": "q"}, 2.0),
        ]

    def test_equal_figures_pass(self):
        self.assertEqual(expected.compare(self.want, self.got), [])

    def test_a_wrong_figure_is_named(self):
        self.got[0][0]["operator"] = "a"
        lines = expected.compare(self.want, [(self.got[0][0], 4.0), self.got[1]])
        self.assertEqual(lines, ["rows{'operator': 'a'}: Spark says 3.0, exported is 4.0"])

    def test_a_missing_series_is_named(self):
        self.assertEqual(len(expected.compare(self.want, self.got[:1])), 1)

    def test_another_operators_figure_does_not_count(self):
        self.got[0][0]["operator"] = "b"
        self.assertEqual(len(expected.compare(self.want, self.got)), 1)


class KeptLines(unittest.TestCase):
    """An event log, trimmed."""

    def lines(self, *events):
        return [json.loads(line)["Event"] for line in eventlog.kept(json.dumps(e) for e in events)]

    def test_streaming_events_stay_and_most_others_go(self):
        task = {"Event": "SparkListenerTaskEnd"}
        progress = {"Event": "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"}
        kept = self.lines(*[task] * 100, progress)
        self.assertEqual(kept, ["SparkListenerTaskEnd"] * eventlog.OTHERS + [progress["Event"]])

    def test_the_environment_loses_its_lists(self):
        environment = {
            "Event": "SparkListenerEnvironmentUpdate",
            "JVM Information": {},
            "Spark Properties": {"spark.master": "local"},
            "System Properties": {"user.name": "someone"},
            "Classpath Entries": {"/home/someone/x.jar": "System"},
        }
        (line,) = eventlog.kept([json.dumps(environment)])
        self.assertNotIn("someone", line)
        self.assertIn("spark.master", line)


class Recordings(unittest.TestCase):
    """The collector that writes down what is sent."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "envelopes.ndjson"
        self.clean = neutral.replacer([("/home/me", "/srv"), ("/home/me/cache", "/opt"), ("", "never")])

    def post(self, url, body, **headers):
        request = urllib.request.Request(url + "/api/v1/events", body, headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read())

    def test_lines_are_kept_in_order_and_answered(self):
        recording = recorder.Recording(self.path, self.clean)
        answer = self.post(recording.url, gzip.compress(b'{"seq":1}\n{"seq":2}\n'), **{"Content-Encoding": "gzip"})
        self.post(recording.url, b'{"seq":3,"at":"/home/me/cache/x /home/me/y"}')
        recording.close()
        self.assertEqual(answer["accepted"], 2)
        self.assertEqual(
            self.path.read_text().splitlines(), ['{"seq":1}', '{"seq":2}', '{"seq":3,"at":"/opt/x /srv/y"}']
        )

    def test_requests_go_on_to_the_real_collector(self):
        real = recorder.Recording(self.path, self.clean)
        between = recorder.Recording(self.path.with_suffix(".copy"), self.clean, real.url)
        self.post(between.url, b'{"seq":1}\n{"seq":2}')
        between.close()
        real.close()
        self.assertEqual((real.lines, between.lines, between.accepted), (2, 2, 2))


class Installations(unittest.TestCase):
    """The cache outside the repository."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        changed = unittest.mock.patch.dict(os.environ, {"STATEGAUGE_CACHE": folder.name})
        changed.start()
        self.addCleanup(changed.stop)

    def test_a_thing_is_installed_once(self):
        calls = []
        for _ in range(2):
            install.once("things/a", calls.append)
        self.assertEqual(len(calls), 1)

    def test_what_broke_off_is_begun_again(self):
        def broken(folder):
            (folder / "half").touch()
            raise OSError("no network")

        with self.assertRaises(OSError):
            install.once("things/b", broken)
        folder = install.once("things/b", lambda _: None)
        self.assertEqual([p.name for p in folder.iterdir()], [".ready"])


class Matrix(unittest.TestCase):
    """The captured runs."""

    def test_names_are_unique(self):
        names = [f"{run.version}/{run.name}" for run in matrix.RUNS]
        self.assertEqual(len(names), len(set(names)))

    def test_each_job_and_provider_meets_old_and_new_spark(self):
        for job in ("agg", "dedupe", "join"):
            majors = {run.version[0] for run in matrix.RUNS if run.job == job}
            self.assertEqual(majors, {"3", "4"}, job)
        hdfs = {run.version[0] for run in matrix.RUNS if leg.STORE + "providerClass" not in run.conf}
        self.assertEqual(hdfs, {"3", "4"})

    def test_servers_of_a_job_listen_on_loopback(self):
        self.assertEqual(leg.COMMON["spark.driver.bindAddress"], "127.0.0.1")
        self.assertEqual(leg.COMMON["spark.ui.enabled"], "false")


if __name__ == "__main__":
    unittest.main()
