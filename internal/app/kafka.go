package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"

	promconfig "github.com/prometheus/common/config"

	"github.com/stategauge/stategauge/collector/kafkasource"
)

// kafkaSlot holds the Kafka source, which a reload may switch on, off or replace.
type kafkaSlot struct {
	mu      sync.Mutex
	source  *kafkasource.Source // nil: not configured
	metrics *kafkasource.Metrics
	running *runningPart
}

// runningPart is a goroutine with the means to end it.
type runningPart struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// runPart runs f until it is stopped; onEnd gets its error unless it was stopped.
func runPart(f func(context.Context) error, onEnd func(error)) *runningPart {
	ctx, cancel := context.WithCancel(context.Background())
	p := &runningPart{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		if err := f(ctx); err != nil && ctx.Err() == nil {
			onEnd(err)
		}
	}()
	return p
}

// stop ends the part and waits for it no longer than ctx.
func (p *runningPart) stop(ctx context.Context) error {
	if p == nil {
		return nil
	}
	p.cancel()
	return wait(ctx, func() { <-p.done })
}

func (k *kafkaSlot) start(a *App) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.source == nil {
		return
	}
	k.running = runPart(k.source.Run, func(err error) { a.fail(fmt.Errorf("kafka source: %w", err)) })
}

// stop ends the source that runs. It is not waited for under the lock: a rebalance on its
// way asks for the source.
func (k *kafkaSlot) stop(ctx context.Context) error {
	k.mu.Lock()
	p := k.running
	k.running = nil
	k.mu.Unlock()
	return p.stop(ctx)
}

// replace stops the source that runs and starts another, or none.
func (k *kafkaSlot) replace(ctx context.Context, a *App, s *kafkasource.Source) error {
	err := k.stop(ctx)
	k.mu.Lock()
	k.source = s
	k.mu.Unlock()
	k.start(a)
	return err
}

// kafkaSource returns the present source, nil where there is none.
func (a *App) kafkaSource() *kafkasource.Source {
	a.kafka.mu.Lock()
	defer a.kafka.mu.Unlock()
	return a.kafka.source
}

func (a *App) hasKafka() bool {
	a.kafka.mu.Lock()
	defer a.kafka.mu.Unlock()
	return a.kafka.source != nil
}

func (a *App) kafkaHealth() error {
	a.kafka.mu.Lock()
	defer a.kafka.mu.Unlock()
	if a.kafka.source == nil {
		return nil
	}
	return a.kafka.source.Health()
}

// kafkaConfig turns the file's section into the source's configuration; secrets
// and certificates are read here.
func kafkaConfig(c *KafkaConfig) (kafkasource.Config, error) {
	k := kafkasource.DefaultConfig()
	k.Brokers, k.Topics = c.Brokers, c.Topics
	k.GroupID, k.ClientID, k.StartOffset = c.Group, c.ClientID, c.Start
	k.HeartbeatInterval, k.SessionTimeout = c.HeartbeatInterval.Std(), c.SessionTimeout.Std()
	k.WatchdogInterval = c.WatchInterval.Std()
	var err error
	if k.TLS, err = tlsClient(c.TLS); err != nil {
		return k, fmt.Errorf("tls: %w", err)
	}
	if c.SASL != nil {
		password, err := secret(c.SASL.Password, c.SASL.PasswordFile)
		if err != nil {
			return k, fmt.Errorf("sasl: %w", err)
		}
		k.SASL = kafkasource.SASL{Mechanism: c.SASL.Mechanism, Username: c.SASL.Username, Password: password}
	}
	return k, k.Validate()
}

// tlsClient builds a client's TLS configuration; nil for none.
func tlsClient(c *TLSConfig) (*tls.Config, error) {
	if c == nil {
		return nil, nil
	}
	return promconfig.NewTLSConfig(c.prom())
}

func (c *TLSConfig) prom() *promconfig.TLSConfig {
	return &promconfig.TLSConfig{
		CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile,
		ServerName: c.ServerName, InsecureSkipVerify: c.InsecureSkipVerify,
	}
}

// secret returns the text of a secret or of the file that holds it, without the
// line end that editors leave behind.
func secret(text Secret, file string) (string, error) {
	if file == "" {
		return string(text), nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

// sameConfig reports whether two sections say the same, secrets included.
func sameConfig(a, b any) bool { return reflect.DeepEqual(a, b) }
