// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/service/internal/page"
)

// keepMixed keeps the report of a snapshot, and returns its path.
func (s *testServer) keepMixed(t *testing.T, headers ...string) string {
	t.Helper()
	answer, text := s.ask(t, http.MethodPost, "/v1/reports/stack?format=html&name=mixed", bytes.NewReader(file(t, mixed)), headers...)
	var kept struct {
		ID       string
		Bytes    int
		Unwalked string
	}
	if err := json.Unmarshal([]byte(text), &kept); err != nil || answer.StatusCode != http.StatusCreated {
		t.Fatalf("%s: %s: %v", answer.Status, text, err)
	}
	path := answer.Header.Get("Location")
	if path != reportsPath+kept.ID || kept.Bytes < 1000 || kept.Unwalked != "" {
		t.Errorf("%q, %+v", path, kept)
	}
	return path
}

// TestReportsAreKept until they are removed, or the server keeps them no more.
func TestReportsAreKept(t *testing.T) {
	o := testOptions(t)
	s := start(t, o)
	path := s.keepMixed(t)
	want := s.post(t, "/v1/stack?format=html&name=mixed", file(t, mixed))
	answer, got := s.ask(t, http.MethodGet, path, nil)
	if answer.StatusCode != http.StatusOK || got != want || answer.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("%s: %d bytes of %s, expected %d", answer.Status, len(got), answer.Header.Get("Content-Type"), len(want))
	}
	if policy := answer.Header.Get("Content-Security-Policy"); policy != page.ReportPolicy() || !strings.HasPrefix(policy, "sandbox allow-scripts; default-src 'none'; ") {
		t.Errorf("the report's policy is %q", policy)
	}
	if strings.Contains(s.log.String(), strings.TrimPrefix(path, reportsPath)) {
		t.Error("the log has the report's ID")
	}
	if answer, text := s.ask(t, http.MethodDelete, path, nil); answer.StatusCode != http.StatusNoContent {
		t.Errorf("%s: %s", answer.Status, text)
	}
	for _, path := range []string{path, reportsPath + "x", reportsPath + "..%2F..%2Fobjects"} {
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			answer, text := s.ask(t, method, path, nil)
			wantProblem(t, answer, text, notFound, "no report of this ID")
		}
	}
	none := start(t, func() Options { o := testOptions(t); o.Reports = 0; return o }())
	for _, c := range [][2]string{{http.MethodPost, "/v1/reports/stack"}, {http.MethodPost, "/v1/reports/profile"}, {http.MethodGet, path}, {http.MethodDelete, path}} {
		answer, text := none.ask(t, c[0], c[1], strings.NewReader("x"))
		wantProblem(t, answer, text, badRequest, "keeps no reports")
	}
	if _, text := none.ask(t, http.MethodGet, "/", nil); strings.Contains(text, `id="keep"`) {
		t.Error("the page offers to keep reports")
	}
}

// TestReportsAreKeptWholeOrNotAtAll: nothing is left of what cannot be read, of parameters
// without a meaning, or of a report that has no room.
func TestReportsAreKeptWholeOrNotAtAll(t *testing.T) {
	o := testOptions(t)
	o.Reports = 2000
	s := start(t, o)
	answer, text := s.ask(t, http.MethodPost, "/v1/reports/stack", strings.NewReader("nothing"))
	wantProblem(t, answer, text, unreadable, "not a target")
	answer, text = s.ask(t, http.MethodPost, "/v1/reports/stack?format=svg", strings.NewReader("nothing"))
	wantProblem(t, answer, text, badRequest, "--format svg")
	answer, text = s.ask(t, http.MethodPost, "/v1/reports/stack", bytes.NewReader(file(t, mixed)))
	wantProblem(t, answer, text, longAnswer, "more bytes than all that are kept may have")
	if list, err := os.ReadDir(filepath.Join(o.State, "reports")); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
}

// TestPageIsForAnybody: what has nothing of anybody's in it is let in without a token, and
// nothing else is. A browser that follows a link to a report gets the page, which asks for
// a token; a page of another site gets nothing.
func TestPageIsForAnybody(t *testing.T) {
	o := testOptions(t)
	o.Tokens = Tokens{sha256.Sum256([]byte("0123456789abcdef")): "somebody"}
	s := start(t, o)
	own := []string{"Authorization", "Bearer 0123456789abcdef"}
	path := s.keepMixed(t, own...)
	for _, c := range []struct {
		method, path string
		headers      []string
		status       int
		isPage       bool
	}{
		{"GET", "/", nil, 200, true},
		{"POST", "/", nil, 401, false},
		{"GET", path, nil, 401, false},
		{"GET", path, []string{"Accept", "text/html,*/*"}, 200, true},
		{"GET", path, append([]string{"Accept", "text/html,*/*"}, own...), 200, false},
		{"GET", path, []string{"Accept", "text/html", "Authorization", "Bearer 0123456789abcdeX"}, 401, false},
		{"DELETE", path, []string{"Accept", "text/html"}, 401, false},
		{"GET", "/metrics", []string{"Accept", "text/html"}, 401, false},
		{"POST", "/v1/stack", []string{"Accept", "text/html"}, 401, false},
		{"GET", "/", []string{"Sec-Fetch-Site", "same-origin"}, 200, true},
		{"GET", "/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200, true},
		{"GET", "/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403, false},
		{"GET", path, append([]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"}, own...), 403, false},
		{"POST", "/v1/reports/stack", append([]string{"Sec-Fetch-Site", "cross-site"}, own...), 403, false},
		{"GET", "/", []string{"Host", "other.example"}, 403, false},
	} {
		answer, text := s.ask(t, c.method, c.path, nil, c.headers...)
		isPage := strings.Contains(text, `id="drop"`)
		if answer.StatusCode != c.status || isPage != c.isPage {
			t.Errorf("%s %s %v: %s, the page: %v", c.method, c.path, c.headers, answer.Status, isPage)
		}
		if isPage && (answer.Header.Get("Content-Security-Policy") != page.Policy() || answer.Header.Get("X-Frame-Options") != "DENY" || !strings.Contains(text, " data-token>")) {
			t.Errorf("%s %v: the page has %v", c.path, c.headers, answer.Header)
		}
	}
}
