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
	clientLines = 6  // kafka-go's own
	poisonLines = 12 // messages that hold no event
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

// limitedLog writes warnings, as many as its limiter lets through. It is safe for
// concurrent use.
type limitedLog struct {
	log        *slog.Logger
	now        func() time.Time
	suppressed prometheus.Counter

	mu    sync.Mutex
	limit limiter
}

func (l *limitedLog) warn(msg string, args ...any) {
	l.mu.Lock()
	ok, dropped := l.limit.allow(l.now())
	l.mu.Unlock()
	if !ok {
		l.suppressed.Inc()
		return
	}
	if dropped > 0 {
		args = append(args, "suppressed", dropped)
	}
	l.log.Warn(msg, args...)
}

// Printf takes a line of kafka-go's error log.
func (l *limitedLog) Printf(format string, args ...any) {
	l.warn("kafka client reports an error", "line", strings.TrimSpace(fmt.Sprintf(format, args...)))
}
