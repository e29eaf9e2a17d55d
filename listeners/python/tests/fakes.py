"""What the tests need in place of Spark and of the daemon.

Importing this module first makes ``stategauge_listener`` importable, with the real PySpark where
there is one and with an empty base class where there is none.
"""

import contextlib
import gzip
import http.server
import importlib.util
import json
import logging
import os
import socket
import sys
import threading
import types
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.dirname(HERE)
HAS_SPARK = importlib.util.find_spec("pyspark") is not None


def _install():
    if FOLDER not in sys.path:
        sys.path.insert(0, FOLDER)
    logging.getLogger("stategauge").addHandler(logging.NullHandler())
    if HAS_SPARK:
        return
    spark, sql, streaming = (
        types.ModuleType(name) for name in ("pyspark", "pyspark.sql", "pyspark.sql.streaming")
    )
    spark.__version__ = "0.0.0"
    streaming.StreamingQueryListener = type("StreamingQueryListener", (), {})
    sys.modules.update({"pyspark": spark, "pyspark.sql": sql, "pyspark.sql.streaming": streaming})


_install()

QUERY = uuid.UUID("0d4f6b9e-52a1-4c7f-9a53-6f1d4f0a7c11")
RUN = uuid.UUID("7a1c2f58-3b7e-4b0d-8f0c-2f4f1b9a6d22")


class Progress:
    """A progress as PySpark hands it over: ``json`` is text that the JVM made."""

    def __init__(self, batch=0, text=None, query=QUERY, run=RUN):
        self.id, self.runId, self.batchId = query, run, batch
        self.reads = 0
        self._text = text

    @property
    def json(self):
        self.reads += 1
        if self._text is not None:
            return self._text
        return (
            '{"id":"%s","runId":"%s","name":"orders","timestamp":"2026-05-04T10:00:00.000Z",'
            '"batchId":%d,"processedRowsPerSecond":1.0E7,"durationMs":{"addBatch":1}}'
            % (self.id, self.runId, self.batchId)
        )


class Event:
    """Any listener event: has what it is given."""

    def __init__(self, **fields):
        self.__dict__.update(fields)


def progress(batch=0, **more):
    """Returns the event of one batch."""
    return Event(progress=Progress(batch, **more))


def started(name="orders", query=QUERY, run=RUN, **more):
    """Returns the event of a start."""
    return Event(id=query, runId=run, name=name, timestamp="2026-05-04T09:59:59.000Z", **more)


def terminated(exception=None, query=QUERY, run=RUN, **more):
    """Returns the event of an end."""
    return Event(id=query, runId=run, exception=exception, **more)


class Session:
    """A Spark session: settings that are set, the rest raises, as Spark does."""

    def __init__(self, conf=None, version="4.1.0", active=()):
        self.settings = {"spark.app.id": "local-1", "spark.app.name": "shop", **(conf or {})}
        self.version = version
        self.conf = self
        self.streams = Event(active=list(active))

    def get(self, key, *default):
        if key in self.settings or not default:
            return self.settings[key]
        return default[0]


class Collector:
    """A daemon on loopback that notes what it is sent and answers as it is told.

    ``answer`` is a function of the request's number, from 0, and its lines; it returns a status and
    headers, or None to take them all. It may wait.
    """

    def __init__(self, answer=None, port=0):
        self.answer = answer or (lambda number, lines: None)
        self.changed = threading.Condition()
        self.envelopes, self.requests = [], []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                outer._take(self)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_):
                pass

        self._server = Server(("127.0.0.1", port), Handler)
        self.port = self._server.server_port
        self.url = "http://127.0.0.1:%d" % self.port
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )
        self._thread.start()

    def _take(self, handler):
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        lines = gzip.decompress(body).splitlines()
        with self.changed:
            number = len(self.requests)
            self.requests.append(
                Event(headers=dict(handler.headers), path=handler.path, lines=lines)
            )
        told = self.answer(number, lines)
        with self.changed:
            if told is None:
                self.envelopes.extend(json.loads(line) for line in lines)
            self.changed.notify_all()
        status, headers, text = told if told else (200, {}, None)
        text = text or json.dumps({"accepted": len(lines), "duplicates": 0, "rejected": []})
        self._reply(handler, status, headers, text.encode())

    @staticmethod
    def _reply(handler, status, headers, body):
        with contextlib.suppress(OSError):
            handler.send_response(status)
            for name, value in headers.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)

    def events(self, *kinds):
        """Returns the envelopes that were taken, heartbeats left out unless asked for."""
        with self.changed:
            wanted = kinds or ("started", "progress", "idle", "terminated")
            return [e for e in self.envelopes if e["type"] in wanted]

    def wait(self, condition, timeout=20.0):
        """Waits until the condition holds, and returns whether it does."""
        with self.changed:
            return self.changed.wait_for(condition, timeout)

    def close(self):
        """Lets go of the port."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def status(code, text=None, **headers):
    """Returns an answer of a collector."""
    return code, {name.replace("_", "-"): value for name, value in headers.items()}, text


@contextlib.contextmanager
def refusing_port():
    """Yields a port that nobody listens on, kept from others."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@contextlib.contextmanager
def black_hole():
    """Yields the port of a server that takes connections and never says a word."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(64)
        yield server.getsockname()[1]
