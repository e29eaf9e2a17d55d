package checkpoint

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Limits on what is read into memory at once, far above what is ever written.
const (
	maxLogBytes   = 16 << 20
	maxStateBytes = 1 << 30
)

// category tells Pebble's disk accounting nothing: checkpoints are no database.
const category = vfs.WriteCategoryUnspecified

// files is the file system below one checkpoint: everything is written under a
// temporary name first. Safe for concurrent use on different names.
type files struct {
	fs vfs.FS

	mu    sync.Mutex
	seed  uint64
	drawn uint64
	known map[string]bool // folders that were made or seen
}

// tempName returns a name beside path that readers pass over. Its unique part
// comes from the seed, never from the machine, so that runs can be compared.
func (f *files) tempName(path string) string {
	f.mu.Lock()
	f.drawn++
	seed, n := f.seed, f.drawn
	f.mu.Unlock()
	dir, base := f.fs.PathDir(path), f.fs.PathBase(path)
	return f.fs.PathJoin(dir, "."+base+"."+uuid(seed, n, base)+".tmp")
}

// uuid returns the text of a version 4 UUID made from its arguments.
func uuid(seed, n uint64, name string) string {
	h := fnv.New128a()
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], seed)
	binary.LittleEndian.PutUint64(b[8:], n)
	h.Write(b[:])
	h.Write([]byte(name))
	u := h.Sum(b[:0])
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// isTemp tells whether a file was on its way when its writer died.
func isTemp(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".tmp")
}

// isSide tells whether a file belongs to another one: temporary ones, Hadoop's
// hidden checksums and the .crc files of Spark 4.1.
func isSide(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".crc")
}

// write makes a file appear at path with the data, replacing what was there.
func (f *files) write(path string, data []byte) error {
	return f.place(path, func(temp string) error { return f.writeTemp(temp, data) })
}

// place lets fill make a temporary file and gives it its name when it is whole.
func (f *files) place(path string, fill func(temp string) error) error {
	if err := f.mkdir(f.fs.PathDir(path)); err != nil {
		return err
	}
	temp := f.tempName(path)
	if err := fill(temp); err != nil {
		_ = f.fs.Remove(temp) // what failed is reported; a leftover goes at the next Open
		return err
	}
	if err := f.fs.Rename(temp, path); err != nil {
		_ = f.fs.Remove(temp)
		return fmt.Errorf("name %s: %w", path, err)
	}
	return f.syncDir(f.fs.PathDir(path))
}

func (f *files) writeTemp(temp string, data []byte) error {
	w, err := f.fs.Create(temp, category)
	if err != nil {
		return fmt.Errorf("create %s: %w", temp, err)
	}
	return finish(w, temp, writeCopy(w, data))
}

// writeCopy writes data by way of a buffer, since a file may change what it is
// given to write and data is the caller's.
func writeCopy(w vfs.File, data []byte) error {
	buf := copyBuffers.Get().(*[]byte)
	defer copyBuffers.Put(buf)
	for len(data) > 0 {
		n := copy(*buf, data)
		if _, err := w.Write((*buf)[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// finish syncs and closes a file that was written, unless writing failed.
func finish(w vfs.File, name string, err error) error {
	if err == nil {
		err = w.Sync()
	}
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// bring makes the file at from on another file system appear at path, and
// returns its size. A hard link does where both are the same one in memory: on
// a real disk the copy is the work that a run with real times is to measure.
func (f *files) bring(src vfs.FS, from string, dst vfs.FS, temp string) (int64, error) {
	if src == dst && inMemory(src) {
		return link(src, from, temp)
	}
	r, err := src.Open(from)
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", from, err)
	}
	defer r.Close()
	w, err := dst.Create(temp, category)
	if err != nil {
		return 0, fmt.Errorf("create %s: %w", temp, err)
	}
	n, err := copyAll(w, r)
	return n, finish(w, temp, err)
}

func link(fs vfs.FS, from, to string) (int64, error) {
	info, err := fs.Stat(from)
	if err != nil {
		return 0, fmt.Errorf("look at %s: %w", from, err)
	}
	if err := fs.Link(from, to); err != nil {
		return 0, fmt.Errorf("link %s: %w", from, err)
	}
	return info.Size(), nil
}

var copyBuffers = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}

// copyAll copies without the ReadFrom and WriteTo shortcuts, whose buffers would
// be new for each file.
func copyAll(w vfs.File, r vfs.File) (int64, error) {
	buf := copyBuffers.Get().(*[]byte)
	defer copyBuffers.Put(buf)
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, *buf)
}

func inMemory(fs vfs.FS) bool {
	_, ok := vfs.Root(fs).(*vfs.MemFS)
	return ok
}

// read returns a whole file; limit bounds what a foreign one may take.
func (f *files) read(path string, limit int64) ([]byte, error) {
	r, err := f.fs.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", path, err)
	}
	if info.IsDir() || info.Size() > limit {
		return nil, fmt.Errorf("%s: no file of at most %d bytes: %w", path, limit, ErrDamaged)
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return data, nil
}

// list returns the names in a folder, sorted; none where there is no folder.
func (f *files) list(dir string) ([]string, error) {
	names, err := f.fs.List(dir)
	if oserror.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	slices.Sort(names)
	return names, nil
}

// remove deletes a file; one that is gone already is no error.
func (f *files) remove(path string) error {
	if err := f.fs.Remove(path); err != nil && !oserror.IsNotExist(err) {
		return fmt.Errorf("delete %s: %w", path, err)
	}
	return nil
}

// mkdir makes a folder and those above it, each known to the disk before what
// lies in it.
func (f *files) mkdir(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mkdirLocked(dir)
}

func (f *files) mkdirLocked(dir string) error {
	if f.known[dir] {
		return nil
	}
	if info, err := f.fs.Stat(dir); err == nil && info.IsDir() {
		f.known[dir] = true
		return nil
	}
	above := f.fs.PathDir(dir)
	if above != dir && above != "." {
		if err := f.mkdirLocked(above); err != nil {
			return err
		}
	}
	if err := f.fs.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make folder %s: %w", dir, err)
	}
	if above != "." {
		if err := f.syncDir(above); err != nil {
			return err
		}
	}
	f.known[dir] = true
	return nil
}

// forget makes folders be made anew: they may have been deleted.
func (f *files) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.known)
}

func (f *files) syncDir(dir string) error {
	d, err := f.fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("open folder %s: %w", dir, err)
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("sync folder %s: %w", dir, err)
	}
	return nil
}
