package checkpoint

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// maxZipBytes bounds what is unpacked: small files are some tens of kilobytes.
const maxZipBytes = 64 << 20

// snapshotJSON is the second line of the file metadata in a snapshot's zip.
type snapshotJSON struct {
	SSTs             []SST           `json:"sstFiles"`
	Keys             int64           `json:"numKeys"`
	InternalKeys     *int64          `json:"numInternalKeys,omitempty"`
	Families         map[string]int  `json:"columnFamilyMapping,omitempty"`
	InternalFamilies map[string]bool `json:"columnFamilyTypeMap,omitempty"`
	MaxFamily        *int            `json:"maxColumnFamilyId,omitempty"`
}

var zipBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// WriteSnapshot writes <version>.zip and returns how much its files take
// unpacked. The tables must be there already. uniqueID is empty but for
// checkpoint format 2.
func (s *StateDir) WriteSnapshot(version int64, uniqueID string, snap *Snapshot) (int64, error) {
	f := StateFile{version, uniqueID, KindSnapshot}
	b := zipBuffers.Get().(*bytes.Buffer)
	defer zipBuffers.Put(b)
	b.Reset()
	n, err := snap.pack(b)
	if err != nil {
		return 0, fmt.Errorf("snapshot %s: %w", s.join(f.name()), err)
	}
	if _, err := s.write(f, b.Bytes()); err != nil {
		return 0, err
	}
	s.remember(f, snap.SSTs)
	return n, nil
}

func (snap *Snapshot) metadata() ([]byte, error) {
	j := snapshotJSON{SSTs: snap.SSTs, Keys: snap.Keys}
	if j.SSTs == nil {
		j.SSTs = []SST{}
	}
	if snap.Families != nil {
		highest := 0
		for _, id := range snap.Families {
			highest = max(highest, id)
		}
		j.InternalKeys, j.MaxFamily = &snap.InternalKeys, &highest
		j.Families, j.InternalFamilies = snap.Families, snap.InternalFamilies
	}
	line, err := encode(j)
	if err != nil {
		return nil, err
	}
	return append([]byte("v1\n"), line...), nil
}

// pack writes the zip: stored, not deflated, since nobody pays for the bytes and
// the device model knows them anyway.
func (snap *Snapshot) pack(w io.Writer) (int64, error) {
	meta, err := snap.metadata()
	if err != nil {
		return 0, err
	}
	z := zip.NewWriter(w)
	var total int64
	for _, f := range append(slices.Clip(snap.Small), SmallFile{metadataName, meta}) {
		e, err := z.CreateHeader(&zip.FileHeader{Name: f.Name, Method: zip.Store})
		if err != nil {
			return 0, err
		}
		if _, err := e.Write(f.Data); err != nil {
			return 0, err
		}
		total += int64(len(f.Data))
	}
	return total, z.Close()
}

// Snapshot reads <version>.zip: where the tables are, and the small files.
func (s *StateDir) Snapshot(version int64, uniqueID string) (*Snapshot, error) {
	f := StateFile{version, uniqueID, KindSnapshot}
	data, err := s.read(f)
	if err != nil {
		return nil, err
	}
	snap, err := unpack(s.join(f.name()), data)
	if err != nil {
		return nil, err
	}
	return snap, nil
}

func unpack(path string, data []byte) (*Snapshot, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, damaged(path, "%v", err)
	}
	snap, left, seen := &Snapshot{}, int64(maxZipBytes), false
	for _, e := range z.File {
		body, err := unpackFile(e, left)
		if err != nil {
			return nil, damaged(path, "%.80q: %v", e.Name, err)
		}
		left -= int64(len(body))
		if e.Name != metadataName {
			snap.Small = append(snap.Small, SmallFile{e.Name, body})
			continue
		}
		seen = true
		if err := snap.setMetadata(path, body); err != nil {
			return nil, err
		}
	}
	if !seen {
		return nil, damaged(path, "no metadata inside")
	}
	return snap, nil
}

// unpackFile returns a zip entry of at most left bytes, whose name can not lead
// out of the folder that it is meant for.
func unpackFile(e *zip.File, left int64) ([]byte, error) {
	if e.Name == "" || strings.ContainsAny(e.Name, `/\`) || e.Name == ".." {
		return nil, fmt.Errorf("no plain file name")
	}
	r, err := e.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	body, err := io.ReadAll(io.LimitReader(r, left+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > left {
		return nil, fmt.Errorf("more than %d bytes", int64(maxZipBytes))
	}
	return body, nil
}

func (snap *Snapshot) setMetadata(path string, body []byte) error {
	_, rest, err := header(path, body, 2)
	if err != nil {
		return err
	}
	var j snapshotJSON
	if err := json.Unmarshal(rest, &j); err != nil {
		return damaged(path, "metadata: %v", err)
	}
	for _, t := range j.SSTs {
		if plainName(t.DFS) != nil || plainName(t.Local) != nil || t.Bytes < 0 {
			return damaged(path, "table %.80q as %.80q", t.Local, t.DFS)
		}
	}
	snap.SSTs, snap.Keys = j.SSTs, j.Keys
	snap.Families, snap.InternalFamilies = j.Families, j.InternalFamilies
	if j.InternalKeys != nil {
		snap.InternalKeys = *j.InternalKeys
	}
	return nil
}
