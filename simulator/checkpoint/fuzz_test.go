package checkpoint

import (
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
)

func FuzzOffsets(f *testing.F) {
	f.Add([]byte("v1\n{\"batchWatermarkMs\":0,\"batchTimestampMs\":1,\"conf\":{\"a\":\"b\"}}\n{\"t\":{\"0\":5}}\n-"))
	f.Add([]byte("v2\n{\"batchWatermarkMs\":0,\"batchTimestampMs\":1,\"conf\":{}}\n0:5\nname:-"))
	f.Add([]byte("v1\r\n{}\r\n-\r\n"))
	f.Add([]byte("v1\n\n7"))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := decodeOffsets("offsets/1", data)
		if err != nil {
			mustBeDamage(t, err)
			return
		}
		again, err := encodeOffsets(o)
		if err != nil {
			return // a carriage return inside of JSON: read, but not written
		}
		back, err := decodeOffsets("offsets/1", again)
		if err != nil {
			t.Fatalf("%q: %v", again, err)
		}
		if len(o.Conf) == 0 {
			o.Conf, back.Conf = nil, nil
		}
		if diff := cmp.Diff(o, back); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzCommit(f *testing.F) {
	f.Add([]byte("v1\n{\"nextBatchWatermarkMs\":5}"))
	f.Add([]byte("v2\n{\"nextBatchWatermarkMs\":5,\"stateUniqueIds\":{\"0\":[[\"a\"],[\"b\"]]}}"))
	f.Add([]byte("v3\n{\"sinkMetadataMap\":{}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := decodeCommit("commits/1", data); err != nil {
			mustBeDamage(t, err)
		}
	})
}

func FuzzSnapshot(f *testing.F) {
	f.Add(zipOf(f, []SmallFile{{"metadata", []byte("v1\n{\"sstFiles\":[{\"localFileName\":\"1.sst\",\"dfsSstFileName\":\"1-u.sst\",\"sizeBytes\":3}],\"numKeys\":1}")}, {"CURRENT", []byte("x")}}))
	f.Add([]byte("PK\x05\x06\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		snap, err := unpack("1.zip", data)
		if err != nil {
			mustBeDamage(t, err)
			return
		}
		for _, s := range snap.SSTs {
			if plainName(s.DFS) != nil || plainName(s.Local) != nil {
				t.Fatalf("table %+v", s)
			}
		}
	})
}

func FuzzStateFileName(f *testing.F) {
	for _, name := range []string{"1.zip", "12_a-b.changelog", "3.delta", "4.snapshot", ".1.zip.tmp", "01.zip", "x.zip", "1.zip.crc", "9223372036854775808.zip"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		s, ok := parseStateFile(name)
		if ok && s.Version < 0 {
			t.Fatalf("%q is version %d", name, s.Version)
		}
		if back, again := parseStateFile(s.name()); ok && (!again || back != s) {
			t.Fatalf("%q is %+v, which is written as %q", name, s, s.name())
		}
	})
}

func mustBeDamage(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrDamaged) {
		t.Fatalf("%v is not called damage", err)
	}
}

// What a commit with changelog costs per store, beside a file that is just
// created and written.
func BenchmarkWriteChangelogVersusPlainFile(b *testing.B) {
	mem := vfs.NewMem()
	d, err := Open(mem, "/ckpt")
	if err != nil {
		b.Fatal(err)
	}
	s := d.State(0, 0, "default")
	data := make([]byte, 4096)
	if _, err := s.WriteChangelog(0, "", data); err != nil {
		b.Fatal(err)
	}
	var ours, peer time.Duration
	b.ReportAllocs()
	for v := int64(1); b.Loop(); v = v%100 + 1 {
		start := time.Now()
		if _, err := s.WriteChangelog(v, "", data); err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		if err := writeFile(mem, s.join("plain"), string(data)); err != nil {
			b.Fatal(err)
		}
		ours, peer = ours+middle.Sub(start), peer+time.Since(middle)
	}
	b.ReportMetric(float64(ours)/float64(peer), "x_peer")
	b.ReportMetric(float64(ours.Nanoseconds())/float64(b.N), "ns/changelog")
}

// What a commit without changelog costs per store, beside the same bytes in one
// plain file.
func BenchmarkWriteSnapshotVersusPlainFile(b *testing.B) {
	mem := vfs.NewMem()
	d, err := Open(mem, "/ckpt")
	if err != nil {
		b.Fatal(err)
	}
	s := d.State(0, 0, "default")
	small := []SmallFile{{"MANIFEST-000001", make([]byte, 3000)}, {"OPTIONS-000003", make([]byte, 1000)}}
	snap := &Snapshot{Small: small}
	for range 8 {
		snap.SSTs = append(snap.SSTs, SST{"000008.sst", "000008-5b0a2a5e-5f43-4f39-b9f7-27b8b1d6f6d1.sst", 1 << 20})
	}
	data := make([]byte, 5000)
	var ours, peer time.Duration
	b.ReportAllocs()
	for v := int64(1); b.Loop(); v = v%100 + 1 {
		start := time.Now()
		if _, err := s.WriteSnapshot(v, "", snap); err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		if err := writeFile(mem, s.join("plain"), string(data)); err != nil {
			b.Fatal(err)
		}
		ours, peer = ours+middle.Sub(start), peer+time.Since(middle)
	}
	b.ReportMetric(float64(ours)/float64(peer), "x_peer")
	b.ReportMetric(float64(ours.Nanoseconds())/float64(b.N), "ns/snapshot")
}
