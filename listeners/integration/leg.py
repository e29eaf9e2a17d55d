"""Starts a job's process: the specification that jobs.py reads, its confs, its environment."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading

import install

HERE = pathlib.Path(__file__).resolve().parent
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
LISTENER = "io.stategauge.spark.StategaugeListener"

# Jobs are short: compiling less and collecting garbage by one thread costs the least.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

STORE = "spark.sql.streaming.stateStore."

# Confs that every job has. Servers listen on loopback; there is no web interface.
COMMON = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
    STORE + "maintenanceInterval": "10s",
}


def state_conf(changelog=None, bounded=None, provider="rocksdb", **more):
    """Confs of the state store; further ones by their name below `stateStore.rocksdb.`."""
    conf = {}
    if provider == "rocksdb":
        conf[STORE + "providerClass"] = ROCKSDB
        if changelog is not None:
            conf[STORE + "rocksdb.changelogCheckpointing.enabled"] = str(changelog).lower()
        if bounded is not None:
            conf[STORE + "rocksdb.boundedMemoryUsage"] = str(bounded).lower()
    for name, value in more.items():
        conf[STORE + "rocksdb." + name] = str(value)
    return conf


def log_conf(folder, codec):
    """Confs of an event log: rolling and compressed by a codec, or one plain file."""
    folder.mkdir(parents=True, exist_ok=True)
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{folder}",
        "spark.eventLog.compress": str(codec is not None).lower(),
    }
    if codec:
        conf |= {"spark.eventLog.rolling.enabled": "true", "spark.eventLog.compression.codec": codec}
    else:
        conf["spark.eventLog.rolling.enabled"] = "false"
    return conf


def listener_conf(jar, url=None, **kafka):
    """Confs that switch our JVM listener on, over HTTP or over Kafka."""
    conf = {
        "spark.sql.streaming.streamingQueryListeners": LISTENER,
        "spark.jars": str(jar),
        "spark.stategauge.heartbeat.interval": "10s",
    }
    if url:
        conf["spark.stategauge.url"] = url
    if kafka:
        conf["spark.stategauge.kafka.bootstrap.servers"] = kafka["brokers"]
        conf["spark.stategauge.kafka.topic"] = kafka["topic"]
        conf["spark.jars"] += "," + ",".join(map(str, kafka["clients"]))
    return conf


def neutral_pairs(folder):
    """What is replaced in everything that is kept, by what."""
    return [
        (str(folder), "/srv/stream"),
        (str(install.cache_dir()), "/opt/cache"),
        (str(install.ROOT), "/opt/stategauge"),
        (str(pathlib.Path.home()), "/home/spark"),
        (socket.gethostname(), "driver-1"),
        (own_address(), "192.0.2.10"),
    ]


def own_address():
    """The address that Spark finds for this machine, or nothing."""
    try:
        address = socket.gethostbyname(socket.gethostname())
    except OSError:
        return ""
    return "" if address.startswith("127.") else address


# Jobs that this process has started, and whether it is to start no more.
started = []
stopping = threading.Event()


def start(version, spec, folder, name="job"):
    """Starts jobs.py for a specification in the background; its output goes to NAME.log."""
    if stopping.is_set():
        raise RuntimeError("the suite is being stopped")
    folder = pathlib.Path(folder)
    spec = {"neutral": neutral_pairs(folder), "dir": str(folder), "report": str(folder / f"{name}.report.json"), **spec}
    path = folder / f"{name}.spec.json"
    path.write_text(json.dumps(spec, indent=1))
    python = install.spark(version)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_", "STATEGAUGE_"))}
    env |= {
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "localhost",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_WORKER_DIR": str(folder / "worker"),
        "SPARK_USER": "spark",
        "HADOOP_USER_NAME": "spark",
        "PYTHONPATH": str(HERE),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    with open(folder / f"{name}.log", "w") as log:
        process = subprocess.Popen(
            [python, HERE / "jobs.py", path],
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=env,
            cwd=folder,
            start_new_session=True,
        )
    started.append(process)
    return process


def end(processes):
    """Ends what is left of jobs, with the JVM that each has started."""
    for process in processes:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def end_all():
    """Ends every job of this process, and lets no other begin."""
    stopping.set()
    end(list(started))


def report(folder, name="job"):
    """What the job left, or an error with the end of its log."""
    path = pathlib.Path(folder) / f"{name}.report.json"
    if not path.exists():
        tail = (pathlib.Path(folder) / f"{name}.log").read_text()[-3000:]
        raise RuntimeError(f"{name} left no report:\n{tail}")
    return json.loads(path.read_text())
