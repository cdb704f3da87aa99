// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
)

// TestServePassesProfilesOn has a profile go through a server to a collector, with the headers that exporters of
// OpenTelemetry have in their environment.
func TestServePassesProfilesOn(t *testing.T) {
	got := make(chan http.Header, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // it is a test of the way
		got <- r.Header
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_PROFILES_HEADERS", "x-key=secret")
	socket := filepath.Join(t.TempDir(), "otlp.sock")
	serve(t, "--otlp-listen", "unix:"+socket, "--otlp-to", collector.URL)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}}
	resources := []byte{0x0a, 0x00}                                                                                             // one, with nothing in it
	answer, err := client.Post("http://localhost/v1development/profiles", "application/x-protobuf", bytes.NewReader(resources)) //nolint:noctx // the test has a limit
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(answer.Body) // for people
		t.Fatalf("%s %q", answer.Status, b)
	}
	if key := (<-got).Get("X-Key"); key != "secret" {
		t.Errorf("the collector got the key %q", key)
	}
}
