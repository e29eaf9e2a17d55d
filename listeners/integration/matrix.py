"""The captured runs: Spark versions, jobs and confs, chosen so that each meets each.

A run is one query, in one process or in several (`legs`): restarted from its checkpoint,
or started a second time while it runs. `codec` is that of the event log, None for a
plain one. Facts that tests need are written into the run's metadata by the job itself.
"""

import dataclasses

from leg import STORE, state_conf


@dataclasses.dataclass(frozen=True)
class Leg:
    """One process. `after` starts it beside the leg before, once that has so many batches."""

    batches: int = 85
    conf: dict = dataclasses.field(default_factory=dict)
    after: int | None = None


@dataclasses.dataclass(frozen=True)
class Run:
    """One captured run; `spec` holds what queries.py and jobs.py take."""

    name: str
    version: str
    job: str
    conf: dict
    codec: str | None = "zstd"
    legs: tuple = (Leg(),)
    spec: dict = dataclasses.field(default_factory=dict)
    about: str = ""

    @property
    def fails(self):
        """Whether the query ends with an exception."""
        return self.job == "fail"


LONG = (Leg(batches=310),)
# Far from any limit: no late rows, and time to spare in each interval.
QUIET = {"rows": 200, "keys": 500, "late": 1_000_000_000, "trigger": "2 seconds"}
HALVES = (Leg(batches=45), Leg(batches=45))
CLUSTER = {"master": "local-cluster[2,1,1024]", "kill_at": 50}
SMALL_BUFFERS = {"writeBufferSizeMB": 1, "maxWriteBufferNumber": 2, "blockCacheSizeMB": 1}

RUNS = (
    Run("agg-changelog", "4.3.0", "agg", state_conf(True, False), "zstd"),
    Run("join-changelog", "3.5.8", "join", state_conf(True, False), "lz4"),
    Run(
        "agg-restart",
        "4.0.5",
        "agg",
        state_conf(True, True),
        "zstd",
        (HALVES[0], Leg(batches=45, conf={"spark.sql.shuffle.partitions": "8"})),
        about="restarted with another spark.sql.shuffle.partitions",
    ),
    Run("tws-changelog", "4.1.4", "tws", state_conf(True, False), "zstd", spec={"rows": 20, "keys": 40}),
    Run(
        "agg-executor-lost",
        "4.1.4",
        "agg",
        state_conf(True, False),
        "zstd",
        spec=CLUSTER,
        about="one of two executors killed",
    ),
    Run(
        "idle",
        "4.3.0",
        "idle",
        state_conf(True, False),
        "lz4",
        (Leg(batches=80),),
        {"trigger": "1 second", "burst": 14, "pause": 26},
        about="bursts of input with silence between them",
    ),
    Run(
        "foreach-two-actions",
        "3.5.8",
        "foreach",
        state_conf(True, True),
        None,
        about="foreachBatch with two actions and no persist",
    ),
    Run("dedupe-restart", "4.3.0", "dedupe", state_conf(False, True), "zstd", HALVES, about="restarted"),
    Run(
        "shared-checkpoint",
        "4.3.0",
        "agg",
        state_conf(True, False),
        None,
        (Leg(batches=90), Leg(batches=30, after=25)),
        about="a second query on the same checkpoint",
    ),
    Run(
        "fail", "4.0.5", "fail", state_conf(True, False), "lz4", spec={"fail_at": 82}, about="a Python function raises"
    ),
    Run("agg-plain", "3.4.4", "agg", state_conf(None, None), None),
    Run("join-bounded", "4.1.4", "join", state_conf(False, True), None),
    Run(
        "stall",
        "4.3.0",
        "dedupe",
        state_conf(False, False, **SMALL_BUFFERS),
        "zstd",
        spec={"rows": 2000, "pad": 1000, "delay": "5 seconds"},
        about="write buffers far too small for the rows",
    ),
    Run(
        "quiet-agg",
        "4.3.0",
        "agg",
        state_conf(True, False) | {STORE + "maintenanceInterval": "60s"},
        "zstd",
        LONG,
        QUIET,
        about="long and quiet",
    ),
    Run("quiet-dedupe", "3.5.8", "dedupe", state_conf(True, False), "zstd", LONG, QUIET, about="long and quiet"),
    Run("dedupe-hdfs", "3.4.4", "dedupe", state_conf(provider="hdfs"), "zstd"),
    Run("tws-bounded", "4.0.5", "tws", state_conf(False, True), None, spec={"rows": 20, "keys": 40}),
    Run("dedupe-changelog", "4.2.1", "dedupe", state_conf(True, True), "lz4"),
    Run(
        "join-executor-lost",
        "4.3.0",
        "join",
        state_conf(True, False),
        "lz4",
        spec=CLUSTER,
        about="one of two executors killed",
    ),
    Run("dedupe-compact", "3.5.8", "dedupe", state_conf(True, False, compactOnCommit="true"), "zstd"),
    Run("agg-hdfs", "4.1.4", "agg", state_conf(provider="hdfs"), "lz4"),
    Run("tws-bounded", "4.3.0", "tws", state_conf(True, True), "zstd", spec={"rows": 20, "keys": 40}),
    Run(
        "idle",
        "3.5.8",
        "idle",
        state_conf(True, False),
        "zstd",
        (Leg(batches=80),),
        {"burst": 14, "pause": 26},
        about="bursts of input with silence between them",
    ),
)
