package workload

import (
	"fmt"
	"strconv"
)

// listed is how many names one answer of a listing holds, as object stores page it.
const listed = 1000

// files is a folder that fills with files of equal size. Its offset counts the
// batches that found any.
type files struct {
	input
	marks marks // by log offset; those beyond the present one are planned batches
	at    int64 // present log offset; -1: none yet
	read  int64 // rows read
	// origin is how many rows lie before the log's first file.
	origin int64
}

// NewFiles returns a file source. A batch reads whole files.
func NewFiles(cfg Config) (Source, error) {
	f := &files{}
	if err := f.init(cfg, 1); err != nil {
		return nil, fmt.Errorf("file source %q: %w", cfg.withDefaults().Path, err)
	}
	f.begin(0)
	return f, nil
}

// Description is the text that the progress shows.
func (f *files) Description() string { return "FileStreamSource[" + f.cfg.Path + "]" }

// complete is how many rows are in files that can be read.
func (f *files) complete() int64 {
	return f.arrivals.total - f.arrivals.total%f.cfg.FileRows
}

// Poll lists the folder, old files included.
func (f *files) Poll() Poll {
	held := min(f.arrivals.total/f.cfg.FileRows, f.cfg.KeptFiles)
	return Poll{Available: max(f.complete()-f.read, 0), Requests: 1 + held/listed, Files: held}
}

// Take reads the complete files, or as many as the limits allow, one at least.
func (f *files) Take() Take {
	end := min(max(f.complete(), f.read), f.read+f.limit())
	if end == f.read {
		return f.readTo(f.at, end)
	}
	f.marks.rows = f.marks.rows[:f.at-f.marks.first+1] // a new plan
	f.marks.add(end, f.at)
	return f.readTo(f.at+1, end)
}

// TakeTo reads the files that were planned up to a log offset; if that was in an
// earlier life of the query, all complete ones.
func (f *files) TakeTo(end string) (Take, error) {
	if atStart(end) && f.at < 0 {
		return f.readTo(f.at, f.read), nil // planned before there was any file
	}
	at, err := f.parse(end)
	if err != nil {
		return Take{}, err
	}
	to := max(f.read, min(f.complete(), f.read+f.limit()))
	known := f.marks.holds(at)
	if known {
		to = f.marks.at(at)
	}
	if err := f.bounded(to - f.read); err != nil {
		return Take{}, f.refuse(end, err)
	}
	if !known {
		f.marks.restart(at, to)
	}
	return planned(f.readTo(at, to)), nil
}

// readTo makes up the rows up to the end, which a log offset names.
func (f *files) readTo(at, end int64) Take {
	start, from := f.offset(), f.read
	rows := f.maker.fill(f.fresh(end-from), from, end, 1)
	f.at, f.read = at, end
	return f.take(rows, start, f.offset(), none)
}

// limit is how many rows the files of a batch may have.
func (f *files) limit() int64 {
	most := f.cfg.MaxRows / f.cfg.FileRows
	if f.cfg.MaxPerTrigger > 0 {
		most = min(most, f.cfg.MaxPerTrigger)
	}
	return max(most, 1) * f.cfg.FileRows
}

func (f *files) offset() string {
	if f.at < 0 {
		return none
	}
	return `{"logOffset":` + strconv.FormatInt(f.at, 10) + `}`
}

// Seek goes to a log offset. One beyond what was read belongs to an earlier life
// of the query: every complete file then counts as read.
func (f *files) Seek(end string) error {
	if atStart(end) {
		if !f.marks.holds(-1) {
			f.begin(f.origin)
		}
		f.at, f.read = -1, f.origin
		return nil
	}
	at, err := f.parse(end)
	if err != nil {
		return err
	}
	if !f.marks.holds(at) {
		f.marks.restart(at, f.complete())
	}
	f.at, f.read = at, f.marks.at(at)
	return nil
}

// parse reads a log offset that is not forgotten.
func (f *files) parse(text string) (int64, error) {
	var offset struct {
		LogOffset *int64 `json:"logOffset"`
	}
	if err := decode(text, &offset); err != nil {
		return 0, f.refuse(text, err)
	}
	oldest := max(f.marks.first, 0)
	if offset.LogOffset == nil || *offset.LogOffset < oldest || *offset.LogOffset > maxOffset {
		return 0, f.refuse(text, fmt.Errorf("is no log offset from %d on", oldest))
	}
	return *offset.LogOffset, nil
}

func (f *files) refuse(offset string, why error) error {
	return fmt.Errorf("file source %q: offset %.100s %w", f.cfg.Path, offset, why)
}

// Skip counts all complete files as read and starts a new log.
func (f *files) Skip() { f.begin(f.complete()) }

// begin starts a log after some rows.
func (f *files) begin(rows int64) {
	f.at, f.read, f.origin = -1, rows, rows
	f.marks.restart(-1, rows)
}
