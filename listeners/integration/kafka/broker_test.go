package kafka

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Where the jars are, and what makes their absence a failure.
const (
	kafkaHome    = "STATEGAUGE_KAFKA_HOME"
	requireKafka = "STATEGAUGE_REQUIRE_KAFKA"
)

// broker is one Kafka node, its own controller. It listens twice: at addr, and at
// an address that it tells clients to reach through proxy.
type broker struct {
	jars, config string
	addr         string
	proxy        *proxy
	logFile      string // of every process
	cmd          *exec.Cmd
	ended        chan struct{}
}

// Automatic creation of topics is on, as it is by default: a daemon that asked for
// a topic would be seen to make it.
const brokerConfig = `process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://%[1]s,PROXIED://%[2]s,CONTROLLER://%[3]s
advertised.listeners=PLAINTEXT://%[1]s,PROXIED://%[4]s
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
controller.quorum.voters=1@%[3]s
log.dirs=%[5]s/log
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
connections.max.idle.ms=8000
`

// shared is the broker of all tests: a start takes seconds.
var shared struct {
	sync.Mutex
	broker *broker
	folder string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if b := shared.broker; b != nil {
		b.end(syscall.SIGKILL)
		b.proxy.close()
		_ = os.RemoveAll(shared.folder)
	}
	os.Exit(code)
}

// realBroker returns the broker, running.
func realBroker(t *testing.T) *broker {
	t.Helper()
	jars := findJars(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.broker == nil {
		folder, err := os.MkdirTemp("", "stategauge-kafka-")
		if err != nil {
			t.Fatal(err)
		}
		shared.folder = folder
		shared.broker = newBroker(t, jars, folder)
	}
	b := shared.broker
	if b.cmd == nil {
		b.start(t)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the broker said:\n%s", tailOf(b.logFile))
		}
	})
	return b
}

func tail(b []byte) []byte { return b[max(0, len(b)-4000):] }

func tailOf(file string) []byte {
	b, err := os.ReadFile(file)
	if err != nil {
		return []byte(err.Error())
	}
	return tail(b)
}

// findJars returns the folder of jars, or ends the test.
func findJars(t *testing.T) string {
	t.Helper()
	folder, required := os.Getenv(kafkaHome), os.Getenv(requireKafka) != ""
	if folder == "" && !required {
		t.Skipf("neither %s nor %s is set; `make kafka` runs these tests", kafkaHome, requireKafka)
	}
	if folder == "" {
		folder = filepath.Join(cache(t), "jars", "broker")
	}
	for _, f := range []string{folder, filepath.Join(folder, "libs")} {
		if found, _ := filepath.Glob(filepath.Join(f, "kafka_2.13-*.jar")); len(found) > 0 {
			return f
		}
	}
	if required {
		t.Fatalf("no Kafka broker in %s; install.sh puts one into the cache", folder)
	}
	t.Skipf("no Kafka broker in %s", folder)
	return ""
}

func cache(t *testing.T) string {
	t.Helper()
	if c := os.Getenv("STATEGAUGE_CACHE"); c != "" {
		return c
	}
	c, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(c, "stategauge")
}

// newBroker writes the configuration and formats the log folder.
func newBroker(t *testing.T, jars, folder string) *broker {
	t.Helper()
	b := &broker{jars: jars, addr: freeAddress(t), config: filepath.Join(folder, "server.properties"), logFile: filepath.Join(folder, "broker.log")}
	inner := freeAddress(t)
	b.proxy = newProxy(t, inner)
	text := fmt.Sprintf(brokerConfig, b.addr, inner, freeAddress(t), b.proxy.addr(), folder)
	if err := os.WriteFile(b.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	id := base64.RawURLEncoding.EncodeToString([]byte("one broker only."))
	if out, err := b.java("kafka.tools.StorageTool", "format", "-t", id, "-c", b.config).CombinedOutput(); err != nil {
		t.Fatalf("format the broker's folder: %v\n%s", err, tail(out))
	}
	return b
}

func (b *broker) java(class string, args ...string) *exec.Cmd {
	flags := []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", b.jars + "/*", class}
	return exec.Command("java", append(flags, args...)...)
}

// start runs the broker until it answers.
func (b *broker) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(b.logFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd, ended := b.java("kafka.Kafka", b.config), make(chan struct{})
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b.cmd, b.ended = cmd, ended
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	a := newAdmin(t, b.addr)
	await(t, "the broker to answer", func() error {
		select {
		case <-ended:
			t.Fatalf("the broker ended:\n%s", tailOf(b.logFile))
		default:
		}
		return a.ping()
	})
}

// end signals the broker and waits until it is gone.
func (b *broker) end(s os.Signal) {
	if b.cmd == nil {
		return
	}
	_ = b.cmd.Process.Signal(s)
	<-b.ended
	b.cmd = nil
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// await asks until there is no error: broker and daemon have clocks of their own.
func await(t *testing.T, what string, f func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s: %v", what, err)
		case <-tick.C:
		}
	}
}

// holds asks for the length of span and wants never an error.
func holds(t *testing.T, span time.Duration, f func() error) {
	t.Helper()
	end := time.Now().Add(span)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for time.Now().Before(end) {
		if err := f(); err != nil {
			t.Fatal(err)
		}
		<-tick.C
	}
}

func TestTheBrokerOfTheseTestsIsOfTheFourthGeneration(t *testing.T) {
	b := realBroker(t)
	found, err := filepath.Glob(filepath.Join(b.jars, "kafka_2.13-*.jar"))
	if err != nil || len(found) != 1 || !strings.HasPrefix(filepath.Base(found[0]), "kafka_2.13-4.") {
		t.Errorf("jars are %v (%v), want one of Kafka 4", found, err)
	}
}
