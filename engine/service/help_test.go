// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
)

// A logText keeps what is logged.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func file(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ask makes a request, and returns the answer and its body.
func (s *testServer) ask(t testing.TB, method, path string, body io.Reader, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	answer, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(all)
}

// post posts a file, and wants a report.
func (s *testServer) post(t testing.TB, path string, body []byte) string {
	t.Helper()
	answer, text := s.ask(t, http.MethodPost, path, bytes.NewReader(body))
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %s", path, answer.Status, text)
	}
	return text
}

// wantProblem says that an answer is a problem of a kind, whose detail has words.
func wantProblem(t *testing.T, answer *http.Response, text string, kind *problemKind, words string) {
	t.Helper()
	var p problem
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatalf("%s: %q: %v", answer.Status, text, err)
	}
	if answer.StatusCode != kind.status || p.Status != kind.status || p.Type != problemPath+kind.name || !strings.Contains(p.Detail, words) {
		t.Errorf("%s: %s, expected %d %s with %q", answer.Status, text, kind.status, kind.name, words)
	}
	if answer.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s has Content-Type %q", kind.name, answer.Header.Get("Content-Type"))
	}
	if p.Request == "" || p.Request != answer.Header.Get("X-Request-Id") {
		t.Errorf("%s names request %q, its header %q", kind.name, p.Request, answer.Header.Get("X-Request-Id"))
	}
}

// putCrash puts the executable of the core.
func (s *testServer) putCrash(t testing.TB) {
	t.Helper()
	answer, text := s.ask(t, http.MethodPut, "/v1/objects/"+crashID, bytes.NewReader(file(t, crashExe)))
	if answer.StatusCode != http.StatusCreated {
		t.Fatalf("%s: %s", answer.Status, text)
	}
}
