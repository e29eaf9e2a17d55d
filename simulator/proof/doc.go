// Package proof holds the tests that show that faults do what they are said to:
// that the statistic by which a symptom is known moves within a stated number of
// batches after its fault begins, and not before. It has no code of its own.
package proof
