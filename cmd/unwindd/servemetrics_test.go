// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/unwindd/unwindd/engine/service"
	"github.com/unwindd/unwindd/internal/oracle"
)

// TestServeReloadsCertificates replaces a certificate by SIGHUP: connections that come later
// get the new one, those that are open live on, and a file that is none changes nothing.
func TestServeReloadsCertificates(t *testing.T) {
	dir := shortDir(t)
	oracle.Tool(t, "openssl")
	cert, key, tokens := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "tokens")
	certify := func(name string) {
		oracle.Run(t, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN="+name,
			"-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert, "-days", "2")
	}
	certify("first")
	if err := os.WriteFile(tokens, []byte("me 0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := "localhost:" + freePort(t)
	d := startDaemon(t, dir, nil, "--listen", address, "--tls-cert", cert, "--tls-key", key, "--tokens", tokens)
	dial := func() *tls.Conn {
		t.Helper()
		dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // its name is compared
		c, err := dialer.DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c.(*tls.Conn)
	}
	served := func(c *tls.Conn) string { return c.ConnectionState().PeerCertificates[0].Subject.CommonName }
	// alive asks on an open connection.
	alive := func(c *tls.Conn) {
		t.Helper()
		if _, err := c.Write([]byte("GET /healthz HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer 0123456789abcdef\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 4096)
		if n, err := c.Read(b); err != nil || !strings.HasPrefix(string(b[:n]), "HTTP/1.1 200 ") {
			t.Fatalf("%q, %v", b[:n], err)
		}
	}
	reload := func(said string) {
		t.Helper()
		n := strings.Count(d.log.String(), said)
		d.signal(t, syscall.SIGHUP)
		await(t, said, func() bool { return strings.Count(d.log.String(), said) > n })
	}
	old := dial()
	alive(old)
	if got := served(old); got != "first" {
		t.Fatalf("the certificate is of %q, expected first", got)
	}
	certify("second")
	reload("unwindd: reloaded")
	if got := served(dial()); got != "second" {
		t.Errorf("the certificate is of %q, expected second", got)
	}
	alive(old)
	if err := os.WriteFile(cert, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	reload("not reloaded")
	if got := served(dial()); got != "second" {
		t.Errorf("the certificate is of %q, expected second, as before", got)
	}
	alive(old)
}

// TestRequestsOfAServerHaveItsMark has headers of a user beside the mark.
func TestRequestsOfAServerHaveItsMark(t *testing.T) {
	if h := fromServer(http.Header{"X-Own": {"1"}}); h.Get("Via") != service.Via || h.Get("X-Own") != "1" {
		t.Error(h)
	}
	if h := fromServer(nil); h.Get("Via") != service.Via {
		t.Error(h)
	}
}
