// Package demo shows the daemon at work with nothing else on the machine: it plays
// simulated queries on a fast clock into a daemon of the same process, lets faults
// befall them, and tells in plain lines what happens and what the daemon makes of it.
package demo
