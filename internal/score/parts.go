package score

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
)

// parts keeps what was measured so far, a file for each play and each world of healthy
// queries, so that a score that was interrupted goes on where it was. A part is named
// after all that it depends on: the program, the rules, and what they judged. What was
// measured by another program or with other rules is not found, and never mixed in.
type parts struct {
	dir   string // empty: nothing is kept
	fresh bool   // what is there is measured anew
	about string // program and rules
}

// newParts returns the parts of one program and one set of rules.
func newParts(o *Options, from []rules.Source) (*parts, error) {
	if o.KeepDir == "" {
		return &parts{}, nil
	}
	if o.Program == "" {
		return nil, errors.New("parts of a score can only be kept if the program is told from others")
	}
	if err := os.MkdirAll(o.KeepDir, 0o755); err != nil {
		return nil, fmt.Errorf("parts of the score: %w", err)
	}
	about, err := hashOf(o.Program, from)
	return &parts{dir: o.KeepDir, fresh: o.Fresh, about: about}, err
}

// hashOf is a name for values that JSON can write.
func hashOf(values ...any) (string, error) {
	data, err := json.Marshal(values)
	if err != nil {
		return "", fmt.Errorf("name of a part of the score: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12]), nil
}

// keep returns the part that depends on key, and whether it was there. It is measured
// where it was not, and kept unless measuring ended with an error. What is broken is
// measured anew.
func keep[T any](p *parts, kind string, key any, measure func() (T, error)) (out T, was bool, err error) {
	if p.dir == "" {
		out, err = measure()
		return out, false, err
	}
	name, err := hashOf(p.about, kind, key)
	if err != nil {
		return out, false, err
	}
	file := filepath.Join(p.dir, kind+"-"+name+".json")
	if data, err := os.ReadFile(file); err == nil && !p.fresh {
		var there T
		if json.Unmarshal(data, &there) == nil {
			return there, true, nil
		}
	}
	if out, err = measure(); err != nil {
		return out, false, err
	}
	data, err := json.Marshal(out)
	if err != nil {
		return out, false, fmt.Errorf("keep a part of the score: %w", err)
	}
	return out, false, writeWhole(file, data)
}

// writeWhole puts a file into place whole or not at all.
func writeWhole(file string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), "new-*")
	if err != nil {
		return fmt.Errorf("keep %s: %w", file, err)
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("keep %s: %w", file, err), os.Remove(tmp.Name()))
	}
	return nil
}

// donorsHash tells donors from others by what healthy batches are made of.
func donorsHash(list []*donor) string {
	h := sha256.New()
	var buf []byte
	number := func(v float64) { buf = binary.LittleEndian.AppendUint64(buf, math.Float64bits(v)) }
	for _, d := range list {
		buf = append(append(buf[:0], d.name...), 0)
		for _, b := range d.batches {
			for _, ms := range []int64{b.ID, b.StartMs, b.EventTimeMaxMs, b.WatermarkMs} {
				buf = binary.LittleEndian.AppendUint64(buf, uint64(ms))
			}
			vectors := []*event.Vector{&b.Values}
			for i := range b.Operators {
				buf = append(append(buf, b.Operators[i].Name...), 0)
				vectors = append(vectors, &b.Operators[i].Values)
			}
			for i := range b.Sources {
				number(float64(b.Sources[i].Backlog))
			}
			for _, v := range vectors {
				for _, x := range v {
					number(x)
				}
			}
		}
		h.Write(buf)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}
