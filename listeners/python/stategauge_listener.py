"""Sends what Spark says of its streaming queries to stategauge, without slowing a query.

Needs PySpark 3.4 or newer, classic or Connect, and nothing else but the standard library::

    from stategauge_listener import StategaugeListener
    spark.streams.addListener(StategaugeListener("http://stategauge:9980", spark=spark))

A callback puts Spark's event object into a queue, bounded in events and bytes, and returns. Two
daemon threads work behind it. One renders events and posts them in batches: compressed NDJSON,
every event in an envelope with a running number. The other asks Spark what an event does not say
(settings, executors, which triggers run); it is apart because a Connect client repeats a call to a
lost server for minutes, and what is queued must go out meanwhile. Whatever fails here is counted
and logged, at most once a minute, and never reaches Spark.
"""

import _thread
import atexit
import email.utils
import gzip
import http.client
import itertools
import json
import logging
import os
import random
import re
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections import deque
from typing import Any, Callable, Deque, Dict, Iterable, List, NamedTuple, Optional, Tuple, Union

from pyspark.sql.streaming import StreamingQueryListener

__all__ = ["StategaugeListener", "__version__"]

__version__ = "0.1.0"

# Settings of Spark that decide how a query's figures are to be read. No other leaves the driver.
_CONF_KEYS = (
    "spark.sql.streaming.stateStore.providerClass",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled",
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage",
    "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows",
    "spark.sql.streaming.stateStore.rocksdb.resetStatsOnLoad",
    "spark.sql.streaming.stateStore.minDeltasForSnapshot",
    "spark.sql.streaming.stateStore.maintenanceInterval",
    "spark.sql.streaming.minBatchesToRetain",
    "spark.sql.shuffle.partitions",
    "spark.locality.wait",
)

# What a Spark object is believed to take, here and in the JVM, until it is rendered.
_UNRENDERED_BYTES = 16 << 10
_MAX_EXCEPTION = 8192  # characters kept of a stack trace
_MAX_ACTIVE = 1024  # queries of a heartbeat, and runs of which something is kept
_FIRST_BACKOFF, _LAST_BACKOFF = 0.5, 30.0  # seconds
_MAX_RETRY_AFTER = 300.0  # seconds; no collector may silence a sender for longer
_HURRIED_BACKOFF = 0.2  # seconds, while the queue is being emptied for good
_QUIET = 0.25  # seconds without a new event after which a closing listener believes it was the last
_LOG_EVERY = 60.0  # seconds

Quantity = Union[int, float, str, None]


class StategaugeListener(StreamingQueryListener):
    """A streaming query listener that posts all events to a stategauge daemon.

    What is not given here is looked up as ``spark.stategauge.<key>`` in the session's settings,
    then as ``STATEGAUGE_<KEY>`` in the environment (dots become underscores). Times are seconds, or
    text with a unit such as ``"500ms"``; sizes are bytes, or text such as ``"64m"``.

    :param url: the daemon, ``http://host:port``; a path is only needed behind a proxy. Key ``url``.
    :param spark: the session that the listener is added to; found by itself in most cases.
    :param cluster: a name for the cluster, for the label ``spark_cluster``. Key ``cluster``.
    :param token: sent as a bearer token in the HTTP header, nowhere else. Key ``token``.
    :param header_file: a file of further ``Name: value`` header lines. Key ``header.file``.
    :param queue_size: events held while the daemon cannot be reached. Key ``queue.size``.
    :param queue_bytes: the same in bytes. Key ``queue.bytes``.
    :param batch_size: events in one request at most. Key ``batch.size``.
    :param batch_bytes: the same in bytes before compression. Key ``batch.bytes``.
    :param flush_interval: how long an event waits for others. Key ``flush.interval``.
    :param heartbeat_interval: time between two heartbeats. Key ``heartbeat.interval``.
    :param read_timeout: how long the daemon may keep silent. Key ``http.read.timeout``.
    :param stop_timeout: how long the end of the application may wait for the daemon. Key
        ``stop.timeout``.
    :raises ValueError: no URL anywhere, or an argument out of its range. A bad value in settings or
        environment is logged, and the default holds.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        *,
        spark: Any = None,
        cluster: Optional[str] = None,
        token: Optional[str] = None,
        header_file: Optional[str] = None,
        queue_size: Quantity = None,
        queue_bytes: Quantity = None,
        batch_size: Quantity = None,
        batch_bytes: Quantity = None,
        flush_interval: Quantity = None,
        heartbeat_interval: Quantity = None,
        read_timeout: Quantity = None,
        stop_timeout: Quantity = None,
    ) -> None:
        arguments = dict(locals())
        self._given_session = spark if spark is not None else _active_session()
        self._settings = _Settings(arguments, _lookup(self._given_session))

    def onQueryStarted(self, event: Any) -> None:
        """Takes in that a query started. Spark waits for this one inside ``start()``."""
        self._accept("started", event)

    def onQueryProgress(self, event: Any) -> None:
        """Takes in the progress of a batch."""
        self._accept("progress", event)

    def onQueryIdle(self, event: Any) -> None:
        """Takes in that a query found nothing to do. Spark 3.5 and newer."""
        self._accept("idle", event)

    def onQueryTerminated(self, event: Any) -> None:
        """Takes in that a query ended."""
        self._accept("terminated", event)

    def flush(self, timeout: float = 5.0) -> bool:
        """Sends what is queued without waiting for more.

        :param timeout: seconds to wait at most.
        :return: whether the queue is empty.
        """
        pipeline = self.__dict__.get("_pipeline")
        return True if pipeline is None else pipeline.flush(timeout, quiet=0.0)

    def close(self, timeout: Optional[float] = None) -> bool:
        """Sends what is queued and stops for good; later events are counted as dropped.

        Called by itself when Python exits. May be called more than once.

        :param timeout: seconds to wait at most, ``stop_timeout`` if None.
        :return: whether everything went out.
        """
        limit = self._settings.stop_timeout if timeout is None else timeout
        pipeline = self.__dict__.get("_pipeline")
        return True if pipeline is None else pipeline.close(limit)

    def stats(self) -> Dict[str, int]:
        """Returns counts since the listener was made: ``taken`` events of Spark and ``heartbeats``;
        ``delivered``, ``rejected`` by the daemon one by one, ``dropped`` for want of room, time or
        use; ``failures`` of requests; ``queued`` and ``queued_bytes`` at this moment."""
        pipeline = self.__dict__.get("_pipeline")
        return _Queue(1, 1).stats() if pipeline is None else pipeline.stats()

    def _accept(self, kind: str, event: Any) -> None:
        # An exception here would fail start(), or have Connect remove all listeners.
        try:
            pipeline = self.__dict__.get("_pipeline")
            if pipeline is None:
                # Atomic, so that it needs no lock, which could not be pickled.
                pipeline = self.__dict__.setdefault(
                    "_pipeline", _Pipeline(self._settings, self._session)
                )
            pipeline.offer(_Item(kind, event, time.time()))
        except Exception:
            logging.getLogger("stategauge").debug("event lost in the listener", exc_info=True)

    def _session(self) -> Any:
        """Returns the best session known: Connect hands one over when it adds the listener."""
        for session in (self._given_session, getattr(self, "_sparkSession", None)):
            if session is not None:
                return session
        return _active_session()

    def __getstate__(self) -> Dict[str, Any]:
        # Connect 3.5 pickles listeners and runs them next to the server, which knows neither our
        # session nor our threads. It may not have this module either: then the code travels too.
        _pickle_by_value()
        return {"_settings": self._settings, "_given_session": None}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)


def _pickle_by_value() -> None:
    try:
        import sys

        from pyspark import cloudpickle

        cloudpickle.register_pickle_by_value(sys.modules[__name__])
    except Exception:  # pasted into a notebook, which is pickled by value anyway
        pass


def _active_session() -> Any:
    try:
        from pyspark.sql import SparkSession

        return SparkSession.getActiveSession()
    except Exception:
        return None


# --- settings -----------------------------------------------------------------------------------


class _Range(NamedTuple):
    key: str
    default: float
    low: float
    high: float
    unit: str  # "", "bytes" or "time"


_RANGES = {
    "queue_size": _Range("queue.size", 10_000, 1, 10_000_000, ""),
    "queue_bytes": _Range("queue.bytes", 64 << 20, 64 << 10, 4 << 30, "bytes"),
    "batch_size": _Range("batch.size", 200, 1, 100_000, ""),
    "batch_bytes": _Range("batch.bytes", 2 << 20, 1 << 10, 32 << 20, "bytes"),
    "flush_interval": _Range("flush.interval", 1.0, 0.0, 3600.0, "time"),
    "heartbeat_interval": _Range("heartbeat.interval", 30.0, 1.0, 3600.0, "time"),
    "read_timeout": _Range("http.read.timeout", 10.0, 0.001, 600.0, "time"),
    "stop_timeout": _Range("stop.timeout", 5.0, 0.0, 60.0, "time"),
}
_UNITS: Dict[str, Dict[str, float]] = {
    "": {"": 1},
    "bytes": {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20,
              "g": 1 << 30, "gb": 1 << 30},
    "time": {"": 1, "ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600},
}  # fmt: skip
_QUANTITY = re.compile(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*([a-zA-Z]*)\s*")

Lookup = Callable[[str], Optional[str]]


class _Settings:
    """The settings as numbers. Plain data, so that it can be pickled."""

    queue_size: int
    queue_bytes: int
    batch_size: int
    batch_bytes: int
    flush_interval: float
    heartbeat_interval: float
    read_timeout: float
    stop_timeout: float

    def __init__(self, arguments: Dict[str, Any], lookup: Lookup) -> None:
        def text(name: str, key: str) -> Optional[str]:
            value = arguments.get(name)
            return lookup(key) if value is None else str(value)

        self.url = _endpoint(text("url", "url"))
        self.cluster = text("cluster", "cluster")
        self.token = text("token", "token")
        self.header_file = text("header_file", "header.file")
        for name, limits in _RANGES.items():
            value = _quantity(name, limits, arguments.get(name), lookup)
            setattr(self, name, value if limits.unit == "time" else int(value))


def _lookup(session: Any) -> Lookup:
    """Returns a function that finds a setting in Spark, then in the environment."""

    def find(key: str) -> Optional[str]:
        value = _conf(session, "spark.stategauge." + key)
        return value or os.environ.get("STATEGAUGE_" + key.replace(".", "_").upper()) or None

    return find


def _quantity(name: str, limits: _Range, argument: Quantity, lookup: Lookup) -> float:
    value = lookup(limits.key) if argument is None else argument
    if value is None:
        return limits.default
    number = _number(value, limits.unit)
    if number is not None and limits.low <= number <= limits.high:
        return number
    fault = "{} ({!r}) must be from {:g} to {:g}{}".format(
        limits.key if argument is None else name,
        value, limits.low, limits.high, " seconds" if limits.unit == "time" else "",
    )  # fmt: skip
    if argument is not None:
        raise ValueError(fault)
    # Watching a job must never stop it.
    logging.getLogger("stategauge").warning("%s; %g holds", fault, limits.default)
    return limits.default


def _number(value: Union[int, float, str], unit: str) -> Optional[float]:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    match = _QUANTITY.fullmatch(str(value))
    factor = _UNITS[unit].get(match.group(2).lower()) if match else None
    return float(match.group(1)) * factor if match and factor else None


def _endpoint(url: Optional[str]) -> str:
    """Checks the address, without repeating it: it may hold a password."""
    if not url:
        raise ValueError("url is given neither here, nor as spark.stategauge.url or STATEGAUGE_URL")
    parts = urllib.parse.urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("url must be http://host or https://host")
    if "@" in parts.netloc:
        raise ValueError("url must hold no user name; use token or header_file")
    path = "/api/v1/events" if parts.path in ("", "/") else parts.path
    return urllib.parse.urlunsplit(parts._replace(path=path, fragment=""))


# --- events -------------------------------------------------------------------------------------


class _Item:
    """An event on its way. All fields but the first three belong to the lock of its queue."""

    __slots__ = ("kind", "at", "came", "run", "event", "seq", "body", "gone")

    def __init__(self, kind: str, event: Any, at: float) -> None:
        self.kind = kind
        self.at = at  # Unix seconds, for people
        self.came = time.monotonic()  # for us: the driver's clock may be set back
        self.run = ""  # the run's id, once rendered
        self.event = event  # Spark's object, None once rendered
        self.seq = 0  # running number from 1, given by the queue
        self.body: Optional[bytes] = None  # JSON, once rendered
        self.gone = False

    def size(self) -> int:
        """What it counts for in the limit of bytes."""
        return _UNRENDERED_BYTES if self.body is None else len(self.body) + 256


class _Rendered(NamedTuple):
    query: str
    run: str
    body: bytes


def _render(kind: str, event: Any) -> _Rendered:
    """Puts an event into JSON. May ask the JVM for a progress's text."""
    if kind == "progress":
        progress = event.progress
        return _Rendered(str(progress.id), str(progress.runId), _progress_text(progress.json))
    fields: Dict[str, Any] = {"id": str(event.id), "runId": str(event.runId)}
    if kind == "terminated":
        fields["exception"] = _clean(event.exception)
        fields["errorClassOnException"] = getattr(event, "errorClassOnException", None)
    else:
        fields["timestamp"] = event.timestamp
    if kind == "started":
        fields["name"] = event.name
        fields["jobTags"] = sorted(str(tag) for tag in getattr(event, "jobTags", None) or ())
    return _Rendered(fields["id"], fields["runId"], _compact(fields))


def _progress_text(text: str) -> bytes:
    """Keeps Spark's own text. Only what would break a line goes, and users in addresses."""
    if not text.startswith("{") or not text.endswith("}"):
        raise ValueError("the progress is no JSON object")
    if "\n" in text or "\r" in text:  # between values: inside a string they are escaped
        text = text.replace("\n", " ").replace("\r", " ")
    if "://" in text:
        text = _USER_INFO.sub("://[redacted]@", text)
    return text.encode("utf-8", "replace")


_USER_INFO = re.compile(r"://[^/@\s\"'\\?#]{1,512}@")
_ASSIGNMENT = re.compile(
    r"(?i)((?:password|passwd|pwd|secret|token|credential|access[._-]?key|api[._-]?key"
    r"|sas[._-]?key|account[._-]?key)[\w.-]{0,64}[\"'\\]{0,3}\s{0,4}(?:=>|[=:])\s{0,4}[\"'\\]{0,3})"
    r"[^\s\"'\\,;&)}\]]{1,4096}"
)
_SCHEME = re.compile(r"(?i)\b(bearer|basic)\s{1,4}[A-Za-z0-9+/=._~-]{8,4096}")


def _clean(text: Optional[str]) -> Optional[str]:
    """Cuts a stack trace and masks what looks like a secret in it."""
    if text is None:
        return None
    text = _USER_INFO.sub("://[redacted]@", str(text)[:_MAX_EXCEPTION])
    text = _ASSIGNMENT.sub(r"\1[redacted]", text)
    return _SCHEME.sub(r"\1 [redacted]", text)


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), default=str).encode("ascii")


def _timestamp(at: float) -> str:
    millis = int(at * 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(millis // 1000)) + ".%03dZ" % (
        millis % 1000
    )


# --- queue --------------------------------------------------------------------------------------


class _Queue:
    """The events not yet delivered, in order, bounded in count and bytes.

    When it is full the oldest makes room and is counted. Events stay here while they are being
    sent, so that a failed request loses nothing and the limits hold at any time. The lock is held
    for a few steps only, never while anything is rendered or sent.
    """

    def __init__(self, max_events: int, max_bytes: int) -> None:
        self.changed = threading.Condition(threading.Lock())
        self.hurry = False  # send without lingering
        self.closed = False  # take nothing in
        self._max_events, self._max_bytes = max_events, max_bytes
        self._items: Deque[_Item] = deque()
        self._fresh: Deque[_Item] = deque()  # the newest ones, not rendered
        self._in_flight = 0
        self._bytes = 0
        self._seq = 0
        self._heartbeat: Optional[_Item] = None  # the last one taken in
        self._touched = time.monotonic()
        self._counts = dict.fromkeys(
            ("taken", "heartbeats", "delivered", "rejected", "dropped", "failures"), 0
        )

    def offer(self, item: _Item) -> None:
        """Numbers an event and takes it in; the oldest ones make room. Never waits for I/O."""
        with self.changed:
            self._counts["taken"] += 1
            self._seq += 1
            item.seq = self._seq
            if self.closed or not self._make_room(item.size()):
                self._counts["dropped"] += 1
                return
            self._append(item)
            self._fresh.append(item)

    def offer_heartbeat(self, item: _Item) -> None:
        """Takes a heartbeat in, unless one waits already or it would take the place of an event."""
        with self.changed:
            waiting = self._heartbeat is not None and not self._heartbeat.gone
            full = len(self._items) >= self._max_events
            if waiting or full or self.closed or self._bytes + item.size() > self._max_bytes:
                return
            self._seq += 1
            item.seq = self._seq
            self._counts["heartbeats"] += 1
            self._heartbeat = item
            self._append(item)

    def next_fresh(self) -> Optional[_Item]:
        """Returns the oldest event to be rendered, None if there is none."""
        with self.changed:
            return self._fresh[0] if self._fresh else None

    def rendered(self, item: _Item, run: str, body: Optional[bytes]) -> None:
        """Takes over the form of an event; None drops one that cannot be rendered."""
        with self.changed:
            item.event = None
            if item.gone:
                return
            self._fresh.popleft()
            if body is None:
                self._items.remove(item)
                self._forget(item)
                self._counts["dropped"] += 1
                return
            self._bytes += len(body) + 256 - item.size()
            item.run, item.body = run, body
            while self._bytes > self._max_bytes and self._evict():
                pass

    def oldest(self) -> Tuple[int, float]:
        """Returns how many events are ready, and when the first of them came, by the clock of
        ``time.monotonic``."""
        with self.changed:
            ready = len(self._items) - len(self._fresh)
            return ready, self._items[0].came if ready else 0.0

    def take(self, max_events: int, max_bytes: int) -> Tuple[List[_Item], int]:
        """Returns the oldest rendered events, and how many were dropped so far. They are in flight,
        and safe from eviction, until :meth:`settle`."""
        with self.changed:
            batch: List[_Item] = []
            size = 0
            for item in itertools.islice(self._items, max_events):
                size += item.size()
                if item.body is None or (batch and size > max_bytes):
                    break
                batch.append(item)
            self._in_flight = len(batch)
            return batch, self._counts["dropped"]

    def settle(self, outcome: Optional[str], rejected: int = 0) -> None:
        """Lets go of the events in flight: outcome is "delivered" or "dropped"; None keeps them."""
        with self.changed:
            count, self._in_flight = self._in_flight, 0
            if outcome is None:
                self._counts["failures"] += 1
                return
            for _ in range(count):
                self._forget(self._items.popleft())
            self._counts[outcome] += count - rejected
            self._counts["rejected"] += rejected
            self.changed.notify_all()

    def abandon(self) -> int:
        """Takes nothing in any more; drops what is left. Returns how many those were."""
        with self.changed:
            self.closed = True
            left = len(self._items)
            while self._evict():
                pass
            self.changed.notify_all()
            return left

    def wait_empty(self, timeout: float, quiet: float) -> bool:
        """Waits until the queue is empty and nothing has come or gone for the quiet time, at most
        for the time given, both in seconds. Returns whether it is empty."""
        end = time.monotonic() + timeout
        with self.changed:
            self.hurry = True
            self.changed.notify_all()
            while True:
                now = time.monotonic()
                calm = self._touched + quiet if not self._items else end
                if min(calm, end) <= now:
                    self.hurry = False
                    return not self._items
                self.changed.wait(min(calm, end) - now)

    def wait(self, seconds: float) -> None:
        """Waits for a new event, or a change of mind, at most for the time given."""
        with self.changed:
            if not self._fresh and not self.closed:
                # Hurry may have come between the caller's look at it and this one.
                self.changed.wait(min(seconds, 0.05) if self.hurry else seconds)

    def stats(self) -> Dict[str, int]:
        """Returns the counts of :meth:`StategaugeListener.stats`."""
        with self.changed:
            return dict(self._counts, queued=len(self._items), queued_bytes=self._bytes)

    # Below, the lock is held.

    def _append(self, item: _Item) -> None:
        self._items.append(item)
        self._bytes += item.size()
        self._touched = time.monotonic()
        self.changed.notify_all()

    def _make_room(self, size: int) -> bool:
        while len(self._items) >= self._max_events or self._bytes + size > self._max_bytes:
            if not self._evict():
                return False
        return True

    def _evict(self) -> bool:
        """Drops the oldest event that is not being sent right now."""
        if len(self._items) <= self._in_flight:
            return False
        item = self._items[self._in_flight]
        del self._items[self._in_flight]
        if self._fresh and self._fresh[0] is item:
            self._fresh.popleft()
        self._forget(item)
        self._counts["dropped"] += 1
        return True

    def _forget(self, item: _Item) -> None:
        self._bytes -= item.size()
        item.gone = True
        item.event = None
        self._touched = time.monotonic()


# --- what Spark knows beside the events ---------------------------------------------------------


def _conf(session: Any, key: str) -> Optional[str]:
    """Returns a setting, None where it is unset, unknown or forbidden, or there is no session."""
    try:
        # Connect logs an error at the server for a key asked for without a default. With a default
        # Spark does not tell its own, so keys that have one in all versions are asked for without.
        registered = key.startswith("spark.sql.") and ".rocksdb." not in key
        value = session.conf.get(key) if registered else session.conf.get(key, None)
    except Exception:
        return None
    return None if value is None else str(value)


class _Facts:
    """Settings, executors and active queries. Filled by its own thread, read by the sender's."""

    def __init__(self, settings: _Settings, session: Callable[[], Any]) -> None:
        self.known = threading.Event()  # the application was asked for, with success or without
        self._cluster = settings.cluster
        self._session = session
        self._lock = threading.Lock()
        self._app: Dict[str, str] = {}
        self._executors: Dict[str, int] = {}
        self._running: Dict[str, str] = {}  # query ids by run, for want of a session
        self._confs: Dict[str, Dict[str, str]] = {}  # by run, as they were at its start
        self._told: Dict[str, Tuple[bool, int]] = {}  # by run: conf told, change of executors
        self._change = 0

    def refresh(self, runs: Iterable[str]) -> None:
        """Asks Spark for the application and the executors, and for the settings of new runs."""
        session = self._session()
        app, executors = _application(session), _executors(session)
        if self._cluster:
            app["cluster"] = self._cluster
        confs = {run: _settings_of(session) for run in runs}
        with self._lock:
            self._app = dict(self._app, **app)
            if _without_time(executors) != _without_time(self._executors):
                self._change += 1
            self._executors = executors
            for run, conf in confs.items():
                self._confs.setdefault(run, conf)
            _forget_oldest(self._confs)
        self.known.set()

    def active(self) -> List[Dict[str, Any]]:
        """Returns the queries that run, with whether a trigger is under way.

        One of which nothing can be learned counts as working: to call it waiting would hide that it
        hangs.
        """
        try:
            return [_status(query) for query in self._session().streams.active[:_MAX_ACTIVE]]
        except Exception:
            with self._lock:
                running = list(self._running.items())
            return [{"id": q, "runId": r, "triggerActive": True} for r, q in running]

    def seen(self, kind: str, query: str, run: str) -> bool:
        """Notes a run, and reports whether its settings have still to be asked for."""
        with self._lock:
            if kind == "terminated":
                self._running.pop(run, None)
                return False
            self._running[run] = query
            _forget_oldest(self._running)
            return run not in self._confs

    def members(self, item: _Item) -> Dict[str, Any]:
        """Returns what an event's envelope has to tell: the application always, settings and
        executors where they were not told before."""
        with self._lock:
            out: Dict[str, Any] = {}
            if self._app:
                out["app"] = self._app
            conf_told, change = self._told.get(item.run, (False, -1))
            started = item.kind == "started"
            if self._confs.get(item.run) and (started or not conf_told):
                out["conf"] = self._confs[item.run]
            if self._executors and (item.kind == "heartbeat" or started or change != self._change):
                out["executors"] = self._executors
            return out

    def delivered(self, item: _Item, told: Dict[str, Any]) -> None:
        """Notes what an event told that arrived."""
        if item.kind == "heartbeat":
            return
        with self._lock:
            if item.kind == "terminated":
                self._told.pop(item.run, None)
                self._confs.pop(item.run, None)
                return
            conf_told, change = self._told.get(item.run, (False, -1))
            change = self._change if "executors" in told or not self._executors else change
            self._told[item.run] = (conf_told or "conf" in told, change)
            _forget_oldest(self._told)

    def tell_again(self) -> None:
        """Has everything told once more: the daemon may have been started anew."""
        with self._lock:
            self._told.clear()


def _forget_oldest(runs: Dict[str, Any]) -> None:
    """Bounds what is kept of runs: the end of one may never be told."""
    while len(runs) > _MAX_ACTIVE:
        runs.pop(next(iter(runs)))


def _status(query: Any) -> Dict[str, Any]:
    try:
        trigger = bool(query.status["isTriggerActive"])
    except Exception:  # it ended meanwhile
        trigger = True
    return {"id": str(query.id), "runId": str(query.runId), "triggerActive": trigger}


def _application(session: Any) -> Dict[str, str]:
    out = {
        "id": _conf(session, "spark.app.id"),
        "name": _conf(session, "spark.app.name"),
        "sparkVersion": _version(session),
    }
    return {key: value for key, value in out.items() if value}


def _version(session: Any) -> Optional[str]:
    try:
        return str(session.version)
    except Exception:
        import pyspark

        return getattr(pyspark, "__version__", None)


def _settings_of(session: Any) -> Dict[str, str]:
    found = ((key, _conf(session, key)) for key in _CONF_KEYS)
    return {key: value for key, value in found if value is not None}


def _executors(session: Any) -> Dict[str, int]:
    """Sums up the executors, from the driver's own books: no job runs. Empty where a driver lets
    nobody look, as Connect and shared clusters do."""
    try:
        context = session.sparkContext._jsc.sc()
        every = _java_list(context.statusStore().executorList(False))
        local = bool(context.isLocal())  # then the driver is the only executor
        every = [e for e in every if local or e.id() != "driver"]
        alive = [e for e in every if e.isActive()]
        out = {
            "count": len(alive),
            "cores": sum(e.totalCores() for e in alive),
            "losses": sum(_is_lost(e) for e in every),
            "gcTimeMs": sum(e.totalGCTime() for e in every),
        }
        if local:
            runtime = session.sparkContext._jvm.java.lang.Runtime.getRuntime()
            return dict(out, memoryBytes=runtime.maxMemory())
        return dict(out, **_sizes(context.conf()))
    except Exception:
        return {}


def _is_lost(executor: Any) -> bool:
    """Tells executors that were lost from those that were given back, by Spark's own words."""
    if executor.isActive():
        return False
    reason = executor.removeReason()
    text = str(reason.get()) if reason.isDefined() else ""
    intended = ("killed by driver", "Executor decommission", "finished decommissioning")
    return not any(words in text for words in intended)


def _sizes(conf: Any) -> Dict[str, int]:
    """Returns what each executor was asked for."""
    memory = conf.getSizeAsBytes("spark.executor.memory", "1g")
    overhead = max(
        384 << 20, int(memory * conf.getDouble("spark.executor.memoryOverheadFactor", 0.1))
    )
    if conf.contains("spark.executor.memoryOverhead"):
        overhead = conf.getSizeAsMb("spark.executor.memoryOverhead") << 20
    return {"memoryBytes": memory, "overheadBytes": overhead}


def _java_list(sequence: Any) -> List[Any]:
    return [sequence.apply(i) for i in range(sequence.size())]


def _without_time(executors: Dict[str, int]) -> Dict[str, int]:
    return {key: value for key, value in executors.items() if key != "gcTimeMs"}


# --- the way out --------------------------------------------------------------------------------


class _Answer(NamedTuple):
    """What became of a request."""

    outcome: str  # "delivered", "retry", "too large" or "refused"
    reason: str = ""  # in words without secrets
    retry_after: float = 0.0  # seconds the daemon asks to be left alone
    rejected: int = 0  # events of the batch that it did not take


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows nobody: the token is meant for one host."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _Http:
    """Posts batches. Used by one thread."""

    def __init__(self, settings: _Settings) -> None:
        self._settings = settings
        self._opener: Optional[urllib.request.OpenerDirector] = None

    def post(self, lines: List[bytes]) -> _Answer:
        """Sends lines of NDJSON and waits for the answer, for a bounded time."""
        try:
            body = gzip.compress(b"\n".join(lines) + b"\n", 4)
            request = urllib.request.Request(self._settings.url, body, self._headers())
            if self._opener is None:  # here, because it looks for proxies and certificates
                self._opener = urllib.request.build_opener(_NoRedirect())
            with self._opener.open(request, timeout=self._settings.read_timeout) as response:
                return _Answer("delivered", rejected=_rejected(response.read(1 << 20), len(lines)))
        except urllib.error.HTTPError as error:
            with error:
                return _judge(error)
        except (OSError, http.client.HTTPException, ValueError) as error:
            return _Answer("retry", _words(error))

    def _headers(self) -> Dict[str, str]:
        headers = {
            "Content-Type": "application/x-ndjson",
            "Content-Encoding": "gzip",
            "User-Agent": "stategauge-listener-python/" + __version__,
        }
        if self._settings.token:
            headers["Authorization"] = "Bearer " + self._settings.token
        if self._settings.header_file:
            headers.update(_header_lines(self._settings.header_file))
        return headers


def _header_lines(path: str) -> Dict[str, str]:
    """Reads a header file, for each request: what is in it may be renewed."""
    with open(path, encoding="utf-8") as file:
        pairs = [line.partition(":") for line in file if line.strip() and line[0] != "#"]
    return {name.strip(): value.strip() for name, _, value in pairs}


def _rejected(body: bytes, sent: int) -> int:
    try:
        answer = json.loads(body)
        taken = int(answer["accepted"]) + int(answer["duplicates"])
    except (ValueError, KeyError, TypeError):  # a proxy that answers in its own words
        return 0
    return min(max(sent - taken, 0), sent)


def _judge(error: urllib.error.HTTPError) -> _Answer:
    reason = "status %d" % error.code
    if error.code == 413:
        return _Answer("too large", reason)
    # 408: our body came too slowly.
    if error.code < 500 and error.code not in (408, 429):
        return _Answer("refused", reason)
    return _Answer("retry", reason, _retry_after(error.headers.get("Retry-After")))


def _retry_after(text: Optional[str]) -> float:
    """Reads the header's two forms, seconds and a date."""
    if not text:
        return 0.0
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, TypeError, IndexError):
            return 0.0
    return min(seconds, _MAX_RETRY_AFTER) if seconds > 0 else 0.0


def _words(error: BaseException) -> str:
    """Names an error without the text of one that might repeat a header."""
    cause = getattr(error, "reason", error)
    return str(cause) if isinstance(cause, OSError) else type(error).__name__


# --- threads ------------------------------------------------------------------------------------


class _Pipeline:
    """Owns the queue and the two threads behind it."""

    def __init__(self, settings: _Settings, session: Callable[[], Any]) -> None:
        self._settings = settings
        self._queue = _Queue(settings.queue_size, settings.queue_bytes)
        self._facts = _Facts(settings, session)
        self._http = _Http(settings)
        self._log = _Log()
        self._sender = str(uuid.uuid4())
        self._start = threading.Lock()
        self._started = False
        self._stop = threading.Event()
        self._ask = threading.Event()  # wakes the thread that asks Spark
        self._new: Deque[str] = deque(maxlen=1024)  # runs whose settings are wanted
        self._batch = settings.batch_size  # smaller for a while after a 413
        self._tries = 0
        self._failed_at = self._retry_at = 0.0

    def offer(self, item: _Item) -> None:
        """Takes an event in; the first one starts the threads."""
        self._queue.offer(item)
        if not self._started:
            self._start_threads()

    def flush(self, timeout: float, quiet: float) -> bool:
        """Waits until everything went out, at most for the time given."""
        return self._queue.wait_empty(timeout, quiet)

    def close(self, timeout: float) -> bool:
        """Flushes and stops for good."""
        if self._stop.is_set():
            return self._queue.stats()["queued"] == 0
        done = self.flush(timeout, quiet=min(_QUIET, timeout / 4))
        self._stop.set()
        self._ask.set()
        left = self._queue.abandon()
        if left:
            self._log.failure("stopped with %d events that were not sent", left)
        atexit.unregister(self._at_exit)
        return done and not left

    def stats(self) -> Dict[str, int]:
        """Returns the counts of the queue."""
        return self._queue.stats()

    def _start_threads(self) -> None:
        with self._start:
            if self._started:
                return
            # threading.Thread.start waits until the new thread runs: milliseconds on a busy driver,
            # and Spark is waiting for us.
            _thread.start_new_thread(self._send_loop, ())
            _thread.start_new_thread(self._ask_loop, ())
            atexit.register(self._at_exit)
            self._started = True

    def _at_exit(self) -> None:
        self.close(self._settings.stop_timeout)

    # The thread that asks Spark.

    def _ask_loop(self) -> None:
        threading.current_thread().name = "stategauge-ask"
        beat_at = time.monotonic()
        while not self._stop.is_set():
            try:
                self._refresh()
                if time.monotonic() >= beat_at:
                    beat_at = time.monotonic() + self._settings.heartbeat_interval
                    self._beat()
            except Exception:
                self._log.failure("asking Spark failed", exc_info=True)
            self._ask.wait(max(beat_at - time.monotonic(), 0.0))
            self._ask.clear()

    def _refresh(self) -> None:
        runs = []
        while self._new:
            runs.append(self._new.popleft())
        try:
            self._facts.refresh(runs)
        finally:
            self._facts.known.set()

    def _beat(self) -> None:
        if self._tries:  # what it says would be out of date when the daemon is back
            return
        item = _Item("heartbeat", None, time.time())
        item.body = _compact({"active": self._facts.active()})
        self._queue.offer_heartbeat(item)

    # The thread that sends.

    def _send_loop(self) -> None:
        threading.current_thread().name = "stategauge-send"
        # The application's name becomes a label: the first event must not go without it.
        self._facts.known.wait(3.0)
        while not self._stop.is_set():
            try:
                self._render()
                pause = self._pause()
                if pause <= 0:
                    self._send()
                else:
                    self._queue.wait(pause)
            except Exception:
                self._log.failure("sending failed", exc_info=True)
                self._queue.settle(None)
                self._stop.wait(_FIRST_BACKOFF)
        self._queue.abandon()

    def _render(self) -> None:
        for item in iter(self._queue.next_fresh, None):
            event = item.event
            if item.gone:  # it made room a moment ago
                continue
            try:
                query, run, body = _render(item.kind, event)
            except Exception:
                self._log.failure("an event of type %s cannot be read", item.kind, exc_info=True)
                self._queue.rendered(item, "", None)
                continue
            self._queue.rendered(item, run, body)
            if self._facts.seen(item.kind, query, run):
                self._new.append(run)
                self._ask.set()

    def _pause(self) -> float:
        """Returns the seconds until the next request is due."""
        ready, came = self._queue.oldest()
        if not ready:
            return 60.0
        retry = self._retry_at - time.monotonic()
        if self._queue.hurry:
            return self._failed_at + _HURRIED_BACKOFF - time.monotonic() if self._tries else 0.0
        linger = came + self._settings.flush_interval - time.monotonic()
        return max(retry, 0.0 if ready >= self._batch else linger)

    def _send(self) -> None:
        batch, dropped = self._queue.take(self._batch, self._settings.batch_bytes)
        if not batch:
            return
        told = [self._facts.members(item) for item in batch]
        lines = [self._envelope(item, dropped, more) for item, more in zip(batch, told)]
        answer = self._http.post(lines)
        if answer.outcome == "delivered":
            self._delivered(batch, told, answer)
        elif answer.outcome == "too large" and len(batch) > 1:
            self._batch = len(batch) // 2
            self._queue.settle(None)
        elif answer.outcome == "retry":
            self._failed(answer)
        else:
            self._queue.settle("dropped")
            self._log.failure("the collector refused %d events: %s", len(batch), answer.reason)

    def _delivered(self, batch: List[_Item], told: List[Dict[str, Any]], answer: _Answer) -> None:
        if self._tries:
            self._facts.tell_again()
        for item, more in zip(batch, told):
            self._facts.delivered(item, more)
        self._queue.settle("delivered", answer.rejected)
        self._tries, self._retry_at = 0, 0.0
        self._batch = min(self._batch * 2, self._settings.batch_size)
        if answer.rejected:
            self._log.failure("the collector rejected %d of %d events", answer.rejected, len(batch))

    def _failed(self, answer: _Answer) -> None:
        backoff = min(_FIRST_BACKOFF * 2 ** min(self._tries, 16), _LAST_BACKOFF)
        pause = max(backoff * random.uniform(0.5, 1.0), answer.retry_after)
        self._tries += 1
        self._failed_at = time.monotonic()
        self._retry_at = self._failed_at + pause
        self._queue.settle(None)
        self._log.failure("the collector does not take events: %s", answer.reason)

    def _envelope(self, item: _Item, dropped: int, more: Dict[str, Any]) -> bytes:
        head: Dict[str, Any] = {"v": 1, "sender": self._sender, "seq": item.seq}
        head.update(dropped=dropped, at=_timestamp(item.at), **more)
        head["type"] = item.kind
        # Spark's text is put in as it is: to read and write it again could change a figure.
        return _compact(head)[:-1] + b',"event":' + (item.body or b"null") + b"}"


class _Log:
    """Reports failures, the same one at most once a minute."""

    def __init__(self) -> None:
        self._last: Dict[str, float] = {}

    def failure(self, message: str, *arguments: Any, exc_info: bool = False) -> None:
        """Logs a failure, unless it was logged within the last minute."""
        now = time.monotonic()
        if now - self._last.get(message, -_LOG_EVERY) < _LOG_EVERY:
            return
        self._last[message] = now
        logging.getLogger("stategauge").warning(message, *arguments, exc_info=exc_info)
