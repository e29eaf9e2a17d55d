"""Trims a Spark event log for keeping: same folder, names and codec, fewer lines.

What tasks, stages and plans say is most of a log and of no use here, so only the first
of those lines stay, as something to pass over. Runs in the job's Python after its
session has stopped, for the codecs are Spark's own.
"""

import json
import pathlib

# Lines of other kinds that stay, from the beginning of the log.
OTHERS = 40

KEPT = (
    "SparkListenerLogStart",
    "SparkListenerApplication",
    "SparkListenerExecutor",
    "SparkListenerResourceProfileAdded",
    "org.apache.spark.sql.streaming.StreamingQueryListener",
)

CODECS = {"zstd": "ZStdCompressionCodec", "lz4": "LZ4CompressionCodec", "snappy": "SnappyCompressionCodec"}


def trim(folder, app_id, jvm, clean):
    """Trims the log of an application; `clean` rewrites a line."""
    for path in sorted(pathlib.Path(folder).rglob(f"*{app_id}*")):
        if path.is_file() and path.stat().st_size and not path.name.startswith("."):
            codec = codec_of(path, jvm)
            lines = read(path, jvm, codec).decode().splitlines()
            write(path, jvm, codec, "".join(clean(line) + "\n" for line in kept(lines)).encode())


def kept(lines):
    """The lines to keep, in their order, the environment without its lists."""
    others = 0
    for line in lines:
        event = json.loads(line)
        if event["Event"] == "SparkListenerEnvironmentUpdate":
            yield json.dumps({k: event[k] for k in ("Event", "JVM Information", "Spark Properties")})
        elif event["Event"].startswith(KEPT):
            yield line
        elif others < OTHERS:
            others += 1
            yield line


def codec_of(path, jvm):
    """The codec that a log's name tells, None for a plain log."""
    name = path.name.removesuffix(".inprogress").rpartition(".")[2]
    if name not in CODECS:
        return None
    return getattr(jvm.org.apache.spark.io, CODECS[name])(jvm.org.apache.spark.SparkConf(False))


def read(path, jvm, codec):
    """The bytes of a log. A log that was cut off by a crash gives what is there."""
    if codec is None:
        return path.read_bytes()
    stream = codec.compressedContinuousInputStream(jvm.java.io.FileInputStream(str(path)))
    return bytes(stream.readAllBytes())


def write(path, jvm, codec, data):
    """Replaces the contents of a log."""
    if codec is None:
        path.write_bytes(data)
        return
    stream = codec.compressedContinuousOutputStream(jvm.java.io.FileOutputStream(str(path)))
    stream.write(bytearray(data))
    stream.close()
