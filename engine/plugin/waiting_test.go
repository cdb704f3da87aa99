// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// The user is told after a moment which step of a start hangs, and all starts together have the
// time of one: the next call fails at once.
func TestAStartThatHangsIsAnnouncedOnce(t *testing.T) {
	ownCache(t)
	dir := t.TempDir()
	path := vendor(t, dir, "hangs", "")
	var mu sync.Mutex
	var texts []string
	began := time.Now()
	var first time.Duration
	m := manager(t, Options{Dirs: []string{dir}, Waiting: func(text string) {
		mu.Lock()
		defer mu.Unlock()
		texts, first = append(texts, text), time.Since(began)
	}})
	s := m.plugins[0].transport.(*supervisor)
	s.launch.limit = deadline{time.Minute, 3 * time.Second}
	_, err := m.Find("hangs")
	if err == nil || !strings.HasPrefix(err.Error(), "plugin hangs: did not start within 3s") {
		t.Errorf("%v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(texts) != 1 || !strings.HasPrefix(texts[0], "plugin hangs: waiting for the line with its address on standard output from "+path+" (process ") ||
		!strings.HasSuffix(texts[0], "at most 3s in all") {
		t.Errorf("%q", texts)
	}
	if first < startPatience {
		t.Errorf("after %v", first)
	}
	if s.disabled == nil || !strings.HasPrefix(s.disabled.Reason, "given up: start: did not start within") {
		t.Errorf("%v", s.disabled)
	}
}

// The errors of go-plugin about a line become sentences about the line.
func TestHandshakesAreDescribedWithoutGoPlugin(t *testing.T) {
	for message, want := range map[string]string{
		"Unrecognized remote plugin message: \nFailed to read any lines from plugin's stdout\nThis usually means": "ended, or closed its standard output, before it wrote " + handshakeLine,
		"Unrecognized remote plugin message: hello\nThis usually means\n  the plugin was not compiled":            `wrote "hello" to standard output, expected ` + handshakeLine,
		`error parsing core protocol version: strconv.Atoi: parsing "x": invalid syntax`:                          `wrote a line that begins with "x" to standard output, expected ` + handshakeLine,
		"incompatible core API version with plugin. Plugin version: 7, Core version: 1\n\nTo fix this, the":       "wrote a line that begins with 7 to standard output, expected " + handshakeLine,
		`unsupported plugin protocol "netrpc". Supported: [grpc]`:                                                 `wrote a line that ends with "netrpc" to standard output, expected ` + handshakeLine,
		"unknown address type: udp":                   `listens on network "udp", expected unix, as in ` + handshakeLine,
		`Error parsing protocol version "a": strconv`: `wrote a line with the protocol version "a" to standard output, expected ` + handshakeLine,
		"something else\nand advice":                  "something else",
	} {
		if got := handshakeProblem(message); got != want {
			t.Errorf("%q: %s\nexpected %s", message, got, want)
		}
	}
}
