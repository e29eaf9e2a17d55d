package store

import "github.com/stategauge/stategauge/simulator/device"

// openHDFS makes a store of the HDFS-backed provider. It has nothing on the
// local disk.
func (x *Executor) openHDFS(id ID) (instance, error) {
	return newHDFS(hdfsOptions{
		ID:      id,
		Dir:     x.o.Checkpoint.State(id.Operator, id.Partition, id.Name),
		Conf:    x.o.Conf,
		Version: x.o.Version,
		Live:    x.o.Live,
		Meter:   func() device.Meter { return x.o.Meter },
		Now:     func() int64 { return x.nowMs },
	}), nil
}
