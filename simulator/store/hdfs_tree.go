package store

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sort"
)

// fan is how many rows or children a node of a tree holds. Small nodes are
// cheap to copy, which each batch does for every node that it changes.
const fan = 32

// rowHeader is what stands before a row's key: the key's length and the
// generation in which the row was written.
const rowHeader = 8

// heapRow is one row of a heap map: header, key, value. It never changes once
// it is in a tree.
type heapRow []byte

func newHeapRow(gen uint32, key, value []byte) heapRow {
	r := make(heapRow, rowHeader+len(key)+len(value))
	binary.LittleEndian.PutUint32(r, uint32(len(key)))
	binary.LittleEndian.PutUint32(r[4:], gen)
	copy(r[rowHeader:], key)
	copy(r[rowHeader+len(key):], value)
	return r
}

func (r heapRow) keyLen() int   { return int(binary.LittleEndian.Uint32(r)) }
func (r heapRow) gen() uint32   { return binary.LittleEndian.Uint32(r[4:]) }
func (r heapRow) key() []byte   { return r[rowHeader : rowHeader+r.keyLen()] }
func (r heapRow) value() []byte { return r[rowHeader+r.keyLen():] }

// heapTree is an ordered map whose copies share what they have in common: a
// B+-tree that copies a node before the first change of a generation. fork makes
// a copy at no cost; the original must not be changed any more.
type heapTree struct {
	root *heapNode
	gen  uint32
}

// heapNode is a leaf (rows) or has children. Keys of kids[i] are at least
// seps[i], which is of no meaning for the first.
type heapNode struct {
	gen  uint32
	rows []heapRow
	kids []*heapNode
	seps [][]byte
}

// fork returns a copy that writes as generation gen, which no tree that shares
// nodes with it may have used.
func (t heapTree) fork(gen uint32) heapTree { return heapTree{root: t.root, gen: gen} }

func (n *heapNode) size() int { return len(n.rows) + len(n.kids) }

// child returns which child a key belongs to.
func (n *heapNode) child(key []byte) int {
	return sort.Search(len(n.kids)-1, func(i int) bool { return bytes.Compare(n.seps[i+1], key) > 0 })
}

// find returns where in a leaf a key is, or would be.
func (n *heapNode) find(key []byte) (int, bool) {
	lo, hi := 0, len(n.rows)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		switch c := bytes.Compare(n.rows[mid].key(), key); {
		case c == 0:
			return mid, true
		case c < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return lo, false
}

// get returns a key's row, nil where there is none.
func (t *heapTree) get(key []byte) heapRow {
	n := t.root
	if n == nil {
		return nil
	}
	for n.kids != nil {
		n = n.kids[n.child(key)]
	}
	if i, ok := n.find(key); ok {
		return n.rows[i]
	}
	return nil
}

// own returns the node itself where this generation made it, otherwise a copy
// with room for a full node.
func (t *heapTree) own(n *heapNode) *heapNode {
	if n.gen == t.gen {
		return n
	}
	c := &heapNode{gen: t.gen}
	if n.kids == nil {
		c.rows = append(make([]heapRow, 0, fan), n.rows...)
		return c
	}
	c.kids = append(make([]*heapNode, 0, fan), n.kids...)
	c.seps = append(make([][]byte, 0, fan), n.seps...)
	return c
}

// put sets a key and returns the row that it replaced, nil for a new key.
func (t *heapTree) put(key, value []byte) heapRow {
	r := newHeapRow(t.gen, key, value)
	if t.root == nil {
		t.root = &heapNode{gen: t.gen, rows: append(make([]heapRow, 0, fan), r)}
		return nil
	}
	t.root = t.own(t.root)
	if t.root.size() == fan {
		top := &heapNode{gen: t.gen, kids: append(make([]*heapNode, 0, fan), t.root), seps: make([][]byte, 1, fan)}
		t.split(top, 0)
		t.root = top
	}
	n := t.root
	for n.kids != nil {
		n = t.descend(n, key)
	}
	i, ok := n.find(key)
	if ok {
		old := n.rows[i]
		n.rows[i] = r
		return old
	}
	n.rows = slices.Insert(n.rows, i, r)
	return nil
}

// descend returns the child of n that a key belongs to, ready for an insertion:
// owned and not full. n is owned and not full itself.
func (t *heapTree) descend(n *heapNode, key []byte) *heapNode {
	i := n.child(key)
	n.kids[i] = t.own(n.kids[i])
	if n.kids[i].size() < fan {
		return n.kids[i]
	}
	t.split(n, i)
	return n.kids[n.child(key)]
}

// split halves the full child i of n, both owned.
func (t *heapTree) split(n *heapNode, i int) {
	left, right := n.kids[i], &heapNode{gen: t.gen}
	var sep []byte
	if left.kids == nil {
		right.rows = append(make([]heapRow, 0, fan), left.rows[fan/2:]...)
		clear(left.rows[fan/2:])
		left.rows = left.rows[:fan/2]
		sep = right.rows[0].key()
	} else {
		right.kids = append(make([]*heapNode, 0, fan), left.kids[fan/2:]...)
		right.seps = append(make([][]byte, 0, fan), left.seps[fan/2:]...)
		clear(left.kids[fan/2:])
		clear(left.seps[fan/2:])
		left.kids, left.seps = left.kids[:fan/2], left.seps[:fan/2]
		sep = right.seps[0]
	}
	n.kids = slices.Insert(n.kids, i+1, right)
	n.seps = slices.Insert(n.seps, i+1, sep)
}

// remove deletes a key and returns its row, nil where there was none.
func (t *heapTree) remove(key []byte) heapRow {
	old := t.get(key) // first, so that a key that is not there copies nothing
	if old == nil {
		return nil
	}
	t.root = t.own(t.root)
	t.removeBelow(t.root, key)
	for len(t.root.kids) == 1 {
		t.root = t.root.kids[0]
	}
	return old
}

// removeBelow deletes a key that is there from below n, which is owned.
func (t *heapTree) removeBelow(n *heapNode, key []byte) {
	if n.kids == nil {
		i, _ := n.find(key)
		n.rows = slices.Delete(n.rows, i, i+1)
		return
	}
	i := n.child(key)
	n.kids[i] = t.own(n.kids[i])
	t.removeBelow(n.kids[i], key)
	switch {
	case n.kids[i].size() == 0:
		n.drop(i)
	case i+1 < len(n.kids) && n.kids[i].size()+n.kids[i+1].size() <= fan/2:
		t.merge(n, i)
	case i > 0 && n.kids[i-1].size()+n.kids[i].size() <= fan/2:
		t.merge(n, i-1)
	}
}

func (n *heapNode) drop(i int) {
	n.kids = slices.Delete(n.kids, i, i+1)
	n.seps = slices.Delete(n.seps, i, i+1)
}

// merge moves what child i+1 of n holds into child i.
func (t *heapTree) merge(n *heapNode, i int) {
	left, right := t.own(n.kids[i]), n.kids[i+1]
	n.kids[i] = left
	left.rows = append(left.rows, right.rows...)
	if right.kids != nil {
		at := len(left.seps)
		left.kids = append(left.kids, right.kids...)
		left.seps = append(left.seps, right.seps...)
		left.seps[at] = n.seps[i+1]
	}
	n.drop(i + 1)
}

// scan visits rows with keys in [from, to) in order until visit returns false.
func (t *heapTree) scan(from, to []byte, visit func(heapRow) bool) {
	if t.root != nil {
		t.root.scan(from, to, visit)
	}
}

func (n *heapNode) scan(from, to []byte, visit func(heapRow) bool) bool {
	if n.kids == nil {
		i := 0
		if from != nil {
			i, _ = n.find(from)
		}
		for _, r := range n.rows[i:] {
			if to != nil && bytes.Compare(r.key(), to) >= 0 || !visit(r) {
				return false
			}
		}
		return true
	}
	i := 0
	if from != nil {
		i = n.child(from)
	}
	for ; i < len(n.kids); i++ {
		if !n.kids[i].scan(from, to, visit) {
			return false
		}
		from = nil // children after the first one begin after it
	}
	return true
}
