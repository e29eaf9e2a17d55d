package exporter

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// Reasons of scrape errors.
const (
	errorGather = "gather"
	errorEncode = "encode"
	errorWrite  = "write"
	errorBusy   = "busy"
)

// Handler serves the whole page: the exporter's families and those of g, which
// may be nil, in the format that the client prefers and compressed if it likes.
// What is wrong with g costs its own families only. The page is rendered into
// memory before the first byte goes out, compressed on the way where it is to be,
// so a slow client holds no lock and a compressed page takes little memory; how
// many clients are served at a time, and for how long, is limited.
func (x *Exporter) Handler(g prometheus.Gatherer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case x.busy <- struct{}{}:
			defer func() { <-x.busy }()
		default:
			x.m.scrapeErrors.WithLabelValues(errorBusy).Inc()
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many scrapes at the same time", http.StatusServiceUnavailable)
			return
		}
		x.serve(w, r, g)
	})
}

func (x *Exporter) serve(w http.ResponseWriter, r *http.Request, g prometheus.Gatherer) {
	format := expfmt.NegotiateAccept(r.Header, expfmt.DefaultOpenMetricsAcceptedFormats()...)
	x.m.scrapes.WithLabelValues(formatOf(format)).Inc()
	own := x.gatherOwn(g)
	sc := x.acquire()
	defer x.release(sc)
	packed := acceptsGzip(r.Header)
	if packed {
		sc.compress()
	}
	start := time.Now()
	if err := x.render(sc, format); err != nil {
		x.scrapeError(errorEncode, err)
	}
	x.m.scrapeTime.Observe(time.Since(start).Seconds())
	for _, mf := range own {
		if err := sc.encode(mf, format); err != nil {
			x.scrapeError(errorEncode, err)
		}
	}
	end(sc, format)
	page, err := sc.finished()
	if err != nil {
		x.scrapeError(errorEncode, fmt.Errorf("compressing metrics page: %w", err))
	}
	h := w.Header()
	h.Set("Content-Type", string(format))
	h.Set("Content-Length", strconv.Itoa(len(page)))
	h.Add("Vary", "Accept, Accept-Encoding")
	if packed {
		h.Set("Content-Encoding", "gzip")
	} else {
		x.pageBytes.Store(int64(len(page)))
	}
	if err := x.send(w, page); err != nil {
		x.m.scrapeErrors.WithLabelValues(errorWrite).Inc() // the client went away; nothing to log
	}
}

// gatherOwn returns g's families that x does not hold itself. A Gatherer that
// fails in part gives what it has.
func (x *Exporter) gatherOwn(g prometheus.Gatherer) []*dto.MetricFamily {
	if g == nil {
		return nil
	}
	all, err := gatherSafely(g)
	if err != nil {
		x.scrapeError(errorGather, err)
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	own, seen := all[:0], map[string]bool{}
	for _, mf := range all {
		// A name that is there twice would cost a scraper the whole page.
		if x.byName[mf.GetName()] == nil && !seen[mf.GetName()] {
			own = append(own, mf)
		}
		seen[mf.GetName()] = true
	}
	return own
}

// gatherSafely turns a panic of a collector into an error.
func gatherSafely(g prometheus.Gatherer) (out []*dto.MetricFamily, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("gathering own metrics: panic: %v", p)
		}
	}()
	out, err = g.Gather()
	if err != nil {
		err = fmt.Errorf("gathering own metrics: %w", err)
	}
	return out, err
}

func (x *Exporter) scrapeError(reason string, err error) {
	x.m.scrapeErrors.WithLabelValues(reason).Inc()
	if x.mayLog(time.Now().UnixMilli()) {
		x.o.Logger.Error("metrics page is incomplete", "reason", reason, "err", err)
	}
}

// send writes the page within the time that a client gets.
func (x *Exporter) send(w http.ResponseWriter, page []byte) error {
	if x.o.ScrapeTimeout > 0 {
		rc := http.NewResponseController(w)
		// Not every ResponseWriter knows deadlines; those of net/http do.
		if rc.SetWriteDeadline(time.Now().Add(x.o.ScrapeTimeout)) == nil {
			defer func() { _ = rc.SetWriteDeadline(time.Time{}) }()
		}
	}
	_, err := w.Write(page)
	return err
}

// acceptsGzip reports whether the client takes gzip.
func acceptsGzip(h http.Header) bool {
	for _, line := range h.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(line, ",") {
			name, params, _ := strings.Cut(strings.TrimSpace(part), ";")
			if name = strings.TrimSpace(name); !strings.EqualFold(name, "gzip") && name != "*" {
				continue
			}
			q, found := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q=")
			if v, err := strconv.ParseFloat(q, 64); found && (err != nil || v <= 0) {
				return false
			}
			return true
		}
	}
	return false
}
