"""The servers of the live jobs, all of them real, on loopback: a Kafka broker,
Alertmanager, Prometheus and the daemon.

Each is started by its constructor, ready when that returns, and ended by its process id.
"""

import base64
import contextlib
import json
import pathlib
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

import install

LOOPBACK = "127.0.0.1"


def free_port():
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return probe.getsockname()[1]


def get(url, timeout=10):
    """The body of a GET, as text."""
    with urllib.request.urlopen(url, timeout=timeout) as answer:
        return answer.read().decode()


def await_true(what, check, seconds):
    """Polls until the check is true; what it returned then."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, urllib.error.URLError):
            if found := check():
                return found
        time.sleep(0.25)
    raise SystemExit(f"{what}: not within {seconds} s")


class Server:
    """A process that is ended by its id."""

    def __init__(self, name, command, folder):
        self.name, self.folder = name, pathlib.Path(folder)
        self.log = self.folder / f"{name}.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [str(c) for c in command], stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=folder
            )

    def ready(self, check, seconds=60):
        def alive_and_ready():
            if self.process.poll() is not None:
                raise SystemExit(f"{self.name} ended:\n{self.log.read_text()[-3000:]}")
            return check()

        await_true(self.name, alive_and_ready, seconds)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def program(*names):
    """The first of the programs that is installed."""
    for name in names:
        if found := shutil.which(name):
            return found
    raise SystemExit(f"{names[0]} is not installed: `make servers` does that on Debian")


class Broker(Server):
    """One Apache Kafka node, its own controller, on a temporary folder."""

    CONFIG = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://{loopback}:{port},CONTROLLER://{loopback}:{controller}
advertised.listeners=PLAINTEXT://{loopback}:{port}
controller.listener.names=CONTROLLER
controller.quorum.voters=1@{loopback}:{controller}
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder}/kafka
num.partitions=3
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
"""

    def __init__(self, folder):
        self.port, self.jars = free_port(), install.jars("broker")
        self.address = f"{LOOPBACK}:{self.port}"
        config = pathlib.Path(folder) / "server.properties"
        config.write_text(self.CONFIG.format(loopback=LOOPBACK, port=self.port, controller=free_port(), folder=folder))
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        install.run(*self.java("kafka.tools.StorageTool"), "format", "-t", cluster, "-c", config)
        super().__init__("kafka", [*self.java("kafka.Kafka"), config], folder)
        self.ready(self.listens)

    def java(self, main_class):
        return ["java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{self.jars}/*", main_class]

    def listens(self):
        with socket.create_connection((LOOPBACK, self.port), timeout=1):
            return True

    def messages(self, topic):
        """Every value in a topic."""
        tool = self.java("org.apache.kafka.tools.consumer.ConsoleConsumer")
        done = subprocess.run(
            [*tool, "--bootstrap-server", self.address, "--topic", topic, "--from-beginning", "--timeout-ms", "8000"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=False,
        )
        return [line for line in done.stdout.splitlines() if line.startswith("{")]


class Alertmanager(Server):
    """Alertmanager with a receiver that does nothing."""

    def __init__(self, folder):
        port = free_port()
        self.url = f"http://{LOOPBACK}:{port}"
        config = pathlib.Path(folder) / "alertmanager.yml"
        config.write_text("route: {receiver: none}\nreceivers: [{name: none}]\n")
        super().__init__(
            "alertmanager",
            [
                program("prometheus-alertmanager", "alertmanager"),
                f"--config.file={config}",
                f"--storage.path={folder}/am",
                f"--web.listen-address={LOOPBACK}:{port}",
                "--cluster.listen-address=",
            ],
            folder,
        )
        self.ready(lambda: get(self.url + "/-/ready"))

    def alerts(self):
        """The alerts that arrived, as their labels."""
        return [alert["labels"] for alert in json.loads(get(self.url + "/api/v2/alerts"))]


class Prometheus(Server):
    """Prometheus that scrapes one target each second."""

    def __init__(self, folder, target):
        port = free_port()
        self.url = f"http://{LOOPBACK}:{port}"
        config = pathlib.Path(folder) / "prometheus.yml"
        config.write_text(
            json.dumps(
                {
                    "global": {"scrape_interval": "1s"},
                    "scrape_configs": [{"job_name": "stategauge", "static_configs": [{"targets": [target]}]}],
                }
            )
        )
        super().__init__(
            "prometheus",
            [
                program("prometheus"),
                f"--config.file={config}",
                f"--storage.tsdb.path={folder}/tsdb",
                f"--web.listen-address={LOOPBACK}:{port}",
            ],
            folder,
        )
        self.ready(lambda: get(self.url + "/-/ready"))

    def query(self, expression):
        """The samples of an instant query: (labels, value)."""
        answer = json.loads(get(self.url + "/api/v1/query?" + urllib.parse.urlencode({"query": expression})))
        return [(sample["metric"], float(sample["value"][1])) for sample in answer["data"]["result"]]

    def value(self, expression):
        """The value of a query that has one sample, None without a sample."""
        found = self.query(expression)
        return found[0][1] if found else None


class Daemon(Server):
    """stategauge itself, with Kafka and an Alertmanager in its configuration."""

    def __init__(self, folder, brokers, topic, alertmanager):
        self.address = f"{LOOPBACK}:{free_port()}"
        self.url = "http://" + self.address
        config = pathlib.Path(folder) / "stategauge.yml"
        # JSON is YAML.
        config.write_text(
            json.dumps(
                {
                    "kafka": {"brokers": [brokers], "topics": [topic], "group": "live", "watch_interval": "1s"},
                    "alerting": {"alertmanagers": [{"url": alertmanager}]},
                }
            )
        )
        binary = pathlib.Path(folder) / "stategauge"
        install.run("go", "build", "-o", binary, "./cmd/stategauge", cwd=install.ROOT)
        super().__init__(
            "stategauge", [binary, "serve", f"--config.file={config}", f"--web.listen-address={self.address}"], folder
        )
        self.ready(lambda: get(self.url + "/-/ready"))

    def queries(self):
        """What the daemon says of its queries, by query id."""
        return {q["id"]: q for q in json.loads(get(self.url + "/api/v1/queries"))["data"]["queries"]}
