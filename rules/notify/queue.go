package notify

import (
	"container/list"
	"time"
)

// queue holds the newest state of each alert for one Alertmanager and when it is
// to be sent next. It is pure; its owner locks it.
type queue struct {
	limit int
	items map[string]*list.Element
	order *list.List // of *item, the one that has not changed for longest first
	// waiting counts the states that were never delivered.
	waiting int
}

// item is a place in the queue.
type item struct {
	record *record
	due    time.Time
	sent   bool // whether this epoch was delivered at least once, or given up
}

func newQueue(limit int) *queue {
	return &queue{limit: limit, items: map[string]*list.Element{}, order: list.New()}
}

// len returns the number of alerts held.
func (q *queue) len() int { return q.order.Len() }

// get returns the newest state of an alert, nil if it is not held.
func (q *queue) get(key string) *record {
	if e := q.items[key]; e != nil {
		return e.Value.(*item).record
	}
	return nil
}

// put files r and returns how many alerts had to go for it. A new epoch is due at
// once; the same epoch only replaces what the next resend says.
func (q *queue) put(r *record, now time.Time) (dropped int) {
	if e := q.items[r.key]; e != nil {
		it := e.Value.(*item)
		if it.record.epoch != r.epoch {
			q.mark(it, false)
			it.due = now
			q.order.MoveToBack(e)
		}
		it.record = r
		return 0
	}
	for q.order.Len() >= q.limit {
		q.drop(q.order.Front())
		dropped++
	}
	q.items[r.key] = q.order.PushBack(&item{record: r, due: now})
	q.waiting++
	return dropped
}

// mark notes whether the newest state was delivered.
func (q *queue) mark(it *item, sent bool) {
	switch {
	case it.sent && !sent:
		q.waiting++
	case !it.sent && sent:
		q.waiting--
	}
	it.sent = sent
}

// drop forgets an alert altogether.
func (q *queue) drop(e *list.Element) {
	q.mark(e.Value.(*item), true)
	delete(q.items, e.Value.(*item).record.key)
	q.order.Remove(e)
}

// take returns up to n states that are due, longest unchanged first.
func (q *queue) take(now time.Time, n int) []*record {
	var out []*record
	for e := q.order.Front(); e != nil && len(out) < n; e = e.Next() {
		if it := e.Value.(*item); !it.due.After(now) {
			out = append(out, it.record)
		}
	}
	return out
}

// settle notes that the states were sent, or given up, and are due again at next.
// An alert that changed meanwhile stays due.
func (q *queue) settle(records []*record, next time.Time) {
	for _, r := range records {
		e := q.items[r.key]
		if e == nil {
			continue
		}
		if it := e.Value.(*item); it.record.epoch == r.epoch {
			it.due = next
			q.mark(it, true)
		}
	}
}

// expire forgets alerts that were resolved before the given time.
func (q *queue) expire(before time.Time) {
	q.dropWhere(func(r *record) bool { return !r.firing() && r.resolvedAt.Before(before) })
}

// dropWhere forgets the alerts that are picked.
func (q *queue) dropWhere(picked func(*record) bool) {
	for e := q.order.Front(); e != nil; {
		next := e.Next()
		if picked(e.Value.(*item).record) {
			q.drop(e)
		}
		e = next
	}
}

// lapse forgets firing alerts that had to be handed in again and were not.
func (q *queue) lapse(now time.Time) {
	q.dropWhere(func(r *record) bool { return r.firing() && !r.until.IsZero() && r.until.Before(now) })
}

// nextDue returns the earliest time at which something is due; false for never.
func (q *queue) nextDue() (time.Time, bool) {
	var at time.Time
	for e := q.order.Front(); e != nil; e = e.Next() {
		if it := e.Value.(*item); at.IsZero() || it.due.Before(at) {
			at = it.due
		}
	}
	return at, q.order.Len() > 0
}

// records returns every state, longest unchanged first.
func (q *queue) records() []*record {
	out := make([]*record, 0, q.order.Len())
	for e := q.order.Front(); e != nil; e = e.Next() {
		out = append(out, e.Value.(*item).record)
	}
	return out
}
