package operator

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/device"
	"github.com/stategauge/stategauge/simulator/store"
)

// fake is a store in memory that counts as RocksDB does: each write reads once
// more to keep the number of rows, and reports bytes as a write batch has them.
type fake struct {
	families []store.Family
	lists    []*skipList
	version  int64
	loads    []int64 // versions loaded, in order
	twice    int     // of which to read and write
	figures  store.Figures
	aborted  int
	commits  int
	failAt   int // operation that fails, counted from 1; 0: none
	ops      int
	scanning bool

	gets, puts, steps                     int64
	bytesRead, bytesWritten, bytesScanned int64
}

var errBroken = errors.New("disk is gone")

func newFake(families []store.Family) *fake {
	f := &fake{families: families}
	for range len(families) + 1 {
		f.lists = append(f.lists, newSkipList())
	}
	return f
}

func (f *fake) op() error {
	f.ops++
	if f.ops == f.failAt {
		return errBroken
	}
	if f.scanning {
		return errors.New("used while it is scanned")
	}
	return nil
}

func (f *fake) Load(version int64) error {
	if err := f.op(); err != nil {
		return err
	}
	if version != f.version {
		return fmt.Errorf("version %d wanted, %d there", version, f.version)
	}
	f.loads = append(f.loads, version)
	f.gets, f.puts, f.steps, f.bytesRead, f.bytesWritten, f.bytesScanned = 0, 0, 0, 0, 0, 0
	return nil
}

func (f *fake) Get(family byte, key []byte) ([]byte, bool, error) {
	if err := f.op(); err != nil {
		return nil, false, err
	}
	value, found := f.get(family, key)
	return value, found, nil
}

func (f *fake) get(family byte, key []byte) ([]byte, bool) {
	f.gets++
	n := f.lists[family].find(key)
	if n == nil {
		return nil, false
	}
	f.bytesRead += int64(len(n.value))
	return n.value, true
}

// Of a write batch: header, kind, and the lengths of key and value.
const putOverhead, deleteOverhead = 12 + 3, 12 + 2

func (f *fake) Put(family byte, key, value []byte) error {
	if err := f.op(); err != nil {
		return err
	}
	f.get(family, key)
	f.puts++
	f.bytesWritten += int64(len(key) + len(value) + putOverhead)
	f.lists[family].set(key, value)
	return nil
}

func (f *fake) Delete(family byte, key []byte) error {
	if err := f.op(); err != nil {
		return err
	}
	f.get(family, key)
	f.puts++
	f.bytesWritten += int64(len(key) + deleteOverhead)
	f.lists[family].remove(key)
	return nil
}

func (f *fake) Scan(family byte, from, to []byte, visit func(key, value []byte) bool) error {
	if err := f.op(); err != nil {
		return err
	}
	f.scanning = true
	defer func() { f.scanning = false }()
	for n := f.lists[family].seek(from); n != nil; n = n.next[0] {
		if to != nil && bytes.Compare(n.key, to) >= 0 {
			return nil
		}
		f.steps++
		f.bytesScanned += int64(len(n.key) + len(n.value))
		if !visit(n.key, n.value) {
			return nil
		}
	}
	return nil
}

func (f *fake) Commit() error {
	if err := f.op(); err != nil {
		return err
	}
	f.version++
	f.commits++
	fig := &f.figures
	fig.Rows = f.rows(false)
	fig.MemoryBytes = 1000
	fig.LastUploaded = -1
	fig.Custom.Clear()
	fig.Custom[event.RocksDBGetCount] = float64(f.gets)
	fig.Custom[event.RocksDBPutCount] = float64(f.puts)
	fig.Custom[event.RocksDBTotalBytesRead] = float64(f.bytesRead)
	fig.Custom[event.RocksDBTotalBytesWritten] = float64(f.bytesWritten)
	fig.Custom[event.RocksDBTotalBytesReadThroughIterator] = float64(f.bytesScanned)
	fig.Custom[event.RocksDBNumInternalColFamiliesKeys] = float64(f.rows(true))
	fig.Commit = 2 * time.Millisecond
	return nil
}

func (f *fake) rows(internal bool) (n int64) {
	for i, l := range f.lists {
		if i > 0 && f.families[i-1].Internal {
			if internal {
				n += int64(l.len)
			}
			continue
		}
		if !internal {
			n += int64(l.len)
		}
	}
	return n
}

func (f *fake) Abort() error { f.aborted++; return nil }

func (f *fake) Figures() *store.Figures {
	fig := &f.figures
	fig.Load = time.Millisecond
	fig.Get = time.Duration(f.gets) * time.Microsecond
	fig.Put = time.Duration(f.puts) * 2 * time.Microsecond
	fig.Scan = time.Duration(f.steps) * 100 * time.Nanosecond
	return fig
}

// reader is a fake that tells loads apart.
type reader struct{ *fake }

func (r reader) LoadReadWrite(version int64) error {
	r.twice++
	return r.Load(version)
}

// skipList is a sorted map with a fixed sequence of heights.
type skipList struct {
	head *skipNode
	rng  *rand.Rand
	len  int
	free []*skipNode // removed ones, so that steady work needs no memory of the fake's
}

type skipNode struct {
	key, value []byte
	next       []*skipNode
}

const skipLevels = 18

func newSkipList() *skipList {
	return &skipList{head: &skipNode{next: make([]*skipNode, skipLevels)}, rng: rand.New(rand.NewPCG(1, 2))}
}

// path fills prev with the last node before key on each level.
func (l *skipList) path(key []byte, prev *[skipLevels]*skipNode) *skipNode {
	at := l.head
	for level := skipLevels - 1; level >= 0; level-- {
		for at.next[level] != nil && bytes.Compare(at.next[level].key, key) < 0 {
			at = at.next[level]
		}
		prev[level] = at
	}
	return at.next[0]
}

func (l *skipList) seek(key []byte) *skipNode {
	var prev [skipLevels]*skipNode
	return l.path(key, &prev)
}

func (l *skipList) find(key []byte) *skipNode {
	if n := l.seek(key); n != nil && bytes.Equal(n.key, key) {
		return n
	}
	return nil
}

func (l *skipList) set(key, value []byte) {
	var prev [skipLevels]*skipNode
	if n := l.path(key, &prev); n != nil && bytes.Equal(n.key, key) {
		n.value = append(n.value[:0], value...)
		return
	}
	n := l.node()
	n.key, n.value = append(n.key[:0], key...), append(n.value[:0], value...)
	for level := range n.next {
		n.next[level], prev[level].next[level] = prev[level].next[level], n
	}
	l.len++
}

func (l *skipList) node() *skipNode {
	if last := len(l.free) - 1; last >= 0 {
		n := l.free[last]
		l.free = l.free[:last]
		return n
	}
	height := 1
	for height < skipLevels && l.rng.Uint32()&3 == 0 {
		height++
	}
	return &skipNode{next: make([]*skipNode, height)}
}

func (l *skipList) remove(key []byte) {
	var prev [skipLevels]*skipNode
	n := l.path(key, &prev)
	if n == nil || !bytes.Equal(n.key, key) {
		return
	}
	for level := range n.next {
		prev[level].next[level] = n.next[level]
	}
	l.len--
	l.free = append(l.free, n)
}

// meter takes a microsecond per row of code.
type meter struct{ rows int64 }

func (m *meter) Begin(device.Step) device.Mark { return 0 }

func (m *meter) End(s device.Step, _ device.Mark, w device.Work) time.Duration {
	if s != device.StepCode {
		panic(fmt.Sprintf("step %d is not the operator's", s))
	}
	m.rows += w.Rows
	return time.Duration(w.Rows) * time.Microsecond
}
