"""Events reach the collector in order, whatever it does meanwhile."""

import json
import os
import threading
import time
import unittest
from unittest import mock

import fakes

import stategauge_listener as subject

OUTAGE_EVENTS = 600
# Seconds between two events of the outage test; 0.05 is a batch a second played at twenty times.
OUTAGE_PACE = float(os.environ.get("STATEGAUGE_TEST_PACE", "0.002"))


def quick(case):
    """Lets retries follow each other at once."""
    for name in ("_FIRST_BACKOFF", "_LAST_BACKOFF", "_HURRIED_BACKOFF"):
        patch = mock.patch.object(subject, name, 0.02)
        patch.start()
        case.addCleanup(patch.stop)


class DeliveryTest(unittest.TestCase):
    def setUp(self):
        quick(self)

    def listener(self, url, **options):
        options = {"flush_interval": 0.01, "read_timeout": 5, "spark": fakes.Session(), **options}
        listener = subject.StategaugeListener(url, **options)
        self.addCleanup(listener.close, 0)
        return listener

    def balanced(self, listener):
        """Checks that every number given is accounted for, and returns the counts."""
        s = listener.stats()
        gone = s["delivered"] + s["rejected"] + s["dropped"] + s["queued"]
        self.assertEqual(s["taken"] + s["heartbeats"], gone, s)
        return s

    def collector(self, answer=None, port=0):
        collector = fakes.Collector(answer, port)
        self.addCleanup(collector.close)
        return collector

    def batches(self, collector):
        return [e["event"]["batchId"] for e in collector.events("progress")]

    def test_a_healthy_collector_gets_every_event_once_and_in_order(self):
        collector = self.collector()
        listener = self.listener(collector.url, batch_size=7)
        for batch in range(100):
            listener.onQueryProgress(fakes.progress(batch))
        self.assertTrue(listener.flush(20))
        self.assertEqual(self.batches(collector), list(range(100)))
        seqs = [e["seq"] for e in collector.envelopes]
        self.assertEqual(seqs, list(range(1, len(seqs) + 1)))
        self.assertEqual(self.balanced(listener)["dropped"], 0)
        self.assertLessEqual(max(len(r.lines) for r in collector.requests), 7)

    def test_events_travel_together_in_one_compressed_request(self):
        collector = self.collector()
        listener = self.listener(collector.url, flush_interval=30)
        for batch in range(50):
            listener.onQueryProgress(fakes.progress(batch))
        self.assertTrue(listener.flush(20))
        self.assertLessEqual(len(collector.requests), 3)
        headers = collector.requests[0].headers
        self.assertEqual(headers["Content-Encoding"], "gzip")
        self.assertEqual(headers["Content-Type"], "application/x-ndjson")
        self.assertEqual(collector.requests[0].path, "/api/v1/events")

    def test_an_event_goes_out_by_itself_after_the_flush_interval(self):
        collector = self.collector()
        listener = self.listener(collector.url, flush_interval=0.05)
        listener.onQueryProgress(fakes.progress(1))
        self.assertTrue(collector.wait(lambda: self.batches_of(collector) == [1]))

    @staticmethod
    def batches_of(collector):
        # Inside wait the lock is held.
        return [e["event"]["batchId"] for e in collector.envelopes if e["type"] == "progress"]

    def test_a_request_stays_below_the_limit_of_bytes(self):
        collector = self.collector()
        listener = self.listener(collector.url, batch_bytes=4096, flush_interval=30)
        for batch in range(40):
            listener.onQueryProgress(fakes.progress(batch))
        self.assertTrue(listener.flush(20))
        self.assertEqual(self.batches(collector), list(range(40)))
        self.assertLessEqual(max(sum(map(len, r.lines)) for r in collector.requests), 4096 * 2)
        self.assertGreater(len(collector.requests), 3)

    def test_an_outage_within_the_queue_loses_nothing_and_keeps_the_order(self):
        with fakes.refusing_port() as port:
            listener = self.listener("http://127.0.0.1:%d" % port, queue_size=OUTAGE_EVENTS + 1)
            self.send_paced(listener)
            self.assertEqual(self.balanced(listener)["dropped"], 0)
        collector = self.collector(port=port)
        self.assertTrue(listener.flush(30))
        self.assertEqual(self.batches(collector), list(range(OUTAGE_EVENTS)))
        self.assertEqual({e["dropped"] for e in collector.envelopes}, {0})

    def test_an_outage_beyond_the_queue_drops_the_oldest_and_counts_each(self):
        with fakes.refusing_port() as port:
            listener = self.listener("http://127.0.0.1:%d" % port, queue_size=250)
            self.send_paced(listener)
            stats = self.balanced(listener)
            self.assertEqual(stats["queued"], 250)
        dropped = OUTAGE_EVENTS + stats["heartbeats"] - 250
        self.assertEqual(stats["dropped"], dropped)
        collector = self.collector(port=port)
        self.assertTrue(listener.flush(30))
        # All but the events of a request that was under way are the newest ones.
        seqs = [e["seq"] for e in collector.envelopes]
        self.assertEqual(len(seqs), 250)
        self.assertEqual(seqs, sorted(set(seqs)))
        self.assertEqual(self.batches(collector), sorted(self.batches(collector)))
        self.assertEqual(self.batches(collector)[-1], OUTAGE_EVENTS - 1)
        self.assertEqual(collector.envelopes[-1]["dropped"], dropped)
        self.assertEqual(seqs[-1] - len(seqs), dropped)
        self.assertEqual(self.balanced(listener)["dropped"], dropped)

    def send_paced(self, listener):
        pace = threading.Event()
        for batch in range(OUTAGE_EVENTS):
            listener.onQueryProgress(fakes.progress(batch))
            pace.wait(OUTAGE_PACE)

    def test_an_outage_in_mid_stream_repeats_what_was_not_answered(self):
        # Odd requests are cut off after the collector has read them.
        collector = self.collector(lambda n, lines: fakes.status(503) if n % 2 else None)
        listener = self.listener(collector.url, batch_size=10)
        for batch in range(200):
            listener.onQueryProgress(fakes.progress(batch))
        self.assertTrue(listener.flush(30))
        self.assertEqual(self.batches(collector), list(range(200)))
        self.assertGreater(self.balanced(listener)["failures"], 0)

    def test_the_bytes_held_are_bounded_even_by_large_events(self):
        text = '{"batchId":%d,"pad":"' + "x" * 20_000 + '"}'
        with fakes.refusing_port() as port:
            listener = self.listener("http://127.0.0.1:%d" % port, queue_bytes="256k")
            for batch in range(100):
                listener.onQueryProgress(fakes.progress(batch, text=text % batch))
                self.assertLessEqual(listener.stats()["queued_bytes"], 256 << 10)
        collector = self.collector(port=port)
        self.assertTrue(listener.flush(30))
        kept = self.batches(collector)
        self.assertEqual(kept, list(range(100 - len(kept), 100)))
        self.assertGreaterEqual(len(kept), 10)
        self.balanced(listener)

    def test_a_black_hole_costs_the_oldest_events_that_are_not_on_their_way(self):
        with fakes.black_hole() as port:
            url = "http://127.0.0.1:%d" % port
            listener = self.listener(url, read_timeout=60, queue_size=20, flush_interval=0)
            listener.onQueryProgress(fakes.progress(0))
            self.wait_until(lambda: listener._pipeline._queue._in_flight > 0)
            for batch in range(1, 101):
                listener.onQueryProgress(fakes.progress(batch))
            stats = self.balanced(listener)
            self.assertEqual(stats["queued"], 20)
            self.assertEqual(stats["dropped"], 81 + stats["heartbeats"])
            items = [i for i in listener._pipeline._queue._items if i.kind == "progress"]
            self.assertEqual(items[-1].seq, stats["taken"] + stats["heartbeats"])

    def wait_until(self, condition, timeout=20.0):
        end, pause = time.monotonic() + timeout, threading.Event()
        while not condition() and time.monotonic() < end:
            pause.wait(0.005)
        self.assertTrue(condition())

    def test_a_full_intake_is_left_alone_for_as_long_as_it_asks(self):
        times = []

        def answer(number, lines):
            times.append(time.monotonic())
            return fakes.status(429, Retry_After="1") if number == 0 else None

        collector = self.collector(answer)
        listener = self.listener(collector.url)
        listener.onQueryProgress(fakes.progress(0))
        self.assertTrue(collector.wait(lambda: self.batches_of(collector) == [0]))
        self.assertGreaterEqual(times[1] - times[0], 0.95)
        self.assertEqual(self.balanced(listener)["dropped"], 0)

    def test_too_large_a_request_is_split_and_the_order_kept(self):
        collector = self.collector(lambda n, lines: fakes.status(413) if len(lines) > 3 else None)
        listener = self.listener(collector.url, flush_interval=30)
        for batch in range(50):
            listener.onQueryProgress(fakes.progress(batch))
        self.assertTrue(listener.flush(30))
        self.assertEqual(self.batches(collector), list(range(50)))
        self.assertEqual(self.balanced(listener)["dropped"], 0)

    def test_one_event_that_is_too_large_costs_only_itself(self):
        large = lambda lines: any(b'"batchId":7,' in line for line in lines)  # noqa: E731
        collector = self.collector(lambda n, lines: fakes.status(413) if large(lines) else None)
        listener = self.listener(collector.url, flush_interval=30)
        for batch in range(20):
            listener.onQueryProgress(fakes.progress(batch))
        self.assertTrue(listener.flush(30))
        self.assertEqual(self.batches(collector), [b for b in range(20) if b != 7])
        self.assertEqual(self.balanced(listener)["dropped"], 1)

    def test_a_refused_batch_is_dropped_and_counted(self):
        for code in (400, 401, 403, 404, 415):
            with self.subTest(code):
                collector = self.collector(
                    lambda n, lines, c=code: fakes.status(c) if n == 0 else None
                )
                listener = self.listener(collector.url, flush_interval=30)
                for batch in range(5):
                    listener.onQueryProgress(fakes.progress(batch))
                self.assertTrue(listener.flush(20))
                refused = len(collector.requests[0].lines)
                self.assertEqual(self.balanced(listener)["dropped"], refused)
                listener.onQueryProgress(fakes.progress(99))
                self.assertTrue(listener.flush(20))
                self.assertEqual(collector.envelopes[-1]["dropped"], refused)

    def test_events_rejected_one_by_one_are_counted(self):
        told = json.dumps(
            {"accepted": 1, "duplicates": 1, "rejected": [{"index": 2, "error": "x"}]}
        )
        collector = self.collector(
            lambda n, lines: fakes.status(200, told) if len(lines) == 3 else None
        )
        listener = self.listener(collector.url, flush_interval=30, batch_size=3)
        for batch in range(30):
            listener.onQueryProgress(fakes.progress(batch))
        self.assertTrue(listener.flush(20))
        threes = sum(len(r.lines) == 3 for r in collector.requests)
        self.assertGreater(threes, 0)
        self.assertEqual(self.balanced(listener)["rejected"], threes)

    def test_an_answer_that_is_not_ours_still_counts_as_delivered(self):
        collector = self.collector(lambda n, lines: fakes.status(200, "<html>fine</html>"))
        listener = self.listener(collector.url)
        listener.onQueryProgress(fakes.progress(0))
        self.assertTrue(listener.flush(20))
        stats = self.balanced(listener)
        self.assertEqual((stats["rejected"], stats["failures"]), (0, 0))

    def test_a_redirect_is_not_followed_with_the_token(self):
        other = self.collector()
        collector = self.collector(
            lambda n, lines: fakes.status(307, Location=other.url) if n == 0 else None
        )
        listener = self.listener(collector.url, token="t0p")
        listener.onQueryProgress(fakes.progress(0))
        self.assertTrue(listener.flush(20))
        self.assertEqual(other.requests, [])
        self.assertGreater(self.balanced(listener)["dropped"], 0)

    def test_the_daemon_is_told_settings_again_after_it_was_away(self):
        key = "spark.sql.shuffle.partitions"
        away = threading.Event()
        collector = self.collector(lambda n, lines: fakes.status(503) if away.is_set() else None)
        listener = self.listener(collector.url, spark=fakes.Session({key: "4"}))
        batch = self.send_until_told(listener, collector, 0)
        listener.onQueryProgress(fakes.progress(batch))
        listener.flush(20)
        self.assertNotIn("conf", collector.events("progress")[-1])
        away.set()
        listener.onQueryProgress(fakes.progress(batch + 1))
        self.wait_until(lambda: listener.stats()["failures"] > 0)
        away.clear()
        self.assertTrue(listener.flush(20))
        listener.onQueryProgress(fakes.progress(batch + 2))
        self.assertTrue(listener.flush(20))
        told = [e["conf"][key] for e in collector.events("progress")[-2:] if "conf" in e]
        self.assertEqual(told, ["4"])

    def send_until_told(self, listener, collector, batch):
        while not any("conf" in e for e in collector.events()) and batch < 1000:
            listener.onQueryProgress(fakes.progress(batch))
            listener.flush(20)
            batch += 1
        self.assertLess(batch, 1000)
        return batch

    def test_closing_sends_what_is_queued_and_counts_what_comes_later(self):
        collector = self.collector()
        listener = self.listener(collector.url, flush_interval=30)
        for batch in range(10):
            listener.onQueryProgress(fakes.progress(batch))
        self.assertTrue(listener.close(20))
        self.assertEqual(self.batches(collector), list(range(10)))
        listener.onQueryProgress(fakes.progress(10))
        self.assertEqual(self.balanced(listener)["dropped"], 1)
        self.assertTrue(listener.close())

    def test_closing_at_a_black_hole_takes_no_longer_than_it_may(self):
        with fakes.black_hole() as port:
            listener = self.listener("http://127.0.0.1:%d" % port, read_timeout=600)
            for batch in range(10):
                listener.onQueryProgress(fakes.progress(batch))
            began = time.monotonic()
            self.assertFalse(listener.close(0.3))
            self.assertLess(time.monotonic() - began, 20)

    def test_a_clock_that_is_set_back_holds_no_event_up(self):
        collector = self.collector()
        with mock.patch.object(subject.time, "time", lambda: 2e9):
            listener = self.listener(collector.url, flush_interval=0.2)
            listener.onQueryProgress(fakes.progress(0))
        self.assertTrue(collector.wait(lambda: self.batches_of(collector) == [0]))

    def test_failures_are_logged_once_a_minute_without_secrets(self):
        with fakes.refusing_port() as port, self.assertLogs("stategauge", "WARNING") as logs:
            listener = self.listener("http://127.0.0.1:%d" % port, token="s3cr3t")
            listener.onQueryProgress(fakes.progress(0))
            self.wait_until(lambda: listener.stats()["failures"] > 5)
        self.assertEqual(len(logs.output), 1, logs.output)
        self.assertNotIn("s3cr3t", logs.output[0])


if __name__ == "__main__":
    unittest.main()
