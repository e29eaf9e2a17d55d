package store

import (
	"time"

	"github.com/stategauge/stategauge/simulator/device"
)

// flushMeter is a fixedMeter whose disk takes so many times as long to flush.
type flushMeter struct {
	fixedMeter
	factor float64
}

func (m flushMeter) End(s device.Step, k device.Mark, w device.Work) time.Duration {
	d := m.fixedMeter.End(s, k, w)
	if s == device.StepFlush {
		d = time.Duration(float64(d) * m.factor)
	}
	return d
}

// countFiles counts the files below a folder.
func countFiles(r *rig, dir string) int {
	names, err := r.fs.List(dir)
	if err != nil {
		return 0
	}
	n := 0
	for _, name := range names {
		path := r.fs.PathJoin(dir, name)
		info, err := r.fs.Stat(path)
		if err == nil && info.IsDir() {
			n += countFiles(r, path)
		} else if err == nil {
			n++
		}
	}
	return n
}
