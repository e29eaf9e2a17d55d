package app

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// durableCase is a way to send events.
type durableCase struct {
	connections, events int // and in each request
}

// BenchmarkDurableIntakeVersusMemory sends the same events over HTTP to a daemon
// that has them on disk before it answers and to one that keeps nothing, in turn.
// The ratio is that of their rates on the clock: a synced write is waiting, not
// computing. Rules are off.
func BenchmarkDurableIntakeVersusMemory(b *testing.B) {
	for _, c := range []durableCase{{16, 50}, {1, 50}, {64, 1}} {
		b.Run(fmt.Sprintf("connections=%d/events=%d", c.connections, c.events), func(b *testing.B) { c.run(b) })
	}
}

func (c durableCase) run(b *testing.B) {
	disk, memory := runChildWith(b, "", false, b.TempDir()), runChild(b, "", false)
	fleets := make([]*fleet, c.connections)
	for i := range fleets {
		fleets[i] = newFleet(100 / c.connections)
		for _, s := range fleets[i].streams {
			s.id = fmt.Sprintf("%04d%s", i, s.id[4:])
			s.name = fmt.Sprintf("%s_%d", s.name, i)
		}
	}
	requests := max(1, 100/c.events) * 4
	var times [2]time.Duration
	sent := 0
	before := disk.figures("stategauge_history_log_syncs_total", "stategauge_history_written_bytes_total")
	for b.Loop() {
		bodies := c.bodies(fleets, requests)
		for i, d := range []*child{disk, memory} {
			begin := time.Now()
			c.send(d, bodies)
			times[i] += time.Since(begin)
		}
		sent += c.connections * requests
	}
	after := disk.figures("stategauge_history_log_syncs_total", "stategauge_history_written_bytes_total")
	events := float64(sent * c.events)
	b.ReportMetric(times[1].Seconds()/times[0].Seconds(), "x_peer")
	b.ReportMetric(events/times[0].Seconds(), "events/s")
	b.ReportMetric((after[0]-before[0])/float64(sent), "syncs/request")
	b.ReportMetric((after[1]-before[1])/events, "written-B/event")
}

// bodies are the requests of each connection.
func (c durableCase) bodies(fleets []*fleet, requests int) [][][]byte {
	out := make([][][]byte, c.connections)
	for i := range out {
		for range requests {
			out[i] = append(out[i], fleets[i].body(c.events))
		}
	}
	return out
}

func (c durableCase) send(d *child, bodies [][][]byte) {
	var all sync.WaitGroup
	for i := range bodies {
		all.Go(func() {
			for _, body := range bodies[i] {
				d.post(body)
			}
		})
	}
	all.Wait()
}

// BenchmarkMemoryWithHistory is what a daemon with a history and the built-in rules
// takes of memory after 100,000 events of 100 queries, and how many times that after
// twice as many.
func BenchmarkMemoryWithHistory(b *testing.B) {
	for b.Loop() {
		c, f := runChildWith(b, "", true, b.TempDir()), newFleet(100)
		var rss [2]float64
		for i := range rss {
			for range 100_000 / 50 {
				c.post(f.body(50))
			}
			c.settle()
			rss[i] = c.figures("process_resident_memory_bytes")[0]
		}
		b.ReportMetric(rss[0]/1e6, "rss-MB")
		b.ReportMetric(rss[1]/rss[0], "x_later")
		page := c.figures("stategauge_history_disk_bytes", "stategauge_history_records_total", "stategauge_history_write_amplification_ratio")
		b.ReportMetric(page[0]/page[1], "disk-B/event")
		b.ReportMetric(page[2], "write-amplification")
	}
}
