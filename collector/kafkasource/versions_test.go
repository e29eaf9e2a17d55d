package kafkasource

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// kafka4Minimum are the lowest versions that Kafka 4.0 takes of the requests that
// a consumer sends.
var kafka4Minimum = map[kmsg.Key]int16{
	kmsg.Produce: 3, kmsg.Fetch: 4, kmsg.ListOffsets: 1, kmsg.OffsetCommit: 2,
	kmsg.OffsetFetch: 1, kmsg.JoinGroup: 2,
}

// readsAndCommits is what every broker version has to allow.
func readsAndCommits(t *testing.T, b *broker, cfg Config) {
	t.Helper()
	b.progresses(0, 0, 100)
	r := newRig(t, cfg).start().wait(100).ready()
	eventually(t, "offsets are committed", want("committed", func() int64 { return b.committed(0) }, 100))
	r.halt()
}

func TestKafka4AcceptsEveryRequest(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(1))
	var mu sync.Mutex
	var old []string
	sent := map[int16]bool{}
	b.Control(func(req kmsg.Request) (kmsg.Response, error, bool) {
		mu.Lock()
		defer mu.Unlock()
		sent[req.Key()] = true
		if req.GetVersion() < kafka4Minimum[kmsg.Key(req.Key())] {
			old = append(old, fmt.Sprintf("%s v%d", kmsg.NameForKey(req.Key()), req.GetVersion()))
			return nil, errors.New("version is too old"), true
		}
		return nil, nil, false
	})
	readsAndCommits(t, b, quick(b.ListenAddrs()...))
	mu.Lock()
	defer mu.Unlock()
	if len(old) > 0 {
		t.Errorf("requests that Kafka 4 refuses: %v", old)
	}
	for key := range kafka4Minimum {
		if !sent[int16(key)] {
			t.Errorf("%s was never sent: the test sees too little", key.Name())
		}
	}
}

func TestOldBrokersWork(t *testing.T) {
	for name, v := range map[string]*kversion.Versions{
		"1.0": kversion.V1_0_0(), "2.8": kversion.V2_8_0(), "3.9": kversion.V3_9_0(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t, withTopic(1), kfake.MaxVersions(v))
			readsAndCommits(t, b, quick(b.ListenAddrs()...))
		})
	}
}

func TestCompressedBatchesAreRead(t *testing.T) {
	for name, codec := range map[string]kgo.CompressionCodec{
		"gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t, withTopic(1))
			b.client(kgo.ProducerBatchCompression(codec))
			readsAndCommits(t, b, quick(b.ListenAddrs()...))
		})
	}
}

func TestLoginBySASL(t *testing.T) {
	for mechanism, name := range map[string]string{
		SASLPlain: "PLAIN", SASLScramSHA256: "SCRAM-SHA-256", SASLScramSHA512: "SCRAM-SHA-512",
	} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t, withTopic(1), kfake.EnableSASL(),
				kfake.Superuser("PLAIN", "writer", "w"), kfake.Superuser(name, "reader,=x", "pass wörd"))
			b.client(kgo.SASL(plain.Auth{User: "writer", Pass: "w"}.AsMechanism()))
			cfg := quick(b.ListenAddrs()...)
			cfg.SASL = SASL{Mechanism: mechanism, Username: "reader,=x", Password: "pass wörd"}
			readsAndCommits(t, b, cfg)
		})
	}
}

func TestWrongPasswordIsReported(t *testing.T) {
	for _, mechanism := range []string{SASLPlain, SASLScramSHA256} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t, withTopic(1), kfake.EnableSASL(),
				kfake.Superuser("PLAIN", "reader", "right"), kfake.Superuser("SCRAM-SHA-256", "reader", "right"))
			cfg := quick(b.ListenAddrs()...)
			cfg.SASL = SASL{Mechanism: mechanism, Username: "reader", Password: "wrong"}
			r := newRig(t, cfg).start()
			eventually(t, "the refusal is reported", r.reports("brokers cannot be asked"))
			r.halt()
		})
	}
}

func TestConnectionsOverTLS(t *testing.T) {
	t.Parallel()
	server, pool := selfSigned(t)
	b := newBroker(t, withTopic(1), kfake.TLS(server))
	b.client(kgo.DialTLSConfig(&tls.Config{RootCAs: pool}))
	cfg := quick(b.ListenAddrs()...)
	cfg.TLS = &tls.Config{RootCAs: pool}
	readsAndCommits(t, b, cfg)
}

func TestUnknownCertificateIsReported(t *testing.T) {
	t.Parallel()
	server, _ := selfSigned(t)
	b := newBroker(t, withTopic(1), kfake.TLS(server))
	cfg := quick(b.ListenAddrs()...)
	cfg.TLS = &tls.Config{}
	r := newRig(t, cfg).start()
	eventually(t, "the certificate is reported", r.reports("certificate"))
}

// selfSigned makes a certificate for 127.0.0.1.
func selfSigned(t *testing.T) (*tls.Config, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "broker"}, IsCA: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, pool
}
