package notify

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func TestQueueDropsWhatHasNotChangedForLongest(t *testing.T) {
	q, now := newQueue(3), time.Unix(1000, 0)
	for _, key := range []string{"a", "b", "c"} {
		q.put(&record{key: key}, now)
	}
	q.put(&record{key: "a", epoch: 1, resolvedAt: now}, now)
	if dropped := q.put(&record{key: "d"}, now); dropped != 1 {
		t.Errorf("%d dropped", dropped)
	}
	var keys []string
	for _, r := range q.records() {
		keys = append(keys, r.key)
	}
	if fmt.Sprint(keys) != "[c a d]" {
		t.Errorf("%v left", keys)
	}
}

func TestStateThatChangedDuringASendStaysDue(t *testing.T) {
	q, now := newQueue(10), time.Unix(1000, 0)
	q.put(&record{key: "a"}, now)
	sent := q.take(now, 10)
	q.put(&record{key: "a", epoch: 1, resolvedAt: now}, now)
	q.settle(sent, now.Add(time.Minute))
	if due := q.take(now, 10); len(due) != 1 || due[0].epoch != 1 {
		t.Errorf("%d due", len(due))
	}
	if q.waiting != 1 {
		t.Errorf("%d waiting", q.waiting)
	}
}

func TestNewWordsWaitForTheNextResend(t *testing.T) {
	q, now := newQueue(10), time.Unix(1000, 0)
	q.put(&record{key: "a"}, now)
	q.settle(q.take(now, 10), now.Add(time.Minute))
	q.put(&record{key: "a", generatorURL: "new"}, now.Add(time.Second))
	if due := q.take(now.Add(30*time.Second), 10); len(due) != 0 {
		t.Error("sent early")
	}
	if due := q.take(now.Add(time.Minute), 10); len(due) != 1 || due[0].generatorURL != "new" {
		t.Errorf("%v", due)
	}
}

func TestQueueCountsWhatWaitsWhateverHappens(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	q, now := newQueue(20), time.Unix(1000, 0)
	for step := range 5000 {
		now = now.Add(time.Duration(rng.IntN(5)) * time.Second)
		r := &record{key: fmt.Sprint(rng.IntN(40)), epoch: uint64(rng.IntN(3))}
		if rng.IntN(2) == 0 {
			r.resolvedAt = now
		}
		switch rng.IntN(4) {
		case 0, 1:
			q.put(r, now)
		case 2:
			q.settle(q.take(now, 1+rng.IntN(5)), now.Add(20*time.Second))
		case 3:
			q.expire(now.Add(-30 * time.Second))
		}
		waiting := 0
		for e := q.order.Front(); e != nil; e = e.Next() {
			if !e.Value.(*item).sent {
				waiting++
			}
		}
		if waiting != q.waiting || q.len() > 20 || q.len() != len(q.items) {
			t.Fatalf("step %d: %d wait, counted %d, %d held, %d indexed", step, waiting, q.waiting, q.len(), len(q.items))
		}
	}
}

func BenchmarkFileOneThousandAlerts(b *testing.B) {
	q, now := newQueue(10_000), time.Unix(1000, 0)
	records := make([]*record, 1000)
	for i := range records {
		records[i] = &record{key: fmt.Sprint(i)}
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, r := range records {
			q.put(r, now)
		}
		q.settle(q.take(now, 1000), now.Add(time.Minute))
	}
}
