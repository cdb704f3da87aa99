// SPDX-License-Identifier: Apache-2.0

package service

import (
	"crypto/tls"
	"errors"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
)

// handler answers gRPC and HTTP.
func (s *Server) handler() http.Handler {
	routes := s.routes()
	return s.guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			s.grpc.ServeHTTP(w, r)
			return
		}
		routes.ServeHTTP(w, r)
	}))
}

// headerTimeout bounds the time for the headers of a request, idleTimeout the time of a
// connection without one.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 5 * time.Minute
)

// Serve answers requests of a listener, until it is closed, and then returns nil. With
// secure the connections are TLS.
func (s *Server) Serve(l net.Listener, secure *tls.Config) error {
	return s.serve(l, secure, s.handler())
}

func (s *Server) serve(l net.Listener, secure *tls.Config, h http.Handler) error {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(secure != nil)
	protocols.SetUnencryptedHTTP2(secure == nil) // gRPC is HTTP/2, without TLS too
	server := &http.Server{
		Handler: h, Protocols: &protocols, TLSConfig: secure, ConnContext: connContext,
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: 64 << 10,
		ErrorLog: log.New(s.Log.StandardWriter(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}), "", 0),
	}
	s.mu.Lock()
	s.servers = append(s.servers, server)
	s.mu.Unlock()
	var err error
	if secure != nil {
		err = server.ServeTLS(l, "", "")
	} else {
		err = server.Serve(l)
	}
	if errors.Is(err, net.ErrClosed) || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
