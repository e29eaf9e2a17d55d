package checkpoint

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// sstsName is the folder of a store's tables.
const sstsName = "SSTs"

// suffixes are the ends of names, by kind.
var suffixes = [...]string{KindSnapshot: ".zip", KindChangelog: ".changelog", KindMap: ".snapshot", KindDelta: ".delta"}

// StateDir is the folder of one state store. One goroutine at a time uses it.
type StateDir struct {
	files *files
	path  string

	mu   sync.Mutex
	refs map[string][]string // tables that a snapshot points to, by the zip's name, where known
}

// State returns the folder of a store; the same one for the same arguments. The
// store "default" has none of its own below the partition's. Nothing is made
// before something is written.
func (d *Dir) State(operator, partition int, store string) *StateDir {
	path := d.path(stateName, strconv.Itoa(operator), strconv.Itoa(partition))
	if store != "" && store != "default" {
		path = d.fs.PathJoin(path, strings.Map(plainRune, store))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.states[path]
	if s == nil {
		s = &StateDir{files: &d.files, path: path, refs: make(map[string][]string)}
		d.states[path] = s
	}
	return s
}

func plainRune(r rune) rune {
	if r == '/' || r == '\\' || r == '.' {
		return '_'
	}
	return r
}

// Path returns where the folder is.
func (s *StateDir) Path() string { return s.path }

// name returns the name of a version's file.
func (f StateFile) name() string {
	v := strconv.FormatInt(f.Version, 10)
	if f.UniqueID != "" {
		v += "_" + f.UniqueID
	}
	return v + suffixes[f.Kind]
}

// parseStateFile reads a name; ok is false for one that is no version's file.
func parseStateFile(name string) (f StateFile, ok bool) {
	if isSide(name) {
		return f, false
	}
	for kind, suffix := range suffixes {
		stem, found := strings.CutSuffix(name, suffix)
		if !found {
			continue
		}
		version, id, _ := strings.Cut(stem, "_")
		n, ok := number(version)
		return StateFile{Version: n, UniqueID: id, Kind: Kind(kind)}, ok
	}
	return f, false
}

func (s *StateDir) join(parts ...string) string {
	return s.files.fs.PathJoin(append([]string{s.path}, parts...)...)
}

func (s *StateDir) write(f StateFile, data []byte) (int64, error) {
	return int64(len(data)), s.files.write(s.join(f.name()), data)
}

func (s *StateDir) read(f StateFile) ([]byte, error) {
	return s.files.read(s.join(f.name()), maxStateBytes)
}

// WriteChangelog writes what the batch that made a version changed. uniqueID is
// empty but for checkpoint format 2. It returns the size.
func (s *StateDir) WriteChangelog(version int64, uniqueID string, data []byte) (int64, error) {
	return s.write(StateFile{version, uniqueID, KindChangelog}, data)
}

// Changelog reads what WriteChangelog wrote.
func (s *StateDir) Changelog(version int64, uniqueID string) ([]byte, error) {
	return s.read(StateFile{version, uniqueID, KindChangelog})
}

// WriteDelta writes what the batch that made a version changed, for the HDFS
// provider.
func (s *StateDir) WriteDelta(version int64, data []byte) (int64, error) {
	return s.write(StateFile{version, "", KindDelta}, data)
}

// Delta reads what WriteDelta wrote.
func (s *StateDir) Delta(version int64) ([]byte, error) {
	return s.read(StateFile{version, "", KindDelta})
}

// WriteSnapshotFile writes a version's whole state, for the HDFS provider.
func (s *StateDir) WriteSnapshotFile(version int64, data []byte) (int64, error) {
	return s.write(StateFile{version, "", KindMap}, data)
}

// SnapshotFile reads what WriteSnapshotFile wrote.
func (s *StateDir) SnapshotFile(version int64) ([]byte, error) {
	return s.read(StateFile{version, "", KindMap})
}

// PutSST makes a table of a local database part of the checkpoint under the
// name dfsName, and returns its size. It belongs to nothing until a snapshot
// points to it.
func (s *StateDir) PutSST(local vfs.FS, localPath, dfsName string) (int64, error) {
	if err := plainName(dfsName); err != nil {
		return 0, fmt.Errorf("table of %s: %w", s.path, err)
	}
	var n int64
	err := s.files.place(s.join(sstsName, dfsName), func(temp string) (err error) {
		n, err = s.files.bring(local, localPath, s.files.fs, temp)
		return err
	})
	return n, err
}

// FetchSST makes a table of the checkpoint part of a local folder that must be
// there already, and returns its size.
func (s *StateDir) FetchSST(dfsName string, local vfs.FS, localPath string) (int64, error) {
	if err := plainName(dfsName); err != nil {
		return 0, fmt.Errorf("table of %s: %w", s.path, err)
	}
	return s.files.bring(s.files.fs, s.join(sstsName, dfsName), local, localPath)
}

// Files returns the files of all versions, by version, then kind, then id.
func (s *StateDir) Files() ([]StateFile, error) {
	found, _, err := s.scan()
	return found, err
}

func (s *StateDir) scan() (found []StateFile, listed int, err error) {
	names, err := s.files.list(s.path)
	if err != nil {
		return nil, 0, err
	}
	for _, name := range names {
		if f, ok := parseStateFile(name); ok {
			found = append(found, f)
		}
	}
	slices.SortFunc(found, func(a, b StateFile) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Kind, b.Kind), strings.Compare(a.UniqueID, b.UniqueID))
	})
	return found, len(names), nil
}

// List returns the versions that have a snapshot, and those that have a
// changelog (or a delta), each sorted and once.
func (s *StateDir) List() (snapshots, changelogs []int64, err error) {
	found, err := s.Files()
	for _, f := range found {
		if f.whole() {
			snapshots = append(snapshots, f.Version)
		} else {
			changelogs = append(changelogs, f.Version)
		}
	}
	return slices.Compact(snapshots), slices.Compact(changelogs), err
}

// whole tells whether the file alone is enough to load its version.
func (f StateFile) whole() bool { return f.Kind == KindSnapshot || f.Kind == KindMap }

// DeleteVersions deletes what no version from keepFrom on needs: files before
// the newest snapshot that is not after keepFrom, and tables that no snapshot
// points to. Without such a snapshot all changelogs are needed. The caller
// sees to it that no snapshot of this store is on its way meanwhile.
func (s *StateDir) DeleteVersions(keepFrom int64) (Deleted, error) {
	found, listed, err := s.scan()
	if err != nil {
		return Deleted{}, err
	}
	base := int64(0)
	for _, f := range found {
		if f.whole() && f.Version <= keepFrom {
			base = f.Version
		}
	}
	del := Deleted{Listed: listed}
	kept := found[:0:0]
	for _, f := range found {
		// The base's own changelog made it, and is not needed to load it; Spark
		// keeps it nevertheless.
		if f.Version >= base {
			kept = append(kept, f)
			continue
		}
		if err := s.remove(f); err != nil {
			return del, err
		}
		del.Files++
	}
	return s.deleteOrphans(kept, del)
}

func (s *StateDir) remove(f StateFile) error {
	name := f.name()
	if err := s.files.remove(s.join(name)); err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.refs, name)
	s.mu.Unlock()
	return nil
}

// deleteOrphans deletes tables that none of the files kept points to.
func (s *StateDir) deleteOrphans(kept []StateFile, del Deleted) (Deleted, error) {
	names, err := s.files.list(s.join(sstsName))
	if err != nil || len(names) == 0 {
		return del, err
	}
	del.Listed += len(names)
	used := make(map[string]bool, len(names))
	for _, f := range kept {
		if f.Kind != KindSnapshot {
			continue
		}
		tables, err := s.tables(f)
		if err != nil {
			return del, err
		}
		for _, t := range tables {
			used[t] = true
		}
	}
	for _, name := range names {
		if used[name] || isSide(name) {
			continue
		}
		if err := s.files.remove(s.join(sstsName, name)); err != nil {
			return del, err
		}
		del.SSTs++
	}
	return del, nil
}

// tables returns the tables that a snapshot points to, reading it once.
func (s *StateDir) tables(f StateFile) ([]string, error) {
	s.mu.Lock()
	names, ok := s.refs[f.name()]
	s.mu.Unlock()
	if ok {
		return names, nil
	}
	snap, err := s.Snapshot(f.Version, f.UniqueID)
	if err != nil {
		return nil, err
	}
	return s.remember(f, snap.SSTs), nil
}

func (s *StateDir) remember(f StateFile, ssts []SST) []string {
	names := make([]string, len(ssts))
	for i, t := range ssts {
		names[i] = t.DFS
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refs[f.name()] = names
	return names
}
