package rules

import (
	"math"
	"strings"
	"testing"
)

func TestNumbersAreShownForPeople(t *testing.T) {
	for _, c := range []struct {
		text, want string
	}{
		{`{{ humanize 0 }}`, "0"},
		{`{{ humanize 12345 }}`, "12.3k"},
		{`{{ humanize 999999 }}`, "1M"},
		{`{{ humanize -1500 }}`, "-1.5k"},
		{`{{ humanize 0.001234 }}`, "0.00123"},
		{`{{ humanizeBytes 1536 }}`, "1.5KiB"},
		{`{{ humanizeBytes 5e9 }}`, "4.66GiB"},
		{`{{ humanizeDuration 0 }}`, "0s"},
		{`{{ humanizeDuration 0.0851 }}`, "85.1ms"},
		{`{{ humanizeDuration 12.34 }}`, "12.3s"},
		{`{{ humanizeDuration 250 }}`, "4m10s"},
		{`{{ humanizeDuration 3600 }}`, "1h"},
		{`{{ humanizeDuration 93600 }}`, "1d2h"},
		{`{{ humanizeDuration 86400 }}`, "1d"},
		{`{{ humanizeDuration 1e12 }}`, "unknown"},
		{`{{ percent 0.256 }}`, "25.6%"},
		{`{{ percent -0.5 }}`, "-50%"},
		{`{{ show "seconds" 1.5 }}`, "1.5s"},
		{`{{ show "bytes" 2048 }}`, "2KiB"},
		{`{{ show "ratio" 0.5 }}`, "50%"},
		{`{{ show "rows" 5000 }}`, "5k rows"},
		{`{{ show "count" 5 }}`, "5"},
		{`{{ humanize .Value }}`, "unknown"},
		{`{{ percent .Value }}`, "unknown"},
		{`{{ humanize .LastBatch }}`, "7"},
	} {
		tmpl, err := parseTemplate(c.text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := execute(tmpl, &Data{Value: math.NaN(), LastBatch: 7})
		if err != nil || got != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.text, got, err, c.want)
		}
	}
}

func TestLongTextsAreCutBetweenCharacters(t *testing.T) {
	tmpl, err := parseTemplate(`{{ printf "x%s" .Alert }}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, long := range []string{strings.Repeat("é", 5000), strings.Repeat("a", 1<<20)} {
		got, err := execute(tmpl, &Data{Alert: long})
		if err != nil || len(got) > maxAnnotationBytes || !strings.HasSuffix(got, "...") || strings.ToValidUTF8(got, "") != got {
			t.Errorf("%d bytes became %d, %v, ending in %q", len(long), len(got), err, got[max(0, len(got)-5):])
		}
	}
}

func TestAPanickingTemplateIsAnError(t *testing.T) {
	tmpl, err := parseTemplate(`{{ index .Phases 5 }}{{ .Query.Name }}`)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := execute(tmpl, &Data{}); err == nil || got != "" {
		t.Errorf("got %q, %v, want an error", got, err)
	}
}
