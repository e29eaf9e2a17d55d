// Package fidelity plays captured runs of Spark once more in the simulator, batch
// by batch at the pace at which they really ran, and compares what both say: which
// keys there are, when each figure is 0, how figures add up, and how large they
// are. Where the two differ, the captured run is right.
package fidelity
