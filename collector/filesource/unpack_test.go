package filesource

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// packers compress the way Spark and people do.
var packers = map[string]func(t testing.TB, b []byte) []byte{
	"plain": func(_ testing.TB, b []byte) []byte { return b },
	"gzip": func(t testing.TB, b []byte) []byte {
		return pack(t, b, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil })
	},
	"zstd": func(t testing.TB, b []byte) []byte {
		return pack(t, b, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) })
	},
	"lz4 frame": func(t testing.TB, b []byte) []byte {
		return pack(t, b, func(w io.Writer) (io.WriteCloser, error) {
			z := lz4.NewWriter(w)
			return z, z.Apply(lz4.BlockSizeOption(lz4.Block64Kb))
		})
	},
	"lz4 blocks": func(t testing.TB, b []byte) []byte { return packBlocks(t, b, 512) },
}

func pack(t testing.TB, b []byte, open func(io.Writer) (io.WriteCloser, error)) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := open(&out)
	if err == nil {
		_, err = w.Write(b)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// packBlocks writes lz4-java's block stream: stored blocks where packing does not
// pay, and a block of length 0 at the end.
func packBlocks(t testing.TB, b []byte, size int) (out []byte) {
	t.Helper()
	const token = 6 // blocks of up to 64 KiB
	block := func(method byte, packed, plain []byte) {
		out = append(out, blockMagic...)
		out = append(out, method|token)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(packed)))
		out = binary.LittleEndian.AppendUint32(out, uint32(len(plain)))
		sum := uint32(0)
		if len(plain) > 0 {
			sum = xxh32(plain, blockSeed) & checksumVisible
		}
		out = binary.LittleEndian.AppendUint32(out, sum)
		out = append(out, packed...)
	}
	for chunk := range slices.Chunk(b, size) {
		dst := make([]byte, lz4.CompressBlockBound(len(chunk)))
		n, err := lz4.CompressBlock(chunk, dst, nil)
		switch {
		case err != nil:
			t.Fatal(err)
		case n == 0 || n >= len(chunk):
			block(blockStored, chunk, chunk)
		default:
			block(blockPacked, dst[:n], chunk)
		}
	}
	block(blockStored, nil, nil)
	return out
}

func TestTheContentTellsTheCompressionWhateverTheName(t *testing.T) {
	var text []byte
	for i := range 200 {
		text = append(text, lines(jobStart, logged(i))...)
	}
	for name, pack := range packers {
		t.Run(name, func(t *testing.T) {
			path := write(t, t.TempDir(), "log.txt", pack(t, text))
			got := run(t, Config{Paths: []string{path}})
			if len(got.events) != 200 || len(got.rejects) != 0 || got.err != nil || got.sum.Skipped != 200 {
				t.Errorf("%d events, rejects %v, error %v, %+v", len(got.events), got.rejects, got.err, got.sum)
			}
		})
	}
}

func TestStreamsBehindOneAnotherAreAllRead(t *testing.T) {
	for name, pack := range packers {
		if name == "lz4 frame" {
			continue // Spark does not append to one
		}
		twice := append(pack(t, lines(logged(0))), pack(t, lines(logged(1)))...)
		got := run(t, Config{Paths: []string{write(t, t.TempDir(), "log", twice)}})
		if len(got.events) != 2 || got.err != nil {
			t.Errorf("%s: %v, rejects %v, error %v", name, got.events, got.rejects, got.err)
		}
	}
}

func TestACutFileYieldsWhatIsThere(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var text []byte
	for i := range 3000 {
		noise := fmt.Sprintf(`{"Event":"SparkListenerTaskEnd","x":"%x%x"}`, rnd.Uint64(), rnd.Uint64())
		text = append(text, lines(noise, logged(i))...)
	}
	for name, pack := range packers {
		if name == "plain" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			whole := pack(t, text)
			cut := whole[:len(whole)*3/4]
			got := run(t, Config{Paths: []string{write(t, t.TempDir(), "log", cut)}})
			if len(got.events) < 1000 || got.err != nil {
				t.Errorf("%d events, error %v", len(got.events), got.err)
			}
			if n := len(got.rejects); n == 0 || !strings.Contains(got.rejects[n-1], "truncated: the compressed data ends in the middle") {
				t.Errorf("rejects %v", got.rejects)
			}
			open := run(t, Config{Paths: []string{write(t, t.TempDir(), "log.inprogress", cut)}})
			for _, r := range open.rejects {
				if strings.Contains(r, "compressed") {
					t.Errorf("a log still being written ends in the middle by nature: %s", r)
				}
			}
		})
	}
}

func TestCorruptDataIsRefusedAndCostsNoOtherFile(t *testing.T) {
	for name, pack := range packers {
		if name == "plain" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			b := pack(t, bytes.Repeat(lines(logged(0)), 50))
			for i := range b[30:] {
				b[30+i] ^= byte(i*7 + 1)
			}
			write(t, folder, "a", b)
			write(t, folder, "b", lines(logged(1)))
			got := run(t, Config{Paths: []string{folder}})
			if got.err != nil || !slices.Contains(got.events, "b:1 progress 1") {
				t.Errorf("events %v, error %v", got.events, got.err)
			}
			if len(got.rejects) == 0 || !strings.HasPrefix(got.rejects[0], "a:") {
				t.Errorf("rejects %v", got.rejects)
			}
		})
	}
}

func TestXXH32MatchesItsPublishedValues(t *testing.T) {
	for _, tt := range []struct {
		text string
		seed uint32
		want uint32
	}{
		{"", 0, 0x02cc5d05},
		{"", 1, 0x0b2cb792},
		{"a", 0, 0x550d7456},
		{"abc", 0, 0x32d153ff},
		{"Nobody inspects the spammish repetition", 0, 0xe2293b2f},
	} {
		if got := xxh32([]byte(tt.text), tt.seed); got != tt.want {
			t.Errorf("xxh32(%q, %d) = %#x, want %#x", tt.text, tt.seed, got, tt.want)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	for _, pack := range packers {
		f.Add(pack(f, lines(logStart, logged(0))))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := unpack(bytes.NewReader(b))
		if err != nil {
			return
		}
		defer r.Close()
		_, _ = io.Copy(io.Discard, io.LimitReader(r, 64<<20))
	})
}

func TestSurrogatesOfUTF16BecomeOneCharacter(t *testing.T) {
	for _, tt := range []struct {
		units []uint16
		want  string
	}{
		{[]uint16{'a', 0xd83d, 0xde00, 'b'}, "a😀b"},
		{[]uint16{0xd83d, 'x'}, "�x"},
		{[]uint16{0xde00, 0xde00}, "��"},
		{[]uint16{'x', 0xd83d}, "x�"},
	} {
		b := []byte{0xff, 0xfe}
		for _, u := range tt.units {
			b = binary.LittleEndian.AppendUint16(b, u)
		}
		text, err := unpack(bytes.NewReader(append(b, 'z')))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(text)
		if want := "\ufeff" + tt.want; err != nil || string(got) != want {
			t.Errorf("%x reads %q, want %q, error %v", tt.units, got, want, err)
		}
	}
}

func TestBlocksThatLieAreRefused(t *testing.T) {
	good := packBlocks(t, lines(logged(0)), 4096)
	lies := map[string]func(b []byte){
		"no magic in the second block": func(b []byte) { b[len(b)-blockHeader] = 'X' },
		"longer than its token allows": func(b []byte) { b[15] = 0x7f },
		"packed longer than allowed":   func(b []byte) { b[11] = 0x7f },
		"unknown method":               func(b []byte) { b[8] = 0x36 },
		"wrong checksum":               func(b []byte) { b[17] ^= 1 },
		"wrong length":                 func(b []byte) { b[13]-- },
		"stored, but of another size":  func(b []byte) { b[8] = blockStored | 6 },
		"empty, but something packed":  func(b []byte) { copy(b[13:17], []byte{0, 0, 0, 0}) },
	}
	for name, lie := range lies {
		b := bytes.Clone(good)
		lie(b)
		text, err := unpack(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = io.ReadAll(text); !errors.Is(err, errCorrupt) || !errors.Is(err, errBlock) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestADamagedFirstBlockOfEachFormatIsRefused(t *testing.T) {
	for name, b := range map[string][]byte{"gzip": {0x1f, 0x8b, 0, 0}, "zstd": {0x28, 0xb5, 0x2f, 0xfd, 0xff, 0xff, 0xff, 0xff, 0xff}} {
		got := run(t, Config{Paths: []string{Stdin}, Stdin: bytes.NewReader(b)})
		if len(got.rejects) != 1 || got.err != nil || len(got.events) != 0 {
			t.Errorf("%s: rejects %v, error %v", name, got.rejects, got.err)
		}
	}
}
