package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
)

// none stands in an offset log for a source without an offset.
const none = "-"

// encode is json.Marshal without the escapes that only HTML needs.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func damaged(path, format string, args ...any) error {
	return fmt.Errorf("%s: %s: %w", path, fmt.Sprintf(format, args...), ErrDamaged)
}

// header splits a file into the number of its first line, "v" and digits, and
// the rest. Versions above newest are refused: their rest is unknown.
func header(path string, data []byte, newest int) (version int, rest []byte, err error) {
	line, rest, found := bytes.Cut(data, []byte("\n"))
	digits, ok := strings.CutPrefix(strings.TrimSuffix(string(line[:min(len(line), 16)]), "\r"), "v")
	version, nerr := strconv.Atoi(digits)
	switch {
	case !found || !ok || nerr != nil || version < 1:
		return 0, nil, damaged(path, "first line is %q, not a version such as \"v1\"", line[:min(len(line), 40)])
	case version > newest:
		return 0, nil, damaged(path, "version v%d, of which only v1 to v%d are known", version, newest)
	}
	return version, rest, nil
}

// offsetsJSON is the second line of offsets/<batch>.
type offsetsJSON struct {
	WatermarkMs int64             `json:"batchWatermarkMs"`
	TimestampMs int64             `json:"batchTimestampMs"`
	Conf        map[string]string `json:"conf"`
}

// WriteOffsets writes offsets/<batch> and returns its size. One that is there
// is replaced: a batch that is tried again.
func (d *Dir) WriteOffsets(batch int64, o *Offsets) (int64, error) {
	data, err := encodeOffsets(o)
	if err != nil {
		return 0, fmt.Errorf("offsets of batch %d: %w", batch, err)
	}
	return int64(len(data)), d.write(d.logPath(offsetsName, batch), data)
}

func encodeOffsets(o *Offsets) ([]byte, error) {
	format := max(o.Format, 1)
	if format > 2 {
		return nil, fmt.Errorf("offset log format (%d) must be 1 or 2", format)
	}
	j := offsetsJSON{o.WatermarkMs, o.TimestampMs, o.Conf}
	if j.Conf == nil {
		j.Conf = map[string]string{}
	}
	line, err := encode(j)
	if err != nil {
		return nil, err
	}
	b := fmt.Appendf(nil, "v%d\n%s", format, line)
	for i, s := range o.Sources {
		b = append(b, '\n')
		if format == 2 {
			b = append(append(b, o.key(i)...), ':')
		}
		if s == "" {
			s = none
		}
		if strings.ContainsAny(s, "\r\n") {
			return nil, fmt.Errorf("offset of source %d has more than one line", i)
		}
		b = append(b, s...)
	}
	return b, nil
}

// key returns what the line of source i begins with in format 2.
func (o *Offsets) key(i int) string {
	if i < len(o.Names) {
		return o.Names[i]
	}
	return strconv.Itoa(i)
}

// Offsets reads offsets/<batch>. A source without an offset is empty.
func (d *Dir) Offsets(batch int64) (*Offsets, error) {
	path := d.logPath(offsetsName, batch)
	data, err := d.read(path, maxLogBytes)
	if err != nil {
		return nil, err
	}
	return decodeOffsets(path, data)
}

func decodeOffsets(path string, data []byte) (*Offsets, error) {
	version, rest, err := header(path, data, 2)
	if err != nil {
		return nil, err
	}
	meta, lines, any := strings.Cut(string(rest), "\n")
	o := &Offsets{Format: version}
	if strings.TrimSpace(meta) != "" { // logs older than Spark 2.1 have an empty line here
		var j offsetsJSON
		if err := json.Unmarshal([]byte(meta), &j); err != nil {
			return nil, damaged(path, "metadata: %v", err)
		}
		o.WatermarkMs, o.TimestampMs, o.Conf = j.WatermarkMs, j.TimestampMs, j.Conf
	}
	if !any {
		return o, nil
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(lines, "\n"), "\n") {
		if err := o.addLine(path, strings.TrimSuffix(line, "\r")); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// addLine adds the offset that one line of a log holds.
func (o *Offsets) addLine(path, line string) error {
	if o.Format == 2 {
		name, offset, ok := strings.Cut(line, ":")
		if !ok || name == "" {
			return damaged(path, "line %.40q names no source", line)
		}
		o.Names = append(o.Names, name)
		line = offset
	}
	if line == none {
		line = ""
	} else if !json.Valid([]byte(line)) {
		return damaged(path, "offset %.40q is no JSON", line)
	}
	o.Sources = append(o.Sources, line)
	return nil
}

// LastOffsets returns the newest batch that was planned. A folder that can not
// be read has none; Resume tells that apart.
func (d *Dir) LastOffsets() (batch int64, ok bool) { return d.last(offsetsName) }

// LastCommit returns the newest batch that is done.
func (d *Dir) LastCommit() (batch int64, ok bool) { return d.last(commitsName) }

func (d *Dir) last(log string) (int64, bool) {
	batches, err := d.batches(log)
	if err != nil || len(batches) == 0 {
		return 0, false
	}
	return batches[len(batches)-1], true
}

// batches returns the numbers of a log's files, oldest first.
func (d *Dir) batches(log string) ([]int64, error) {
	names, err := d.list(d.path(log))
	if err != nil {
		return nil, err
	}
	batches := make([]int64, 0, len(names))
	for _, name := range names {
		if n, ok := number(name); ok {
			batches = append(batches, n)
		}
	}
	slices.Sort(batches)
	return batches, nil
}

// number parses a name that is a number and nothing else.
func number(name string) (int64, bool) {
	if name == "" || name[0] < '0' || name[0] > '9' || name[0] == '0' && len(name) > 1 {
		return 0, false
	}
	n, err := strconv.ParseInt(name, 10, 64)
	return n, err == nil
}

func (d *Dir) logPath(log string, batch int64) string {
	return d.path(log, strconv.FormatInt(batch, 10))
}

// commitJSON is the second line of commits/<batch>.
type commitJSON struct {
	NextWatermarkMs int64                 `json:"nextBatchWatermarkMs"`
	StateIDs        map[string][][]string `json:"stateUniqueIds,omitempty"`
}

// WriteCommit writes commits/<batch> and returns its size: with header v2 where
// state has unique ids, otherwise v1.
func (d *Dir) WriteCommit(batch int64, c *Commit) (int64, error) {
	j, version := commitJSON{NextWatermarkMs: c.NextWatermarkMs}, 1
	if c.StateIDs != nil {
		version = 2
		j.StateIDs = make(map[string][][]string, len(c.StateIDs))
		for op, ids := range c.StateIDs {
			j.StateIDs[strconv.Itoa(op)] = ids
		}
	}
	line, err := encode(j)
	if err != nil {
		return 0, fmt.Errorf("commit of batch %d: %w", batch, err)
	}
	data := fmt.Appendf(nil, "v%d\n%s", version, line)
	return int64(len(data)), d.write(d.logPath(commitsName, batch), data)
}

// Commit reads commits/<batch>. What version 3 adds about sinks is passed over.
func (d *Dir) Commit(batch int64) (*Commit, error) {
	path := d.logPath(commitsName, batch)
	data, err := d.read(path, maxLogBytes)
	if err != nil {
		return nil, err
	}
	return decodeCommit(path, data)
}

func decodeCommit(path string, data []byte) (*Commit, error) {
	_, rest, err := header(path, data, 3)
	if err != nil {
		return nil, err
	}
	var j commitJSON
	if err := json.Unmarshal(rest, &j); err != nil {
		return nil, damaged(path, "%v", err)
	}
	c := &Commit{NextWatermarkMs: j.NextWatermarkMs}
	for op, ids := range j.StateIDs {
		n, ok := number(op)
		if !ok || n > math.MaxInt32 {
			return nil, damaged(path, "operator %.40q is no number", op)
		}
		if c.StateIDs == nil {
			c.StateIDs = make(map[int][][]string, len(j.StateIDs))
		}
		c.StateIDs[int(n)] = ids
	}
	return c, nil
}

// Purge deletes offsets and commits of batches before keepFrom and returns how
// many files that were.
func (d *Dir) Purge(keepFrom int64) (int, error) {
	deleted := 0
	for _, log := range []string{commitsName, offsetsName} {
		batches, err := d.batches(log)
		if err != nil {
			return deleted, err
		}
		for _, b := range batches {
			if b >= keepFrom {
				break
			}
			if err := d.remove(d.logPath(log, b)); err != nil {
				return deleted, err
			}
			deleted++
		}
	}
	return deleted, nil
}

// Resume returns where a query that starts on this checkpoint goes on: the
// newest committed batch, and the offsets of the one after it if that had been
// planned. fresh is true where nothing was ever committed.
func (d *Dir) Resume() (committed int64, commit *Commit, planned *Offsets, fresh bool, err error) {
	batches, err := d.batches(commitsName)
	if err != nil {
		return 0, nil, nil, false, err
	}
	committed = -1
	if len(batches) > 0 {
		committed = batches[len(batches)-1]
		if commit, err = d.Commit(committed); err != nil {
			return 0, nil, nil, false, err
		}
	}
	planned, err = d.Offsets(committed + 1)
	if errors.Is(err, fs.ErrNotExist) {
		planned, err = nil, nil
	}
	return committed, commit, planned, commit == nil, err
}
