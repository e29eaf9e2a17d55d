package main

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
)

// TestProcessesAndProcessorsChangeNoByte plays scenarios in processes of their
// own: what differs between two, such as the seed of Go's maps or the number of
// processors, must not show.
func TestProcessesAndProcessorsChangeNoByte(t *testing.T) {
	names := []string{"steady", "steady-join", "checkpoint-store-slow", "memory-cap-too-small", "provider-hdfs", "reload-loop"}
	if raceEnabled {
		names = names[:1]
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			one, two, again := printed(t, "1", name), printed(t, "2", name), printed(t, "2", name)
			if !bytes.Equal(one, two) {
				t.Error("two processors give other bytes than one")
			}
			if !bytes.Equal(two, again) {
				t.Error("two processes give two outputs")
			}
			if n := bytes.Count(one, []byte("\n")); n < 40 {
				t.Errorf("only %d events", n)
			}
		})
	}
}

// printed is what a process of the command prints for a scenario.
func printed(t *testing.T, processors, scenario string) []byte {
	t.Helper()
	cmd := exec.Command(os.Args[0], "simulate", scenario, "--batches=40", "--envelope")
	cmd.Env = append(os.Environ(), asCommand+"=1", "GOMAXPROCS="+processors)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}
