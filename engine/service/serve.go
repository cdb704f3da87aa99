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

// callType begins the content types of calls of gRPC.
const callType = "application/grpc"

// isCall reports whether a request is a call of gRPC.
func isCall(r *http.Request) bool {
	return r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), callType)
}

// handler answers gRPC and HTTP.
func (s *Server) handler() http.Handler {
	routes, streams := s.routes(), clientStreams(s.grpc)
	return s.guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isCall(r) {
			routes.ServeHTTP(w, r)
			return
		}
		req := requestOf(r.Context())
		req.gate = newGate(r, http.NewResponseController(w), s.memory.of(req.caller), s.now().Idle)
		req.gate.isSingle = !streams[r.URL.Path]
		defer req.gate.Close()
		r.Body = req.gate
		s.grpc.ServeHTTP(w, r)
	}))
}

// headerTimeout bounds the time for the headers of a request, idleTimeout the time of a
// connection without one.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 5 * time.Minute
)

// Bounds of a connection of HTTP/2. A call that takes no messages, as it waits for a worker,
// keeps a part of the connection's buffer, and leaves the others the rest.
const (
	maxStreams       = 100
	streamBuffer     = 512 << 10
	connectionBuffer = 2 << 20
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
		Handler: h, Protocols: &protocols, TLSConfig: secure, ConnContext: connContext, ConnState: s.connections.changed,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerStream: streamBuffer, MaxReceiveBufferPerConnection: connectionBuffer,
		},
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: 64 << 10,
		ErrorLog: log.New(s.Log.StandardWriter(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}), "", 0),
	}
	s.mu.Lock()
	s.servers = append(s.servers, server)
	s.mu.Unlock()
	l = admitted{l, s.connections}
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
