package event

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files and docs/metrics.md")

// goldenRow renders everything about a row that readers of its series or of its
// stored values rely on, one row per line.
func goldenRow(m Metric) string {
	return strings.Join([]string{
		fmt.Sprintf("%3d", m.ID), m.JSON, m.Scope.String(), m.Provider.String(), m.Unit.String(), m.Kind.String(),
		sinceText(m), fmt.Sprintf("x%g", m.Scale), seriesText(m), m.Quirks.String(),
	}, " | ")
}

func sinceText(m Metric) string {
	if m.Since.IsZero() {
		return "databricks"
	}
	return m.Since.String()
}

func seriesText(m Metric) string {
	if m.LabelName == "" {
		return m.Series
	}
	return fmt.Sprintf("%s{%s=%q}", m.Series, m.LabelName, m.LabelValue)
}

func goldenCatalog(rows []Metric) string {
	var b strings.Builder
	for _, m := range rows {
		b.WriteString(strings.TrimRight(goldenRow(m), " |") + "\n")
	}
	return b.String()
}

const catalogGolden = "testdata/catalog.golden"

func TestCatalogIsAsRecorded(t *testing.T) {
	got := goldenCatalog(Catalog())
	if *update {
		refuseRenumbering(t, catalogGolden, got)
		writeFile(t, catalogGolden, got)
	}
	if diff := cmp.Diff(strings.Split(readFile(t, catalogGolden), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("catalog differs from %s (-recorded +now):\n%s\nids and series are read by others; record an intended change with `make generate`", catalogGolden, diff)
	}
}

// refuseRenumbering keeps ids append-only even for whoever rewrites the golden
// file: a recorded id keeps its key for ever, because ids are stored.
func refuseRenumbering(t *testing.T, file, now string) {
	t.Helper()
	if _, err := os.Stat(file); os.IsNotExist(err) {
		return
	}
	if err := appendOnly(readFile(t, file), now); err != nil {
		t.Fatal(err)
	}
}

func appendOnly(before, now string) error {
	kept := idKeys(now)
	for id, key := range idKeys(before) {
		if kept[id] != key {
			return fmt.Errorf("metric id %s was %q and would become %q: ids are append-only", id, key, kept[id])
		}
	}
	return nil
}

func idKeys(golden string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(golden) {
		cells := strings.SplitN(line, " | ", 4)
		if len(cells) == 4 {
			out[strings.TrimSpace(cells[0])] = cells[2] + " " + cells[1]
		}
	}
	return out
}

func TestRecordedIdsAreAppendOnly(t *testing.T) {
	rows := Catalog()
	before := goldenCatalog(rows)
	grown := append(Catalog(), Metric{ID: NumMetrics, JSON: "somethingNew", Series: prefix + "something_new"})
	if err := appendOnly(before, goldenCatalog(grown)); err != nil {
		t.Errorf("a new row at the end: %v", err)
	}
	if err := appendOnly(before, goldenCatalog(rows[:len(rows)-1])); err == nil {
		t.Error("a row taken away was let pass")
	}
	rows[3].JSON, rows[4].JSON = rows[4].JSON, rows[3].JSON
	if err := appendOnly(before, goldenCatalog(rows)); err == nil {
		t.Error("two rows that change places were let pass")
	}
}

// Whatever is changed in one row must show: this is the proof that the golden
// file guards unit, kind, scale and the rest, row by row.
func TestChangingAnythingInARowShowsInTheGoldenFile(t *testing.T) {
	changes := map[string]func(*Metric){
		"unit":     func(m *Metric) { m.Unit = (m.Unit + 1) % (UnitFiles + 1) },
		"kind":     func(m *Metric) { m.Kind = (m.Kind + 1) % (KindPerInstance + 1) },
		"scale":    func(m *Metric) { m.Scale *= 1000 },
		"scope":    func(m *Metric) { m.Scope = (m.Scope + 1) % (ScopeSource + 1) },
		"provider": func(m *Metric) { m.Provider = (m.Provider + 1) % (ProviderUnknown + 1) },
		"since":    func(m *Metric) { m.Since.Minor++ },
		"quirks":   func(m *Metric) { m.Quirks ^= QuirkPercentile },
		"series":   func(m *Metric) { m.Series += "x" },
		"label":    func(m *Metric) { m.LabelName, m.LabelValue = "what", m.LabelValue+"x" },
		"key":      func(m *Metric) { m.JSON += "x" },
	}
	for what, change := range changes {
		for _, m := range Catalog() {
			was := goldenRow(m)
			change(&m)
			if goldenRow(m) == was {
				t.Errorf("metric %d: changing its %s does not show", m.ID, what)
			}
		}
	}
}

func TestEveryRowStandsAtItsOwnID(t *testing.T) {
	for i, m := range Catalog() {
		if int(m.ID) != i {
			t.Errorf("row %d holds metric %d (%s)", i, m.ID, m.JSON)
		}
		if Lookup(m.ID).JSON != m.JSON {
			t.Errorf("Lookup(%d) finds %s, want %s", m.ID, Lookup(m.ID).JSON, m.JSON)
		}
	}
	if NumMetrics >= int(FirstUnknown) {
		t.Errorf("the catalog reaches into the ids of unknown keys: %d", NumMetrics)
	}
}

func TestCatalogGivesACopy(t *testing.T) {
	Catalog()[0].JSON = "spoiled"
	if Lookup(0).JSON == "spoiled" {
		t.Error("a caller can change the catalog")
	}
}

func TestKeysAreUniqueWithinAScope(t *testing.T) {
	seen := map[string]MetricID{}
	for _, m := range Catalog() {
		k := m.Scope.String() + " " + m.JSON
		if prev, ok := seen[k]; ok {
			t.Errorf("%s belongs to metrics %d and %d", k, prev, m.ID)
		}
		seen[k] = m.ID
	}
}

func TestSeriesWithTheirLabelAreUnique(t *testing.T) {
	// The query's total stands in for its sources where a carrier names no sources.
	shared := map[MetricID]bool{NumInputRows: true, SourceNumInputRows: true}
	seen := map[string]MetricID{}
	for _, m := range Catalog() {
		s := seriesText(m)
		if prev, ok := seen[s]; ok && !(shared[m.ID] && shared[prev]) {
			t.Errorf("%s is fed by metrics %d and %d", s, prev, m.ID)
		}
		seen[s] = m.ID
	}
}

func TestRowsOfOneFamilyAgree(t *testing.T) {
	first := map[string]Metric{}
	for _, m := range Catalog() {
		f, ok := first[m.Series]
		if !ok {
			first[m.Series] = m
			continue
		}
		if f.Unit != m.Unit || f.Kind != m.Kind || f.LabelName != m.LabelName {
			t.Errorf("%s: metrics %d and %d differ in unit, kind or label name", m.Series, f.ID, m.ID)
		}
		if f.Help != m.Help {
			t.Errorf("%s: metrics %d and %d differ in help", m.Series, f.ID, m.ID)
		}
	}
}

var classicName = regexp.MustCompile(`^spark_streaming_[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

func TestSeriesNamesAreClassic(t *testing.T) {
	for _, m := range Catalog() {
		if !classicName.MatchString(m.Series) {
			t.Errorf("metric %d: %q is no classic snake_case name", m.ID, m.Series)
		}
		if (m.LabelName == "") != (m.LabelValue == "") {
			t.Errorf("metric %d: label %q has value %q", m.ID, m.LabelName, m.LabelValue)
		}
	}
}

// The batch duration is the one per-batch figure that is a histogram, which sums
// and counts by itself.
func TestCountersAndOnlyCountersEndInTotal(t *testing.T) {
	for _, m := range Catalog() {
		counter := (m.Kind == KindWork && m.ID != BatchDuration) || m.Kind == KindCumulative
		if strings.HasSuffix(m.Series, "_total") != counter {
			t.Errorf("metric %d: %s is of kind %s", m.ID, m.Series, m.Kind)
		}
	}
}

func TestSeriesNamesEndInTheirUnit(t *testing.T) {
	suffix := map[Unit]string{UnitSeconds: "_seconds", UnitBytes: "_bytes", UnitTimestamp: "_timestamp_seconds", UnitRowsPerSecond: "_per_second"}
	// The family's name is set by what people look for; the unit stands inside it.
	inside := map[MetricID]string{
		RocksDBZipFileBytesUncompressed: "_bytes_", RocksDBTotalBytesRead: "_bytes_", RocksDBTotalBytesWritten: "_bytes_",
		RocksDBTotalBytesReadThroughIterator: "_bytes_", RocksDBTotalBytesReadByCompaction: "_bytes_",
		RocksDBTotalBytesWrittenByCompaction: "_bytes_", RocksDBTotalBytesWrittenByFlush: "_bytes_", SourceNumBytesOutstanding: "_bytes_",
	}
	for _, m := range Catalog() {
		want, ok := suffix[m.Unit]
		name := strings.TrimSuffix(m.Series, "_total")
		if ok && !strings.HasSuffix(name, want) && (inside[m.ID] == "" || !strings.Contains(name, inside[m.ID])) {
			t.Errorf("metric %d: %s is in %s", m.ID, m.Series, m.Unit)
		}
	}
}

func TestScaleFollowsFromKeyAndUnit(t *testing.T) {
	for _, m := range Catalog() {
		want := 1.0
		switch {
		case m.Quirks&QuirkNanoseconds != 0:
			want = 1e-9
		case m.Unit == UnitSeconds || m.Unit == UnitTimestamp:
			want = 1e-3
		}
		if m.Scale != want {
			t.Errorf("metric %d (%s): scale %g, want %g for %s", m.ID, m.JSON, m.Scale, want, m.Unit)
		}
	}
}

func TestEveryRowExplainsItself(t *testing.T) {
	for _, m := range Catalog() {
		if len(m.Help) < 15 || !strings.HasSuffix(m.Help, ".") || strings.ContainsAny(m.Help, "\n\"\\") {
			t.Errorf("metric %d (%s): help must be a plain sentence: %q", m.ID, m.JSON, m.Help)
		}
		if m.Scope.String() == "unknown" || m.Unit.String() == "unknown" || m.Kind.String() == "unknown" {
			t.Errorf("metric %d (%s): scope, unit or kind has no name", m.ID, m.JSON)
		}
	}
}

func TestByKeyFindsEveryMetricInItsScopeOnly(t *testing.T) {
	for _, m := range Catalog() {
		if id, ok := ByKey(m.Scope, []byte(m.JSON)); !ok || id != m.ID {
			t.Errorf("%s %s: found %d, %v", m.Scope, m.JSON, id, ok)
		}
	}
	if id, ok := ByKey(ScopeQuery, []byte("rocksdbSstFileSize")); ok {
		t.Errorf("an operator's key was found in the query: %d", id)
	}
	if id, ok := ByKey(ScopeOperator, []byte("rocksdbSomethingNew")); ok {
		t.Errorf("an unknown key was found: %d", id)
	}
}

func TestByKeyKnowsOlderAndForeignSpellings(t *testing.T) {
	for alias, want := range map[string]MetricID{
		"numLateInputs":                 NumRowsDroppedByWatermark,
		"numDuplicatesDropped":          NumDroppedDuplicateRows,
		"rocksdbTotalBytesReadByGet":    RocksDBTotalBytesRead,
		"rocksdbTotalBytesWrittenByPut": RocksDBTotalBytesWritten,
	} {
		if id, ok := ByKey(ScopeOperator, []byte(alias)); !ok || id != want {
			t.Errorf("%s: found %d, %v; want %d", alias, id, ok, want)
		}
	}
}

func TestByKeyDoesNotAllocate(t *testing.T) {
	key := []byte("rocksdbCommitFileSyncLatencyMs")
	if n := testing.AllocsPerRun(100, func() { ByKey(ScopeOperator, key) }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

func TestQuirksAreSpelledOut(t *testing.T) {
	for q := QuirkTwoOfFour; q <= QuirkPercentile; q <<= 1 {
		if q.String() == "" {
			t.Errorf("quirk %#x has no words", uint32(q))
		}
	}
	if got, want := (QuirkMinusOne | QuirkTwoOfFour).String(), "two of a join's four stores; -1 is unknown"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if Quirks(0).String() != "" {
		t.Errorf("no quirk reads %q", Quirks(0))
	}
}

func TestVersionsAreOrderedAndPrinted(t *testing.T) {
	ordered := []Version{{}, {2, 4, 8}, {3, 0, 0}, {3, 2, 0}, {3, 2, 1}, {3, 10, 0}, {4, 0, 0}}
	for i := range ordered {
		for j := range ordered {
			if got := ordered[i].Less(ordered[j]); got != (i < j) {
				t.Errorf("%v < %v is %v", ordered[i], ordered[j], got)
			}
		}
	}
	if got := (Version{3, 10, 2}).String(); got != "3.10.2" {
		t.Errorf("got %q", got)
	}
	if got := (Version{}).String(); got != "" {
		t.Errorf("the zero version reads %q", got)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.FromSlash(name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
