"""The stateful queries that the suite runs, each as a function from a session to a
streaming DataFrame.

They use what people use: skewed keys, windows, event time with late rows, duplicates.
The rows are a function of the rate source's counter, so that two runs differ in timing
only.
"""

import json
import os
import pathlib
import threading
import time

from pyspark import TaskContext
from pyspark.sql import functions as F

# Key number of a row: a power law over `keys` keys, the same for the same row.
SKEWED = "cast(pow(pmod(hash(value), 100000) / 100000.0D, 3) * {keys} as int)"


def rate(spark, spec):
    """Rows with `timestamp`, `value` and a skewed `key`; of `late` rows one is 30 s late."""
    rows = (
        spark.readStream.format("rate").option("rowsPerSecond", spec.get("rows", 500)).option("numPartitions", 2).load()
    )
    each = spec.get("late", 500)
    late = F.expr(f"if(value % {each} = {each - 1}, timestamp - interval 30 seconds, timestamp)")
    return rows.withColumn("timestamp", late).withColumn("key", F.expr(SKEWED.format(keys=spec.get("keys", 5000))))


def files(spark, spec):
    """Rows of a folder that `Feed` fills in bursts."""
    folder = pathlib.Path(spec["dir"]) / "input"
    folder.mkdir(parents=True, exist_ok=True)
    rows = spark.readStream.schema("value long, timestamp timestamp").json(f"file://{folder}")
    return rows.withColumn("key", F.expr(SKEWED.format(keys=spec.get("keys", 5000))))


def aggregation(rows):
    """Counts and sums per key and window."""
    return (
        rows.withWatermark("timestamp", "10 seconds")
        .groupBy(F.window("timestamp", "10 seconds"), "key")
        .agg(F.count("*").alias("n"), F.sum("value").alias("total"))
    )


def dedupe(spark, spec):
    """Drops duplicates; one row in ten comes twice. `pad` makes keys so many bytes longer."""
    rows = rate(spark, spec).withColumn("copy", F.explode(F.expr("array_repeat(0, if(value % 10 = 0, 2, 1))")))
    rows = rows.withColumn("pad", F.expr(f"repeat(cast(value % 10 as string), {spec.get('pad', 0)})"))
    key = ["value", "timestamp", "pad"] if spec.get("pad") else ["value", "timestamp"]
    return rows.withWatermark("timestamp", spec.get("delay", "20 seconds")).dropDuplicates(key)


def join(spark, spec):
    """Joins two streams on a key within five seconds of event time."""
    left = rate(spark, spec).withWatermark("timestamp", "10 seconds")
    right = rate(spark, spec).withWatermark("timestamp", "10 seconds")
    left = left.select(F.col("value").alias("order_id"), F.col("timestamp").alias("ordered"))
    right = right.select(F.col("value").alias("paid_id"), F.col("timestamp").alias("paid"))
    return left.join(
        right,
        F.expr("order_id = paid_id and paid between ordered - interval 5 seconds and ordered + interval 5 seconds"),
    )


def sessions(spark, spec):
    """transformWithState: a count, a list, a map and a timer per key, all with a time to live."""
    import processor

    return (
        rate(spark, spec)
        .select("key", "value")
        .groupBy("key")
        .transformWithStateInPandas(processor.Sessions(), processor.OUTPUT, "Update", "ProcessingTime")
    )


def failing(spark, spec):
    """An aggregation over a Python function that raises in batch `fail_at`."""
    limit = spec["fail_at"]

    @F.udf("long")
    def checked(value):
        if int(TaskContext.get().getLocalProperty("streaming.sql.batchId")) >= limit:
            raise ValueError(f"order {value} has no price")
        return value

    return aggregation(rate(spark, spec).withColumn("value", checked("value")))


QUERIES = {
    "agg": lambda spark, spec: aggregation(rate(spark, spec)),
    "foreach": lambda spark, spec: aggregation(rate(spark, spec)),
    "idle": lambda spark, spec: aggregation(files(spark, spec)),
    "dedupe": dedupe,
    "join": join,
    "tws": sessions,
    "fail": failing,
}

MODES = {"dedupe": "append", "join": "append"}


def two_actions(batch, _batch_id):
    """Evaluates a batch twice, as a sink does that counts before it writes."""
    batch.count()
    batch.write.format("noop").mode("append").save()


def writer(spark, spec):
    """The DataStreamWriter of a job, with name, checkpoint and trigger; not started."""
    job = spec["job"]
    out = (
        QUERIES[job](spark, spec)
        .writeStream.queryName(spec["query"])
        .outputMode(MODES.get(job, "update"))
        .option("checkpointLocation", f"file://{spec['dir']}/checkpoint")
        .trigger(processingTime=spec.get("trigger", "1 second"))
    )
    return out.foreachBatch(two_actions) if job == "foreach" else out.format("noop")


class Feed:
    """Fills the folder of `files`: bursts of a file a second, then silence, over and over."""

    def __init__(self, spec):
        self.folder = pathlib.Path(spec["dir"]) / "input"
        self.rows, self.burst, self.pause = spec.get("rows", 500), spec.get("burst", 12), spec.get("pause", 25)
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def start(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.thread.start()

    def stop(self):
        self.stopped.set()
        self.thread.join()

    def run(self):
        number = len(list(self.folder.iterdir()))
        while not self.stopped.is_set():
            self.write(number)
            number += 1
            self.stopped.wait(self.pause if number % self.burst == 0 else 1)

    def write(self, number):
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        lines = [json.dumps({"value": number * self.rows + i, "timestamp": stamp}) for i in range(self.rows)]
        hidden = self.folder / f".{number:05d}.json"
        hidden.write_text("\n".join(lines))
        os.rename(hidden, self.folder / f"{number:05d}.json")
