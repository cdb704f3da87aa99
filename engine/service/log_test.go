// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestServeLogs has a line for each request, in which nothing foreign is more than text.
func TestServeLogs(t *testing.T) {
	s := start(t, oneWorker(t))
	answer, _ := s.ask(t, http.MethodPost, "/v1/stack", bytes.NewReader(file(t, crashCore)), "Traceparent", "00-"+callerTrace+"-b7ad6b7169203331-01")
	id := answer.Header.Get("X-Request-Id")
	s.ask(t, http.MethodGet, "/x%0a%1b%5b31mred%00", nil)
	s.ask(t, http.MethodPost, "/v1/stack?bad%0aline=%1b", strings.NewReader("x"))
	var found []string
	until(t, "the line of the request", func() bool { return strings.Contains(s.log.String(), "stack: request="+id) })
	for line := range strings.Lines(s.log.String()) {
		for _, c := range strings.TrimSuffix(line, "\n") {
			if c < ' ' || c == 0x7f {
				t.Errorf("a line has control characters: %q", line)
			}
		}
		if !strings.HasPrefix(line, "20") {
			t.Errorf("%q is no line of a log", line)
		}
		if strings.Contains(line, " stack:") && strings.Contains(line, id) {
			found = append(found, line)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d lines of the request, expected one: %q", len(found), found)
	}
	for _, want := range []string{
		"status=200", fmt.Sprintf("received=%d", len(file(t, crashCore))), " sent=", " queued=0.", " took=", "trace=" + callerTrace,
	} {
		if !strings.Contains(found[0], want) {
			t.Errorf("%q lacks %q", found[0], want)
		}
	}
	if !strings.Contains(s.log.String(), "worker started: pid=") || strings.Count(s.log.String(), "request="+id) != 2 {
		t.Errorf("the worker that the request started does not name it")
	}
}
