"""Where settings come from, and what is said of wrong ones."""

import unittest
from unittest import mock

import fakes

import stategauge_listener as subject

URL = "http://127.0.0.1:9980"


def settings(conf=None, environ=None, **arguments):
    """Returns the settings that a listener ends up with. None of them starts a thread."""
    session = fakes.Session({"spark.stategauge." + k: v for k, v in (conf or {}).items()})
    with mock.patch.dict("os.environ", environ or {}):
        return subject.StategaugeListener(spark=session, **arguments)._settings


class SettingsTest(unittest.TestCase):
    def test_everything_but_the_address_has_a_default(self):
        s = settings(url=URL)
        self.assertEqual((s.queue_size, s.queue_bytes), (10_000, 64 << 20))
        self.assertEqual((s.batch_size, s.batch_bytes), (200, 2 << 20))
        self.assertEqual((s.flush_interval, s.heartbeat_interval), (1.0, 30.0))
        self.assertEqual((s.read_timeout, s.stop_timeout), (10.0, 5.0))
        self.assertEqual((s.cluster, s.token, s.header_file), (None, None, None))

    def test_an_argument_wins_over_spark_and_spark_over_the_environment(self):
        environ = {"STATEGAUGE_CLUSTER": "c", "STATEGAUGE_URL": "http://c"}
        self.assertEqual(settings({"cluster": "b"}, environ, url=URL, cluster="a").cluster, "a")
        self.assertEqual(settings({"cluster": "b"}, environ).cluster, "b")
        self.assertEqual(settings({}, environ).cluster, "c")
        self.assertEqual(settings({}, environ).url, "http://c/api/v1/events")

    def test_keys_with_dots_have_underscores_in_the_environment(self):
        self.assertEqual(settings(environ={"STATEGAUGE_QUEUE_SIZE": "7"}, url=URL).queue_size, 7)
        environ = {"STATEGAUGE_HTTP_READ_TIMEOUT": "250ms"}
        self.assertEqual(settings(environ=environ, url=URL).read_timeout, 0.25)

    def test_quantities_have_units(self):
        cases = [
            ("queue.bytes", "1g", "queue_bytes", 1 << 30),
            ("queue.bytes", "512 KB", "queue_bytes", 512 << 10),
            ("batch.bytes", "4096", "batch_bytes", 4096),
            ("flush.interval", "1500ms", "flush_interval", 1.5),
            ("heartbeat.interval", "2min", "heartbeat_interval", 120.0),
            ("stop.timeout", "0.5", "stop_timeout", 0.5),
        ]
        for key, text, name, want in cases:
            with self.subTest(key):
                self.assertAlmostEqual(getattr(settings({key: text}, url=URL), name), want)

    def test_a_wrong_argument_is_an_error_that_names_it(self):
        cases = [
            ({"queue_size": 0}, r"queue_size \(0\) must be from 1 to"),
            ({"flush_interval": "soon"}, r"flush_interval \('soon'\) must be .* seconds"),
            ({"batch_bytes": "1x"}, "batch_bytes"),
            ({"queue_size": True}, "queue_size"),
            ({"queue_size": float("nan")}, "queue_size"),
        ]
        for arguments, words in cases:
            with self.subTest(arguments), self.assertRaisesRegex(ValueError, words):
                settings(url=URL, **arguments)

    def test_a_wrong_setting_is_logged_and_the_default_holds(self):
        with self.assertLogs("stategauge", "WARNING") as logs:
            s = settings({"queue.size": "many", "stop.timeout": "2h"}, url=URL)
        self.assertEqual((s.queue_size, s.stop_timeout), (10_000, 5.0))
        self.assertIn("queue.size ('many') must be from 1 to 1e+07; 10000 holds", logs.output[0])

    def test_the_path_of_the_api_is_added_where_there_is_none(self):
        cases = {
            "http://h:1": "http://h:1/api/v1/events",
            "https://h/": "https://h/api/v1/events",
            " http://h:1 ": "http://h:1/api/v1/events",
            "https://h/proxy/events?tenant=a#x": "https://h/proxy/events?tenant=a",
            "http://h?tenant=a": "http://h/api/v1/events?tenant=a",
        }
        for given, want in cases.items():
            with self.subTest(given):
                self.assertEqual(settings(url=given).url, want)

    def test_a_wrong_address_is_an_error_that_does_not_repeat_it(self):
        for url in (
            "",
            "stategauge:9980",
            "ftp://pw@h",
            "file:///etc/passwd",
            "http://u:pw@h",
            "http://",
        ):
            with self.subTest(url), self.assertRaises(ValueError) as caught:
                settings(url=url)
            self.assertNotIn("pw", str(caught.exception))

    def test_a_header_file_is_read_again_for_each_request(self):
        with mock.patch.object(subject, "_header_lines") as read:
            read.side_effect = [{"X-Tenant": "a"}, {"X-Tenant": "b"}]
            http = subject._Http(settings(url=URL, header_file="/somewhere"))
            self.assertEqual(http._headers()["X-Tenant"], "a")
            self.assertEqual(http._headers()["X-Tenant"], "b")

    def test_the_lines_of_a_header_file_are_names_and_values(self):
        text = "# who we are\nAuthorization: Basic YTpi\n\nX-Time: 10:00\n"
        with mock.patch("builtins.open", mock.mock_open(read_data=text)):
            lines = subject._header_lines("/somewhere")
        self.assertEqual(lines, {"Authorization": "Basic YTpi", "X-Time": "10:00"})

    def test_a_header_file_that_is_gone_is_a_failure_to_be_retried(self):
        http = subject._Http(settings(url=URL, header_file="/nowhere/at/all"))
        self.assertEqual(http.post([b"{}"]).outcome, "retry")

    def test_a_token_with_a_line_break_is_not_repeated_in_the_reason(self):
        with fakes.Collector() as collector:
            http = subject._Http(settings(url=collector.url, token="s3cr3t\nX: y"))
            answer = http.post([b"{}"])
        self.assertEqual(answer.outcome, "retry")
        self.assertNotIn("s3cr3t", answer.reason)


class RetryAfterTest(unittest.TestCase):
    def test_seconds_and_dates_are_understood_and_bounded(self):
        with mock.patch.object(subject.time, "time", lambda: 1777888800.0):
            self.assertEqual(subject._retry_after("7"), 7.0)
            self.assertEqual(subject._retry_after("0.5"), 0.5)
            self.assertEqual(subject._retry_after("Mon, 04 May 2026 10:00:09 GMT"), 9.0)
            self.assertEqual(subject._retry_after("Mon, 04 May 2026 09:00:00 GMT"), 0.0)
            self.assertEqual(subject._retry_after("86400"), subject._MAX_RETRY_AFTER)

    def test_nonsense_counts_for_nothing(self):
        for text in (None, "", "soon", "-5", "nan", "Mon, 99 Foo 2026"):
            with self.subTest(text):
                self.assertEqual(subject._retry_after(text), 0.0)


if __name__ == "__main__":
    unittest.main()
