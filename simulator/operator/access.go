package operator

func (x *task) get(s int, family byte, key []byte) ([]byte, bool, error) {
	return x.Stores[s].Get(family, key)
}

func (x *task) put(s int, family byte, key, value []byte) error {
	return x.Stores[s].Put(family, key, value)
}

func (x *task) remove(s int, family byte, key []byte) error {
	return x.Stores[s].Delete(family, key)
}

// scan visits [from, to) of a family. Where scans are many, as for each row, visit
// should be made once.
func (x *task) scan(s int, family byte, from, to []byte, visit func(key, value []byte) bool) error {
	return x.Stores[s].Scan(family, from, to, visit)
}

// in runs do as part p of the task, which gets the time of the stores in it.
func (x *task) in(p part, do func(x *task) error) error {
	was := x.part
	x.measure()
	x.part = p
	err := do(x)
	x.measure()
	x.part = was
	return err
}

// ran notes that code ran for n rows in the current part.
func (x *task) ran(n int64) { x.rows[x.part] += n }

// keyList is a list of keys, or of keys and values, in one piece of memory.
// Scans fill one: stores must not be changed while they are scanned.
type keyList struct {
	buf  []byte
	ends []int
}

func (l *keyList) reset() { l.buf, l.ends = l.buf[:0], l.ends[:0] }

func (l *keyList) add(b []byte) {
	l.buf = append(l.buf, b...)
	l.ends = append(l.ends, len(l.buf))
}

func (l *keyList) len() int { return len(l.ends) }

func (l *keyList) at(i int) []byte {
	from := 0
	if i > 0 {
		from = l.ends[i-1]
	}
	return l.buf[from:l.ends[i]]
}
