package exporter

import (
	"strings"

	"github.com/stategauge/stategauge/event"
)

// measureUnknown shows the keys of o that the catalog does not have, as gauges of
// the newest batch. A time above limitMs is left out like any other.
func (x *Exporter) measureUnknown(q *query, e *entity, o *event.Operator, limitMs float64) {
	if q.past {
		return
	}
	for _, at := range e.op.unknown {
		q.next[at] = absent
	}
	for i := range o.Unknown {
		kv := &o.Unknown[i]
		v := kv.Value
		if v != v {
			continue
		}
		at, ok := e.op.unknown[kv.Key]
		if !ok {
			if at, ok = x.unknownSlot(q, e, kv.Key); !ok {
				continue
			}
		}
		if v-v != 0 || isTime(kv.Key) && (v < 0 || v > limitMs) {
			x.implausible("unknown")
			continue
		}
		q.next[at] = v
	}
}

// unknownSlot makes the series of an unknown key.
func (x *Exporter) unknownSlot(q *query, e *entity, key string) (uint32, bool) {
	at, reason := uint32(0), dropUnknownKeys
	if len(e.op.unknown) < x.o.UnknownKeysPerOperator {
		x.mu.Lock()
		at, reason = x.placeUnknown(q, e, key)
		x.mu.Unlock()
	}
	if reason != "" {
		x.drop(reason, q)
		return 0, false
	}
	if e.op.unknown == nil {
		e.op.unknown = map[string]uint32{}
	}
	e.op.unknown[key] = at
	return at, true
}

// placeUnknown makes the series and, if need be, its family, or returns the limit
// that forbids it. The caller holds mu.
func (x *Exporter) placeUnknown(q *query, e *entity, key string) (at uint32, reason string) {
	f := x.keys[key]
	if f == nil && len(x.keys) >= x.o.UnknownKeys {
		return 0, dropUnknownKeys
	}
	if reason := x.admit(q, gaugeWeight); reason != "" {
		return 0, reason
	}
	if f == nil {
		f = x.addUnknown(key)
	}
	return x.place(q, f, e.labels, nil, nil), ""
}

// addUnknown makes the family of an unknown key. The caller holds mu.
func (x *Exporter) addUnknown(key string) *family {
	name, unit, s := unknownFamilyName(key)
	help := "Newest batch's figure of " + cleanValue(key, x.o.LabelBytes) + ", a metric that is not in the catalog."
	f := newFamily(x.freeName(name), help, unit, gauge, s)
	if unitFor(f.name, event.UnitSeconds) == "" && unitFor(f.name, event.UnitBytes) == "" {
		f = newFamily(f.name, help, "", gauge, s) // renamed, so it does not end in its unit
	}
	f.dynamic = true
	x.keys[key], x.keyOf[f] = f, key
	x.unknownKeys.Store(int64(len(x.keys)))
	return x.addFamily(f)
}

// forgetKey frees the name of a dynamic family. The caller holds mu.
func (x *Exporter) forgetKey(f *family) {
	key, ok := x.keyOf[f]
	if !ok {
		return
	}
	delete(x.keys, key)
	delete(x.keyOf, f)
	x.unknownKeys.Store(int64(len(x.keys)))
}

// freeName returns a name like name that no other family has, nor the samples of
// one: formats add these suffixes to names of their own. The caller holds mu.
func (x *Exporter) freeName(name string) string {
	if reservedName(name) || x.byName[name] != nil {
		name += "_value"
	}
	for x.byName[name] != nil { // two keys that differ only in what names cannot hold
		name += "_" + hashMark(name)[1:]
	}
	return name
}

func reservedName(name string) bool {
	for _, s := range []string{"_total", "_bucket", "_sum", "_count", "_info", "_created"} {
		if strings.HasSuffix(name, s) {
			return true
		}
	}
	return false
}

// maxName bounds the part of a name that comes from a key.
const maxName = 120

// unknownFamilyName makes the name of a family, its unit and scale from a key: in
// snake case, with the unit that its suffix tells. Latencies are milliseconds
// whether they say so or not, like all of Spark's.
func unknownFamilyName(key string) (name, unit string, s scale) {
	name = snake(key)
	if len(name) > maxName {
		name = name[:maxName-9] + "_" + hashMark(key)[1:]
	}
	switch {
	case isTime(key):
		return prefix + strings.TrimSuffix(name, "_ms") + "_seconds", "seconds", scaleOf(1e-3)
	case strings.HasSuffix(name, "_bytes"):
		return prefix + name, "bytes", scaleOf(1)
	default:
		return prefix + name, "", scaleOf(1)
	}
}

// isTime reports whether the figure of a key is a time in milliseconds.
func isTime(key string) bool {
	return strings.HasSuffix(key, "Ms") || strings.HasSuffix(key, "Latency") ||
		strings.HasSuffix(key, "_ms") || strings.HasSuffix(key, "_latency")
}

// snake turns a key into words in lower case: rocksdbFooTTLBytes into
// rocksdb_foo_ttl_bytes. What a name cannot hold becomes an underscore.
func snake(key string) string {
	b := make([]byte, 0, len(key)+8)
	for i := range len(key) {
		c := key[i]
		switch {
		case isUpper(c):
			begins := i > 0 && !isUpper(key[i-1]) || i > 0 && i+1 < len(key) && isLower(key[i+1])
			if begins && len(b) > 0 && b[len(b)-1] != '_' {
				b = append(b, '_')
			}
			b = append(b, c+'a'-'A')
		case isLower(c) || c >= '0' && c <= '9':
			b = append(b, c)
		case len(b) > 0 && b[len(b)-1] != '_':
			b = append(b, '_')
		}
	}
	if name := strings.TrimSuffix(string(b), "_"); name != "" {
		return name
	}
	return "unnamed"
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
