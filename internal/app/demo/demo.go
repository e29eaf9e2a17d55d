package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/exporter-toolkit/web"

	"github.com/stategauge/stategauge/internal/app"
	"github.com/stategauge/stategauge/simulator"
)

// DefaultAddress is where the daemon of a demo listens, if it can.
const DefaultAddress = "127.0.0.1:9980"

const (
	// history is how many batches are played at once, before the story begins: trends
	// need something to compare with.
	history = 300
	// stopIn bounds how long the daemon may take to stop.
	stopIn = 5 * time.Second
)

// Options are what a demo is given.
type Options struct {
	Address   string   // where the daemon listens; empty: DefaultAddress, or a free port where that is taken
	RuleFiles []string // none: the rules that come with the daemon
	Speed     float64  // how many times faster than real time it goes, above 0
	Seed      uint64
	// Exit ends the demo with its scenarios instead of keeping the page up.
	Exit bool
	// Ended, if set, is called once everything has been played, while the daemon still
	// serves at the URL.
	Ended func(url string) error
	Out   io.Writer
	Log   *slog.Logger
	Wall  func() time.Time // time.Now
}

// Run shows the demo until ctx ends or, with Exit, until it is over. Being
// interrupted is no error.
func Run(ctx context.Context, o Options) error {
	if o.Speed <= 0 {
		return fmt.Errorf("speed (%g) must be more than 0", o.Speed)
	}
	// Five hours are over when the story begins: it begins now.
	start := o.Wall().Add(-history * time.Minute).Truncate(time.Minute)
	c := newClock(start, o.Speed, o.Wall)
	s := newStory(o.Out, c)
	d, err := newDaemon(&o, c, s)
	if err != nil {
		return err
	}
	d.Start()
	err = show(ctx, &o, c, s, "http://"+d.Addr().String())
	stopped := d.Stop()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, stopped)
}

// newDaemon builds the daemon on the demo's clock.
func newDaemon(o *Options, c *clock, s *story) (*app.App, error) {
	opts := app.DefaultOptions()
	opts.RuleFiles, opts.Logger, opts.Now, opts.Speed, opts.OnAlert = o.RuleFiles, o.Log, c.Now, o.Speed, s.alert
	opts.StopDeadline = stopIn
	address := o.Address
	if address == "" {
		address = DefaultAddress
	}
	d, err := listenOn(opts, address)
	if o.Address == "" && errors.Is(err, syscall.EADDRINUSE) {
		host, _, _ := net.SplitHostPort(DefaultAddress)
		return listenOn(opts, net.JoinHostPort(host, "0"))
	}
	return d, err
}

func listenOn(opts app.Options, address string) (*app.App, error) {
	none, socket := "", false
	opts.Web = &web.FlagConfig{WebListenAddresses: &[]string{address}, WebConfigFile: &none, WebSystemdSocket: &socket}
	return app.New(opts)
}

// show plays everything and keeps the page up.
func show(ctx context.Context, o *Options, c *clock, s *story, url string) error {
	p, err := newPlayer(o.Seed, c.Now().UnixMilli())
	if err != nil {
		return err
	}
	s.about(p.names())
	s.plain("Three simulated Spark queries, %s, run a batch a minute; a minute takes %s here.", strings.Join(p.names(), ", "), time.Duration(float64(time.Minute)/o.Speed).Round(time.Millisecond))
	s.plain("Queries, states and alerts: %s/   What Prometheus would scrape: %s/metrics", url, url)
	s.plain("Playing the five hours before, to have something to compare with ...")
	x := &showing{o: o, clock: c, story: s, player: p, url: url, client: &http.Client{Timeout: 10 * time.Second}}
	err = errors.Join(x.play(ctx), p.close())
	x.client.CloseIdleConnections()
	if err != nil {
		return err
	}
	return ended(ctx, o, s, url)
}

func ended(ctx context.Context, o *Options, s *story, url string) error {
	if o.Ended != nil {
		if err := o.Ended(url); err != nil {
			return err
		}
	}
	if o.Exit {
		return s.failed()
	}
	s.plain("That was all. The page stays at %s/ until you interrupt (Ctrl-C).", url)
	<-ctx.Done()
	return nil
}

// showing is one showing.
type showing struct {
	o      *Options
	clock  *clock
	story  *story
	player *player
	url    string
	client *http.Client
	begun  bool // the history is over
}

// play sends every event when its time has come.
func (x *showing) play(ctx context.Context) error {
	for part := x.player.first(); part != nil; part = x.player.first() {
		m := part.next
		if err := x.await(ctx, m); err != nil {
			return err
		}
		x.tell(part, m)
		if err := x.post(ctx, m.Data); err != nil {
			return err
		}
		if err := errors.Join(part.step(), x.story.failed(), ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// await waits until it is time for an event; the history knows no waiting.
func (x *showing) await(ctx context.Context, m *simulator.Message) error {
	at := time.UnixMilli(m.AtMs)
	if !x.begun && m.Batch < history {
		x.clock.jump(at)
		return ctx.Err()
	}
	if !x.begun {
		x.begun = true
		x.story.plain("")
	}
	return sleep(ctx, x.clock.run(at))
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (x *showing) tell(p *part, m *simulator.Message) {
	if m.Batch < 0 {
		return
	}
	// The progress of a batch comes after it: what befalls the next one begins now.
	if what := p.faultAt(m.Batch + 1); what != "" {
		x.story.fault(what)
	}
	x.story.batch(p.sc.Query.Name, m, x.begun)
}

// full is how long a daemon that is full is left alone.
const full = 100 * time.Millisecond

// post hands an event to the daemon the way a listener does.
func (x *showing) post(ctx context.Context, data []byte) error {
	for {
		code, text, err := x.attempt(ctx, data)
		switch {
		case err != nil:
			return fmt.Errorf("posting an event: %w", err)
		case code == http.StatusOK:
			return nil
		case code != http.StatusTooManyRequests:
			return fmt.Errorf("posting an event: the daemon answers %d: %s", code, text)
		}
		if err := sleep(ctx, full); err != nil {
			return err
		}
	}
}

func (x *showing) attempt(ctx context.Context, data []byte) (code int, text string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.url+"/api/v1/events", bytes.NewReader(data))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := x.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	return resp.StatusCode, string(body), err
}
