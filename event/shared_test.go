package event

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The facts about Spark are also kept as a list of every field that a progress
// can hold, outside the project and read from Spark's sources by other hands.
// Where that list is at hand the catalog must agree with it row by row; what
// deviates stands here with its reason.

// versionsSettledLater lists rows whose first version the list leaves open and
// what the catalog settled on.
var versionsSettledLater = map[string]struct {
	since Version
	why   string
}{
	"rocksdbNumSnapshotsAutoRepaired": {Version{4, 2, 0}, "committed after the 4.1 branch was cut"},
	"numSnapshotsAutoRepaired":        {Version{4, 2, 0}, "committed after the 4.1 branch was cut"},
	"trigger.intervalMs":              {Version{4, 4, 0}, "in no release yet; master after 4.3.0"},
	"trigger.batchDurationMs":         {Version{4, 4, 0}, "in no release yet; master after 4.3.0"},
	"batchDuration":                   {Version{3, 1, 0}, "3.0 or 3.1 in the event log, 4.0.0 in .json: the earliest that is certain"},
}

// seenRunning lists the metrics that the list lacks and a running Spark sends.
var seenRunning = map[string]string{
	"numRowsReadDuringEviction":   "4.3.0, deduplication: testdata/spark/4.3.0/dedupe-restart",
	"numRowsIncrementallyRemoved": "4.3.0, deduplication: testdata/spark/4.3.0/dedupe-restart",
}

// notInTheCatalog lists the fields that are no number of the catalog and which
// part of a Batch or Event takes them.
var notInTheCatalog = map[string]string{
	"id":                             "Batch.Query.ID",
	"runId":                          "Batch.Run",
	"name":                           "Batch.Query.Name",
	"timestamp":                      "Batch.StartMs",
	"sink.description":               "Batch.Description",
	"sink.metrics":                   "skipped: text of any shape",
	"sources[].description":          "Source.Description",
	"sources[].startOffset":          "Source.Read",
	"sources[].endOffset":            "Source.Read and Source.Backlog",
	"sources[].latestOffset":         "Source.Backlog",
	"sources[].metrics":              "the catalog's sources.metrics rows",
	"stateOperators[].operatorName":  "Operator.Name",
	"stateOperators[].customMetrics": "the catalog's operator rows and Operator.Unknown",
	"stateOperators[].snapshotCustomMetricNames":                                       "skipped: an internal list of keys",
	"stateOperators[].customMetrics.SnapshotLastUploaded.partition_<p>_<store> (hdfs)": "same key as RocksDB's, one row of the catalog",
	"observedMetrics.<name>.<column>":                                                  "Batch.Observed",
	"trigger":                                                                          "Batch.Trigger",
	"trigger.type":                                                                     "Batch.Trigger",
	"rtmMetrics":                                                                       "Batch.Percentiles",
	"latencies":                                                                        "Batch.Percentiles, another name of rtmMetrics",
}

// scopeAndKey turns the list's path into the catalog's scope and key.
func scopeAndKey(path string) (Scope, string) {
	path = strings.TrimSuffix(path, ".<P>")
	if rest, ok := strings.CutPrefix(path, "stateOperators[]."); ok {
		rest = strings.TrimPrefix(rest, "customMetrics.")
		return ScopeOperator, strings.TrimSuffix(rest, ".partition_<p>_<store>")
	}
	if strings.HasPrefix(path, "sources[].") {
		return ScopeSource, "sources." + strings.TrimPrefix(path, "sources[].")
	}
	return ScopeQuery, path
}

// unitAndScale reads the list's unit of the raw number.
func unitAndScale(text, key string) (Unit, float64, bool) {
	switch first, _, _ := strings.Cut(text, " ("); {
	case strings.HasPrefix(text, "NANOSECONDS"):
		return UnitSeconds, 1e-9, true
	case first == "ms":
		return UnitSeconds, 1e-3, true
	case first == "ISO8601" && strings.HasPrefix(key, "eventTime."):
		return UnitTimestamp, 1e-3, true
	case first == "state version":
		return UnitVersions, 1, true
	default:
		u, ok := map[string]Unit{
			"bytes": UnitBytes, "count": UnitCount, "int": UnitCount, "rows": UnitRows, "rows/s": UnitRowsPerSecond,
			"offsets": UnitOffsets, "files": UnitFiles,
		}[first]
		return u, 1, ok
	}
}

// kindOf reads the list's description of a number's behaviour.
func kindOf(text string) (MetricKind, bool) {
	for _, k := range []struct {
		prefix string
		kind   MetricKind
	}{
		{"per_batch_sum", KindWork},
		{"constant 0", KindWork},
		{"cumulative", KindCumulative},
		{"per_instance", KindPerInstance},
		{"gauge_state", KindLevel},
		{"derived", KindLevel},
		{"per_batch", KindLevel}, // event times and percentiles: the newest counts, nothing adds up
	} {
		if strings.HasPrefix(text, k.prefix) {
			return k.kind, true
		}
	}
	return 0, false
}

func providerOf(text string) Provider {
	switch text {
	case "rocksdb":
		return ProviderRocksDB
	case "hdfs":
		return ProviderHDFS
	}
	return ProviderAny
}

func TestCatalogAgreesWithTheListReadFromSparksSources(t *testing.T) {
	rows := sharedMetrics(t)
	seen := map[MetricID]bool{}
	for _, r := range rows {
		path := r["json_path_or_name"]
		if _, ok := notInTheCatalog[path]; ok {
			continue
		}
		scope, key := scopeAndKey(path)
		id, ok := ByKey(scope, []byte(key))
		if !ok {
			t.Errorf("%s is neither in the catalog nor among the fields handled elsewhere", path)
			continue
		}
		seen[id] = true
		checkAgainstList(t, Lookup(id), r)
	}
	for _, m := range Catalog() {
		if seenRunning[m.JSON] == "" && !seen[m.ID] {
			t.Errorf("metric %d (%s) is not in the list", m.ID, m.JSON)
		}
	}
}

func checkAgainstList(t *testing.T, m *Metric, r map[string]string) {
	t.Helper()
	unit, scale, ok := unitAndScale(r["unit"], m.JSON)
	if !ok || unit != m.Unit || scale != m.Scale {
		t.Errorf("%s: unit %s x%g, the list says %q", m.JSON, m.Unit, m.Scale, r["unit"])
	}
	kind, ok := kindOf(r["semantic"])
	if !ok || kind != m.Kind {
		t.Errorf("%s: kind %s, the list says %q", m.JSON, m.Kind, r["semantic"])
	}
	if p := providerOf(r["provider"]); p != m.Provider && m.ID != SnapshotLastUploaded {
		t.Errorf("%s: provider %s, the list says %q", m.JSON, m.Provider, r["provider"])
	}
	checkVersion(t, m, r["first_spark_version"])
}

func checkVersion(t *testing.T, m *Metric, text string) {
	t.Helper()
	if later, ok := versionsSettledLater[m.JSON]; ok {
		if m.Since != later.since {
			t.Errorf("%s: since %s, settled on %s (%s)", m.JSON, m.Since, later.since, later.why)
		}
		return
	}
	if strings.Contains(text, "Databricks") || text == "n/a" {
		if !m.Since.IsZero() {
			t.Errorf("%s: since %s, but Apache Spark does not send it", m.JSON, m.Since)
		}
		return
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(text, "<="), " ")
	short := strings.TrimSuffix(m.Since.String(), ".0")
	if first != m.Since.String() && first != short {
		t.Errorf("%s: since %s, the list says %q", m.JSON, m.Since, text)
	}
}

func TestFieldsHandledElsewhereAreInTheListAndNotInTheCatalog(t *testing.T) {
	listed := map[string]bool{}
	for _, r := range sharedMetrics(t) {
		listed[r["json_path_or_name"]] = true
	}
	for path := range notInTheCatalog {
		if !listed[path] {
			t.Errorf("%s is not in the list any more", path)
		}
		scope, key := scopeAndKey(path)
		if id, ok := ByKey(scope, []byte(key)); ok {
			t.Errorf("%s is metric %d of the catalog as well", path, id)
		}
	}
}

// sharedMetrics reads the list, one map of column to cell per row.
func sharedMetrics(t *testing.T) []map[string]string {
	t.Helper()
	dir := os.Getenv("STATEGAUGE_SHARED")
	if dir == "" {
		t.Skip("STATEGAUGE_SHARED is not set: no second list of Spark's fields to compare with")
	}
	f, err := os.Open(filepath.Join(dir, "spark", "metrics.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 100 {
		t.Fatalf("only %d rows", len(all))
	}
	var out []map[string]string
	for _, cells := range all[1:] {
		row := map[string]string{}
		for i, c := range cells {
			row[all[0][i]] = strings.TrimSpace(c)
		}
		out = append(out, row)
	}
	return out
}
