package filesource

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// listed is one file to read. first marks the beginning of an application's log.
type listed struct {
	path  string
	first bool
}

// expand turns a path into the files behind it.
func expand(path string) ([]listed, error) {
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
