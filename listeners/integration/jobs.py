"""Runs one job in the Python of a Spark environment: `python jobs.py SPEC.json`.

The specification is written by capture.py and live.py (see `Leg` there). The process
records every listener event as it comes, one JSON text a line, and leaves what it knows
itself (versions, Spark's own last progress, what was done to the query at which batch)
in the file named `report`.
"""

import json
import os
import pathlib
import signal
import sys
import time

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQueryListener

import eventlog
import neutral
import queries


class Recorder(StreamingQueryListener):
    """Writes events in the form that a Python listener can have them in."""

    def __init__(self, path, clean):
        self.clean = clean
        # Two processes may write here: whole lines, appended.
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.batches = 0
        self.last = -1
        self.terminated = 0

    def write(self, text):
        os.write(self.file, (self.clean(text) + "\n").encode())

    def onQueryStarted(self, event):
        self.write(
            json.dumps(
                {"id": str(event.id), "runId": str(event.runId), "name": event.name, "timestamp": event.timestamp}
            )
        )

    def onQueryProgress(self, event):
        self.write(event.progress.json)
        if "addBatch" in event.progress.durationMs:
            self.batches += 1
            self.last = event.progress.batchId

    def onQueryIdle(self, event):
        self.write(json.dumps({"id": str(event.id), "runId": str(event.runId), "timestamp": event.timestamp}))

    def onQueryTerminated(self, event):
        self.write(
            json.dumps(
                {
                    "id": str(event.id),
                    "runId": str(event.runId),
                    "exception": event.exception,
                    "errorClassOnException": getattr(event, "errorClassOnException", None),
                }
            )
        )
        self.terminated += 1


def session(spec):
    """The session of a job, with every server on loopback."""
    builder = SparkSession.builder.master(spec.get("master", "local[2]")).appName(spec["app"])
    for key, value in spec["conf"].items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def add_listeners(spark, spec, clean):
    """Registers the recorder, and our Python listener where the job asks for it."""
    recorder = Recorder(spec["events"], clean)
    spark.streams.addListener(recorder)
    ours = None
    if spec.get("python_url"):
        sys.path.insert(0, spec["python_path"])
        from stategauge_listener import StategaugeListener

        ours = StategaugeListener(url=spec["python_url"], spark=spark)
        spark.streams.addListener(ours)
    return recorder, ours


def executors(app_id):
    """Process ids of an application's executors, by executor id."""
    found = {}
    for proc in pathlib.Path("/proc").iterdir():
        try:
            words = (proc / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in words and app_id in words:
            found[words[words.index("--executor-id") + 1]] = int(proc.name)
    return found


class Run:
    """One query from its start to its end."""

    def __init__(self, spark, spec, recorder):
        self.spark, self.spec, self.recorder = spark, spec, recorder
        self.facts = []
        self.query = None

    def fact(self, what, **more):
        """Notes what was done to the query; `batchId` is the newest batch seen then."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.facts.append({"what": what, "batchId": self.recorder.last, "at": at, **more})

    def follow(self):
        """Runs the query for its number of batches, or until it fails or time is up."""
        self.query = queries.writer(self.spark, self.spec).start()
        deadline = time.monotonic() + self.spec.get("seconds", 300)
        kill_at = self.spec.get("kill_at")
        while self.query.isActive and time.monotonic() < deadline:
            if self.recorder.batches >= self.spec["batches"]:
                break
            if kill_at is not None and self.recorder.last >= kill_at:
                kill_at = None
                self.kill_executor()
            time.sleep(0.2)

    def kill_executor(self):
        victim, pid = sorted(executors(self.spark.sparkContext.applicationId).items())[0]
        os.kill(pid, signal.SIGKILL)
        self.fact("executor killed", executorId=victim)

    def report(self):
        """Spark's own view of the query: of a failed one too."""
        jvm_query = self.query._jsq
        recent = [json.loads(self.recorder.clean(p.json())) for p in jvm_query.recentProgress()]
        failed = self.query.exception()
        return {
            "id": str(self.query.id),
            "runId": str(self.query.runId),
            "name": self.query.name,
            "failed": failed is not None,
            "lastProgress": recent[-1] if recent else None,
            "recentIdle": [p for p in recent if "addBatch" not in p.get("durationMs", {})][:8],
        }

    def stop(self):
        self.query.stop()
        deadline = time.monotonic() + 20
        while not self.recorder.terminated and time.monotonic() < deadline:
            time.sleep(0.1)


def main(path):
    """Runs the job of a specification file."""
    spec = json.loads(pathlib.Path(path).read_text())
    jars = filter(None, spec["conf"].get("spark.jars", "").split(","))
    clean = neutral.replacer(spec["neutral"] + [[str(pathlib.Path(jar).parent), "/opt/jars"] for jar in jars])
    spark = session(spec)
    recorder, ours = add_listeners(spark, spec, clean)
    run = Run(spark, spec, recorder)
    feed = queries.Feed(spec) if spec["job"] == "idle" else None
    if feed:
        feed.start()
    run.follow()
    if feed:
        feed.stop()
    report = {
        "sparkVersion": spark.version,
        "master": spec.get("master", "local[2]"),
        "appId": spark.sparkContext.applicationId,
        "appName": spec["app"],
        "job": spec["job"],
        "conf": {k: v for k, v in spec["conf"].items() if k.startswith("spark.sql.")},
    }
    report["query"] = run.report()
    run.stop()
    report.update(batches=recorder.batches, lastBatchId=recorder.last, facts=run.facts)
    if ours:
        ours.close()
    jvm = spark.sparkContext._jvm
    spark.stop()
    if spec.get("eventlog"):
        eventlog.trim(spec["eventlog"], report["appId"], jvm, clean)
    pathlib.Path(spec["report"]).write_text(clean(json.dumps(report)))


if __name__ == "__main__":
    main(sys.argv[1])
