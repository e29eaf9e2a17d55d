"""Captures real Spark streams as fixtures: `make spark-capture`.

    python3 capture.py [--out DIR] [--work DIR] [--jobs N] [VERSION/NAME ...]

For each run of the matrix there are, below testdata/spark/VERSION/:

    NAME.ndjson.zst           events as a Python listener gets them
    NAME.envelope.ndjson.zst  the same events as our JVM listener sends them
    NAME.eventlog/            the event log as Spark's history server keeps it, trimmed
    NAME.json                 versions, confs, what was done at which batch, and Spark's
                              own last progress
"""

import argparse
import concurrent.futures
import dataclasses
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import traceback

import install
import leg
import neutral
import recorder
from matrix import RUNS


def last_batch(path):
    """Number of executed batches in a file of bare events."""
    if not path.exists():
        return 0
    return sum('"addBatch"' in line for line in path.read_text().splitlines())


class Capture:
    """One run of the matrix in a folder of its own."""

    def __init__(self, run, work, jar):
        self.run, self.jar = run, jar
        self.folder = work / run.version / run.name
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.events = self.folder / "events.ndjson"

    def spec(self, number, url):
        """The specification of one leg."""
        part = self.run.legs[number]
        log = self.folder / "eventlog"
        conf = leg.COMMON | self.run.conf | leg.log_conf(log, self.run.codec) | part.conf
        conf |= leg.listener_conf(self.jar, url)
        return {
            "app": "orders-" + self.run.name,
            "query": self.run.name.replace("-", "_"),
            "job": self.run.job,
            "conf": conf,
            "events": str(self.events),
            "batches": part.batches,
            "seconds": 120 + 5 * part.batches,
            "eventlog": str(log),
            **self.run.spec,
        }

    def start(self, number, url):
        return leg.start(self.run.version, self.spec(number, url), self.folder, f"leg-{number}")

    def record(self):
        """Runs all legs and returns their reports."""
        clean = neutral.replacer(leg.neutral_pairs(self.folder))
        recording = recorder.Recording(self.folder / "envelopes.ndjson", clean)
        processes = []
        try:
            for number, part in enumerate(self.run.legs):
                if processes:
                    self.await_turn(processes[-1], part)
                processes.append(self.start(number, recording.url))
            for process in processes:
                process.wait(timeout=1800)
        finally:
            leg.end(processes)
            recording.close()
        return [leg.report(self.folder, f"leg-{number}") for number in range(len(self.run.legs))]

    def await_turn(self, process, part):
        """Waits until the next leg may start: after the one before, or beside it."""
        while process.poll() is None:
            if part.after is not None and last_batch(self.events) >= part.after:
                return
            time.sleep(0.5)


def check(run, reports):
    """Refuses a run that did not go as the matrix says."""
    for part, one in zip(run.legs, reports, strict=True):
        if one["query"]["failed"] != run.fails and part.after is None and len(reports) == 1:
            raise RuntimeError(f"the query failed: {one['query']['failed']}, expected {run.fails}")
        if one["batches"] < part.batches // 2 and part.after is None and not run.fails:
            raise RuntimeError(f"{one['batches']} batches in place of {part.batches}")


def pack(source, target):
    """Compresses a file the hardest way there is."""
    subprocess.run(["zstd", "-q", "-f", "-19", str(source), "-o", str(target)], check=True)


def keep(run, folder, reports, out):
    """Moves what a run left into the fixtures, in place of what was there."""
    base = out / run.version / run.name
    base.parent.mkdir(parents=True, exist_ok=True)
    pack(folder / "events.ndjson", f"{base}.ndjson.zst")
    pack(folder / "envelopes.ndjson", f"{base}.envelope.ndjson.zst")
    shutil.rmtree(f"{base}.eventlog", ignore_errors=True)
    shutil.copytree(folder / "eventlog", f"{base}.eventlog", ignore=shutil.ignore_patterns(".*.crc"))
    open_modes(base)
    metadata = {
        "name": run.name,
        "version": run.version,
        "job": run.job,
        "about": run.about,
        "eventLogCodec": run.codec,
        "spec": run.spec,
        "legs": reports,
    }
    pathlib.Path(f"{base}.json").write_text(json.dumps(metadata, indent=1) + "\n")


def open_modes(base):
    """Gives a run's files the modes that a checkout has; Spark's logs are for their owner alone."""
    for path in sorted(base.parent.glob(base.name + ".*")):
        for found in [path, *path.rglob("*")]:
            found.chmod(0o755 if found.is_dir() else 0o644)


def capture(run, work, out, jar):
    """Captures one run; returns a line for the table."""
    began = time.monotonic()
    one = Capture(run, work, jar)
    reports = one.record()
    check(run, reports)
    keep(run, one.folder, reports, out)
    batches = "+".join(str(r["batches"]) for r in reports)
    shutil.rmtree(one.folder, ignore_errors=True)
    return f"{run.version:8} {run.name:24} {batches:>9} batches {time.monotonic() - began:6.0f} s"


def shortened(run, batches):
    """The same run with fewer batches, and what is done to it done early."""
    legs = tuple(
        dataclasses.replace(part, batches=min(part.batches, batches), after=part.after and batches // 3)
        for part in run.legs
    )
    spec = run.spec | {key: batches // 3 for key in ("kill_at", "fail_at") if key in run.spec}
    return dataclasses.replace(run, legs=legs, spec=spec)


def attempt(*arguments):
    """Captures one run; a failure is a line of the table too."""
    try:
        return True, capture(*arguments)
    except Exception:  # the other runs go on; the exit status tells
        return False, f"{arguments[0].version}/{arguments[0].name} FAILED\n{traceback.format_exc()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="VERSION/NAME", help="all, if none is named")
    parser.add_argument("--out", type=pathlib.Path, default=install.ROOT / "testdata" / "spark")
    parser.add_argument("--work", type=pathlib.Path, default=install.cache_dir() / "work")
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side")
    parser.add_argument("--jar", type=pathlib.Path, help="our JVM listener, if not the one that listeners/jvm builds")
    parser.add_argument("--batches", type=int, help="no process runs more batches than this, for trying things out")
    arguments = parser.parse_args()
    chosen = [r for r in RUNS if not arguments.runs or f"{r.version}/{r.name}" in arguments.runs]
    if arguments.batches:
        chosen = [shortened(r, arguments.batches) for r in chosen]
    if len(chosen) < len(arguments.runs):
        parser.error("no such run; there are: " + ", ".join(f"{r.version}/{r.name}" for r in RUNS))
    jar = arguments.jar or install.listener_jar()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    return capture_all(chosen, arguments, jar)


def capture_all(chosen, arguments, jar):
    """Captures the runs, some side by side, and prints the table; the exit status."""
    failed = False
    pool = concurrent.futures.ThreadPoolExecutor(arguments.jobs)
    try:
        waiting = [pool.submit(attempt, r, arguments.work, arguments.out, jar) for r in chosen]
        for done in concurrent.futures.as_completed(waiting):
            ok, line = done.result()
            failed |= not ok
            print(line, flush=True)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        leg.end_all()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
