package lsm

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestMemtableNeverRotatesByItself(t *testing.T) {
	for _, limit := range []int64{1 << 10, 16 << 10, 200 << 10, 500 << 10, DefaultMemtableBytes, 100 << 20} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			s := NewShared(8 << 20)
			defer s.Close()
			d, err := Open(Options{FS: vfs.NewMem(), Dir: "db", Shared: s, MemtableBytes: limit})
			if err != nil {
				t.Fatal(err)
			}
			value := make([]byte, 90)
			for i := range 30000 {
				if err := d.Set(fmt.Appendf(nil, "key%08d", i*7919%10000), value); err != nil {
					t.Fatal(err)
				}
			}
			if m := d.db.Metrics(); m.MemTable.Count != 1 || int64(m.MemTable.Size) != d.mem.arena {
				t.Errorf("pebble has %d memtables of %d bytes, want one of %d", m.MemTable.Count, m.MemTable.Size, d.mem.arena)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
