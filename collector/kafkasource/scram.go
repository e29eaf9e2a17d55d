package kafkasource

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
)

// mechanism returns the kafka-go mechanism of s, nil for none.
func (s *SASL) mechanism() sasl.Mechanism {
	switch s.Mechanism {
	case SASLPlain:
		return plain.Mechanism{Username: s.Username, Password: s.Password}
	case SASLScramSHA256:
		return scram{name: "SCRAM-SHA-256", hash: sha256.New, user: s.Username, password: s.Password, nonce: rand.Text}
	case SASLScramSHA512:
		return scram{name: "SCRAM-SHA-512", hash: sha512.New, user: s.Username, password: s.Password, nonce: rand.Text}
	}
	return nil
}

// scram is RFC 5802 without channel binding. Names and passwords are used as they
// are, without SASLprep, which is what Kafka's own clients and brokers do.
type scram struct {
	name           string
	hash           func() hash.Hash
	user, password string
	nonce          func() string
}

// Name returns the mechanism's registered name.
func (s scram) Name() string { return s.name }

// Start returns the conversation and its first message.
func (s scram) Start(context.Context) (sasl.StateMachine, []byte, error) {
	nonce := s.nonce()
	escaped := strings.NewReplacer("=", "=3D", ",", "=2C").Replace(s.user)
	bare := "n=" + escaped + ",r=" + nonce
	return &scramTalk{scram: s, nonce: nonce, bare: bare}, []byte(gs2Header + bare), nil
}

const (
	gs2Header = "n,,"
	// channelBinding is gs2Header in base64.
	channelBinding = "c=biws"
	// Fewer iterations than RFC 7677 asks for are no protection, more than the
	// upper bound only serve to keep a client busy.
	minIterations, maxIterations = 4096, 1 << 24
)

// scramTalk is one conversation.
type scramTalk struct {
	scram
	nonce, bare string
	signature   []byte // what the server must prove to know; nil before its first message
}

// Next answers a message of the server; done once its proof was right.
func (t *scramTalk) Next(_ context.Context, challenge []byte) (done bool, answer []byte, err error) {
	fields, err := scramFields(challenge)
	if err != nil {
		return false, nil, err
	}
	if t.signature == nil {
		answer, err = t.prove(string(challenge), fields)
		return false, answer, err
	}
	proof, err := base64.StdEncoding.DecodeString(fields["v"])
	if err != nil || !hmac.Equal(proof, t.signature) {
		return false, nil, errors.New("broker's scram proof is wrong: it does not know the password")
	}
	return true, nil, nil
}

func (t *scramTalk) prove(challenge string, fields map[string]string) ([]byte, error) {
	nonce := fields["r"]
	if !strings.HasPrefix(nonce, t.nonce) || len(nonce) == len(t.nonce) {
		return nil, errors.New("broker's scram nonce does not extend ours")
	}
	salt, err := base64.StdEncoding.DecodeString(fields["s"])
	if err != nil || len(salt) == 0 {
		return nil, errors.New("broker's scram salt is not base64")
	}
	iterations, err := strconv.Atoi(fields["i"])
	if err != nil || iterations < minIterations || iterations > maxIterations {
		return nil, fmt.Errorf("broker's scram iteration count (%q) must be between %d and %d", fields["i"], minIterations, maxIterations)
	}
	salted, err := pbkdf2.Key(t.hash, t.password, salt, iterations, t.hash().Size())
	if err != nil {
		return nil, fmt.Errorf("scram key: %w", err)
	}
	final := channelBinding + ",r=" + nonce
	signed := t.bare + "," + challenge + "," + final
	clientKey := t.mac(salted, "Client Key")
	stored := t.hash()
	stored.Write(clientKey)
	proof := t.mac(stored.Sum(nil), signed)
	for i := range proof {
		proof[i] ^= clientKey[i]
	}
	t.signature = t.mac(t.mac(salted, "Server Key"), signed)
	return []byte(final + ",p=" + base64.StdEncoding.EncodeToString(proof)), nil
}

func (t *scramTalk) mac(key []byte, message string) []byte {
	m := hmac.New(t.hash, key)
	m.Write([]byte(message))
	return m.Sum(nil)
}

// scramFields splits a message into its one-letter attributes. An e attribute is
// the server's refusal.
func scramFields(message []byte) (map[string]string, error) {
	fields := map[string]string{}
	for _, f := range bytes.Split(message, []byte(",")) {
		if len(f) < 2 || f[1] != '=' {
			return nil, errors.New("broker's scram message is malformed")
		}
		fields[string(f[:1])] = string(f[2:])
	}
	if why, refused := fields["e"]; refused {
		return nil, fmt.Errorf("broker refused the login: %s", why)
	}
	return fields, nil
}
