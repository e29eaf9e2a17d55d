"""Runs a stateful query of 20 batches with the listener's jar against the real daemon.

Compares what the daemon exports with what Spark itself says of the same batches.

    python smoke.py <stategauge-binary> <listener.jar>

Run it with a Python that has pyspark (3.4 or newer). Exits with 1 where the two differ.
"""

import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, window

BATCHES = 20
STATE = "spark.sql.streaming.stateStore."
CONF = {
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    STATE + "providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    STATE + "rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.streamingQueryListeners": "io.stategauge.spark.StategaugeListener",
    "spark.stategauge.heartbeat.interval": "2s",
    "spark.stategauge.cluster": "smoke",
    "spark.stategauge.debug": "true",
}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=5) as answer:
        return answer.read().decode()


def wait_for(url, seconds=30):
    deadline = time.monotonic() + seconds
    while True:
        try:
            return get(url)
        except (urllib.error.URLError, OSError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def session(url, jar):
    builder = SparkSession.builder.master("local[2]").appName("smoke")
    for key, value in CONF.items():
        builder = builder.config(key, value)
    # The class path of the driver itself, because the listener is made with the first session.
    builder = builder.config("spark.driver.extraClassPath", jar).config("spark.stategauge.url", url)
    return builder.getOrCreate()


def run_query(spark, checkpoint):
    rows = spark.readStream.format("rate").option("rowsPerSecond", 200).load()
    counts = rows.withWatermark("timestamp", "10 seconds").groupBy(window("timestamp", "5 seconds"), (col("value") % 50).alias("k")).count()
    query = (
        counts.writeStream.queryName("smoke")
        .outputMode("update")
        .format("noop")
        .option("checkpointLocation", checkpoint)
        .trigger(processingTime="200 milliseconds")
        .start()
    )
    while (query.lastProgress or {}).get("batchId", -1) < BATCHES - 1:
        if query.exception():
            raise SystemExit(f"the query failed: {query.exception()}")
        time.sleep(0.1)
    query.stop()
    executed = [p for p in query.recentProgress if "addBatch" in p["durationMs"]]
    return str(query.id), executed


def samples(page, query_id):
    """Series of the query: name and the labels that tell families' members apart, to value."""
    out = {}
    for line in page.splitlines():
        match = re.match(r"(spark_streaming_\w+)\{(.*)\} (\S+)$", line)
        if match and f'query_id="{query_id}"' in match[2]:
            extra = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2]))
            tells = ",".join(extra[k] for k in ("kind", "phase", "op", "state") if k in extra)
            out[match[1] + ("/" + tells if tells else "")] = float(match[3])
    return out


def expected(executed):
    last, operators = executed[-1], [p["stateOperators"][0] for p in executed]
    newest = operators[-1]
    custom = [o["customMetrics"] for o in operators]
    return {
        "spark_streaming_last_batch_id": last["batchId"],
        "spark_streaming_state_rows": newest["numRowsTotal"],
        "spark_streaming_state_store_instances": newest["numStateStoreInstances"],
        "spark_streaming_state_memory_bytes": newest["memoryUsedBytes"],
        "spark_streaming_rocksdb_sst_bytes": custom[-1]["rocksdbSstFileSize"],
        "spark_streaming_state_rows_updated_total": sum(o["numRowsUpdated"] for o in operators),
        "spark_streaming_state_commit_task_seconds_total": sum(o["commitTimeMs"] for o in operators) / 1000,
        "spark_streaming_rocksdb_operations_total/put": sum(c["rocksdbPutCount"] for c in custom),
        "spark_streaming_rocksdb_operations_total/get": sum(c["rocksdbGetCount"] for c in custom),
        "spark_streaming_phase_seconds_total/addBatch": sum(p["durationMs"]["addBatch"] for p in executed) / 1000,
        "spark_streaming_input_rows_total": sum(p["sources"][0]["numInputRows"] for p in executed),
    }


def compare(page, query_id, executed):
    got = samples(page, query_id)
    want = expected(executed)
    batches = sum(v for k, v in got.items() if k.startswith("spark_streaming_batches_total"))
    faults = [] if batches == len(executed) else [f"batches_total: {batches}, Spark ran {len(executed)}"]
    for name, value in want.items():
        if name not in got or abs(got[name] - value) > 1e-6 * max(1, abs(value)):
            faults.append(f"{name}: {got.get(name)}, Spark says {value}")
    print(f"{len(executed)} batches, {len(want) + 1} series compared, {len(got)} series of the query in all")
    print("\n".join(line for line in page.splitlines() if line.startswith("spark_streaming_query_info")))
    return faults


def main():
    binary, jar = sys.argv[1:]
    url = f"http://127.0.0.1:{free_port()}"
    with tempfile.TemporaryDirectory(prefix="stategauge-smoke-") as scratch:
        address = url.removeprefix("http://")
        daemon = subprocess.Popen([binary, "serve", f"--web.listen-address={address}", "--log.level=warn"])
        try:
            wait_for(url + "/-/ready")
            spark = session(url, jar)
            query_id, executed = run_query(spark, scratch + "/checkpoint")
            version = spark.version
            spark.stop()
            faults = compare(get(url + "/metrics"), query_id, executed)
            ended = "terminated" in get(url + "/api/v1/queries")
        finally:
            daemon.terminate()
            daemon.wait()
    if not ended:
        faults.append("the end of the query did not arrive")
    print(f"Spark {version}:", "equal" if not faults else "\n".join(faults))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
