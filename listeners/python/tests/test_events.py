"""What an envelope holds, byte by byte, and what never gets into one."""

import json
import unittest
import unittest.mock
import uuid

import fakes

import stategauge_listener as subject


class RenderTest(unittest.TestCase):
    def body(self, kind, event):
        return json.loads(subject._render(kind, event).body)

    def test_the_text_of_a_progress_is_left_as_spark_wrote_it(self):
        text = '{"id":"a", "rate" : 1.0E7,"n":9007199254740993,"s":"h\u00e9\\u00e9","z":-0.0}'
        query, run, body = subject._render("progress", fakes.progress(1, text=text))
        self.assertEqual(body, text.encode("utf-8"))
        self.assertEqual((query, run), (str(fakes.QUERY), str(fakes.RUN)))

    def test_pretty_text_becomes_one_line(self):
        body = subject._progress_text('{\r\n  "a" : "x\\ny"\n}')
        self.assertNotIn(b"\n", body)
        self.assertNotIn(b"\r", body)
        self.assertEqual(json.loads(body), {"a": "x\ny"})

    def test_text_that_is_no_object_is_refused(self):
        for text in ("", "null", "[1]", '{"a":1', "Row(a=1)"):
            with self.subTest(text), self.assertRaises(ValueError):
                subject._progress_text(text)

    def test_the_user_of_an_address_in_a_source_is_masked(self):
        text = '{"sources":[{"description":"JDBC[https://joe:pw@db.example/x]"}]}'
        body = subject._progress_text(text)
        self.assertNotIn(b"pw", body)
        self.assertIn(b"https://[redacted]@db.example/x", body)

    def test_an_address_without_a_user_stays(self):
        text = '{"sources":[{"description":"FileStreamSource[s3a://bucket/a@b]"}]}'
        self.assertEqual(subject._progress_text(text), text.encode())

    def test_half_a_character_does_not_lose_the_event(self):
        self.assertEqual(subject._progress_text('{"a":"\ud800"}'), b'{"a":"?"}')

    def test_a_start_tells_name_and_time(self):
        body = self.body("started", fakes.started())
        self.assertEqual(body["id"], str(fakes.QUERY))
        self.assertEqual(body["runId"], str(fakes.RUN))
        self.assertEqual(body["name"], "orders")
        self.assertEqual(body["timestamp"], "2026-05-04T09:59:59.000Z")
        self.assertEqual(body["jobTags"], [])

    def test_a_query_without_a_name_has_null(self):
        self.assertIsNone(self.body("started", fakes.started(name=None))["name"])

    def test_job_tags_of_newer_versions_are_told_in_order(self):
        body = self.body("started", fakes.started(jobTags={"b", "a"}))
        self.assertEqual(body["jobTags"], ["a", "b"])

    def test_an_idle_event_has_no_name(self):
        event = fakes.Event(id=fakes.QUERY, runId=fakes.RUN, timestamp="2026-05-04T10:00:10.000Z")
        body = self.body("idle", event)
        self.assertEqual(sorted(body), ["id", "runId", "timestamp"])

    def test_a_clean_end_has_no_exception(self):
        body = self.body("terminated", fakes.terminated(errorClassOnException=None))
        self.assertIsNone(body["exception"])
        self.assertIsNone(body["errorClassOnException"])

    def test_an_end_of_the_oldest_version_has_no_error_class(self):
        self.assertIsNone(
            self.body("terminated", fakes.terminated("boom"))["errorClassOnException"]
        )

    def test_a_failure_keeps_its_class_and_the_head_of_its_trace(self):
        trace = "org.apache.spark.SparkException: no\n" + "\tat a.b.c\n" * 5000
        event = fakes.terminated(trace, errorClassOnException="STREAM_FAILED")
        body = self.body("terminated", event)
        self.assertEqual(body["errorClassOnException"], "STREAM_FAILED")
        self.assertTrue(body["exception"].startswith("org.apache.spark.SparkException: no\n"))
        self.assertEqual(len(body["exception"]), subject._MAX_EXCEPTION)

    def test_secrets_in_a_trace_are_masked(self):
        secrets = [
            "jdbc:postgresql://joe:hunter2@db/x",
            "password=hunter2, user=joe",
            'token: "hunter2"',
            "fs.s3a.secret.key=hunter2",
            "fs.azure.account.key => hunter2;",
            "Authorization: Bearer hunter2hunter2",
            '{"apiKey":"hunter2"}',
        ]
        for text in secrets:
            with self.subTest(text):
                self.assertNotIn("hunter2", subject._clean("failed at " + text))

    def test_ordinary_text_in_a_trace_stays(self):
        text = "java.lang.IllegalStateException: batch 12 of s3a://bucket/path was lost (a=b)"
        self.assertEqual(subject._clean(text), text)

    def test_times_are_in_utc_with_milliseconds(self):
        self.assertEqual(subject._timestamp(0.0), "1970-01-01T00:00:00.000Z")
        self.assertEqual(subject._timestamp(1777888799.0625), "2026-05-04T09:59:59.062Z")


class EnvelopeTest(unittest.TestCase):
    def setUp(self):
        self.collector = fakes.Collector()
        self.addCleanup(self.collector.close)

    def send(self, *events, **options):
        options = {"flush_interval": 30, "spark": fakes.Session(), **options}
        listener = subject.StategaugeListener(self.collector.url, **options)
        self.addCleanup(listener.close, 0)
        for method, event in events:
            getattr(listener, method)(event)
        self.assertTrue(listener.flush(20))
        return listener

    def test_an_envelope_says_who_sends_what_and_when(self):
        self.send(("onQueryProgress", fakes.progress(3)), cluster="eu-1")
        envelope = self.collector.events()[0]
        self.assertEqual(envelope["v"], 1)
        self.assertEqual(str(uuid.UUID(envelope["sender"])), envelope["sender"])
        self.assertRegex(envelope["at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertEqual(
            envelope["app"],
            {"id": "local-1", "name": "shop", "sparkVersion": "4.1.0", "cluster": "eu-1"},
        )
        self.assertEqual(envelope["type"], "progress")
        self.assertEqual(envelope["event"]["batchId"], 3)

    def test_all_four_events_of_spark_go_out_in_their_order(self):
        self.send(
            ("onQueryStarted", fakes.started()),
            ("onQueryProgress", fakes.progress(0)),
            ("onQueryIdle", fakes.Event(id=fakes.QUERY, runId=fakes.RUN, timestamp="t")),
            ("onQueryTerminated", fakes.terminated()),
        )
        types = [e["type"] for e in self.collector.events()]
        self.assertEqual(types, ["started", "progress", "idle", "terminated"])

    def test_an_event_that_cannot_be_read_costs_only_itself(self):
        class Broken:
            @property
            def progress(self):
                raise RuntimeError("the JVM is gone")

        with self.assertLogs("stategauge", "WARNING"):
            listener = self.send(
                ("onQueryProgress", fakes.progress(0)),
                ("onQueryProgress", Broken()),
                ("onQueryProgress", fakes.progress(2)),
            )
        self.assertEqual([e["event"]["batchId"] for e in self.collector.events()], [0, 2])
        self.assertEqual(listener.stats()["dropped"], 1)

    def test_no_callback_raises_whatever_it_is_given(self):
        listener = subject.StategaugeListener(self.collector.url)
        self.addCleanup(listener.close, 0)
        with self.assertLogs("stategauge", "WARNING"):
            for call in (
                listener.onQueryStarted,
                listener.onQueryProgress,
                listener.onQueryIdle,
                listener.onQueryTerminated,
            ):
                call(None)
            self.assertTrue(listener.flush(20))
        self.assertEqual(listener.stats()["dropped"], 4)

    def test_spark_is_asked_for_the_text_outside_of_the_callback(self):
        event = fakes.progress(1)
        with unittest.mock.patch.object(subject._Pipeline, "_start_threads"):
            listener = subject.StategaugeListener(self.collector.url)
            listener.onQueryProgress(event)
            self.assertEqual(event.progress.reads, 0)

    def test_the_token_is_in_the_header_and_nowhere_else(self):
        self.send(
            ("onQueryStarted", fakes.started()),
            ("onQueryProgress", fakes.progress(0)),
            token="s3cr3t-t0ken",
            spark=fakes.Session({"spark.stategauge.token": "another-t0ken"}),
        )
        for request in self.collector.requests:
            self.assertEqual(request.headers["Authorization"], "Bearer s3cr3t-t0ken")
            self.assertNotIn(b"t0ken", b"".join(request.lines))


DOCUMENT = {
    "id": str(fakes.QUERY), "runId": str(fakes.RUN), "name": "orders",
    "timestamp": "2026-05-04T10:00:00.000Z", "batchId": 5, "batchDuration": 7,
    "numInputRows": 2, "inputRowsPerSecond": 1.5, "processedRowsPerSecond": 2.5,
    "durationMs": {"addBatch": 5, "triggerExecution": 7}, "stateOperators": [],
    "sources": [], "sink": {"description": "noop", "numOutputRows": -1},
}  # fmt: skip


@unittest.skipUnless(fakes.HAS_SPARK, "needs PySpark")
class RealEventsTest(unittest.TestCase):
    """PySpark's own event classes, as Connect fills them."""

    def test_a_progress_keeps_all_its_members(self):
        from pyspark.sql.streaming.listener import QueryProgressEvent

        if not hasattr(QueryProgressEvent, "fromJson"):
            self.skipTest("this version makes its events from JVM objects only")
        event = QueryProgressEvent.fromJson({"progress": DOCUMENT})
        _, run, body = subject._render("progress", event)
        self.assertEqual((run, json.loads(body)), (str(fakes.RUN), DOCUMENT))

    def test_start_and_end_are_read_from_attributes(self):
        from pyspark.sql.streaming import listener as real

        if not hasattr(real.QueryStartedEvent, "fromJson"):
            self.skipTest("this version makes its events from JVM objects only")
        start = real.QueryStartedEvent.fromJson({**DOCUMENT, "name": None})
        self.assertIn(b'"name":null', subject._render("started", start).body)
        end = real.QueryTerminatedEvent.fromJson(
            {**DOCUMENT, "exception": "x", "errorClassOnException": "E"}
        )
        self.assertIn(b'"errorClassOnException":"E"', subject._render("terminated", end).body)


if __name__ == "__main__":
    unittest.main()
