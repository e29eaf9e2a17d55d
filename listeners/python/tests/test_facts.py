"""What is told beside the events: application, settings, executors, heartbeats."""

import threading
import unittest

import fakes

import stategauge_listener as subject

PARTITIONS = "spark.sql.shuffle.partitions"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


class Query:
    """A running query."""

    def __init__(self, identity, active):
        self.id, self.runId = identity, "run of " + identity
        self._active = active

    @property
    def status(self):
        if self._active is None:
            raise RuntimeError("terminated")
        return {"message": "", "isDataAvailable": False, "isTriggerActive": self._active}


class Option:
    """Scala's option."""

    def __init__(self, value):
        self.value = value

    def isDefined(self):
        return self.value is not None

    def get(self):
        return self.value


class Executor:
    """An executor as the driver's status store tells of it."""

    def __init__(self, name, gone=None, cores=4, gc=0):
        self.values = {
            "id": name, "isActive": gone is None, "totalCores": cores, "totalGCTime": gc,
            "removeReason": Option(gone or None),
        }  # fmt: skip

    def __getattr__(self, name):
        value = self.values[name]
        return lambda: value


class SparkConf:
    """The settings of a SparkContext, parsed."""

    def __init__(self, **settings):
        self.settings = {"spark.executor." + name: value for name, value in settings.items()}

    def contains(self, key):
        return key in self.settings

    def getSizeAsBytes(self, key, default):
        assert default == "1g"
        return self.settings.get(key, 1 << 30)

    def getSizeAsMb(self, key):
        return self.settings[key]

    def getDouble(self, key, default):
        return self.settings.get(key, default)


class Books:
    """The driver's books, with the shape of Spark's Java objects."""

    def __init__(self, *executors, local=False, **settings):
        self.executors, self.local = executors, local
        self.settings = SparkConf(**settings)
        self.sparkContext = self._jsc = self

    @property
    def _jvm(self):
        runtime = fakes.Event(maxMemory=lambda: 2 << 30)
        lang = fakes.Event(Runtime=fakes.Event(getRuntime=lambda: runtime))
        return fakes.Event(java=fakes.Event(lang=lang))

    def isLocal(self):
        return self.local

    def conf(self):
        return self.settings

    def sc(self):
        return self

    statusStore = sc

    def executorList(self, active_only):
        assert active_only is False
        return self

    def size(self):
        return len(self.executors)

    def apply(self, i):
        return self.executors[i]


def item(kind="progress", run="r"):
    one = subject._Item(kind, None, 0.0)
    one.run = run
    return one


def facts(session, **more):
    settings = subject.StategaugeListener("http://h", spark=session, **more)._settings
    return subject._Facts(settings, lambda: session)


class FactsTest(unittest.TestCase):
    def test_only_settings_on_the_list_are_told(self):
        session = fakes.Session(
            {PARTITIONS: "4", CHANGELOG: "true", "spark.my.password": "hunter2"}
        )
        known = facts(session)
        known.refresh(["r"])
        told = known.members(item())
        self.assertEqual(told["conf"], {PARTITIONS: "4", CHANGELOG: "true"})
        self.assertNotIn("hunter2", str(told))

    def test_keys_without_a_default_in_spark_are_asked_for_with_one(self):
        asked = {}

        class Conf:
            def get(self, key, *default):
                asked[key] = default
                return "x"

        session = fakes.Session()
        session.conf = Conf()
        facts(session).refresh(["r"])
        self.assertEqual({asked["spark.app.name"], asked[CHANGELOG]}, {(None,)})
        self.assertEqual(asked["spark.stategauge.token"], (None,))
        self.assertEqual(asked[PARTITIONS], ())

    def test_settings_are_told_with_the_start_and_once_besides(self):
        known = facts(fakes.Session({PARTITIONS: "4"}))
        known.refresh(["r"])
        for kind, want in (("progress", True), ("progress", False), ("started", True)):
            one = item(kind)
            told = known.members(one)
            known.delivered(one, told)
            self.assertEqual("conf" in told, want, kind)

    def test_settings_that_did_not_arrive_are_told_again(self):
        known = facts(fakes.Session({PARTITIONS: "4"}))
        known.refresh(["r"])
        self.assertIn("conf", known.members(item()))
        self.assertIn("conf", known.members(item()))

    def test_a_run_keeps_the_settings_that_it_started_with(self):
        session = fakes.Session({PARTITIONS: "4"})
        known = facts(session)
        known.refresh(["r"])
        session.settings[PARTITIONS] = "8"
        known.refresh(["r", "s"])
        self.assertEqual(known.members(item("started", "r"))["conf"][PARTITIONS], "4")
        self.assertEqual(known.members(item("started", "s"))["conf"][PARTITIONS], "8")

    def test_a_run_that_ended_is_forgotten(self):
        known = facts(fakes.Session({PARTITIONS: "4"}))
        known.refresh(["r"])
        known.delivered(item(), known.members(item()))
        known.delivered(item("terminated"), {})
        self.assertTrue(known.seen("started", "q", "r"))
        self.assertEqual(known._told, {})

    def test_runs_whose_end_is_never_told_do_not_pile_up(self):
        known = facts(fakes.Session({PARTITIONS: "4"}))
        for number in range(subject._MAX_ACTIVE + 50):
            run = str(number)
            known.seen("started", "q" + run, run)
            known.refresh([run])
            known.delivered(item(run=run), known.members(item(run=run)))
        for kept in (known._running, known._confs, known._told):
            self.assertEqual(len(kept), subject._MAX_ACTIVE)
            self.assertIn(run, kept)
            self.assertNotIn("0", kept)

    def test_without_a_session_nothing_is_told_but_the_version(self):
        known = facts(None)
        known.refresh(["r"])
        self.assertEqual(
            list(known.members(item()).get("app", {"sparkVersion": ""})), ["sparkVersion"]
        )
        self.assertNotIn("conf", known.members(item()))
        self.assertTrue(known.known.is_set())

    def test_executors_are_summed_up_without_the_driver(self):
        books = Books(
            Executor("driver", gc=5),
            Executor("1", gc=7),
            Executor("2", cores=2),
            Executor("3", gone="Executor heartbeat timed out", gc=1),
        )
        told = subject._executors(books)
        self.assertEqual((told["count"], told["cores"], told["losses"]), (2, 6, 1))
        self.assertEqual(told["gcTimeMs"], 8)

    def test_executors_that_were_given_back_are_no_losses(self):
        books = Books(
            Executor("driver"),
            Executor("1", gone="Executor killed by driver."),
            Executor("2", gone="Executor decommission: spot"),
            Executor("3", gone=""),
        )
        self.assertEqual(subject._executors(books)["losses"], 1)

    def test_sizes_are_those_of_one_executor(self):
        cases = [
            ({}, 1 << 30, 384 << 20),
            ({"memory": 8 << 30}, 8 << 30, int((8 << 30) * 0.1)),
            ({"memory": 8 << 30, "memoryOverheadFactor": 0.5}, 8 << 30, 4 << 30),
            ({"memory": 8 << 30, "memoryOverhead": 500}, 8 << 30, 500 << 20),
        ]
        for settings, memory, overhead in cases:
            with self.subTest(settings):
                told = subject._executors(Books(Executor("driver"), Executor("1"), **settings))
                self.assertEqual((told["memoryBytes"], told["overheadBytes"]), (memory, overhead))

    def test_a_local_session_is_its_own_executor(self):
        told = subject._executors(Books(Executor("driver", cores=2), local=True))
        self.assertEqual((told["count"], told["cores"], told["losses"]), (1, 2, 0))
        self.assertEqual(told["memoryBytes"], 2 << 30)
        self.assertNotIn("overheadBytes", told)

    def test_a_driver_that_lets_nobody_look_has_no_executors(self):
        self.assertEqual(subject._executors(fakes.Session()), {})

    def test_executors_are_told_when_one_is_lost_but_not_for_the_time_of_a_collection(self):
        session = fakes.Session()
        books = Books(Executor("driver"), Executor("1"))
        session.sparkContext = books
        known = facts(session)
        known.refresh(["r"])
        known.delivered(item(), known.members(item()))
        books.executors = (Executor("driver"), Executor("1", gc=99))
        known.refresh([])
        self.assertNotIn("executors", known.members(item()))
        books.executors = (Executor("driver"), Executor("1", gone="lost"), Executor("2"))
        known.refresh([])
        self.assertEqual(known.members(item())["executors"]["losses"], 1)
        self.assertIn("executors", known.members(item("heartbeat", "")))

    def test_a_query_whose_trigger_cannot_be_told_counts_as_working(self):
        session = fakes.Session(active=[Query("a", True), Query("b", None), Query("c", False)])
        active = facts(session).active()
        self.assertEqual([q["id"] for q in active], ["a", "b", "c"])
        self.assertEqual([q["runId"] for q in active], ["run of a", "run of b", "run of c"])
        self.assertEqual([q["triggerActive"] for q in active], [True, True, False])

    def test_without_a_session_the_runs_that_events_told_of_are_active(self):
        known = facts(None)
        for kind, query in (
            ("started", "a"),
            ("progress", "b"),
            ("terminated", "a"),
            ("idle", "c"),
        ):
            known.seen(kind, query, "run of " + query)
        self.assertEqual([q["id"] for q in known.active()], ["b", "c"])
        self.assertEqual({q["triggerActive"] for q in known.active()}, {True})


class HeartbeatTest(unittest.TestCase):
    def setUp(self):
        self.collector = fakes.Collector()
        self.addCleanup(self.collector.close)

    def listener(self, **options):
        listener = subject.StategaugeListener(self.collector.url, flush_interval=0.01, **options)
        self.addCleanup(listener.close, 0)
        return listener

    def wait_for(self, count, kind):
        def there():
            return sum(e["type"] == kind for e in self.collector.envelopes) >= count

        self.assertTrue(self.collector.wait(there))

    def test_heartbeats_come_by_themselves_and_tell_of_the_active_queries(self):
        session = fakes.Session(active=[Query("a", True)])
        listener = self.listener(spark=session, heartbeat_interval=1)
        listener.onQueryStarted(fakes.started())
        self.wait_for(2, "heartbeat")
        beat = self.collector.events("heartbeat")[-1]
        active = [{"id": "a", "runId": "run of a", "triggerActive": True}]
        self.assertEqual(beat["event"], {"active": active})
        self.assertEqual(beat["app"]["name"], "shop")

    def test_a_spark_that_does_not_answer_holds_no_event_up(self):
        hang = threading.Event()
        self.addCleanup(hang.set)
        session = fakes.Session()
        session.streams = None

        class Hanging:
            @property
            def active(self):
                hang.wait(30)
                return []

        session.streams = Hanging()
        listener = self.listener(spark=session)
        for batch in range(20):
            listener.onQueryProgress(fakes.progress(batch))
        self.wait_for(20, "progress")

    def test_no_heartbeats_pile_up_while_the_collector_is_away(self):
        with fakes.refusing_port() as port:
            listener = subject.StategaugeListener(
                "http://127.0.0.1:%d" % port, flush_interval=0, heartbeat_interval=1
            )
            self.addCleanup(listener.close, 0)
            listener.onQueryProgress(fakes.progress(0))
            threading.Event().wait(2.5)
            self.assertLessEqual(listener.stats()["heartbeats"], 1)

    def test_the_session_that_connect_hands_over_is_used(self):
        listener = self.listener()
        listener._sparkSession = fakes.Session({"spark.app.name": "handed over"})
        listener.onQueryStarted(fakes.started())
        self.wait_for(1, "started")
        self.assertEqual(self.collector.events()[0]["app"]["name"], "handed over")


if __name__ == "__main__":
    unittest.main()
