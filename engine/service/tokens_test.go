// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Tokens of tests, and how they are shown.
const (
	oldToken, newToken = "0123456789abcdef", "fedcba9876543210"
	showOld, showNew   = "Bearer " + oldToken, "Bearer " + newToken
)

// tokensOf reads lines of tokens.
func tokensOf(t *testing.T, lines ...string) Tokens {
	t.Helper()
	tokens, err := ReadTokens(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// TestTokensAreRotatedWhileTheServerServes has a caller with its old token, with both, and with the new
// one, of which the file has the hash alone. A request that began with the old one ends as any other,
// after that is gone; the next one of its connection does not begin.
func TestTokensAreRotatedWhileTheServerServes(t *testing.T) {
	o := testOptions(t)
	o.Tokens = tokensOf(t, "alice "+oldToken)
	s := start(t, o)
	want := func(old, now int) {
		t.Helper()
		for show, status := range map[string]int{showOld: old, showNew: now} {
			if answer, _ := s.ask(t, http.MethodGet, "/v1/objects/"+crashID, nil, "Authorization", show); answer.StatusCode != status {
				t.Errorf("%s: %s, expected %d", show, answer.Status, status)
			}
		}
	}
	want(404, 401)
	hash := fmt.Sprintf("alice %s%x", hashPrefix, sha256.Sum256([]byte(newToken)))
	s.SetTokens(tokensOf(t, "alice "+oldToken, hash))
	want(404, 404)

	body, send := io.Pipe()
	status := make(chan int, 1)
	go func() {
		answer, _ := s.ask(t, http.MethodPut, "/v1/objects/"+crashID, body, "Authorization", showOld)
		status <- answer.StatusCode
	}()
	exe := file(t, crashExe)
	begin := len(exe) / 2
	if _, err := send.Write(exe[:begin]); err != nil {
		t.Fatal(err)
	}
	for s.budget.inUse() == 0 { // until the server has let it in
		time.Sleep(time.Millisecond)
	}
	s.SetTokens(tokensOf(t, hash))
	want(401, 404)
	if _, err := io.Copy(send, bytes.NewReader(exe[begin:])); err != nil {
		t.Fatal(err)
	}
	_ = send.Close()
	if got := <-status; got != http.StatusCreated {
		t.Errorf("the request that was under way ends with %d", got)
	}
	want(401, 200)
}

// TestCallersHaveFigures counts requests, bytes and seconds by the names of tokens. The figures of a name end
// when no token has it.
func TestCallersHaveFigures(t *testing.T) {
	o := testOptions(t)
	o.Tokens = tokensOf(t, "alice "+oldToken, "bob "+newToken)
	s := start(t, o)
	core := file(t, crashCore)
	if answer, text := s.ask(t, http.MethodPost, "/v1/stack", bytes.NewReader(core), "Authorization", showOld); answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status, text)
	}
	s.ask(t, http.MethodGet, "/v1/objects/"+crashID, nil, "Authorization", showNew)
	s.ask(t, http.MethodGet, "/v1/objects/"+crashID, nil, "Authorization", "Bearer nobodyofthemall1")
	figures := func() string {
		_, text := s.ask(t, http.MethodGet, "/metrics", nil, "Authorization", showOld)
		return text
	}
	text := figures()
	for _, want := range []string{
		`unwindd_caller_requests_total{by="token",caller="alice",status="ok"} 1`, `unwindd_caller_requests_total{by="token",caller="bob",status="not-found"} 1`,
		`unwindd_caller_requests_total{by="none",caller="",status="unauthenticated"} 1`, `unwindd_caller_work_seconds_total{by="token",caller="alice"} `,
		fmt.Sprintf(`unwindd_caller_bytes_total{by="token",caller="alice",direction="received"} %d`, len(core)), `unwindd_caller_bytes_total{by="token",caller="bob",direction="sent"} `,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no figure %s in\n%s", want, text)
		}
	}
	s.SetTokens(tokensOf(t, "alice "+oldToken))
	if text := figures(); strings.Contains(text, `"bob"`) || !strings.Contains(text, `caller="alice",status="ok"`) {
		t.Errorf("after bob is gone: %s", text)
	}
	s.SetTokens(nil)
	s.ask(t, http.MethodGet, "/v1/objects/"+crashID, nil)
	if text := figures(); strings.Contains(text, `"alice"`) || !strings.Contains(text, `unwindd_caller_requests_total{by="address",caller="",status="not-found"} 1`) {
		t.Errorf("without tokens: %s", text)
	}
}

// FuzzTokens reads files of tokens.
func FuzzTokens(f *testing.F) {
	f.Add("alice 0123456789abcdef\n# comment\nbob sha256:" + strings.Repeat("0a", 32) + "\n")
	f.Add("a b")
	f.Fuzz(func(t *testing.T, text string) {
		tokens, err := ReadTokens(strings.NewReader(text))
		if err != nil && tokens != nil || err == nil && (len(tokens) == 0 || len(tokens) > strings.Count(text, "\n")+1) {
			t.Errorf("%q: %d tokens, %v", text, len(tokens), err)
		}
		for _, name := range tokens {
			if name == "" || len(name) > maxCaller || strings.ContainsAny(name, " \n") {
				t.Errorf("%q: name %q", text, name)
			}
		}
	})
}
