// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// wantMetrics says that the figures of a server have lines.
func (d *daemon) wantMetrics(t *testing.T, lines ...string) {
	t.Helper()
	_, text := d.request(t, http.MethodGet, "/metrics", nil)
	for _, want := range lines {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// TestServeCountsPluginsThatEnd kills the process of a plugin between two requests.
func TestServeCountsPluginsThatEnd(t *testing.T) {
	d := startDaemon(t, shortDir(t), nil, "--sysroot", "/", "--workers", "1")
	d.walk(t)
	of := func(event string, n int) string {
		return `unwindd_plugin_processes_total{event="` + event + `",plugin="x86_64"} ` + strconv.Itoa(n)
	}
	d.wantMetrics(t, of("started", 1), of("restarted", 0), of("failed", 0))
	killed := 0
	for _, pid := range descendants(d.command.Process.Pid) {
		line, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if strings.Contains(string(line), "plugin\x00") && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	if killed == 0 {
		t.Fatal("no process of a plugin was found")
	}
	answer, text := d.request(t, http.MethodPost, "/v1/stack", strings.NewReader(string(core(t))))
	if answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status, text)
	}
	d.wantMetrics(t, of("started", 2), of("restarted", 1))
}

// TestServeCountsDownloads has a debuginfod server that has the executable, and a second
// request that finds it in the cache.
func TestServeCountsDownloads(t *testing.T) {
	var asked atomic.Int64
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if strings.HasSuffix(r.URL.Path, "/executable") {
			http.ServeFile(w, r, "../../examples/crash/server")
			return
		}
		http.NotFound(w, r)
	}))
	defer files.Close()
	dir := shortDir(t)
	d := startDaemon(t, dir, []string{"DEBUGINFOD_CACHE_PATH=" + filepath.Join(dir, "cache")}, "--workers", "1", "--debuginfod", files.URL)
	of := func(result string, n int) string {
		return `unwindd_download_lookups_total{cache="debuginfod",result="` + result + `"} ` + strconv.Itoa(n)
	}
	d.wantMetrics(t, of("hit", 0), of("miss", 0))
	d.walk(t)
	n := int(asked.Load())
	d.wantMetrics(t, of("hit", 0), of("miss", n))
	d.walk(t)
	d.wantMetrics(t, of("hit", 1), of("miss", n))
	if n == 0 || int(asked.Load()) != n {
		t.Errorf("%d and then %d files were asked for", n, asked.Load())
	}
}

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
