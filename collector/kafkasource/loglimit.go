package kafkasource

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Log lines per minute that one kind of trouble may write.
const (
	clientLines  = 6  // kafka-go's own
	warningLines = 12 // messages that hold no event, commits that fail
)

// limiter lets through a number of lines a minute. It has no clock of its own.
type limiter struct {
	perMinute int
	since     time.Time // start of the present minute
	used      int
	dropped   int // since the last line that was let through
}

// allow reports whether a line may be written now, and how many were left out
// before it.
func (l *limiter) allow(now time.Time) (ok bool, dropped int) {
	if now.Sub(l.since) >= time.Minute || now.Before(l.since) {
		l.since, l.used = now, 0
	}
	if l.used >= l.perMinute {
		l.dropped++
		return false, 0
	}
	l.used++
	dropped, l.dropped = l.dropped, 0
	return true, dropped
}

// limitedLog is a log of which a limiter lets a part through. It is safe for
// concurrent use.
type limitedLog struct {
	log        *slog.Logger
	now        func() time.Time
	suppressed prometheus.Counter

	mu    sync.Mutex
	limit limiter
}

// line returns the logger for one line: one that discards it where the limit is
// reached.
func (l *limitedLog) line() *slog.Logger {
	l.mu.Lock()
	ok, dropped := l.limit.allow(l.now())
	l.mu.Unlock()
	switch {
	case !ok:
		l.suppressed.Inc()
		return discard
	case dropped > 0:
		return l.log.With("suppressed", dropped)
	}
	return l.log
}

var discard = slog.New(slog.DiscardHandler)

// Printf takes a line of kafka-go's error log.
func (l *limitedLog) Printf(format string, args ...any) {
	l.line().Warn("kafka client reports an error", "line", strings.TrimSpace(fmt.Sprintf(format, args...)))
}
