// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// contextKey is a key of values in the contexts of requests.
type contextKey int

const (
	requestKey contextKey = iota
	peerKey               // the user of a connection of a Unix socket, as text
)

// requestOf returns the record of a request that guard has let in.
func requestOf(ctx context.Context) *request {
	r, _ := ctx.Value(requestKey).(*request)
	return r
}

// connContext records the user at the other end of a connection.
func connContext(ctx context.Context, c net.Conn) context.Context {
	if own := connectionOf(c); own != nil {
		c = own.Conn
	}
	if user, ok := peerUser(c); ok {
		return context.WithValue(ctx, peerKey, user)
	}
	return ctx
}

// guard lets in requests that name this server, that no page of another site has made, and
// whose callers are known where they have to be. Each gets an ID.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := &request{id: rand.Text()[:16], kind: byNothing, began: time.Now(), address: fromWhere(r)}
		counting, r, ended := s.begun(req, w, r)
		defer ended()
		w = counting
		if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
			// Who also sends a length, which net/http does not tell, and a proxy that heeds it may
			// take the rest of the body for the next request.
			w.Header().Set("Connection", "close")
		}
		w.Header().Set("X-Request-Id", req.id)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		var err error
		switch {
		case !s.isOwnHost(r):
			err = forbidden.new(fmt.Sprintf("the request is for %q, which is not a name of this server", r.Host))
		case isOfAnotherSite(r):
			err = forbidden.new("a page of another site has made the request")
		default:
			req.caller, req.kind, err = s.caller(r)
		}
		own := s.requests.of(req.room())
		if err == nil {
			err = own.take(1)
		}
		if err != nil {
			p := problemOf(err)
			p.Request = req.id
			s.end(req, kindRefused, p)
			p.answer(w, r)
			return
		}
		defer own.give(1)
		next.ServeHTTP(w, r)
	})
}

// callerKind is a way in which callers show who they are, for figures.
type callerKind string

// The kinds. A caller that was not let in is of none.
const (
	byCertificate callerKind = "certificate"
	byToken       callerKind = "token"
	byUser        callerKind = "user"
	byAddress     callerKind = "address"
	byFleet       callerKind = "fleet"
	byNothing     callerKind = "none"
)

// caller names the caller: by its token, certificate, user or address.
func (s *Server) caller(r *http.Request) (name string, kind callerKind, err error) {
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return "certificate " + r.TLS.VerifiedChains[0][0].Subject.String(), byCertificate, nil
	}
	if tokens := *s.tokens.Load(); tokens != nil {
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		// The time of looking up a hash tells nothing about a token.
		name, known := tokens[sha256.Sum256([]byte(token))]
		switch {
		case !known && isForAnybody(r):
			return anybody, byNothing, nil
		case !ok:
			return "", byNothing, unauthorized.new("expected Authorization: Bearer TOKEN")
		case !known:
			return "", byNothing, unauthorized.new("the token is not one of this server")
		}
		return name, byToken, nil
	}
	if user, ok := r.Context().Value(peerKey).(string); ok {
		return user, byUser, nil
	}
	return addressName(r.RemoteAddr), byAddress, nil
}

// fromWhere names the user, or the address, at the other end of a request's connection.
func fromWhere(r *http.Request) string {
	if user, ok := r.Context().Value(peerKey).(string); ok {
		return user
	}
	return addressName(r.RemoteAddr)
}

// room names whose share of requests a request is in: those that anybody may make are of an
// address.
func (r *request) room() string {
	if r.caller == anybody {
		return anybody + r.address
	}
	return r.caller
}

// isOwnHost reports whether a request names this server: pages of other sites can make a browser
// send requests here under their own names. No browser uses a Unix socket.
func (s *Server) isOwnHost(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return true
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}
	if slices.ContainsFunc(s.Hosts, func(name string) bool { return strings.EqualFold(name, host) }) {
		return true
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().WithZone("") == local.AddrPort().Addr().Unmap().WithZone("")
	}
	return strings.EqualFold(host, "localhost") && local.IP.IsLoopback()
}

// isOfAnotherSite reports whether a browser marked a request as made by another site, and not by
// a user who followed a link.
func isOfAnotherSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "none", "same-origin":
		return false
	case "":
		return isOfAnotherOrigin(r)
	}
	return r.Method != http.MethodGet || r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
}

// isOfAnotherOrigin reports whether a page of another origin made a request, where a browser does
// not tell more: an old one, or one that speaks without TLS with a host that is not its own
// machine.
func isOfAnotherOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || !strings.EqualFold(u.Host, r.Host)
}
