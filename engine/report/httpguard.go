// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// pageHeaders are the headers of every response. pprof's scripts and styles are in its pages;
// nothing else is run, loaded or sent, and no other site has a use of them.
var pageHeaders = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src 'self' data:; " +
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	"X-Frame-Options":              "DENY",
	"X-Content-Type-Options":       "nosniff",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cache-Control":                "no-store",
}

// guarded serves requests that read, that name this server, and that no page of another site
// made. host is the name that the server listens at.
func guarded(pages http.Handler, host string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range pageHeaders {
			w.Header().Set(name, value)
		}
		switch {
		case !isOwnHost(r, host):
			http.Error(w, "this is not the host that the profile is served at", http.StatusForbidden)
		case isOfAnotherSite(r):
			http.Error(w, "the profile is not for other sites", http.StatusForbidden)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "nothing can be changed here", http.StatusMethodNotAllowed)
		default:
			pages.ServeHTTP(&pageWriter{w}, r)
		}
	})
}

// isOwnHost reports whether a request names this server: by the name that it listens at, by
// the address of the connection, or on this machine as localhost; and by its port. Any other
// name that leads here is foreign.
func isOwnHost(r *http.Request, listenHost string) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return false
	}
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		host, port = strings.Trim(r.Host, "[]"), "80"
	}
	if port != strconv.Itoa(local.Port) {
		return false
	}
	if host != "" && strings.EqualFold(host, listenHost) {
		return true
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().WithZone("") == local.AddrPort().Addr().Unmap().WithZone("")
	}
	if strings.EqualFold(host, "localhost") {
		return local.IP.IsLoopback()
	}
	if ip, err := netip.ParseAddr(listenHost); err == nil && ip.IsUnspecified() {
		name, err := os.Hostname()
		return err == nil && strings.EqualFold(host, name)
	}
	return false
}

// isOfAnotherSite reports whether a browser marked a request as made by another site, and not
// by a user who followed a link.
func isOfAnotherSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
}

// pageWriter removes from pprof's pages the means to save and delete settings.
type pageWriter struct{ http.ResponseWriter }

// Write implements io.Writer. pprof writes a page at once.
func (w *pageWriter) Write(page []byte) (int, error) {
	if w.Header().Get("Content-Type") == "text/html" {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		const hidden = "<style>#save-config,#save-config+hr,.menu-delete-btn{display:none!important}</style></head>"
		if _, err := w.ResponseWriter.Write(bytes.Replace(page, []byte("</head>"), []byte(hidden), 1)); err != nil {
			return 0, err
		}
		return len(page), nil
	}
	return w.ResponseWriter.Write(page)
}

// sourceWriter removes noPath from the page of sources.
type sourceWriter struct{ http.ResponseWriter }

// Write implements io.Writer. pprof writes a page at once.
func (w *sourceWriter) Write(page []byte) (int, error) {
	if _, err := w.ResponseWriter.Write(bytes.ReplaceAll(page, []byte("\uFFFD"), nil)); err != nil {
		return 0, err
	}
	return len(page), nil
}
