package replay

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/rules"
)

func TestARecordThatCannotBeReadCostsNoOther(t *testing.T) {
	dir := t.TempDir()
	k := newKeeper(t, dir)
	for n := range int64(5) {
		k.received(executed("a", n), noon+n*60_000+20_100)
	}
	k.step.Records[2].Body = k.step.Records[2].Body[:30]
	k.step.Records[3].Body = []byte{0, 250}
	k.commit()
	b := backtest(t, BacktestOptions{Inputs: Inputs{Paths: []string{"history:" + dir}}, Rules: packOf(t, uploadRules)})
	if b.Events != 3 || b.Rejected != 2 || len(b.Rejects) != 2 {
		t.Fatalf("%d events, %d rejected", b.Events, b.Rejected)
	}
	for i, want := range []string{"2031-01-16 12:02:00Z: decode record: ", "2031-01-16 12:03:00Z: decode record: version 250"} {
		got := b.Rejects[i]
		if got.File != "history:"+dir || !strings.Contains(got.Reason, "query id-a at "+want) {
			t.Errorf("%+v", got)
		}
	}
}

func TestAnEndedReplayOfAHistoryLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	k := newKeeper(t, dir)
	for n := range int64(2000) {
		k.received(executed("a", n), noon+n*60_000+20_100)
	}
	k.close()
	before := runtime.NumGoroutine()
	ctx, stop := context.WithCancel(t.Context())
	n := 0
	_, err := Merge(ctx, Inputs{Paths: []string{"history:" + dir}}, func(*collector.Item) {
		if n++; n == 10 {
			stop()
		}
	})
	if n != 10 || err == nil {
		t.Errorf("%d events, error %v", n, err)
	}
	for range 1_000_000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

func TestARuleTestReadsAHistoryBesideItsFile(t *testing.T) {
	dir := t.TempDir()
	k := newKeeper(t, filepath.Join(dir, "kept"))
	k.hearText([]byte(uploadsSlowedDown("shop", 400, 150, 260).text()))
	k.commit()
	o := caseOptions()
	o.RuleFiles = nil
	o.Rules = func([]string) (*rules.Pack, error) { return packOf(t, uploadRules), nil }
	results, err := RunCases(t.Context(), filepath.Join(dir, "tests.yaml"), []byte(`
tests:
  - name: kept
    events: history:kept
    expect: [{symptom: commit-sync-rising, from_batch: 150, by_batch: 190}]
`), o)
	if err != nil || len(results) != 1 || len(results[0].Failures) > 0 {
		t.Errorf("%+v, error %v", results, err)
	}
}

func TestManyErrorsAreSaidOnceAndCounted(t *testing.T) {
	var f failures
	f.add(nil)
	if f.err() != nil {
		t.Error(f.err())
	}
	for i := range 3 {
		f.add(errors.New(fmt.Sprint("fault ", i)))
	}
	if got := f.err().Error(); got != "fault 0\nand 2 errors more" {
		t.Errorf("%q", got)
	}
}
