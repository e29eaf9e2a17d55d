package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
	"github.com/stategauge/stategauge/simulator"
)

// story writes what happens, a line at a time. The player and the judge tell it from
// goroutines of their own.
type story struct {
	mu     sync.Mutex
	w      io.Writer
	clock  *clock
	figure map[string]figures // newest batch of each query
	order  []string           // of the queries
	err    error              // of the first line that could not be written
}

// figures are what the story says of a batch.
type figures struct {
	batch    int64
	duration time.Duration
	sync     time.Duration // mean wait for uploads of one store
}

func newStory(w io.Writer, c *clock) *story {
	return &story{w: w, clock: c, figure: map[string]figures{}}
}

// about says of which queries the figures are told, in this order; the first one sets
// the pace.
func (s *story) about(queries []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = queries
}

// plain writes a line without a time.
func (s *story) plain(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(fmt.Sprintf(format, args...))
}

func (s *story) write(line string) {
	if _, err := fmt.Fprintln(s.w, line); err != nil && s.err == nil {
		s.err = err
	}
}

func (s *story) at(line string) {
	s.write(s.clock.Now().UTC().Format("15:04") + "  " + line)
}

// failed is why the story cannot be told, nil while it can.
func (s *story) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// fault tells what the simulator does to a query.
func (s *story) fault(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at("simulator  " + what)
}

// every is after how many batches the figures are told.
const every = 10

// batch notes the figures of a progress, and tells those of all queries now and then.
func (s *story) batch(name string, m *simulator.Message, tell bool) {
	f, ok := readFigures(m)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.figure[name] = f
	if !tell || name != s.order[0] || f.batch%every != 0 {
		return
	}
	var parts []string
	for _, n := range s.order {
		f := s.figure[n]
		parts = append(parts, fmt.Sprintf("%s #%d %s, upload %s", n, f.batch, seconds(f.duration), seconds(f.sync)))
	}
	s.at("batches    " + strings.Join(parts, " | "))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2fs", d.Seconds()) }

// readFigures takes what the story needs out of an event.
func readFigures(m *simulator.Message) (figures, bool) {
	if m.Kind != event.KindProgress {
		return figures{}, false
	}
	var e struct {
		Event struct {
			DurationMs     map[string]int64 `json:"durationMs"`
			StateOperators []struct {
				Instances     int64            `json:"numStateStoreInstances"`
				CustomMetrics map[string]int64 `json:"customMetrics"`
			} `json:"stateOperators"`
		} `json:"event"`
	}
	if json.Unmarshal(m.Data, &e) != nil || len(e.Event.StateOperators) == 0 {
		return figures{}, false
	}
	op := &e.Event.StateOperators[0]
	f := figures{batch: m.Batch, duration: time.Duration(e.Event.DurationMs["triggerExecution"]) * time.Millisecond}
	if op.Instances > 0 {
		f.sync = time.Duration(op.CustomMetrics["rocksdbCommitFileSyncLatencyMs"]) * time.Millisecond / time.Duration(op.Instances)
	}
	return f, true
}

// alert tells what the daemon says. It is the daemon's hook.
func (s *story) alert(v *rules.Verdict) {
	al := v.Alert
	who := al.Labels.Get("query_name")
	if who == "" {
		who = "all queries"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case al.State == rules.Firing && al.InhibitedBy != "":
		s.at(fmt.Sprintf("stategauge %s: %s fires, and %s speaks for it", who, v.Rule, al.InhibitedBy))
	case al.State == rules.Firing && al.Labels.Get("severity") == "info":
		s.at(fmt.Sprintf("stategauge %s: %s, for information: %s", who, v.Rule, al.Annotations.Get("summary")))
	case al.State == rules.Firing:
		s.at(fmt.Sprintf("stategauge %s: %s FIRING (%s)", who, v.Rule, al.Labels.Get("severity")))
		for _, name := range []string{"summary", "cause", "fix"} {
			if text := al.Annotations.Get(name); text != "" {
				s.write("             " + name + ": " + text)
			}
		}
	case al.State == rules.Resolved:
		s.at(fmt.Sprintf("stategauge %s: %s is over: %s", who, v.Rule, al.Reason))
	case al.State == rules.Pending:
		s.at(fmt.Sprintf("stategauge %s: %s suspected, if it lasts it is an alert", who, v.Rule))
	default:
		s.at(fmt.Sprintf("stategauge %s: %s was nothing", who, v.Rule))
	}
}
