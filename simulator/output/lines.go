package output

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/stategauge/stategauge/simulator"
)

// lines writes events one to a line.
type lines struct {
	w      *bufio.Writer
	file   io.Closer // nil: not ours
	atOnce bool
}

func newLines(w io.Writer, file io.Closer, atOnce bool) *lines {
	return &lines{w: bufio.NewWriterSize(w, 256<<10), file: file, atOnce: atOnce}
}

func (l *lines) Write(_ context.Context, m *simulator.Message) error {
	if _, err := l.w.Write(m.Data); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	if err := l.w.WriteByte('\n'); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	if !l.atOnce {
		return nil
	}
	if err := l.w.Flush(); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}

func (l *lines) Close() error {
	err := l.w.Flush()
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
	}
	if err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}

// IsReaderGone reports whether an error says no more than that the reader of a
// pipe wants no more, as after `| head`.
func IsReaderGone(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}
