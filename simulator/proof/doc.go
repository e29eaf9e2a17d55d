// Package proof holds the tests that show that faults do what they are said to:
// that the statistic by which a symptom is known moves within a stated number of
// batches after its fault begins, and not before. It has no code of its own.
//
// Each scenario is played with two seeds, with one under -short, and not at all
// under the race detector, where hundreds of batches take too long. The full
// proof is
//
//	STATEGAUGE_SEEDS=10 go test -timeout 2h ./simulator/proof
package proof
