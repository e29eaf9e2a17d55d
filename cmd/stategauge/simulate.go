package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stategauge/stategauge/configs"
	"github.com/stategauge/stategauge/internal/strictyaml"
	"github.com/stategauge/stategauge/simulator"
	"github.com/stategauge/stategauge/simulator/output"
	"github.com/stategauge/stategauge/simulator/scenario"
	"github.com/stategauge/stategauge/simulator/spark"
)

// simulateCommand plays a scenario and sends its events somewhere.
type simulateCommand struct {
	*kingpin.CmdClause
	scenario, target, version, checkpoint, start string
	seed                                         uint64
	batches                                      int64
	size, rate                                   float64
	copies                                       int
	live, envelope, list                         bool
}

func newSimulate(root *kingpin.Application) command {
	c := &simulateCommand{CmdClause: root.Command("simulate", "Play a scenario on simulated state stores and send its events.")}
	c.Arg("scenario", "Name of a scenario that comes with stategauge, or a scenario file.").StringVar(&c.scenario)
	c.Flag("list", "List the scenarios that come with stategauge.").BoolVar(&c.list)
	c.Flag("seed", "What chance draws from: the same seed gives the same events.").Default("1").Uint64Var(&c.seed)
	c.Flag("batches", "Batches of each query; 0 for the scenario's own number.").Default("0").Int64Var(&c.batches)
	c.Flag("size", "Size of the faults, e.g. 1.2, 1.5 or 3 for that many times slower or more; 0 for the scenario's own.").Default("0").Float64Var(&c.size)
	c.Flag("spark-version", "Version to play, e.g. 3.5 or 4.1.4; the scenario's own if none is given.").StringVar(&c.version)
	c.Flag("output", "Where events go: '-' for standard output, a file, http://host:port, or kafka://broker:port/topic.").Default("-").StringVar(&c.target)
	c.Flag("copies", "Queries to make of each one, for load tests.").Default("1").IntVar(&c.copies)
	c.Flag("rate", "Events per second at most; 0 for as fast as possible.").Default("0").Float64Var(&c.rate)
	c.Flag("start", "When the first trigger is, RFC 3339, or 'now', which also sends each event when its time has come; the scenario's own if none is given.").StringVar(&c.start)
	c.Flag("live", "Work on real disks, measure real time, and send events at it.").BoolVar(&c.live)
	c.Flag("checkpoint-dir", "Folder for the checkpoint, which is continued if there is one; in memory if none is given.").StringVar(&c.checkpoint)
	c.Flag("envelope", "Wrap events as the listeners do, with heartbeats.").BoolVar(&c.envelope)
	return c
}

func (c *simulateCommand) name() string { return c.FullCommand() }

// stream is what is sent: the events of a simulation.
type stream interface {
	Next() (*simulator.Message, error)
	Close() error
}

func (c *simulateCommand) run(s streams) error {
	if c.list {
		return listScenarios(s.out)
	}
	sc, err := c.load()
	if err != nil {
		return err
	}
	// A reader that goes away shows as an error of the write then.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, tidy, err := c.options()
	if err != nil {
		return err
	}
	sim, err := simulator.New(sc, o)
	if err != nil {
		return errors.Join(err, tidy())
	}
	bar := c.bar(s, sc)
	err = c.send(ctx, stop, sim, s.out, bar)
	bar.close()
	return errors.Join(err, sim.Close(), tidy())
}

// load reads the scenario.
func (c *simulateCommand) load() (*scenario.Scenario, error) {
	switch {
	case c.scenario == "":
		return nil, errors.New("no scenario is named; --list shows those that there are")
	case c.batches < 0:
		return nil, fmt.Errorf("--batches (%d) must be at least 0", c.batches)
	case c.rate < 0:
		return nil, fmt.Errorf("--rate (%v) must be at least 0", c.rate)
	}
	name, data, err := findScenario(c.scenario)
	if err != nil {
		return nil, err
	}
	return scenario.Load(name, data)
}

// findScenario returns the text of an embedded scenario or of a file.
func findScenario(name string) (file string, data []byte, err error) {
	if data, err = fs.ReadFile(configs.Scenarios(), name+".yml"); err == nil {
		return name + ".yml", data, nil
	}
	data, err = os.ReadFile(name)
	if err == nil || strings.ContainsAny(name, `/\.`) {
		return name, data, err
	}
	names, err := scenarioNames()
	if err != nil {
		return "", nil, err
	}
	if hint := strictyaml.DidYouMean(name, names); hint != "" {
		return "", nil, fmt.Errorf("unknown scenario %q%s", name, hint)
	}
	return "", nil, fmt.Errorf("unknown scenario %q; --list shows those that there are", name)
}

// scenarioNames returns the names of the embedded scenarios, sorted.
func scenarioNames() ([]string, error) {
	files, err := fs.Glob(configs.Scenarios(), "*.yml")
	for i := range files {
		files[i] = strings.TrimSuffix(files[i], ".yml")
	}
	slices.Sort(files)
	return files, err
}

func listScenarios(w io.Writer) error {
	names, err := scenarioNames()
	if err != nil {
		return err
	}
	for _, name := range names {
		file, data, err := findScenario(name)
		if err != nil {
			return err
		}
		sc, err := scenario.Load(file, data)
		if err != nil {
			return err
		}
		about, _, _ := strings.Cut(sc.Description, "\n")
		if _, err := fmt.Fprintf(w, "%s  %s\n", sc.Name, about); err != nil {
			return err
		}
	}
	return nil
}

// options returns how the scenario is played, and what tidies up afterwards.
func (c *simulateCommand) options() (o simulator.Options, tidy func() error, err error) {
	tidy = func() error { return nil }
	o = simulator.Options{
		Seed: c.seed, Batches: c.batches, Size: c.size, Envelope: c.envelope, Live: c.live, Parallel: runtime.GOMAXPROCS(0),
	}
	if c.version != "" {
		if o.Version, err = spark.ParseVersion(c.version); err != nil {
			return o, tidy, err
		}
	}
	if o.StartMs, err = c.startMs(); err != nil {
		return o, tidy, err
	}
	if c.checkpoint != "" {
		if o.Dir, err = filepath.Abs(c.checkpoint); err != nil {
			return o, tidy, fmt.Errorf("checkpoint folder: %w", err)
		}
		o.FS = vfs.Default
	}
	if !c.live {
		return o, tidy, nil
	}
	local, err := os.MkdirTemp("", "stategauge-simulate-")
	if err != nil {
		return o, tidy, fmt.Errorf("folder for the state stores: %w", err)
	}
	o.FS, o.LocalDir = vfs.Default, filepath.Join(local, "executors")
	if o.Dir == "" {
		o.Dir = filepath.Join(local, "checkpoint")
	}
	return o, func() error { return os.RemoveAll(local) }, nil
}

// paced reports whether events leave when their time has come.
func (c *simulateCommand) paced() bool { return c.live || c.start == "now" }

// startMs is the time of the first trigger, Unix milliseconds; 0 is the scenario's.
func (c *simulateCommand) startMs() (int64, error) {
	if c.paced() && (c.start == "" || c.start == "now") {
		return time.Now().UnixMilli(), nil
	}
	if c.start == "" {
		return 0, nil
	}
	at, err := time.Parse(time.RFC3339, c.start)
	if err != nil {
		return 0, fmt.Errorf("--start (%q) must be now, or a time as 2026-03-02T00:00:00Z", c.start)
	}
	return at.UnixMilli(), nil
}

// slow is a rate at which somebody may watch each line come.
const slow = 1000

// send sends all events of the simulation. An interruption, or a reader that
// wants no more, ends it without an error; stop makes a second interruption end
// the process while the rest is delivered.
func (c *simulateCommand) send(ctx context.Context, stop func(), sim stream, stdout io.Writer, bar *bar) error {
	copies, err := output.NewCopies(c.copies, c.seed)
	if err != nil {
		return err
	}
	atOnce := c.paced() || c.rate > 0 && c.rate <= slow
	sink, err := output.Open(c.target, output.Options{Stdout: stdout, AtOnce: atOnce})
	if err != nil {
		return err
	}
	pacer := output.NewPacer(c.rate, c.paced())
	err = pump(ctx, sim, copies, bar, func(m *simulator.Message) error {
		if err := pacer.Wait(ctx, m.AtMs); err != nil {
			return err
		}
		return sink.Write(ctx, m)
	})
	interrupted := ctx.Err() != nil
	stop()
	if interrupted && errors.Is(err, context.Canceled) {
		err = nil
	}
	if closing := sink.Close(); err == nil {
		err = closing // after a failed write it would be said twice
	}
	if output.IsReaderGone(err) {
		return nil
	}
	return err
}

// pump hands every event on until the end.
func pump(ctx context.Context, sim stream, copies *output.Copies, bar *bar, emit func(*simulator.Message) error) error {
	for ctx.Err() == nil {
		m, err := sim.Next()
		if errors.Is(err, io.EOF) {
			return copies.Flush(emit)
		}
		if err != nil {
			return err
		}
		bar.see(m)
		if err := copies.Add(m, emit); err != nil {
			return err
		}
	}
	return ctx.Err()
}
