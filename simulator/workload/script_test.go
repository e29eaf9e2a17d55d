package workload

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestScripts plays sources in the order in which a query asks them. Commands:
//
//	new kind=kafka [topic= partitions= rows= limit= max= filerows= kept= backlog=]
//	advance seconds=N [rate= stalled= stop]
//	poll | take | skip
//	seek, taketo: the input is the offset
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		p := player{t: t}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			p.t = t
			return p.play(d)
		})
	})
}

type player struct {
	t      *testing.T
	source Source
	now    time.Duration
}

func (p *player) play(d *datadriven.TestData) string {
	switch d.Cmd {
	case "new":
		return p.make(d)
	case "advance":
		return p.advance(d)
	case "poll":
		return fmt.Sprintf("%+v\n", p.source.Poll())
	case "take":
		return show(p.source.Take(), nil)
	case "taketo":
		return show(p.source.TakeTo(d.Input))
	case "seek":
		if err := p.source.Seek(d.Input); err != nil {
			return err.Error() + "\n"
		}
		return ""
	case "skip":
		p.source.Skip()
		return ""
	}
	return "no such command\n"
}

func (p *player) make(d *datadriven.TestData) string {
	var kind string
	cfg := Config{StartMs: startMs, RowBytes: 10}
	d.ScanArgs(p.t, "kind", &kind)
	d.MaybeScanArgs(p.t, "topic", &cfg.Topic)
	d.MaybeScanArgs(p.t, "partitions", &cfg.Partitions)
	d.MaybeScanArgs(p.t, "limit", &cfg.MaxPerTrigger)
	d.MaybeScanArgs(p.t, "max", &cfg.MaxRows)
	d.MaybeScanArgs(p.t, "filerows", &cfg.FileRows)
	d.MaybeScanArgs(p.t, "kept", &cfg.KeptFiles)
	d.MaybeScanArgs(p.t, "backlog", &cfg.Backlog)
	cfg.RowsPerSecond = number(p.t, d, "rows", 0)
	s, err := New(kind, cfg)
	if err != nil {
		return err.Error() + "\n"
	}
	p.source, p.now = s, 0
	return s.Description() + "\n"
}

func (p *player) advance(d *datadriven.TestData) string {
	c := Normal()
	c.Rate = number(p.t, d, "rate", 1)
	d.MaybeScanArgs(p.t, "stalled", &c.Stalled)
	c.StopInput = d.HasArg("stop")
	p.now += time.Duration(number(p.t, d, "seconds", 0) * float64(time.Second))
	p.source.Advance(ms(p.now), c)
	return ""
}

func number(t *testing.T, d *datadriven.TestData, key string, otherwise float64) float64 {
	var text string
	if !d.MaybeScanArgs(t, key, &text) {
		return otherwise
	}
	var v float64
	if _, err := fmt.Sscan(text, &v); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return v
}

func show(take Take, err error) string {
	if err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d rows, %d bytes\nstart  %s\nend    %s\nlatest %s\n", take.Count, take.Bytes, take.Start, take.End, take.Latest)
	if take.HasBehind {
		fmt.Fprintf(&b, "behind %d to %d, mean %g\n", take.BehindMin, take.BehindMax, take.BehindAvg)
	}
	if take.Count > 0 {
		fmt.Fprintf(&b, "event times from %+d to %+d, mean %+.1f ms\n",
			take.MinMs-startMs, take.MaxMs-startMs, take.SumMs/float64(take.Count)-startMs)
	}
	return b.String()
}
