package filesource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// listed is one file to read. first marks the beginning of an application's log.
type listed struct {
	path  string
	first bool
}

// expand turns a path into the files behind it.
func expand(path string) ([]listed, error) {
	if path == Stdin {
		return []listed{{Stdin, true}}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	if !info.IsDir() {
		return []listed{{path, true}}, nil
	}
	var out []listed
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case p != path && hidden(d.Name()):
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.IsDir() && isRolling(d.Name()):
			parts, err := rollingParts(p)
			out = append(out, parts...)
			if err != nil {
				return err
			}
			return fs.SkipDir
		case d.Type().IsRegular():
			out = append(out, listed{p, true})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return out, nil
}

// hidden reports files that programs leave for themselves, such as checksums.
func hidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

func isRolling(folder string) bool { return strings.HasPrefix(folder, "eventlog_v2_") }

// inProgress reports whether a file's writer had not closed it.
func inProgress(path string) bool {
	return strings.HasSuffix(path, ".inprogress") || isRolling(filepath.Base(filepath.Dir(path)))
}

// part is one file of a rolling event log: events_<number>_<application>.
type part struct {
	path    string
	number  int
	compact bool // stands for all parts up to its number
}

// rollingParts lists a rolling event log in the order of its numbers, from the
// newest compacted part on. The appstatus marker and other files are left out.
func rollingParts(folder string) ([]listed, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var parts []part
	from := 0
	for _, e := range entries {
		p, ok := partOf(e.Name())
		if !ok || e.IsDir() {
			continue
		}
		p.path = filepath.Join(folder, e.Name())
		if p.compact {
			from = max(from, p.number)
		}
		parts = append(parts, p)
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.number, b.number) })
	var out []listed
	for _, p := range parts {
		if p.number > from || p.number == from && p.compact {
			out = append(out, listed{p.path, len(out) == 0})
		}
	}
	return out, nil
}

func partOf(name string) (part, bool) {
	rest, ok := strings.CutPrefix(name, "events_")
	number, _, found := strings.Cut(rest, "_")
	n, err := strconv.Atoi(number)
	if !ok || !found || err != nil || n < 0 {
		return part{}, false
	}
	return part{number: n, compact: strings.HasSuffix(name, ".compact")}, true
}

// byTime sorts logs by their first dated event, keeping the parts of one log
// together. Logs without one come first, standard input last.
func (s *Source) byTime(ctx context.Context, files []listed) []listed {
	type log struct {
		files []listed
		at    int64
	}
	var logs []log
	for _, f := range files {
		if f.first {
			logs = append(logs, log{at: math.MinInt64})
		}
		l := &logs[len(logs)-1]
		l.files = append(l.files, f)
		if l.at == math.MinInt64 {
			l.at = s.firstTime(ctx, f.path)
		}
	}
	slices.SortStableFunc(logs, func(a, b log) int { return cmp.Compare(a.at, b.at) })
	out := files[:0]
	for _, l := range logs {
		out = append(out, l.files...)
	}
	return out
}

// errFound ends the search for the first dated event.
var errFound = errors.New("found")

// firstTime returns the time of a file's first dated event, Unix milliseconds;
// event.Absent if there is none or the file cannot be read, which the reading
// itself will report.
func (s *Source) firstTime(ctx context.Context, path string) int64 {
	if path == Stdin {
		return math.MaxInt64
	}
	at := int64(event.Absent)
	cfg := s.cfg
	cfg.Paths, cfg.ByTime, cfg.StepEvents = []string{path}, false, 1
	_, err := New(cfg).Run(ctx, func(_ context.Context, step *collector.Step) error {
		if at = step.Items[0].Event.AtMs; at != event.Absent {
			return errFound
		}
		return nil
	}, func(Rejected) {})
	if err != nil && !errors.Is(err, errFound) {
		return event.Absent
	}
	return at
}
