"""Installs what the integration suite needs into a cache outside the repository.

    python3 install.py spark 4.3.0 3.5.8     one virtual environment per version
    python3 install.py kafka                 a Kafka broker's jars
    python3 install.py clients               the Kafka client that a Spark 3.5 job brings along

Everything lands below $STATEGAUGE_CACHE and is installed once: a marker file is
written last, so that an installation that broke off is begun again.
"""

import contextlib
import fcntl
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# Python state operators exchange Arrow batches with Spark 4 and talk to it by protobuf.
PYTHON_STATE = ["pandas<3", "pyarrow", "protobuf<7"]
PYTHON_STATE_FROM = 4


def cache_dir():
    """The cache of the suite, as an absolute path."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(os.environ.get("STATEGAUGE_CACHE") or pathlib.Path(base) / "stategauge").resolve()


@contextlib.contextmanager
def lock(name):
    """Keeps a second process from installing the same thing at the same time."""
    path = cache_dir() / (name.replace("/", "-") + ".lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def run(*command, **options):
    """Runs a command and raises with its output when it fails."""
    done = subprocess.run(
        [str(c) for c in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        **options,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def once(name, install):
    """Installs into the folder of that name unless it is complete; returns the folder."""
    folder = cache_dir() / name
    with lock(name):
        if not (folder / ".ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            install(folder)
            (folder / ".ready").touch()
    return folder


def spark(version):
    """Returns the Python interpreter of an environment that holds this Spark."""

    def install(folder):
        print(f"installing Spark {version}", flush=True)
        run(sys.executable, "-m", "venv", folder)
        pip = [folder / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        run(*pip, "setuptools", "wheel")
        wanted = [f"pyspark=={version}"]
        if int(version.split(".")[0]) >= PYTHON_STATE_FROM:
            wanted += PYTHON_STATE
        run(*pip, *wanted)

    return once(f"spark/{version}", install) / "bin" / "python"


def jars(profile):
    """Returns the folder with the jars of a profile of the pom."""

    def install(folder):
        print(f"fetching the jars of {profile}", flush=True)
        run(
            "mvn",
            "-q",
            "-B",
            "-f",
            HERE / "pom.xml",
            f"-P{profile}",
            "dependency:copy-dependencies",
            f"-DoutputDirectory={folder}",
        )

    return once(f"jars/{profile}", install)


def listener_jar():
    """Builds the JVM listener if its sources are newer than its jar; returns the jar."""
    project = ROOT / "listeners" / "jvm"
    sources = [project / "pom.xml", *(project / "src" / "main").rglob("*.java")]
    with lock("listener-jar"):
        built = newest_jar(project / "target")
        if built is None or built.stat().st_mtime < max(s.stat().st_mtime for s in sources):
            run("mvn", "-q", "-B", "-f", project / "pom.xml", "-DskipTests", "package")
            built = newest_jar(project / "target")
    if built is None:
        raise SystemExit(f"{project}: the build left no jar")
    return built


def newest_jar(folder):
    """The listener's jar in a build folder, or None."""
    others = ("sources", "javadoc", "tests")
    found = [p for p in folder.glob("stategauge-listener-*.jar") if not p.stem.endswith(others)]
    return max(found, key=lambda p: p.stat().st_mtime, default=None)


def main(arguments):
    """Installs what the command line names."""
    match arguments:
        case ["spark", *versions] if versions:
            for version in versions:
                print(spark(version))
        case ["kafka"]:
            print(jars("broker"))
        case ["clients"]:
            print(jars("clients"))
        case ["listener"]:
            print(listener_jar())
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
