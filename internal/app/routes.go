package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// routes is everything the daemon answers.
func (a *App) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", a.exporter.Handler(a.registry))
	mux.HandleFunc("/api/v1/events", a.serveEvents)
	mux.HandleFunc("GET /api/v1/queries", a.serveQueries)
	mux.HandleFunc("GET /api/v1/rules", a.serveRules)
	mux.HandleFunc("GET /api/v1/alerts", a.serveAlerts)
	mux.HandleFunc("GET /api/v1/query_history", a.serveHistory)
	mux.HandleFunc("GET /-/healthy", a.serveHealthy)
	mux.HandleFunc("GET /-/ready", a.serveReady)
	mux.HandleFunc("POST /-/reload", a.serveReload)
	mux.HandleFunc("PUT /-/reload", a.serveReload)
	mux.HandleFunc("GET /{$}", a.serveHome)
	return mux
}

// health is the answer of /-/healthy: the process works, though a source may not.
type health struct {
	Status  string            `json:"status"` // ok or degraded
	Sources map[string]string `json:"sources"`
	History string            `json:"history,omitempty"` // where one is kept
}

// serveHealthy answers 200 while the process can work at all. A source that
// cannot be read makes it degraded, not dead: restarting the daemon would not
// bring a broker back.
func (a *App) serveHealthy(w http.ResponseWriter, _ *http.Request) {
	h := health{Status: "ok", Sources: map[string]string{"http": "ok"}}
	if err := a.kafkaHealth(); err != nil {
		h.Status, h.Sources["kafka"] = "degraded", err.Error()
	} else if a.hasKafka() {
		h.Sources["kafka"] = "ok"
	}
	if a.journal != nil {
		h.History = "ok"
		if since, bad := a.journal.degraded(); bad {
			h.Status, h.History = "degraded", "not written since "+time.UnixMilli(since).UTC().Format(time.RFC3339)
		}
	}
	writeJSON(w, http.StatusOK, h)
}

// serveReady answers 200 once events are taken and pages served.
func (a *App) serveReady(w http.ResponseWriter, _ *http.Request) {
	if !a.ready.Load() {
		http.Error(w, "not ready", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

func (a *App) serveReload(w http.ResponseWriter, _ *http.Request) {
	if err := a.Reload(); err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	fmt.Fprintln(w, "reloaded")
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	// The client went away: there is nobody left to tell.
	_ = enc.Encode(v)
}
