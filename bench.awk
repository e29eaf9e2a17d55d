# Tables from the output of go test -bench: ratios to a peer, and what the daemon
# and the simulator cost.

function figure(unit,   i) {
	for (i = 2; i <= NF; i++) if ($i == unit) return $(i - 1)
	return ""
}

/^Benchmark/ { name = substr($1, 10); sub(/-[0-9]+$/, "", name) }

/ x_peer/ { printf "%-66s %8.1f x peer\n", name, figure("x_peer") }

/^BenchmarkDaemon/ {
	if (!header++) printf "\n%-42s %14s %16s %10s %10s\n", "the daemon, from outside", "cpu-us/event", "events/cpu-s", "rss-MB", "series"
	printf "%-42s %14.1f %16.0f %10.0f %10.0f\n", substr(name, 8), figure("cpu-\302\265s/event"), figure("events/cpu-s"), figure("rss-MB"), figure("series")
}

/ cpu-ms\/batch/ {
	if (!simulated++) printf "\n%-66s %12s %14s\n", "the simulator, whole batches", "batches/s", "cpu-ms/batch"
	printf "%-66s %12.1f %14.2f\n", substr(name, 9), figure("batches/s"), figure("cpu-ms/batch")
}
