package track

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

const sendersMagic = "sgsend"

// Snapshot appends everything that is known of the senders to dst, in a versioned
// form that Restore reads. Together with the snapshots of the Trackers that share
// the table it has to be taken while none of them judges; one taken a little later
// does no harm, because a number that comes again changes nothing.
func (s *Senders) Snapshot(dst []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sealForm(dst, sendersMagic, func(c *codec) {
		n := len(s.byName)
		c.length(&n)
		for _, name := range slices.Sorted(maps.Keys(s.byName)) {
			c.str(&name)
			s.byName[name].visit(c)
		}
	})
}

// Restore replaces what is known of the senders by a snapshot. After an error
// nothing has changed.
func (s *Senders) Restore(b []byte) error {
	byName, err := readSenders(b)
	if err != nil {
		return fmt.Errorf("restore senders: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byName = byName
	return nil
}

func readSenders(b []byte) (map[string]*sender, error) {
	c, err := openForm(b, sendersMagic, "snapshot of senders")
	if err != nil {
		return nil, err
	}
	n := 0
	if c.length(&n); n > maxSenders {
		return nil, fmt.Errorf("%d senders: %w", n, errTooMany)
	}
	byName := make(map[string]*sender, n)
	for i := 0; i < n && c.err == nil; i++ {
		name, p := "", &sender{}
		c.str(&name)
		if p.visit(&c); byName[name] != nil {
			c.fail(fmt.Errorf("sender %q comes twice", name))
		}
		byName[name] = p
	}
	if c.err == nil && len(c.buf) != 0 {
		c.fail(errLeft)
	}
	return byName, c.err
}

func (p *sender) visit(c *codec) {
	c.bools(&p.numbered)
	c.ints(&p.low, &p.high, &p.gone, &p.dropped, &p.dropBase, &p.received, &p.lastMs)
	c.words(p.seen[:])
	if p.low < -1 || p.high < p.low || p.high-p.low > senderWindow || p.high > maxSeq {
		c.fail(errors.New("impossible sequence numbers"))
	}
}
