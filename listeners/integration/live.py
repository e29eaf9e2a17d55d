"""Live jobs against the real daemon: `make spark`.

    python3 live.py [--keep]

A real Kafka broker, Prometheus and Alertmanager stand beside the daemon; a job for each
listener sends it at most twenty batches. Then every exported series is compared with
what Spark itself said, and nothing may have been lost on the way. Prints one table;
the exit status is 1 if anything differs.
"""

import argparse
import copy
import dataclasses
import json
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time
import urllib.request
import uuid

import expected
import install
import leg
import recorder
import servers

TOPIC = "spark-streaming-events"


@dataclasses.dataclass(frozen=True)
class Job:
    """One live job; `listener` is jvm-http, jvm-kafka or python-http."""

    version: str
    job: str
    listener: str
    changelog: bool
    spec: dict = dataclasses.field(default_factory=dict)

    @property
    def name(self):
        return f"{self.listener}-{self.job}"


JOBS = (
    Job("4.3.0", "dedupe", "jvm-http", False),
    Job("3.5.8", "join", "jvm-kafka", True),
    Job("4.3.0", "fail", "python-http", True, {"fail_at": 16}),
)


class Bench:
    """The servers, in the order in which they need each other."""

    def __init__(self, folder):
        self.running = []
        self.kafka = self.add(servers.Broker(folder))
        self.alertmanager = self.add(servers.Alertmanager(folder))
        self.daemon = self.add(servers.Daemon(folder, self.kafka.address, TOPIC, self.alertmanager.url))
        self.prometheus = self.add(servers.Prometheus(folder, self.daemon.address))

    def add(self, server):
        self.running.append(server)
        return server

    def stop(self):
        for server in reversed(self.running):
            server.stop()


class Live:
    """One job, from its start to the comparison."""

    def __init__(self, job, bench, root):
        self.job, self.bench = job, bench
        self.folder = root / job.name
        self.folder.mkdir()
        self.events = self.folder / "events.ndjson"
        self.envelopes = self.folder / "envelopes.ndjson"
        self.faults = []

    def run(self):
        """Runs the job; its listener's requests are written down on their way."""
        self.before = self.decoded()
        recording = recorder.Recording(self.envelopes, lambda line: line, self.bench.daemon.url)
        process = leg.start(self.job.version, self.spec(recording.url), self.folder)
        try:
            process.wait(timeout=420)
        finally:
            leg.end([process])
            recording.close()
        self.report = leg.report(self.folder)
        self.accepted = recording.accepted

    def spec(self, url):
        conf = leg.COMMON | leg.state_conf(self.job.changelog, False)
        spec = {
            "app": "live-" + self.job.name,
            "query": self.job.name.replace("-", "_"),
            "job": self.job.job,
            "batches": 20,
            "events": str(self.events),
            "seconds": 240,
        }
        match self.job.listener:
            case "jvm-http":
                conf |= leg.listener_conf(install.listener_jar(), url)
            case "jvm-kafka":
                clients = sorted(install.jars("clients").glob("*.jar"))
                conf |= leg.listener_conf(
                    install.listener_jar(), brokers=self.bench.kafka.address, topic=TOPIC, clients=clients
                )
            case "python-http":
                spec |= {"python_url": url, "python_path": str(install.ROOT / "listeners" / "python")}
        return spec | {"conf": conf} | self.job.spec

    def check(self):
        """Compares everything; returns the line of the table."""
        told = [json.loads(line) for line in self.events.read_text().splitlines()]
        batches = [e for e in told if "addBatch" in e.get("durationMs", {})]
        if not batches:
            raise SystemExit(f"{self.job.name}: no batch was run, see {self.folder}")
        self.last = batches[-1]
        self.await_daemon(batches)
        sent = self.sent()
        self.check_sent(told, sent)
        self.check_last(batches)
        want = expected.Expected(batches, self.job.changelog)
        samples = self.bench.prometheus.query(f'{{query_id="{batches[0]["id"]}"}}')
        self.faults += expected.compare(want.values, samples)
        conf = "changelog " + ("on" if self.job.changelog else "off")
        return (
            self.job.version,
            self.job.job,
            self.job.listener,
            conf,
            len(told),
            len(sent),
            self.decoded() - self.before,
            len(want.values),
            len(self.faults),
        )

    def await_daemon(self, batches):
        """Waits until the daemon knows the query's end and Prometheus has seen it."""
        query = batches[0]["id"]
        ends = "failed" if self.job.job == "fail" else "terminated"
        servers.await_true(
            f"{self.job.name}: the query's end",
            lambda: self.bench.daemon.queries().get(query, {}).get("state") == ends,
            60,
        )
        state = f'spark_streaming_query_state{{query_id="{query}",state="{ends}"}}'
        servers.await_true("a scrape", lambda: self.bench.prometheus.value(state) == 1, 30)
        self.status = self.bench.daemon.queries()[query]

    def sent(self):
        """The envelopes as they went over the wire."""
        if self.job.listener == "jvm-kafka":
            lines = self.bench.kafka.messages(TOPIC)
        else:
            lines = self.envelopes.read_text().splitlines()
        return sorted((json.loads(line) for line in lines), key=lambda e: e["seq"])

    def check_sent(self, told, sent):
        """No event may be missing between Spark and the wire, or between the wire and the daemon."""
        numbers = [e["seq"] for e in sent]
        if numbers != list(range(numbers[0], numbers[0] + len(numbers))) or any(e["dropped"] for e in sent):
            self.faults.append(f"running numbers {numbers}, dropped {max(e['dropped'] for e in sent)}")
        events = [e for e in sent if e["type"] != "heartbeat"]
        if len(events) != len(told):
            self.faults.append(f"Spark told {len(told)} events, the listener sent {len(events)}")
        if self.job.listener != "jvm-kafka" and self.accepted != len(sent):
            self.faults.append(f"{len(sent)} envelopes were sent, {self.accepted} accepted")
        if self.status["missed_batches"] or self.status["batches"] != self.report["batches"]:
            self.faults.append(f"Spark ran {self.report['batches']} batches, the daemon says {self.status}")

    def check_last(self, batches):
        """Spark's own last progress must be the last event that its listener got."""
        last = {k: v for k, v in self.report["query"]["lastProgress"].items()}
        if last != batches[-1]:
            self.faults.append("lastProgress differs from the last event")

    def decoded(self):
        """Events that the daemon has applied so far, from all sources."""
        return int(self.bench.prometheus.value('sum(stategauge_events_total{outcome!="rejected"})') or 0)


def aged(batch, count=400):
    """A stream of one batch a minute made of a real one, its commits slower and slower.

    Trends need hours; this is how a live batch gets a history.
    """
    query, run, now = str(uuid.uuid4()), str(uuid.uuid4()), time.time()
    for i in range(count):
        made = copy.deepcopy(batch) | {"id": query, "runId": run, "name": "aged", "batchId": i}
        made["timestamp"] = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(now - 60 * (count - i)))
        for operator in made["stateOperators"]:
            wobble = random.Random(i).uniform(0.95, 1.05)
            operator["customMetrics"]["rocksdbCommitFileSyncLatencyMs"] = int(400 * (1 + i / 100) * wobble)
            operator["commitTimeMs"] = int(900 * (1 + i / 100))
        # A commit is no longer than its batch, or the daemon would not believe it.
        made["batchDuration"] = 9500
        made["durationMs"] |= {"addBatch": 9000, "triggerExecution": 9500}
        yield json.dumps(made)


def check_alert(bench, batch):
    """A rising trend in a real batch's shape must reach Alertmanager."""
    body = "\n".join(aged(batch)).encode()
    urllib.request.urlopen(urllib.request.Request(bench.daemon.url + "/api/v1/events", body), timeout=30).close()

    def arrived():
        return [a for a in bench.alertmanager.alerts() if a.get("query_name") == "aged"]

    found = servers.await_true("an alert in Alertmanager", arrived, 90)
    print(f"Alertmanager has {', '.join(sorted({a['alertname'] for a in found}))} of a stream that was made to age")


def play_captured(bench):
    """Posts every captured stream; returns how many events were taken, and what was refused."""
    taken, faults = 0, []
    for path in sorted((install.ROOT / "testdata" / "spark").glob("*/*.ndjson.zst")):
        headers = {"Content-Encoding": "zstd"}
        request = urllib.request.Request(bench.daemon.url + "/api/v1/events", path.read_bytes(), headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            said = json.loads(answer.read())
        taken += said["accepted"] + said["duplicates"]
        if said["rejected"]:
            faults.append(f"{path.parent.name}/{path.name}: {said['rejected'][:3]}")
    return taken, faults


def table(lines):
    """Prints the lines in columns."""
    head = ("Spark", "job", "listener", "conf", "events", "sent", "decoded", "series", "faults")
    rows = [head, *[tuple(map(str, line)) for line in lines]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="keep the folder with all logs")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    began = time.monotonic()
    for version in sorted({job.version for job in JOBS}):
        install.spark(version)
    install.jars("clients")
    install.listener_jar()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="stategauge-live-"))
    bench, ok = None, False
    try:
        bench = Bench(folder)
        lines, faults, batches = [], [], []
        for job in JOBS:
            live = Live(job, bench, folder)
            live.run()
            lines.append(live.check())
            batches.append(live.last)
            faults += [f"{job.name}: {fault}" for fault in live.faults]
        table(lines)
        check_alert(bench, batches[0])
        taken, refused = play_captured(bench)
        faults += refused
        print(f"{taken} captured events taken, {len(refused)} streams with refusals")
        print(*faults, sep="\n", end="\n" if faults else "")
        ok = not faults
        print(f"{'all figures agree' if ok else 'FIGURES DIFFER'}, {time.monotonic() - began:.0f} s")
    finally:
        if bench:
            bench.stop()
        if ok and not arguments.keep:
            shutil.rmtree(folder)
        else:
            print(f"logs: {folder}")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
