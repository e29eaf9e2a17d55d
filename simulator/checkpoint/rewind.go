package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Rewind puts the checkpoint back to where it was after a batch, as restoring a
// backup would: newer offsets, commits and versions of state are deleted, in an
// order that leaves a checkpoint of some later batch where it is interrupted.
func (d *Dir) Rewind(toBatch int64) error {
	err := errors.Join(d.dropNewer(commitsName, toBatch), d.dropNewer(offsetsName, toBatch))
	if err == nil {
		err = d.eachState(func(s *StateDir) error { return s.dropAfter(toBatch + 1) })
	}
	if err != nil {
		return fmt.Errorf("rewind to batch %d: %w", toBatch, err)
	}
	return nil
}

// dropNewer deletes a log's files after a batch, newest first.
func (d *Dir) dropNewer(log string, batch int64) error {
	batches, err := d.batches(log)
	if err != nil {
		return err
	}
	for _, b := range slices.Backward(batches) {
		if b <= batch {
			break
		}
		if err := d.remove(d.logPath(log, b)); err != nil {
			return err
		}
	}
	return d.syncDir(d.path(log))
}

// dropAfter deletes versions newer than the one given. Their tables go with the
// next DeleteVersions.
func (s *StateDir) dropAfter(version int64) error {
	found, err := s.Files()
	for _, f := range found {
		if f.Version > version {
			err = errors.Join(err, s.remove(f))
		}
	}
	return err
}

// eachState calls visit for each folder of a store that is on disk, in order.
func (d *Dir) eachState(visit func(*StateDir) error) error {
	operators, err := d.numbered(d.path(stateName))
	if err != nil {
		return err
	}
	for _, op := range operators {
		partitions, err := d.numbered(d.path(stateName, strconv.Itoa(op)))
		if err != nil {
			return err
		}
		for _, p := range partitions {
			if err := d.eachStore(op, p, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Dir) eachStore(op, partition int, visit func(*StateDir) error) error {
	def := d.State(op, partition, "default")
	if err := visit(def); err != nil {
		return err
	}
	names, err := d.list(def.path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == sstsName || strings.HasPrefix(name, "_") {
			continue
		}
		folder, err := d.isFolder(def.join(name), name)
		if err != nil {
			return err
		}
		if !folder {
			continue
		}
		if err := visit(d.State(op, partition, name)); err != nil {
			return err
		}
	}
	return nil
}

// numbered returns the entries of a folder whose names are numbers, in order.
func (d *Dir) numbered(dir string) ([]int, error) {
	names, err := d.list(dir)
	if err != nil {
		return nil, err
	}
	var found []int
	for _, name := range names {
		if n, ok := number(name); ok && n < 1<<31 {
			found = append(found, int(n))
		}
	}
	slices.Sort(found)
	return found, nil
}
