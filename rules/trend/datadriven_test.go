package trend

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestWindowsFromText runs testdata/windows: "new" makes both windows, "push"
// takes one value, or value/load, a word (value*12 repeats it, "-" skips a batch),
// "rising" and "level" judge.
func TestWindowsFromText(t *testing.T) {
	var r textWindows
	datadriven.RunTest(t, "testdata/windows", func(t *testing.T, d *datadriven.TestData) string {
		switch d.Cmd {
		case "new":
			return r.start(t, d)
		case "push":
			return r.push(t, d)
		case "rising":
			return r.rising(t, d)
		case "level":
			return r.level(t, d)
		}
		t.Fatalf("unknown command %s", d.Cmd)
		return ""
	})
}

type textWindows struct {
	window   *Window
	baseline *LevelWindow
	batch    int64
	everyMs  int64
}

func (r *textWindows) start(t *testing.T, d *datadriven.TestData) string {
	var batches, recent, before int
	every, ms, points := 60, 0, 0
	d.ScanArgs(t, "batches", &batches)
	d.MaybeScanArgs(t, "seconds", &ms)
	d.MaybeScanArgs(t, "every", &every)
	d.MaybeScanArgs(t, "points", &points)
	d.MaybeScanArgs(t, "recent", &recent)
	d.MaybeScanArgs(t, "before", &before)
	*r = textWindows{everyMs: int64(every) * 1000}
	r.window = NewWindow(Span{Batches: batches, Ms: int64(ms) * 1000}, points)
	r.baseline = NewLevelWindow(Span{Batches: recent}, Span{Batches: before})
	return ""
}

func (r *textWindows) push(t *testing.T, d *datadriven.TestData) string {
	for _, word := range strings.Fields(d.Input) {
		text, times, repeated := strings.Cut(word, "*")
		n := 1
		if repeated {
			n, _ = strconv.Atoi(times)
		}
		for range n {
			r.pushOne(t, text)
		}
	}
	return fmt.Sprintf("%d points, %d batches, %d s, full %v\n", r.window.Len(), r.window.Batches(), r.window.SpanMs()/1000, r.window.Full())
}

func (r *textWindows) pushOne(t *testing.T, text string) {
	p := Point{Batch: r.batch, AtMs: r.batch * r.everyMs, Load: math.NaN()}
	r.batch++
	if text == "-" {
		return
	}
	value, load, loaded := strings.Cut(text, "/")
	var err error
	if p.Value, err = strconv.ParseFloat(value, 64); err != nil {
		t.Fatal(err)
	}
	if loaded {
		p.Load, _ = strconv.ParseFloat(load, 64)
	}
	r.window.Push(p)
	r.baseline.Push(p)
}

func (r *textWindows) rising(t *testing.T, d *datadriven.TestData) string {
	o := RisingOptions{AdjustForLoad: d.HasArg("load"), Falling: d.HasArg("falling")}
	var by, least string
	d.MaybeScanArgs(t, "by", &by)
	d.MaybeScanArgs(t, "at_least", &least)
	o.By, _ = strconv.ParseFloat(by, 64)
	o.AtLeast, _ = strconv.ParseFloat(least, 64)
	x := r.window.Rising(o)
	out := fmt.Sprintf("%s, raw z %.2f\n", x.Verdict, x.RawZ)
	if x.N > 0 {
		out += fmt.Sprintf("%d kept, %d outliers, z %.2f, r1 %.2f, %.1f to %.1f, %.3f a batch\n", x.N, x.Outliers, x.Z, x.R1, x.Start, x.End, x.SlopePerBatch)
	}
	if x.Since >= 0 {
		out += fmt.Sprintf("since batch %d, rise %.1f to %.1f\n", x.Since, x.RiseLow, x.RiseHigh)
	}
	if x.Load.Adjusted.N > 0 {
		out += fmt.Sprintf("elasticity %.2f, with time %v, adjusted %.1f to %.1f\n", x.Load.Elasticity, x.Load.WithTime, x.Load.Adjusted.Start, x.Load.Adjusted.End)
	}
	return out
}

func (r *textWindows) level(t *testing.T, d *datadriven.TestData) string {
	var by string
	d.MaybeScanArgs(t, "by", &by)
	o := LevelOptions{AdjustForLoad: d.HasArg("load")}
	o.By, _ = strconv.ParseFloat(by, 64)
	x := r.baseline.Level(o)
	return fmt.Sprintf("%s: %.1f after %.1f, ratio %.2f, since %d\n", x.Verdict, x.Recent, x.Before, x.Ratio, x.Since)
}
