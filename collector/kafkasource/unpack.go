package kafkasource

import (
	"fmt"
	"io"

	"github.com/segmentio/kafka-go/compress"
)

// maxUnpacked is how large one compressed batch may become. Brokers bound batches
// as they are sent, and one megabyte of zstd can stand for gigabytes.
const maxUnpacked = 32 << 20

// kafka-go unpacks a batch into memory whole, without a limit, and its table of
// codecs is the only place where one can be put. The table is changed before
// anything can use it, and means the same to everyone but the sender of a bomb.
func init() {
	for i, codec := range compress.Codecs {
		if codec != nil {
			compress.Codecs[i] = boundedCodec{codec}
		}
	}
}

// boundedCodec is a codec that unpacks maxUnpacked bytes at most.
type boundedCodec struct{ compress.Codec }

// NewReader returns a reader that fails where the limit is reached.
func (c boundedCodec) NewReader(r io.Reader) io.ReadCloser {
	return &boundedReader{ReadCloser: c.Codec.NewReader(r), left: maxUnpacked}
}

type boundedReader struct {
	io.ReadCloser
	left int
}

// Read reads on until the limit; a batch of just that size passes.
func (r *boundedReader) Read(p []byte) (int, error) {
	if r.left < 0 {
		return 0, fmt.Errorf("batch unpacks to more than %d bytes", maxUnpacked)
	}
	n, err := r.ReadCloser.Read(p[:min(len(p), r.left+1)])
	r.left -= n
	return n, err
}
