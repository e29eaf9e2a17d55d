package kafkasource

import (
	"encoding/binary"
	"net"
)

// noCreate is a connection that never lets a broker create a topic. kafka-go's
// ConsumerGroup asks for metadata with the flag "create what is missing" set and
// offers no way to clear it, so the flag is cleared here, in the bytes that go
// out. Requests are length-prefixed, which makes them easy to follow; everything
// but that one byte passes unchanged.
//
// Metadata requests before version 4 have no such flag and always create. kafka-go
// falls back to one of them on brokers older than 2.0, which is why the group is
// joined with topics that exist only.
type noCreate struct {
	net.Conn
	head [8]byte // size, API key and version of the request being written
	have int     // bytes of head seen
	left int     // bytes of the request still to come, once head is complete
	flag int     // value of left at which the flag is the next byte; 0 if there is none
}

const (
	keyMetadata = 3
	// From version 4 on the request ends with the flag; version 8 put two more
	// flags behind it. Later versions are not spoken by kafka-go.
	flagSinceVersion = 4
	tailSinceVersion = 8
	lastKnownVersion = 8
)

// Write passes p on, with the flag cleared. It does not change p.
func (c *noCreate) Write(p []byte) (int, error) {
	out := p
	for at := 0; at < len(p); {
		if c.left == 0 {
			at += c.readHead(p[at:])
			continue
		}
		n := min(c.left, len(p)-at)
		if c.flag > 0 && c.left >= c.flag && c.left-n < c.flag {
			out = cleared(out, p, at+c.left-c.flag)
		}
		at += n
		c.left -= n
	}
	return c.Conn.Write(out)
}

// readHead takes what it needs of p to know the request and returns how much.
func (c *noCreate) readHead(p []byte) int {
	n := copy(c.head[c.have:], p)
	c.have += n
	if c.have < len(c.head) {
		return n
	}
	c.have = 0
	size := int(int32(binary.BigEndian.Uint32(c.head[:4])))
	c.left = max(size-4, 0) // key and version are counted in size
	c.flag = flagAt(int16(binary.BigEndian.Uint16(c.head[4:6])), int16(binary.BigEndian.Uint16(c.head[6:8])))
	return n
}

// flagAt returns how far from a request's end the flag lies, 0 if it has none.
func flagAt(key, version int16) int {
	switch {
	case key != keyMetadata || version < flagSinceVersion || version > lastKnownVersion:
		return 0
	case version >= tailSinceVersion:
		return 3
	}
	return 1
}

func cleared(out, p []byte, i int) []byte {
	if p[i] == 0 {
		return out
	}
	if &out[0] == &p[0] {
		out = append([]byte(nil), p...)
	}
	out[i] = 0
	return out
}
