package kafkasource

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// Keys of faults; those of topics and partitions have their name appended.
const (
	faultBrokers   = "1 brokers"
	faultTopic     = "2 topic "
	faultMember    = "3 membership"
	faultHooks     = "4 hooks"
	faultPartition = "5 partition "
	faultIntake    = "6 intake "
)

// settling is how long a fault that heals by itself as a rule, such as a leader
// that moves, may last before it counts.
const settling = 5 * time.Second

// fault is one thing that is wrong.
type fault struct {
	since time.Time
	after time.Duration // how long it may last before it counts
	text  string
	told  bool // written to the log
	plain bool // the ordinary course of things: not for the log
}

func (f *fault) counts(now time.Time) bool { return now.Sub(f.since) >= f.after }

// faults is what is wrong at present. Each fault is logged when it begins to count
// and when it ends, never in between, however often it is raised.
type faults struct {
	log *slog.Logger
	now func() time.Time

	mu   sync.Mutex
	list map[string]*fault
}

func newFaults(log *slog.Logger, now func() time.Time) *faults {
	return &faults{log: log, now: now, list: map[string]*fault{}}
}

// raise records a fault, or renews its text. One that counts sooner than before
// takes effect at once.
func (f *faults) raise(key string, after time.Duration, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.list[key]
	if old == nil {
		old = &fault{since: f.now(), after: after}
		f.list[key] = old
	}
	old.text, old.after, old.plain = text, min(old.after, after), false
	f.tell(old)
}

// expect records a fault that belongs to the ordinary course of things: starting
// and stopping. Health tells it, the log does not.
func (f *faults) expect(key, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list[key] = &fault{since: f.now(), text: text, plain: true}
}

// clear ends a fault and reports whether there was one.
func (f *faults) clear(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.list[key]
	if old == nil {
		return false
	}
	delete(f.list, key)
	if old.told {
		f.log.Info("kafka source recovered", "from", old.text, "after", f.now().Sub(old.since).Round(time.Millisecond))
	}
	return true
}

// clearAll ends every fault whose key begins with prefix.
func (f *faults) clearAll(prefix string) {
	f.mu.Lock()
	var keys []string
	for k := range f.list {
		if strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	f.mu.Unlock()
	for _, k := range keys {
		f.clear(k)
	}
}

func (f *faults) tell(x *fault) {
	if !x.told && !x.plain && x.counts(f.now()) {
		x.told = true
		f.log.Warn("kafka source is impaired", "reason", x.text, "since", x.since.UTC().Format(time.RFC3339))
	}
}

// check returns what is wrong, nil if nothing is, and whether the source can be
// read all the same: a full intake is no fault of the source.
func (f *faults) check() (readable bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	readable = true
	now := f.now()
	var errs []error
	for _, key := range f.keys() {
		x := f.list[key]
		if !x.counts(now) {
			continue
		}
		f.tell(x)
		readable = readable && strings.HasPrefix(key, faultIntake)
		errs = append(errs, fmt.Errorf("%s (since %s)", x.text, x.since.UTC().Format(time.RFC3339)))
	}
	return readable, errors.Join(errs...)
}

func (f *faults) keys() []string {
	keys := make([]string, 0, len(f.list))
	for k := range f.list {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
