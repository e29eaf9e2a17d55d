package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Names below the root.
const (
	metadataName = "metadata"
	offsetsName  = "offsets"
	commitsName  = "commits"
	sourcesName  = "sources"
	stateName    = "state"
)

// Dir is one query's checkpoint. Its methods are for the driver, one at a time;
// the StateDirs of different stores may be used at the same time as each other
// and as it.
type Dir struct {
	files
	root string

	mu     sync.Mutex
	states map[string]*StateDir // by path
}

// Open returns the checkpoint below root, making its folders where they are
// missing. Files that a writer left behind when it died are deleted, so nobody
// else may be writing to it at that moment.
func Open(fsys vfs.FS, root string) (*Dir, error) {
	if root == "" {
		return nil, errors.New("checkpoint folder must have a name")
	}
	d := &Dir{
		files:  files{fs: fsys, known: make(map[string]bool)},
		root:   root,
		states: make(map[string]*StateDir),
	}
	for _, name := range []string{offsetsName, commitsName} {
		if err := d.mkdir(d.path(name)); err != nil {
			return nil, err
		}
	}
	if err := d.sweep(root); err != nil {
		return nil, err
	}
	return d, nil
}

// SetSeed fixes the unique parts of temporary names; without it they come from 0.
func (d *Dir) SetSeed(seed uint64) {
	d.files.mu.Lock()
	defer d.files.mu.Unlock()
	d.seed = seed
}

// Root returns the folder that Open was given.
func (d *Dir) Root() string { return d.root }

// FS returns the file system that Open was given.
func (d *Dir) FS() vfs.FS { return d.fs }

func (d *Dir) path(parts ...string) string {
	return d.fs.PathJoin(append([]string{d.root}, parts...)...)
}

// sweep deletes temporary files below dir.
func (d *Dir) sweep(dir string) error {
	names, err := d.list(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := d.sweepEntry(dir, name); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dir) sweepEntry(dir, name string) error {
	path := d.fs.PathJoin(dir, name)
	if isTemp(name) {
		return d.remove(path)
	}
	folder, err := d.isFolder(path, name)
	if err != nil || !folder {
		return err
	}
	return d.sweep(path)
}

// isFolder tells folders from files, by the name alone where that is enough:
// a checkpoint has tens of thousands of files and asking each one takes time.
func (d *Dir) isFolder(path, name string) (bool, error) {
	if strings.Contains(name, ".") {
		return false, nil
	}
	info, err := d.fs.Stat(path)
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", path, err)
	}
	return info.IsDir(), nil
}

// Remove deletes the checkpoint with all that is in it. The Dir and its
// StateDirs are of no use afterwards; Open makes a new one. The folder goes away
// under another name first, so that a crash leaves all of it or nothing.
func (d *Dir) Remove() error {
	d.forget()
	doomed := d.root + ".deleted"
	if err := d.fs.RemoveAll(doomed); err != nil {
		return fmt.Errorf("delete checkpoint %s: %w", doomed, err)
	}
	if err := d.fs.Rename(d.root, doomed); err != nil {
		doomed = d.root // where a disk is mounted, which can not be renamed
	}
	if err := d.fs.RemoveAll(doomed); err != nil {
		return fmt.Errorf("delete checkpoint %s: %w", d.root, err)
	}
	return nil
}

// QueryID returns the query's id; ok is false for a checkpoint that has none yet.
func (d *Dir) QueryID() (id string, ok bool, err error) {
	path := d.path(metadataName)
	data, err := d.read(path, maxLogBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	var m struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return "", false, damaged(path, "%v", err)
	}
	if m.ID == "" {
		return "", false, damaged(path, "no query id")
	}
	return m.ID, true, nil
}

// SetQueryID writes the query's id, which stays the same for the checkpoint's
// life.
func (d *Dir) SetQueryID(id string) error {
	data, err := encode(struct {
		ID string `json:"id"`
	}{id})
	if err != nil {
		return fmt.Errorf("query id: %w", err)
	}
	return d.write(d.path(metadataName), data)
}

// WriteSource writes a file of a source's own, such as the offsets that a Kafka
// source began at.
func (d *Dir) WriteSource(source int, name string, data []byte) error {
	if err := plainName(name); err != nil {
		return fmt.Errorf("file of source %d: %w", source, err)
	}
	return d.write(d.path(sourcesName, strconv.Itoa(source), name), data)
}

// Source reads a file that WriteSource wrote.
func (d *Dir) Source(source int, name string) ([]byte, error) {
	if err := plainName(name); err != nil {
		return nil, fmt.Errorf("file of source %d: %w", source, err)
	}
	return d.read(d.path(sourcesName, strconv.Itoa(source), name), maxLogBytes)
}

// plainName refuses names that would lie somewhere else or that readers pass over.
func plainName(name string) error {
	if name == "" || isSide(name) || strings.ContainsAny(name, `/\`) {
		return fmt.Errorf("%q is no plain file name", name)
	}
	return nil
}

// operatorJSON is the second line of an operator's metadata.
type operatorJSON struct {
	Operator struct {
		ID   int    `json:"operatorId"`
		Name string `json:"operatorName"`
	} `json:"operatorInfo"`
	Stores []storeJSON `json:"stateStoreInfo"`
}

type storeJSON struct {
	Name          string `json:"storeName"`
	PrefixColumns int    `json:"numColsPrefixKey"`
	Partitions    int    `json:"numPartitions"`
}

// WriteOperator writes what Spark 4 keeps about a stateful operator.
func (d *Dir) WriteOperator(o OperatorInfo) error {
	var j operatorJSON
	j.Operator.ID, j.Operator.Name = o.ID, o.Name
	j.Stores = make([]storeJSON, 0, len(o.Stores))
	for _, s := range o.Stores {
		j.Stores = append(j.Stores, storeJSON(s))
	}
	data, err := encode(j)
	if err != nil {
		return fmt.Errorf("metadata of operator %d: %w", o.ID, err)
	}
	return d.write(d.operatorPath(o.ID), append([]byte("v1\n"), data...))
}

// Operator reads what WriteOperator wrote. Checkpoints of Spark 3 have none.
func (d *Dir) Operator(id int) (OperatorInfo, error) {
	path := d.operatorPath(id)
	data, err := d.read(path, maxLogBytes)
	if err != nil {
		return OperatorInfo{}, err
	}
	_, body, err := header(path, data, 1)
	if err != nil {
		return OperatorInfo{}, err
	}
	var j operatorJSON
	if err := json.Unmarshal(body, &j); err != nil {
		return OperatorInfo{}, damaged(path, "%v", err)
	}
	o := OperatorInfo{ID: j.Operator.ID, Name: j.Operator.Name}
	for _, s := range j.Stores {
		o.Stores = append(o.Stores, StoreInfo(s))
	}
	return o, nil
}

func (d *Dir) operatorPath(id int) string {
	return d.path(stateName, strconv.Itoa(id), "_metadata", "metadata")
}
