package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/decode"
	"github.com/stategauge/stategauge/collector/filesource"
	"github.com/stategauge/stategauge/event"
)

const (
	// Stdin is the path that stands for standard input.
	Stdin = filesource.Stdin
	// HistoryPrefix begins a path that is the directory of a daemon's history,
	// whether or not the daemon runs. A file of such a name is ./history:...
	HistoryPrefix = "history:"
)

// Inputs are what a replay reads.
type Inputs struct {
	// Paths are files and folders, and histories behind HistoryPrefix; "-" is standard
	// input, and so are no paths at all.
	Paths []string
	// Stdin is read for the path "-"; nil means the process's own.
	Stdin io.Reader
	// FromMs and ToMs bound what is played, Unix milliseconds: events dated from FromMs
	// on and before ToMs, a batch by the start of its trigger. What has no date goes
	// with the event before it. 0 is no bound.
	FromMs, ToMs int64
	// MaxRejected is how many rejects are kept to be listed; 0 means 1,000. All are
	// counted.
	MaxRejected int
}

// Intake is what was read of Inputs.
type Intake struct {
	filesource.Summary // Events without those out of bounds
	Rejects            []Rejected
	Hidden             int // rejects over the limit
}

// eventLog is what a lane reads: events in the order of their arrival. Run hands
// them on, a step at a time, and returns when there are no more or ctx has ended.
type eventLog interface {
	Run(ctx context.Context, handle collector.Handler, report func(filesource.Rejected)) (filesource.Summary, error)
}

func (in *Inputs) limit() int {
	if in.MaxRejected <= 0 {
		return 1000
	}
	return in.MaxRejected
}

// within reports whether an event of this date is to be played.
func (in *Inputs) within(atMs int64) bool {
	return (in.FromMs == 0 || atMs >= in.FromMs) && (in.ToMs == 0 || atMs < in.ToMs)
}

// lanes spreads the logs behind the paths. What of the paths cannot be listed is
// the error; the lanes of the rest come with it.
func (in *Inputs) lanes(ctx context.Context) ([]*lane, error) {
	var files []string
	var histories []*past
	for _, path := range in.Paths {
		if dir, ok := strings.CutPrefix(path, HistoryPrefix); ok {
			histories = append(histories, &past{path: path, dir: dir, fromMs: in.FromMs, toMs: in.ToMs})
		} else {
			files = append(files, path)
		}
	}
	if len(in.Paths) == 0 {
		files = []string{Stdin}
	}
	out, err := in.fileLanes(ctx, files)
	for _, h := range histories {
		out = append(out, newLane(len(out), h))
	}
	return out, err
}

// fileLanes spreads the logs of files. Where they are too many to be open at once,
// some share a lane.
func (in *Inputs) fileLanes(ctx context.Context, paths []string) ([]*lane, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	c := filesource.Config{
		Paths: paths, Stdin: in.Stdin, ByTime: true, Pool: decode.NewPool(decode.DefaultLimits()),
		NowMs: func() int64 { return 0 }, // the player knows
	}
	logs, err := filesource.New(c).Split(ctx)
	n := min(len(logs), maxLanes)
	out := make([]*lane, n)
	for i, log := range logs {
		log = log.WithStepEvents(max(8, min(stepEvents, aheadEvents/n)))
		if i < n {
			out[i] = newLane(i)
		}
		out[i%n].logs = append(out[i%n].logs, log)
	}
	return out, err
}

// inputError names the path that cannot be read as the command line does.
type inputError struct {
	path  string
	cause error
}

// Error leaves out that the cause names the directory once more.
func (e inputError) Error() string {
	dir := strings.TrimPrefix(e.path, HistoryPrefix)
	return e.path + ": " + strings.TrimPrefix(e.cause.Error(), "history "+dir+": ")
}

func (e inputError) Unwrap() error { return e.cause }

// failures keeps the first of many errors and how many there were: a broken disk
// fails everybody who reads it.
type failures struct {
	first error
	more  int
}

func (f *failures) add(err error) {
	switch {
	case err == nil:
	case f.first == nil:
		f.first = err
	default:
		f.more++
	}
}

func (f *failures) err() error {
	if f.more == 0 {
		return f.first
	}
	return errors.Join(f.first, fmt.Errorf("and %s", counted(f.more, "error more", "errors more")))
}

// ownMs is when an event happened by its sender's clock, Unix milliseconds;
// event.Absent where nothing dates it.
func ownMs(e *event.Event) int64 {
	if e.Batch != nil && e.Batch.StartMs != event.Absent {
		return e.Batch.StartMs
	}
	return e.AtMs
}
