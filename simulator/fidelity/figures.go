package fidelity

import (
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Batch is one progress report taken apart: which keys it has, and every number
// by its path.
type Batch struct {
	ID         int64
	RunID      string
	StartMs    int64
	DurationMs int64 // of the trigger, or of the batch where that is told
	// Keys are the paths of all keys, sorted. Offsets are not taken apart, and all
	// keys that name a store's last snapshot count as one: which of them are told
	// is Spark's choice.
	Keys   []string
	Values map[string]float64
}

// uploaded is the beginning of the keys that name each store's last snapshot, and
// the path that stands for the lowest of them.
const uploaded = "SnapshotLastUploaded"

// whole are the keys whose value is the source's affair, not taken apart.
var whole = map[string]bool{"startOffset": true, "endOffset": true, "latestOffset": true}

// parseBatch takes a listener event apart; false where it is no progress.
func parseBatch(text []byte) (Batch, bool, error) {
	var p struct {
		RunID     string             `json:"runId"`
		Timestamp string             `json:"timestamp"`
		BatchID   *int64             `json:"batchId"`
		Duration  int64              `json:"batchDuration"`
		Phases    map[string]float64 `json:"durationMs"`
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return Batch{}, false, fmt.Errorf("event: %w", err)
	}
	if p.BatchID == nil {
		return Batch{}, false, nil
	}
	at, err := time.Parse(time.RFC3339, p.Timestamp)
	if err != nil {
		return Batch{}, false, fmt.Errorf("batch %d: %w", *p.BatchID, err)
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return Batch{}, false, fmt.Errorf("batch %d: %w", *p.BatchID, err)
	}
	b := Batch{ID: *p.BatchID, RunID: p.RunID, StartMs: at.UnixMilli(), DurationMs: p.Duration, Values: map[string]float64{}}
	if b.DurationMs == 0 {
		b.DurationMs = int64(p.Phases["triggerExecution"])
	}
	keys := map[string]bool{}
	flatten(&b, keys, "", all)
	for k := range keys {
		b.Keys = append(b.Keys, k)
	}
	sort.Strings(b.Keys)
	return b, true, nil
}

// flatten walks an object and files what it finds under its path. An operator's
// and a source's position is part of the path.
func flatten(b *Batch, keys map[string]bool, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			b.file(keys, path, name, inner)
		}
	case []any:
		for i, inner := range v {
			flatten(b, keys, path+strconv.Itoa(i)+".", inner)
		}
	}
}

func (b *Batch) file(keys map[string]bool, path, name string, v any) {
	if strings.HasPrefix(name, uploaded) {
		name = uploaded
		old, seen := b.Values[path+name]
		if n, ok := v.(float64); ok && (!seen || n < old) {
			b.Values[path+name] = n
		}
		keys[path+name] = true
		return
	}
	keys[path+name] = true
	if n, ok := v.(float64); ok {
		b.Values[path+name] = n
	}
	if path == "eventTime." {
		if at, err := time.Parse(time.RFC3339, fmt.Sprint(v)); err == nil {
			b.Values[path+name] = float64(at.UnixMilli())
		}
	}
	if !whole[name] {
		flatten(b, keys, path+name+".", v)
	}
}

// Operators counts the stateful operators.
func (b *Batch) Operators() int {
	n := 0
	for ; ; n++ {
		if _, ok := b.Values[operatorPath(n)+"numRowsTotal"]; !ok {
			return n
		}
	}
}

func operatorPath(i int) string { return "stateOperators." + strconv.Itoa(i) + "." }

// sourceRows is how many rows each source read. Of a source whose offsets are
// seconds with perSecond rows the offsets tell, because rows that are read again
// for a task that was lost are counted twice.
func (b *Batch) sourceRows(perSecond int64) (rows []int64) {
	for i := 0; ; i++ {
		path := "sources." + strconv.Itoa(i) + "."
		n, ok := b.Values[path+"numInputRows"]
		if !ok {
			return rows
		}
		from, to := b.Values[path+"startOffset"], b.Values[path+"endOffset"]
		if to > from && perSecond > 0 {
			n = (to - from) * float64(perSecond)
		}
		rows = append(rows, int64(n))
	}
}

func (b *Batch) has(key string) bool {
	i := sort.SearchStrings(b.Keys, key)
	return i < len(b.Keys) && b.Keys[i] == key
}
