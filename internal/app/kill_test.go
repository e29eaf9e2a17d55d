package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	killTopic      = "spark-events"
	killGroup      = "killed"
	killPartitions = 3
	kills          = 5
)

// offsets are one per partition. Every partition carries one query whose batch ids
// count from 0, so the offset of an event is its batch id as well.
type offsets [killPartitions]int64

func (o offsets) sum() (sum int64) {
	for _, n := range o {
		sum += n
	}
	return sum
}

// TestAKilledDaemonIsFollowedByOneThatLosesNothing kills the daemon with SIGKILL in
// mid-stream, time and again. A killed process cannot be asked what it had applied,
// so the broker asks before it takes a commit: whatever the group has committed is
// proven to be applied by then, and what the next process starts from is exactly
// that. Together the processes cover every event.
func TestAKilledDaemonIsFollowedByOneThatLosesNothing(t *testing.T) {
	k := newKillRig(t)
	random := rand.New(rand.NewPCG(1, 2))
	for kill := range kills {
		from := k.committed()
		c := k.launch(from)
		commits := 2 + random.IntN(4)
		if inCommit := kill%2 == 1; inCommit {
			// The worst moment: events are applied and their commit never arrives.
			k.witness.killAt(commits, c.kill)
			await(t, "the broker to kill the daemon", c.gone)
		} else {
			k.witness.await(t, commits)
		}
		seen := k.witness.seen(c)
		c.kill()
		c.end()
		to := k.committed()
		if to.sum() <= from.sum() {
			t.Errorf("kill %d: the group is at %v and was at %v: nothing was committed in between", kill, to, from)
		}
		k.witness.notBeyond(to)
		t.Logf("kill %d: from %v, applied %v or more, committed %v: %d or more again", kill, from, seen, to, seen.sum()-to.sum())
		k.applied += seen.sum() - from.sum()
	}
	k.survivor()
}

// survivor runs the last process to the end of the topic.
func (k *killRig) survivor() {
	k.t.Helper()
	from := k.committed()
	c := k.launch(from)
	k.witness.await(k.t, 2)
	sent := k.stopSending()
	await(k.t, "everything to be applied and committed", func() error {
		if got := k.witness.seen(c); got != sent {
			return fmt.Errorf("applied up to %v of %v", got, sent)
		}
		if got := k.committed(); got != sent {
			return fmt.Errorf("committed up to %v of %v", got, sent)
		}
		return nil
	})
	k.applied += sent.sum() - from.sum()
	c.signal(syscall.SIGTERM)
	if err := c.end(); err != nil {
		k.t.Errorf("the last daemon: %v", err)
	}
	k.witness.verdict(k.t)
	k.t.Logf("%d events sent, %d kills, %d applications at least: %d again; %d commits checked, %d refused",
		sent.sum(), kills, k.applied, k.applied-sent.sum(), k.witness.checked, k.witness.refused)
}

// killRig is a broker that is being written to all the time, and what watches it.
type killRig struct {
	t       *testing.T
	client  *kgo.Client
	witness *witness
	config  string
	applied int64 // by all processes, as far as it was seen
	stop    context.CancelFunc
	sent    chan offsets
}

func newKillRig(t *testing.T) *killRig {
	t.Helper()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(killPartitions, killTopic), kfake.GroupMinSessionTimeout(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	addr := broker.ListenAddrs()[0]
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic(killTopic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	k := &killRig{t: t, client: client, witness: &witness{}, sent: make(chan offsets, 1)}
	k.config = filepath.Join(t.TempDir(), "stategauge.yml")
	text := fmt.Sprintf("kafka: {brokers: [%q], topics: [%s], group: %s, session_timeout: 2s, heartbeat_interval: 500ms}\n", addr, killTopic, killGroup)
	if err := os.WriteFile(k.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	broker.ControlKey(int16(kmsg.OffsetCommit), func(r kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		if err := k.witness.commit(r.(*kmsg.OffsetCommitRequest)); err != nil {
			return nil, err, true // cuts the connection: the commit does not happen
		}
		return nil, nil, false
	})
	ctx, cancel := context.WithCancel(context.Background())
	k.stop = cancel
	go k.send(ctx)
	t.Cleanup(func() { k.stopSending() })
	return k
}

// send writes an event to every partition at each tick until ctx ends, then leaves
// behind how many there are.
func (k *killRig) send(ctx context.Context) {
	var streams []*stream
	for p := range killPartitions {
		s := newStream(p)
		s.operators, s.partitions = 1, 2
		streams = append(streams, s)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var sent offsets
	for ctx.Err() == nil {
		var records []*kgo.Record
		for p, s := range streams {
			records = append(records, &kgo.Record{Partition: int32(p), Value: bytes.Clone(s.next())})
		}
		if err := k.client.ProduceSync(context.Background(), records...).FirstErr(); err != nil {
			k.t.Errorf("produce: %v", err)
			break
		}
		for p := range sent {
			sent[p]++
		}
		<-tick.C
	}
	k.sent <- sent
}

func (k *killRig) stopSending() offsets {
	k.stop()
	sent := <-k.sent
	k.sent <- sent
	return sent
}

// committed asks the broker where the group is.
func (k *killRig) committed() (at offsets) {
	k.t.Helper()
	r := kmsg.NewPtrOffsetFetchRequest()
	r.Group = killGroup
	topic := kmsg.NewOffsetFetchRequestTopic()
	topic.Topic = killTopic
	for p := range killPartitions {
		topic.Partitions = append(topic.Partitions, int32(p))
	}
	r.Topics = append(r.Topics, topic)
	group := kmsg.NewOffsetFetchRequestGroup()
	group.Group = killGroup
	group.Topics = append(group.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: killTopic, Partitions: topic.Partitions})
	r.Groups = append(r.Groups, group)
	resp, err := r.RequestWith(k.t.Context(), k.client)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, g := range resp.Groups {
		for _, topic := range g.Topics {
			for _, p := range topic.Partitions {
				at[p.Partition] = max(p.Offset, 0)
			}
		}
	}
	return at
}

// witness sees every commit before the broker takes it.
type witness struct {
	mu       sync.Mutex
	live     *victim
	start    offsets // where the live process started
	proven   offsets // applied by some process, as seen at a commit
	commits  int     // of the live process
	dieAt    int     // the commit that kills; 0 for none
	die      func()
	checked  int
	refused  int
	faults   []string
	perished bool
}

func (w *witness) follow(c *victim, start offsets) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live, w.start, w.commits, w.dieAt, w.perished = c, start, 0, 0, false
}

func (w *witness) killAt(commits int, kill func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dieAt, w.die = w.commits+commits, kill
}

func (w *witness) await(t *testing.T, commits int) {
	t.Helper()
	await(t, "commits", func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.commits < commits {
			return fmt.Errorf("%d of %d", w.commits, commits)
		}
		return nil
	})
}

// commit checks that everything below the offsets is applied. A commit that cannot
// be checked, because its sender died meanwhile, is refused.
func (w *witness) commit(r *kmsg.OffsetCommitRequest) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.perished || w.live == nil {
		w.refused++
		return errors.New("its sender is gone")
	}
	applied, err := w.applied()
	if err != nil {
		w.refused++
		return err
	}
	for _, topic := range r.Topics {
		for _, p := range topic.Partitions {
			if p.Offset > applied[p.Partition] {
				w.faults = append(w.faults, fmt.Sprintf("partition %d: %d was committed, %d applied", p.Partition, p.Offset, applied[p.Partition]))
			}
			w.proven[p.Partition] = max(w.proven[p.Partition], p.Offset)
		}
	}
	w.commits++
	if w.commits == w.dieAt {
		w.perished = true
		w.refused++
		w.die()
		return errors.New("its sender was killed")
	}
	w.checked++
	return nil
}

// applied returns how far the live process has applied each query's events, all of
// them from where it started.
func (w *witness) applied() (offsets, error) {
	to := w.start
	queries, err := w.live.queries()
	if err != nil {
		return to, err
	}
	for _, q := range queries {
		var p int
		if _, err := fmt.Sscanf(q.Name, "orders_%d", &p); err != nil || q.LastBatch == nil {
			return to, fmt.Errorf("query %q: %w", q.Name, err)
		}
		if first := *q.LastBatch + 1 - q.Batches; first > w.start[p] || q.Missed != 0 {
			w.faults = append(w.faults, fmt.Sprintf("partition %d: %d batches up to %d applied, %d missed, by a process that started at %d",
				p, q.Batches, *q.LastBatch, q.Missed, w.start[p]))
		}
		to[p] = *q.LastBatch + 1
	}
	return to, nil
}

// seen returns what c has applied; of a dead one, what it is proven to have.
func (w *witness) seen(c *victim) offsets {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c == w.live && !w.perished {
		if to, err := w.applied(); err == nil {
			return to
		}
	}
	return w.proven
}

// notBeyond checks that the group stands nowhere that no commit was checked for.
func (w *witness) notBeyond(at offsets) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live = nil
	for p, n := range at {
		if n > w.proven[p] {
			w.faults = append(w.faults, fmt.Sprintf("partition %d: the group is at %d, checked up to %d", p, n, w.proven[p]))
		}
	}
}

func (w *witness) verdict(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.faults[:min(len(w.faults), 20)] {
		t.Error(f)
	}
	if w.checked < kills {
		t.Errorf("only %d commits were checked", w.checked)
	}
}

// victim is a daemon in a process of its own that may be killed.
type victim struct {
	addr   string
	cmd    *exec.Cmd
	ended  chan struct{}
	result error
}

// launch starts a daemon whose group stands at from.
func (k *killRig) launch(from offsets) *victim {
	k.t.Helper()
	c := launchVictim(k.t, asDaemon+"="+k.config)
	k.witness.follow(c, from)
	return c
}

// launchVictim starts a daemon in a process of its own, told by its environment what
// to do. It ends with the test.
func launchVictim(t *testing.T, env ...string) *victim {
	t.Helper()
	c, err := startVictim(t, env...)
	if err != nil {
		t.Fatalf("the daemon did not start: %v", err)
	}
	return c
}

// startVictim is launchVictim for a daemon that may die before it says where it listens.
func startVictim(t *testing.T, env ...string) (*victim, error) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	c := &victim{addr: strings.TrimSpace(line), cmd: cmd, ended: make(chan struct{})}
	go func() {
		c.result = cmd.Wait()
		close(c.ended)
	}()
	t.Cleanup(func() {
		c.kill()
		_ = c.end()
	})
	return c, err
}

func (c *victim) signal(s os.Signal) { _ = c.cmd.Process.Signal(s) }

func (c *victim) kill() { c.signal(syscall.SIGKILL) }

// end waits for the process and returns how it ended.
func (c *victim) end() error {
	<-c.ended
	return c.result
}

func (c *victim) gone() error {
	select {
	case <-c.ended:
		return nil
	default:
		return errors.New("it runs")
	}
}

func (c *victim) queries() ([]queryJSON, error) {
	client := http.Client{Timeout: 10 * time.Second}
	r, err := client.Get("http://" + c.addr + "/api/v1/queries")
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	var answer struct{ Data queriesData }
	err = json.NewDecoder(r.Body).Decode(&answer)
	return answer.Data.Queries, err
}
