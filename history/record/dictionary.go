package record

import (
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
)

// Bounds of a Dictionary. A string beyond them goes into the record itself, so
// that records grow and nothing is lost.
const (
	DefaultWords = 100_000  // words that a Dictionary takes unless told otherwise
	MaxWordBytes = 4 << 10  // bytes of one word
	MaxTextBytes = 16 << 20 // bytes of all words together

	maxID = 1 << 20 // ids beyond it are refused on loading: words lie in one slice by id
)

// Entry is one word of a Dictionary: a string that records name by its id.
type Entry struct {
	ID   uint32 // 1 and up, in the order in which the words were met
	Text string // up to MaxWordBytes bytes, not always readable: sets of columns are words too
}

// Dictionary gives small ids to the strings that records repeat. A word keeps its
// id for ever; there is no taking away.
//
// It may be used by any number of goroutines. Finding a word or an id takes no
// lock; a new word takes a short one.
//
// A record can be read only with the words that it names, and words may have been
// met by another goroutine's record. Whoever makes records durable therefore
// writes Pending, asked for after the last of these records was encoded, in the
// same step or before it, and reports it by Stored.
type Dictionary struct {
	words int // most words taken
	seed  maphash.Seed

	texts atomic.Pointer[[]string] // by id; index 0 is not used
	table atomic.Pointer[table]

	mu     sync.Mutex // held to add
	bytes  int
	stored uint32
}

// table finds ids by hash: open addressing, never more than half full. Slots are
// set once, so that readers need no lock; 0 is free.
type table struct {
	slots []atomic.Uint32
	used  int
}

// NewDictionary returns an empty dictionary of up to so many words, DefaultWords
// for 0.
func NewDictionary(words int) *Dictionary {
	if words <= 0 {
		words = DefaultWords
	}
	d := &Dictionary{words: min(words, maxID), seed: maphash.MakeSeed()}
	d.texts.Store(&[]string{""})
	d.table.Store(&table{slots: make([]atomic.Uint32, 1024)})
	return d
}

// Len returns how many words there are.
func (d *Dictionary) Len() int { return len(*d.texts.Load()) - 1 }

// Full reports whether new words are no longer taken: records are larger from
// then on.
func (d *Dictionary) Full() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Len() >= d.words || d.bytes >= MaxTextBytes
}

// Load adds stored words to an empty Dictionary, or more of them to one that was
// loaded. Ids may be missing: records that name them cannot be read. An id of 0,
// one too high, or one that comes twice with different texts is an error, and
// nothing of entries is taken then.
func (d *Dictionary) Load(entries []Entry) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	texts := append([]string(nil), *d.texts.Load()...)
	if int(d.stored) != len(texts)-1 {
		return errors.New("load dictionary: it has words that are not stored yet")
	}
	for _, e := range entries {
		if err := check(e, texts); err != nil {
			return fmt.Errorf("load dictionary: word %d: %w", e.ID, err)
		}
		for len(texts) <= int(e.ID) {
			texts = append(texts, "")
		}
		texts[e.ID] = e.Text
	}
	d.rebuild(texts)
	return nil
}

func check(e Entry, texts []string) error {
	switch {
	case e.ID == 0 || e.ID > maxID:
		return fmt.Errorf("id must be from 1 to %d", maxID)
	case e.Text == "" || len(e.Text) > MaxWordBytes:
		return fmt.Errorf("text of %d bytes, must have from 1 to %d", len(e.Text), MaxWordBytes)
	case int(e.ID) < len(texts) && texts[e.ID] != "" && texts[e.ID] != e.Text:
		return fmt.Errorf("stands for %.40q and for %.40q", texts[e.ID], e.Text)
	}
	return nil
}

// rebuild makes texts the words, all of them stored. d.mu is held.
func (d *Dictionary) rebuild(texts []string) {
	d.bytes, d.stored = 0, uint32(len(texts)-1)
	t := newTable(len(texts))
	d.texts.Store(&texts)
	for id, s := range texts {
		if s == "" {
			continue
		}
		d.bytes += len(s)
		t.put(maphash.String(d.seed, s), uint32(id))
	}
	d.table.Store(t)
}

// Pending returns the words that are not stored yet, in order of their ids.
func (d *Dictionary) Pending() []Entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	texts := *d.texts.Load()
	var out []Entry
	for id := d.stored + 1; int(id) < len(texts); id++ {
		out = append(out, Entry{ID: id, Text: texts[id]})
	}
	return out
}

// Stored takes note that the words of a Pending are durable. Until then they are
// handed out again, so that a failed write loses none.
func (d *Dictionary) Stored(entries []Entry) {
	if len(entries) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stored = max(d.stored, entries[len(entries)-1].ID)
}

// text returns the word of an id.
func (d *Dictionary) text(id uint64) (string, bool) {
	texts := *d.texts.Load()
	if id >= uint64(len(texts)) || texts[id] == "" {
		return "", false
	}
	return texts[id], true
}

// id returns the id of a word, new where it was not known, and false where the
// word must go into the record.
func (d *Dictionary) id(s string) (uint32, bool) {
	h := maphash.String(d.seed, s)
	if id := d.find(h, s); id != 0 {
		return id, true
	}
	if len(s) > MaxWordBytes {
		return 0, false
	}
	return d.add(h, s)
}

func (d *Dictionary) find(h uint64, s string) uint32 {
	// The table comes first: the texts are published before their slots are.
	t := d.table.Load()
	texts := *d.texts.Load()
	for i := h; ; i++ {
		id := t.slots[i&uint64(len(t.slots)-1)].Load()
		if id == 0 {
			return 0
		}
		// A slot set after texts was looked at is a word nobody had met then.
		if int(id) < len(texts) && texts[id] == s {
			return id
		}
	}
}

func (d *Dictionary) add(h uint64, s string) (uint32, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if id := d.find(h, s); id != 0 { // added by somebody else meanwhile
		return id, true
	}
	texts := *d.texts.Load()
	if len(texts) > d.words || d.bytes+len(s) > MaxTextBytes {
		return 0, false
	}
	id := uint32(len(texts))
	// A copy of its own: s may lie in memory that is reused or much larger.
	texts = append(texts, strings.Clone(s))
	d.bytes += len(s)
	d.texts.Store(&texts)
	d.put(h, id)
	return id, true
}

// put makes id findable. d.mu is held.
func (d *Dictionary) put(h uint64, id uint32) {
	t := d.table.Load()
	if 2*(t.used+1) > len(t.slots) {
		texts := *d.texts.Load()
		t = newTable(2 * len(texts))
		for i, s := range texts {
			if s != "" && uint32(i) != id {
				t.put(maphash.String(d.seed, s), uint32(i))
			}
		}
		t.put(h, id)
		d.table.Store(t)
		return
	}
	t.put(h, id)
}

// newTable returns a table with room for so many words.
func newTable(words int) *table {
	n := 1024
	for n < 2*(words+1) {
		n *= 2
	}
	return &table{slots: make([]atomic.Uint32, n)}
}

func (t *table) put(h uint64, id uint32) {
	for i := h; ; i++ {
		if slot := &t.slots[i&uint64(len(t.slots)-1)]; slot.Load() == 0 {
			slot.Store(id)
			t.used++
			return
		}
	}
}
