package filesource

import (
	"bytes"
	"encoding/json"

	"github.com/stategauge/stategauge/event"
)

// application is what an event log says of the application that wrote it. Query
// events themselves do not say it.
type application struct {
	app  event.App
	conf map[string]string
}

// eventPrefix begins every line of an event log.
const eventPrefix = `{"Event":"`

// otherLine returns the type of an event log line that is no streaming query's.
func otherLine(line []byte) (typ string, ok bool) {
	rest, found := bytes.CutPrefix(line, []byte(eventPrefix))
	if !found {
		return "", false
	}
	name, _, found := bytes.Cut(rest[:min(len(rest), 160)], []byte{'"'})
	if !found || bytes.Contains(name, []byte("StreamingQueryListener$")) {
		return "", false
	}
	return string(name), true
}

// learn takes what a line says about the application. A line that cannot be read
// says nothing.
func (a *application) learn(typ string, line []byte) {
	switch typ {
	case "SparkListenerLogStart":
		var l struct {
			Version string `json:"Spark Version"`
		}
		if json.Unmarshal(line, &l) == nil {
			a.app.SparkVersion = l.Version
		}
	case "SparkListenerApplicationStart":
		var l struct {
			Name string `json:"App Name"`
			ID   string `json:"App ID"`
		}
		if json.Unmarshal(line, &l) == nil {
			a.app.Name, a.app.ID = l.Name, l.ID
		}
	case "SparkListenerEnvironmentUpdate":
		var l struct {
			Properties map[string]string `json:"Spark Properties"`
		}
		if json.Unmarshal(line, &l) == nil {
			a.conf = allowed(l.Properties)
		}
	}
}

// settings are the Spark settings that judgements need; others may hold secrets.
var settings = []string{
	"spark.sql.streaming.stateStore.providerClass",
	"spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled",
	"spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage",
	"spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB",
	"spark.sql.streaming.stateStore.rocksdb.compactOnCommit",
	"spark.sql.streaming.stateStore.minDeltasForSnapshot",
	"spark.sql.streaming.stateStore.maintenanceInterval",
	"spark.sql.streaming.minBatchesToRetain",
	"spark.sql.shuffle.partitions",
	"spark.locality.wait",
}

func allowed(all map[string]string) map[string]string {
	out := map[string]string{}
	for _, key := range settings {
		if v, ok := all[key]; ok {
			out[key] = v
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// apply adds what is known to an event that brings no envelope of its own.
func (a *application) apply(ev *event.Event) {
	if ev.Envelope != nil || (a.app == event.App{} && a.conf == nil) {
		return
	}
	ev.Envelope = &event.Envelope{
		Seq: event.Absent, Dropped: event.Absent, AtMs: event.Absent, App: a.app, Conf: a.conf,
	}
	name := a.app.Name
	if name == "" {
		name = a.app.ID
	}
	if name == "" || ev.Query.Application != "" {
		return
	}
	ev.Query.Application = name
	if ev.Batch != nil {
		ev.Batch.Query.Application = name
	}
}
