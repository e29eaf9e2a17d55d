package history

import (
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// countingFS counts the bytes that are read, and tells how much room is left.
type countingFS struct {
	vfs.FS
	read atomic.Int64
	room atomic.Uint64 // 0: not known
}

// Open implements vfs.FS.
func (c *countingFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := c.FS.Open(name, opts...)
	if err != nil {
		return nil, err
	}
	return &countingFile{f, c}, nil
}

// GetDiskUsage implements vfs.FS.
func (c *countingFS) GetDiskUsage(path string) (vfs.DiskUsage, error) {
	if n := c.room.Load(); n > 0 {
		return vfs.DiskUsage{AvailBytes: n, TotalBytes: 1 << 40}, nil
	}
	return c.FS.GetDiskUsage(path)
}

type countingFile struct {
	vfs.File
	c *countingFS
}

func (f *countingFile) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(b, at)
	f.c.read.Add(int64(n))
	return n, err
}

// valueOf reads a counter or a gauge.
func valueOf(t testing.TB, m prometheus.Metric) float64 {
	t.Helper()
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.GetCounter().GetValue() + out.GetGauge().GetValue()
}
