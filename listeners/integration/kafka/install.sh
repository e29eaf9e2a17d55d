#!/bin/sh
# Puts the jars of an Apache Kafka broker into the cache, once, and prints where.
set -eu
exec python3 "$(dirname "$0")/../install.py" kafka
