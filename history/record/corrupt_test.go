package record

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/event"
)

// goldenRecords calls f with the records of each form and the dictionary that they need.
func goldenRecords(t testing.TB, f func(records []goldenRecord, d *Dictionary)) {
	for _, form := range goldenForms {
		g := readGolden(t, goldenFile(form.version))
		d := NewDictionary(0)
		if err := d.Load(g.words); err != nil {
			t.Fatal(err)
		}
		f(g.records, d)
	}
}

func TestARecordThatIsCutIsAnError(t *testing.T) {
	var x Decoder
	goldenRecords(t, func(records []goldenRecord, d *Dictionary) {
		for _, r := range records {
			for n := range r.bytes {
				if _, err := x.Decode(r.bytes[:n], d); err == nil {
					t.Errorf("%s: %d of %d bytes were taken for a record", r.name, n, len(r.bytes))
				}
			}
			if _, err := x.Decode(r.bytes, d); err != nil {
				t.Errorf("%s: the whole record after cut ones: %v", r.name, err)
			}
		}
	})
}

func TestBytesAfterARecordAreAnError(t *testing.T) {
	goldenRecords(t, func(records []goldenRecord, d *Dictionary) {
		for _, r := range records {
			err := Decode(append(r.bytes, 0), d, &event.Update{})
			if err == nil || !strings.Contains(err.Error(), "1 bytes too many") {
				t.Errorf("%s: error %v", r.name, err)
			}
		}
	})
}

func TestFlippedBitsNeverPanic(t *testing.T) {
	var x Decoder
	refused := 0
	goldenRecords(t, func(records []goldenRecord, d *Dictionary) {
		for _, r := range records {
			for i := range r.bytes {
				for bit := range 8 {
					b := append([]byte(nil), r.bytes...)
					b[i] ^= 1 << bit
					if _, err := x.Decode(b, d); err != nil {
						refused++
					}
				}
			}
		}
	})
	if refused == 0 {
		t.Error("no flipped bit was noticed")
	}
}

func TestDamagedBytesSayWhatIsWrong(t *testing.T) {
	d := NewDictionary(0)
	good := Append(nil, &event.Update{}, d)
	for want, b := range map[string][]byte{
		"it is empty":          nil,
		"bytes, at most":       make([]byte, MaxBytes+1),
		"version 0":            {0, 1, 2},
		"cut off":              {Version, 0x80},
		"flags 0x2000 of 13":   append([]byte{Version, 0x80, 0x40}, good[2:]...),
		"event.Outcome 99":     append([]byte{Version, 0, 99}, good[3:]...),
		"list of 65: more":     batchRecord(func(c *codec) { c.put(65) }),
		"impossible set":       append(batchRecord(nil), codeInline, 1, 'q'),
		"set of columns is":    append(batchRecord(nil), 99),
		"impossible set of":    append(append(batchRecord(nil), codeInline, 0x82, 1, allNatural), make([]byte, 300)...),
		"word 42 is not in":    originRecord(42 - 1 + codeWord),
		"is too large":         originRecord(codeEmpty, codeEmpty, 0xff, 0xff, 0xff, 0xff, 0xff, 1),
		"number of kind 11 is": updateRecord(1<<1, 2<<2|numberOther),
		"impossible decimal":   updateRecord(1<<1, 1<<2|numberDecimal, byte(len(powers))),
	} {
		err := Decode(b, d, &event.Update{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// updateRecord is a record up to the enumerations, with the flags given, and tail.
func updateRecord(flags uint64, tail ...byte) []byte {
	c := codec{buf: []byte{Version}, writing: true}
	c.put(flags)
	return append(append(c.buf, 0, 0, 0, 0, 0), tail...)
}

func originRecord(tail ...byte) []byte { return updateRecord(0, tail...) }

// batchRecord is a record up to the vector of its batch; with sources, up to the
// sources of it.
func batchRecord(sources func(c *codec)) []byte {
	c := codec{buf: updateRecord(1), d: NewDictionary(0), writing: true}
	c.put(1) // an event with a batch
	c.buf = append(c.buf, byte(event.KindProgress))
	c.buf = append(c.buf, make([]byte, 5)...) // names, run and time
	c.put(1)                                  // the batch names the same query
	// Ids, trigger, what is missing, version, description.
	c.buf = append(c.buf, 0, 0, 0, 0, codeNear, codeNear, codeNear, codeEmpty)
	if sources == nil {
		return c.buf
	}
	c.buf = append(c.buf, codeInline, 1, allNatural)
	c.buf = append(c.buf, make([]byte, 9+2)...) // figures apart, rates
	sources(&c)
	return append(c.buf, make([]byte, 100)...)
}

// A broken record may name a list of any length. What is made of it stays within
// what the record itself, or the bound of a list, has room for.
func TestMemoryIsBoundedWhateverTheRecordSays(t *testing.T) {
	d := NewDictionary(0)
	operators := batchRecord(func(c *codec) {
		c.put(0)
		c.put(maxOperators)
		for range maxOperators {
			c.buf = append(c.buf, 1, 0, 0, codeInline, 1, allNatural, 2, 2)
		}
	})
	operators = append(operators[:len(operators)-100], originTail...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var x Decoder
	u, err := x.Decode(operators, d)
	runtime.ReadMemStats(&after)
	if err != nil || len(u.Event.Batch.Operators) != maxOperators {
		t.Fatalf("error %v", err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 40<<20 {
		t.Errorf("%d MiB for a record of %d KiB", grown>>20, len(operators)>>10)
	}
	tooMany := batchRecord(func(c *codec) {
		c.put(0)
		c.put(maxOperators + 1)
		c.buf = append(c.buf, make([]byte, 8*(maxOperators+1))...)
	})
	if _, err := x.Decode(tooMany, d); err == nil || !strings.Contains(err.Error(), errTooMany.Error()) {
		t.Errorf("error %v", err)
	}
}

// originTail is an origin of nothing.
var originTail = []byte{codeEmpty, codeEmpty, 2, 2, 2}

// A disk may have been written by a newer program, whose catalog has more rows.
func TestMetricsOfANewerCatalogArePassedOver(t *testing.T) {
	u := &event.Update{Event: &event.Event{Batch: &event.Batch{}}}
	b := u.Event.Batch
	b.Reset()
	o := b.AddOperator()
	o.Values[event.CommitTime], o.Name = 700, "dedupe"
	d := NewDictionary(0)
	Append(nil, u, d)
	newer := NewDictionary(0)
	if err := newer.Load(withColumn(t, d.Pending(), event.CommitTime, 900)); err != nil {
		t.Fatal(err)
	}
	r := Append(nil, u, d)
	at := strings.Index(string(r), string([]byte{1, 0xbc, 5})) // one column, not 0: 700
	if at < 0 {
		t.Fatalf("700 is not where it was in % x", r)
	}
	r = append(r[:at:at], append([]byte{3, 0xbc, 5, 9}, r[at+3:]...)...) // two columns, 700 and 9
	var back event.Update
	if err := Decode(r, newer, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(u, &back, bitwise); diff != "" {
		t.Errorf("(-in +out):\n%s", diff)
	}
}

// withColumn adds a column to the set that holds another one.
func withColumn(t *testing.T, words []Entry, has event.MetricID, column int) []Entry {
	t.Helper()
	for i, w := range words {
		at := 1 + int(has)/8
		if w.Text[0] == allNatural && len(w.Text) == at+1 && w.Text[at] == 1<<(has%8) {
			set := append([]byte(w.Text), make([]byte, 1+column/8-int(has)/8)...)
			set[1+column/8] |= 1 << (column % 8)
			words[i].Text = string(set)
			return words
		}
	}
	t.Fatal("no set of columns found")
	return nil
}

func TestPercentilesOfANewerCatalogArePassedOver(t *testing.T) {
	u := &event.Update{Event: &event.Event{Batch: &event.Batch{Percentiles: []event.Percentile{
		{Metric: event.FirstUnknown - 1, Quantile: 0.5, Value: 3},
		{Metric: event.RTME2ELatency, Quantile: 0.5, Value: 4},
	}}}}
	d := NewDictionary(0)
	var back event.Update
	if err := Decode(Append(nil, u, d), d, &back); err != nil {
		t.Fatal(err)
	}
	if got := back.Event.Batch.Percentiles; len(got) != 1 || got[0].Value != 4 {
		t.Errorf("read %v", got)
	}
}

// FuzzDecode feeds any bytes: no panic, and what passes for a record can be
// written and read again.
func FuzzDecode(f *testing.F) {
	d := NewDictionary(0)
	goldenRecords(f, func(records []goldenRecord, of *Dictionary) {
		for _, r := range records {
			f.Add(r.bytes)
		}
		if of.Len() > d.Len() {
			d = of
		}
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		var x, y Decoder
		u, err := x.Decode(b, d)
		if err != nil {
			return
		}
		fresh := NewDictionary(100)
		again, err := y.Decode(Append(nil, u, fresh), fresh)
		if err != nil {
			t.Fatalf("written again it cannot be read: %v", err)
		}
		if !bytes.Equal(Append(nil, u, fresh), Append(nil, again, fresh)) {
			t.Fatalf("written again it is another update:\n%s", cmp.Diff(u, again, bitwise))
		}
	})
}

// FuzzRoundTrip makes updates of any content out of a seed.
func FuzzRoundTrip(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, seed%2 == 0)
	}
	d := NewDictionary(500)
	f.Fuzz(func(t *testing.T, seed uint64, full bool) {
		in := filler{rng: rand.New(rand.NewPCG(seed, 1)), full: full}
		dirty := filler{rng: rand.New(rand.NewPCG(seed, 2))}
		carried(t, in.update(), d, dirty.update())
	})
}

// FuzzDictionary loads any words and reads a record with them.
func FuzzDictionary(f *testing.F) {
	g := readGolden(f, goldenFile(Version))
	for _, w := range g.words {
		f.Add(w.ID, w.Text)
	}
	f.Add(uint32(math.MaxUint32), "far")
	f.Fuzz(func(t *testing.T, id uint32, text string) {
		d := NewDictionary(0)
		words := append([]Entry(nil), g.words...)
		if int(id) <= len(words) && id > 0 {
			words[id-1].Text = text
		} else {
			words = append(words, Entry{id, text})
		}
		if d.Load(words) != nil {
			return
		}
		for _, r := range g.records {
			_ = Decode(r.bytes, d, &event.Update{}) // it must not panic; the error is free to be any
		}
		b := binary.AppendUvarint(nil, uint64(id))
		if got, ok := d.text(uint64(id)); !ok || got != text {
			t.Fatalf("word %x is %q, want %q", b, got, text)
		}
	})
}
