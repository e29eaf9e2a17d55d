package kafka

import (
	"errors"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"
)

// TestAKilledDaemonIsFollowedByOneThatLosesNothing kills the daemon in mid-stream.
// A killed process cannot be asked what it had applied, so the proxy is frozen first:
// no commit passes any more, and whatever the broker holds then must be below what
// the daemon says afterwards. The next process reads its past again, to fill windows,
// and goes on from there: it must know of every event.
func TestAKilledDaemonIsFollowedByOneThatLosesNothing(t *testing.T) {
	b := realBroker(t)
	f := newFeed(t, b, "killed", 3)
	stop := f.stream(3 * time.Millisecond)
	random := rand.New(rand.NewPCG(3, 4))
	start, again := make([]int64, 3), int64(0)
	const kills = 5
	for kill := range kills {
		d := runDaemon(t, b.proxy.addr(), f.topic, "killed")
		awaitProgress(t, d, f, start, int64(20+random.IntN(200)))
		b.proxy.freeze()
		seen, err := d.queries(3)
		d.signal(syscall.SIGKILL)
		<-d.ended
		b.proxy.thaw()
		if err != nil {
			t.Fatal(err)
		}
		committed := f.committed("killed", f.topic, 3)
		for p, q := range seen {
			if first := q.LastBatch + 1 - q.Batches; q.Batches > 0 && (first > start[p] || q.Missed != 0) {
				t.Errorf("kill %d, partition %d: the group was at %d, the process applied %+v", kill, p, start[p], q)
			}
			applied := max(q.LastBatch+1, start[p])
			if committed[p] > applied || committed[p] < start[p] {
				t.Errorf("kill %d, partition %d: from %d, %d applied, %d committed", kill, p, start[p], applied, committed[p])
			}
			again += applied - committed[p]
		}
		t.Logf("kill %d: started at %v, applied %+v, committed %v", kill, start, seen, committed)
		start = committed
	}
	d := runDaemon(t, b.proxy.addr(), f.topic, "killed")
	awaitProgress(t, d, f, start, 50)
	stop()
	d.hasAll(f, "killed")
	t.Logf("%d events, %d kills: %d applied again", f.total(), kills, again)
}

// awaitProgress waits until the group has committed something since start and the
// daemon has applied some more batches.
func awaitProgress(t *testing.T, d *daemon, f *feed, start []int64, batches int64) {
	t.Helper()
	await(t, "the daemon to be in mid-stream", func() error {
		got, err := d.queries(len(start))
		if err != nil {
			return err
		}
		at := f.committed("killed", f.topic, len(start))
		for p, q := range got {
			if q.Batches < batches || at[p] <= start[p] {
				return errors.New("it has applied or committed too little")
			}
		}
		return nil
	})
}
