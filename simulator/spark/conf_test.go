package spark

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stategauge/stategauge/event"
)

func version(t testing.TB, text string) event.Version {
	t.Helper()
	v, err := ParseVersion(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVersionsAreRead(t *testing.T) {
	for text, want := range map[string]string{
		"3.4": "3.4.4", "3.5": "3.5.8", "4.0": "4.0.5", "4.1": "4.1.4", "4.2": "4.2.1", "4.3": "4.3.0",
		"4.1.0": "4.1.0", "3.5.3": "3.5.3",
	} {
		if v, err := ParseVersion(text); err != nil || v.String() != want {
			t.Errorf("%s is read as %s, %v", text, v, err)
		}
	}
	for text, want := range map[string]string{
		"":        `spark version "" is not like 3.5 or 4.1.4`,
		"4":       `spark version "4" is not like 3.5 or 4.1.4`,
		"4.1.x":   `spark version "4.1.x" is not like 3.5 or 4.1.4`,
		"4.-1":    `spark version "4.-1" is not like 3.5 or 4.1.4`,
		"4.1.0.1": `spark version "4.1.0.1" is not like 3.5 or 4.1.4`,
		"3.3":     `spark version "3.3" cannot be played, only 3.4, 3.5, 4.0, 4.1, 4.2, 4.3`,
	} {
		if _, err := ParseVersion(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if got := Versions(); len(got) != 6 || !slices.IsSortedFunc(got, func(a, b event.Version) int {
		if a.Less(b) {
			return -1
		}
		return 1
	}) {
		t.Errorf("versions are %v", got)
	}
}

func TestDefaultsByVersion(t *testing.T) {
	base := Conf{
		Provider: HDFS, MaxMemoryBytes: 500 << 20, WriteBufferCacheRatio: 0.5, BlockBytes: 4 << 10, BlockCacheBytes: 8 << 20,
		TrackRows: true, ResetStatsOnLoad: true, MinDeltasForSnapshot: 10, MaintenanceInterval: time.Minute,
		CheckpointFormat: 1, JoinFormat: 2, MinBatchesToRetain: 100, MaxBatchesInMemory: 2,
		ShufflePartitions: 200, NoDataBatches: true, IdleInterval: 10 * time.Second, LocalityWait: 3 * time.Second,
	}
	for text, change := range map[string]func(*Conf){
		"3.4": func(c *Conf) { c.MaxMemoryBytes, c.WriteBufferCacheRatio = 0, 0 },
		"3.5": func(*Conf) {},
		"4.0": func(c *Conf) { c.ExtraSpaceRatio = 0.3 },
		"4.1": func(c *Conf) { c.ExtraSpaceRatio, c.InstancesToReport = 0.3, 5 },
		"4.2": func(c *Conf) {
			c.ExtraSpaceRatio, c.InstancesToReport, c.ForceSnapshotUploadOnLag, c.AutoSnapshotRepair = 0.3, 5, true, true
		},
	} {
		want := base
		change(&want)
		got, faults := ParseConf(nil, version(t, text))
		if faults != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v, %v\nwant\n%+v", text, got, faults, want)
		}
	}
}

func TestEverySettingIsHeeded(t *testing.T) {
	given := map[string]string{
		stateStore + "providerClass": RocksDBClass, rocksDB + "changelogCheckpointing.enabled": "TRUE",
		rocksDB + "COMPACToncommit": "true", rocksDB + "boundedMemoryUsage": "true", rocksDB + "maxMemoryUsageMB": "64",
		rocksDB + "writeBufferCacheRatio": "0.25", rocksDB + "writeBufferSizeMB": "16", rocksDB + "maxWriteBufferNumber": "4",
		rocksDB + "blockSizeKB": "32", rocksDB + "blockCacheSizeMB": "1", rocksDB + "trackTotalNumberOfRows": "false",
		rocksDB + "resetStatsOnLoad": "false", stateStore + "minDeltasForSnapshot": "5", stateStore + "maintenanceInterval": "2m",
		stateStore + "forceSnapshotUploadOnLag": "false", stateStore + "unloadOnCommit": "true",
		stateStore + "autoSnapshotRepair.enabled": "false", stateStore + "checkpointFormatVersion": "2", joinFormat: "4",
		streaming + "minBatchesToRetain": "20", streaming + "maxBatchesToRetainInMemory": "0",
		streaming + "ratioExtraSpaceAllowedInCheckpoint": "1.5", stateStore + "numStateStoreInstanceMetricsToReport": "50",
		"spark.sql.shuffle.partitions": " 32 ", streaming + "noDataMicroBatches.enabled": "false",
		streaming + "noDataProgressEventInterval": "5000", "spark.locality.wait": "0s", streaming + "multipleWatermarkPolicy": "MAX",
		"spark.executor.memory": "4g",
	}
	got, faults := ParseConf(given, version(t, "4.3"))
	if faults != nil {
		t.Fatal(faults)
	}
	want := Conf{
		RocksDB, true, true, true, 64 << 20, 0.25, 16 << 20, 4, 32 << 10, 1 << 20, false, false, 5, 2 * time.Minute, false, true, false,
		2, 4, 20, 0, 1.5, 50, 32, false, 5 * time.Second, 0, true, given,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

func TestSettingsOfNewerVersionsHaveNoEffect(t *testing.T) {
	given := map[string]string{
		rocksDB + "changelogCheckpointing.enabled": "true", rocksDB + "boundedMemoryUsage": "true",
		stateStore + "unloadOnCommit": "true", stateStore + "checkpointFormatVersion": "2",
		stateStore + "forceSnapshotUploadOnLag": "true", rocksDB + "maxMemoryUsageMB": "nonsense",
	}
	got, faults := ParseConf(given, version(t, "3.4"))
	want := defaults(version(t, "3.4"))
	want.Given = given
	if faults != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, faults)
	}
}

func TestFaultsOfSettingsAreAllReturned(t *testing.T) {
	for _, c := range []struct {
		version    string
		key, value string
		want       string
	}{
		{"3.5", rocksDB + "changelogCheckpointing.enable", "true", `unknown setting "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enable", ` +
			`did you mean "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"?`},
		{"3.5", "spark.sql.shuffle.partition", "8", `unknown setting "spark.sql.shuffle.partition", did you mean "spark.sql.shuffle.partitions"?`},
		{"3.5", "spark.locality.wiat", "8", `unknown setting "spark.locality.wiat", did you mean "spark.locality.wait"?`},
		{"3.5", "spark.sql.streaming.x", "8", `unknown setting "spark.sql.streaming.x"`},
		{"3.5", stateStore + "providerClass", "rocksdb", "spark.sql.streaming.stateStore.providerClass (rocksdb) must be " + RocksDBClass + " or " + HDFSClass},
		{"3.5", "spark.sql.shuffle.partitions", "0", "spark.sql.shuffle.partitions (0) must be a whole number of at least 1"},
		{"3.5", "spark.sql.shuffle.partitions", "many", "spark.sql.shuffle.partitions (many) must be a whole number of at least 1"},
		{"3.5", rocksDB + "blockSizeKB", "4k", rocksDB + "blockSizeKB (4k) must be a whole number of at least 1"},
		{"3.5", rocksDB + "compactOnCommit", "yes", rocksDB + "compactOnCommit (yes) must be true or false"},
		{"3.5", rocksDB + "writeBufferCacheRatio", "1.5", rocksDB + "writeBufferCacheRatio (1.5) must be a number from 0 to 1"},
		{"4.0", streaming + "ratioExtraSpaceAllowedInCheckpoint", "NaN", streaming + "ratioExtraSpaceAllowedInCheckpoint (NaN) must be a number of at least 0"},
		{"3.5", stateStore + "maintenanceInterval", "soon", stateStore + "maintenanceInterval (soon) must be a duration such as 500ms, 60s or 1m"},
		{"3.5", stateStore + "maintenanceInterval", "10parsecs", stateStore + "maintenanceInterval (10parsecs) must be a duration such as 500ms, 60s or 1m"},
		{"3.5", stateStore + "maintenanceInterval", "99999999999999999d", stateStore + "maintenanceInterval (99999999999999999d) must be a duration such as 500ms, 60s or 1m"},
		{"3.5", streaming + "multipleWatermarkPolicy", "mean", streaming + "multipleWatermarkPolicy (mean) must be min or max"},
		{"4.0", stateStore + "checkpointFormatVersion", "3", stateStore + "checkpointFormatVersion (3) must be one of [1 2]"},
		{"4.0", stateStore + "checkpointFormatVersion", "2", stateStore + "checkpointFormatVersion (2) needs the RocksDB provider"},
		{"4.2", joinFormat, "4", joinFormat + " (4) needs the RocksDB provider"},
		{"4.0", joinFormat, "3", joinFormat + " (3) is refused by Spark 4.0, the first to know it is 4.1"},
	} {
		_, faults := ParseConf(map[string]string{c.key: c.value}, version(t, c.version))
		if len(faults) == 0 || faults[0].Error() != c.want {
			t.Errorf("%v\nwant %s", faults, c.want)
		}
	}
	_, faults := ParseConf(map[string]string{"spark.sql.streaming.b": "", "spark.sql.streaming.a": "", "spark.locality.wait": "x"}, version(t, "4.1"))
	if err := errors.Join(faults...).Error(); strings.Count(err, "\n") != 2 || strings.Index(err, "locality") > strings.Index(err, "streaming.a") {
		t.Errorf("faults come in the order of keys, all of them: %s", err)
	}
}

func TestOffsetLogsPinSettings(t *testing.T) {
	c, _ := ParseConf(map[string]string{"spark.sql.shuffle.partitions": "8"}, version(t, "4.1"))
	got := c.OffsetLogConf(version(t, "4.1"))
	if got["spark.sql.shuffle.partitions"] != "8" || got[stateStore+"providerClass"] != HDFSClass || got[stateStore+"encodingFormat"] != "unsaferow" {
		t.Errorf("pinned %v", got)
	}
	if old := c.OffsetLogConf(version(t, "3.5")); len(old) != len(got)-1 || old[stateStore+"encodingFormat"] != "" {
		t.Errorf("3.5 pinned %v", slices.Sorted(maps.Keys(old)))
	}
}

func TestSettingsToldWithoutAny(t *testing.T) {
	c, _ := ParseConf(map[string]string{rocksDB + "MAXMEMORYUSAGEMB": "70"}, version(t, "3.5"))
	want := "[{spark.sql.streaming.stateStore.providerClass " + HDFSClass + "} {spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB 70}" +
		" {spark.sql.streaming.stateStore.minDeltasForSnapshot 10} {spark.sql.streaming.minBatchesToRetain 100}" +
		" {spark.sql.streaming.stateStore.maintenanceInterval 60000ms} {spark.sql.shuffle.partitions 200}]"
	if got := fmt.Sprint(c.ListenerConf(version(t, "3.5"))); got != want {
		t.Errorf("told %s\nwant %s", got, want)
	}
}
