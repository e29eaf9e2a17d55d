package app

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/prometheus/exporter-toolkit/web"
)

// listen opens every listen address before anything is started, so that a port in
// use is a start error and :0 can be asked for its port. With socket activation
// the service manager has opened them.
func (a *App) listen() error {
	if s := a.opts.Web.WebSystemdSocket; s != nil && *s {
		return a.inherit()
	}
	for _, addr := range *a.opts.Web.WebListenAddresses {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return err
		}
		a.listeners = append(a.listeners, l)
	}
	return nil
}

// inherit takes the listeners that the service manager opened.
func (a *App) inherit() error {
	l, err := activation.Listeners()
	if err != nil {
		return fmt.Errorf("socket activation: %w", err)
	}
	if len(l) == 0 {
		return errors.New("socket activation: no sockets were passed")
	}
	a.listeners = l
	return nil
}

// Addr returns the first address that is listened on.
func (a *App) Addr() net.Addr { return a.listeners[0].Addr() }

// serve answers HTTP until the server is shut down.
func (a *App) serve() error {
	err := web.ServeMultiple(a.listeners, a.server, a.opts.Web, a.log)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// newServer bounds what a slow client may hold. Bodies have their own deadline in
// the events handler; scrapes are written from a finished buffer.
func newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		WriteTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
	}
}
