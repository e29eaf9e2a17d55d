package demo

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"

	"github.com/stategauge/stategauge/simulator"
	"github.com/stategauge/stategauge/simulator/scenario"
)

//go:embed scenarios/*.yml
var scenarios embed.FS

// player merges the events of several simulated queries by their times.
type player struct{ parts []*part }

// part is one query and its next event, nil at its end.
type part struct {
	sim  *simulator.Simulation
	sc   *scenario.Scenario
	next *simulator.Message
}

// newPlayer readies the embedded scenarios, whose first batches start at startMs.
func newPlayer(seed uint64, startMs int64) (*player, error) {
	files, err := fs.Glob(scenarios, "scenarios/*.yml")
	if err != nil {
		return nil, err
	}
	p := &player{}
	for i, file := range files {
		if err := p.add(file, seed+uint64(i), startMs); err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	return p, nil
}

func (p *player) add(file string, seed uint64, startMs int64) error {
	data, err := scenarios.ReadFile(file)
	if err != nil {
		return err
	}
	sc, err := scenario.Load(path.Base(file), data)
	if err != nil {
		return err
	}
	sim, err := simulator.New(sc, simulator.Options{Seed: seed, StartMs: startMs, Parallel: runtime.GOMAXPROCS(0)})
	if err != nil {
		return err
	}
	x := &part{sim: sim, sc: sc}
	p.parts = append(p.parts, x)
	return x.step()
}

// step plays on to the part's next event.
func (x *part) step() error {
	m, err := x.sim.Next()
	if errors.Is(err, io.EOF) {
		x.next = nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("playing %s: %w", x.sc.Query.Name, err)
	}
	x.next = m
	return nil
}

// first returns the part whose event is next, nil at the end of all.
func (p *player) first() *part {
	var best *part
	for _, x := range p.parts {
		if x.next != nil && (best == nil || x.next.AtMs < best.next.AtMs) {
			best = x
		}
	}
	return best
}

// faultAt returns what befalls the part's query from this batch on, "" for nothing.
func (x *part) faultAt(batch int64) string {
	for i := range x.sc.Faults {
		if x.sc.Faults[i].FromBatch == batch {
			return x.sc.Description
		}
	}
	return ""
}

// names lists the queries.
func (p *player) names() []string {
	var out []string
	for _, x := range p.parts {
		out = append(out, x.sc.Query.Name)
	}
	return out
}

func (p *player) close() error {
	var errs []error
	for _, x := range p.parts {
		errs = append(errs, x.sim.Close())
	}
	return errors.Join(errs...)
}
