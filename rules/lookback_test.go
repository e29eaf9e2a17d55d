package rules

import (
	"testing"
	"time"
)

func lookbackOf(t *testing.T, detector string) time.Duration {
	t.Helper()
	p, err := Load(Source{Name: "r.yaml", Data: []byte(`
signals:
  took: {of: query, value: duration_ms / 1000, unit: seconds}
groups:
  - name: g
    rules:
      - alert: A
        signal: took
        ` + detector + `
        labels: {severity: info, symptom: x}
        annotations: {summary: s, description: d}
`)})
	if err != nil {
		t.Fatal(err)
	}
	return p.Lookback()
}

func TestAPackIsReadBackAsFarAsItsLongestWindowAndHold(t *testing.T) {
	for _, c := range []struct {
		detector string
		want     time.Duration
	}{
		{"above: {limit: 5s}", time.Hour},
		{"above: {limit: 5s}\n        for: 90m", 150 * time.Minute},
		{"rising: {over: 120 batches and 2h, agree_over: 240 batches and 4h}", 4 * time.Hour},
		{"rising: {over: 120 batches and 2h, level: {recent: 40 batches and 30m, before: 100 batches and 3h, by: 30%}}", 210 * time.Minute},
		{"shifted: {recent: 20 batches and 20m, baseline: 100 batches and 2h}", 140 * time.Minute},
		{"reaches: {limit: 60s, within: 24h, over: 120 batches and 2h, agree_over: 500 batches and 4h}", 500 * time.Minute},
		{"rising: {over: 30000 batches}", 24 * time.Hour},
	} {
		if got := lookbackOf(t, c.detector); got != c.want {
			t.Errorf("%s: read back %s, want %s", c.detector, got, c.want)
		}
	}
}
