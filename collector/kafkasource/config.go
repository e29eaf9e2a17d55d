package kafkasource

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"
)

// Where a partition without a committed offset is read from.
const (
	StartEarliest = "earliest"
	StartLatest   = "latest"
)

// The SASL mechanisms.
const (
	SASLPlain       = "plain"
	SASLScramSHA256 = "scram-sha-256"
	SASLScramSHA512 = "scram-sha-512"
)

// Config says what to read and how. The zero value reads nothing; start from
// DefaultConfig.
type Config struct {
	Brokers []string // bootstrap addresses, host:port
	Topics  []string // topics that carry events; none is ever created
	GroupID string   // consumer group; daemons that share it share the partitions
	// ClientID is what the brokers' logs and quotas call this client.
	ClientID string
	// StartOffset is StartEarliest or StartLatest. It counts where the group has no
	// committed offset. Partitions that appear while the source runs are read from
	// their beginning whatever it says.
	StartOffset string

	MinBytes int           // bytes a broker waits for before it answers a fetch
	MaxBytes int           // bytes of one answer, and of the values of one step
	MaxWait  time.Duration // how long a broker waits for MinBytes

	HeartbeatInterval time.Duration // between two signs of life to the group
	SessionTimeout    time.Duration // silence after which the group gives the partitions away
	RebalanceTimeout  time.Duration // how long the group waits for members to rejoin
	// CommitInterval is the least time between two commits of one generation. A
	// crash repeats what was handled since the last one.
	CommitInterval time.Duration
	// WatchdogInterval is the time between two looks at topics and log ends. It is
	// how old stategauge_kafka_lag can be.
	WatchdogInterval time.Duration

	BatchEvents int // events of one step, at most

	TLS  *tls.Config // nil for connections in the clear
	SASL SASL
}

// SASL is how to log in. The zero value is for brokers that ask for no login.
type SASL struct {
	Mechanism string // SASLPlain, SASLScramSHA256 or SASLScramSHA512; empty for none
	Username  string
	Password  string
}

// DefaultConfig returns the defaults of everything that has one: brokers and
// topics have none.
func DefaultConfig() Config {
	return Config{
		GroupID:           "stategauge",
		ClientID:          "stategauge",
		StartOffset:       StartEarliest,
		MinBytes:          1,
		MaxBytes:          1 << 20,
		MaxWait:           500 * time.Millisecond,
		HeartbeatInterval: time.Second,
		SessionTimeout:    10 * time.Second,
		RebalanceTimeout:  30 * time.Second,
		CommitInterval:    250 * time.Millisecond,
		WatchdogInterval:  10 * time.Second,
		BatchEvents:       512,
	}
}

// Validate returns every fault of c, joined, or nil.
func (c *Config) Validate() error {
	var faults []error
	bad := func(is bool, format string, args ...any) {
		if is {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	bad(len(c.Brokers) == 0, "brokers must name at least one broker")
	for _, b := range c.Brokers {
		_, port, err := net.SplitHostPort(b)
		bad(err != nil || port == "", "broker (%q) must be host:port", b)
	}
	bad(len(c.Topics) == 0, "topics must name at least one topic")
	for i, t := range c.Topics {
		bad(!validTopic(t), "topic (%q) must be 1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-'", t)
		bad(slices.Contains(c.Topics[:i], t), "topic (%q) must be named once", t)
	}
	bad(c.GroupID == "", "group id must not be empty")
	bad(c.StartOffset != StartEarliest && c.StartOffset != StartLatest,
		"start offset (%q) must be %q or %q", c.StartOffset, StartEarliest, StartLatest)
	return errors.Join(append(append(faults, c.sizeFaults()...), c.SASL.faults()...)...)
}

func (c *Config) sizeFaults() []error {
	var faults []error
	bad := func(is bool, format string, args ...any) {
		if is {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	bad(c.MinBytes < 1, "min bytes (%d) must be 1 or more", c.MinBytes)
	bad(c.MaxBytes < c.MinBytes, "max bytes (%d) must not be below min bytes (%d)", c.MaxBytes, c.MinBytes)
	bad(c.MaxBytes > maxFetchBytes, "max bytes (%d) must be %d or less", c.MaxBytes, maxFetchBytes)
	bad(c.BatchEvents < 1, "batch events (%d) must be 1 or more", c.BatchEvents)
	for _, d := range []struct {
		name      string
		value     time.Duration
		low, high time.Duration
	}{
		{"max wait", c.MaxWait, time.Millisecond, time.Minute},
		{"heartbeat interval", c.HeartbeatInterval, time.Millisecond, time.Hour},
		{"session timeout", c.SessionTimeout, time.Millisecond, time.Hour},
		{"rebalance timeout", c.RebalanceTimeout, time.Millisecond, time.Hour},
		{"commit interval", c.CommitInterval, 0, time.Hour},
		{"watchdog interval", c.WatchdogInterval, time.Millisecond, time.Hour},
	} {
		bad(d.value < d.low || d.value > d.high, "%s (%v) must be between %v and %v", d.name, d.value, d.low, d.high)
	}
	bad(c.HeartbeatInterval > c.SessionTimeout/3,
		"heartbeat interval (%v) must be at most a third of the session timeout (%v)", c.HeartbeatInterval, c.SessionTimeout)
	return faults
}

// maxFetchBytes keeps one answer, and so one step, within reason.
const maxFetchBytes = 64 << 20

func (s *SASL) faults() []error {
	switch s.Mechanism {
	case "":
		if s.Username != "" || s.Password != "" {
			return []error{errors.New("sasl username and password must come with a mechanism")}
		}
	case SASLPlain, SASLScramSHA256, SASLScramSHA512:
		if s.Username == "" {
			return []error{fmt.Errorf("sasl mechanism (%q) must come with a username", s.Mechanism)}
		}
	default:
		return []error{fmt.Errorf("sasl mechanism (%q) must be %q, %q or %q",
			s.Mechanism, SASLPlain, SASLScramSHA256, SASLScramSHA512)}
	}
	return nil
}

// validTopic checks a name by Kafka's own rule.
func validTopic(name string) bool {
	if name == "" || len(name) > 249 || name == "." || name == ".." {
		return false
	}
	for _, r := range []byte(name) {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
		default:
			return false
		}
	}
	return true
}
