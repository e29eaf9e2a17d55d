package store

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/klauspost/compress/snappy"
)

// packed returns a changelog with a few records.
func packed(t testing.TB, families bool, lineage []versionID) []byte {
	t.Helper()
	var c changelog
	if err := c.begin(families, lineage, lineage != nil); err != nil {
		t.Fatal(err)
	}
	c.put("default", []byte("key"), []byte("value"))
	c.put("", nil, nil)
	c.delete("default", []byte("gone"))
	return bytes.Clone(c.pack())
}

// unpackAll reads a changelog to its end.
func unpackAll(data []byte) (records []record, lineage []versionID, err error) {
	r, err := openChangelog(data)
	if err != nil {
		return nil, nil, err
	}
	for {
		rec, ok, err := r.next()
		if err != nil || !ok {
			return records, r.lineage, err
		}
		records = append(records, rec)
	}
}

func TestAChangelogIsReadAsItWasWritten(t *testing.T) {
	for _, families := range []bool{false, true} {
		for _, lineage := range [][]versionID{nil, {}, {{7, "a"}, {8, "b"}}} {
			records, got, err := unpackAll(packed(t, families, lineage))
			if err != nil || !slices.Equal(got, lineage) || len(records) != 3 {
				t.Errorf("families %v, lineage %v: %v, %v, %v", families, lineage, records, got, err)
				continue
			}
			if r := records[0]; string(r.key) != "key" || string(r.value) != "value" || r.remove || (r.family == "default") != families {
				t.Errorf("first record is %+v", r)
			}
			if r := records[2]; string(r.key) != "gone" || !r.remove {
				t.Errorf("last record is %+v", r)
			}
		}
	}
}

func TestATornChangelogIsAnError(t *testing.T) {
	for _, families := range []bool{false, true} {
		whole := packed(t, families, nil)
		raw, err := snappy.Decode(nil, whole)
		if err != nil {
			t.Fatal(err)
		}
		for n := range len(raw) {
			if _, _, err := unpackAll(snappy.Encode(nil, raw[:n])); !errors.Is(err, errChangelog) {
				t.Fatalf("%d of %d bytes: %v", n, len(raw), err)
			}
		}
		for n := range len(whole) {
			if _, _, err := unpackAll(whole[:n]); err == nil {
				t.Fatalf("%d of %d compressed bytes are taken for all", n, len(whole))
			}
		}
	}
}

func TestAnUnknownChangelogVersionIsRefused(t *testing.T) {
	if _, _, err := unpackAll(snappy.Encode(nil, []byte("\x00\x02v9"))); !errors.Is(err, errChangelog) {
		t.Error(err)
	}
}

func FuzzChangelog(f *testing.F) {
	for _, families := range []bool{false, true} {
		for _, lineage := range [][]versionID{nil, {{1, "x"}}} {
			raw, err := snappy.Decode(nil, packed(f, families, lineage))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(raw, false)
		}
	}
	f.Add([]byte("\x00\x02v4\x00\x00\x00\x02[]\x01"), false)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, true)
	f.Fuzz(func(t *testing.T, data []byte, asIs bool) {
		if !asIs {
			data = snappy.Encode(nil, data)
		}
		records, lineage, err := unpackAll(data)
		if err != nil {
			return
		}
		// What was read can be written and reads the same.
		r, err := openChangelog(data)
		if err != nil {
			t.Fatal(err)
		}
		var c changelog
		if err := c.begin(r.families, lineage, lineage != nil); err != nil {
			t.Fatal(err)
		}
		for _, rec := range records {
			if rec.remove {
				c.delete(rec.family, rec.key)
			} else {
				c.put(rec.family, rec.key, rec.value)
			}
		}
		again, _, err := unpackAll(c.pack())
		if err != nil || len(again) != len(records) {
			t.Fatalf("%d records, then %d: %v", len(records), len(again), err)
		}
		for i := range again {
			a, b := again[i], records[i]
			if !bytes.Equal(a.key, b.key) || !bytes.Equal(a.value, b.value) || a.remove != b.remove || a.family != b.family {
				t.Fatalf("record %d is %+v, then %+v", i, b, a)
			}
		}
	})
}
