// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"errors"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/unwindd/unwindd/engine/service/internal/worker"
)

// TestProblemsOfTheMachine has errors told that are neither the caller's nor the server's.
func TestProblemsOfTheMachine(t *testing.T) {
	for _, c := range []struct {
		err   error
		kind  *problemKind
		retry string
	}{
		{&os.PathError{Op: "write", Path: "/secret", Err: syscall.ENOSPC}, noRoom, "2"},
		{errors.Join(&os.PathError{Op: "write", Path: "/secret", Err: syscall.EDQUOT}), noRoom, "2"},
		{&worker.Failure{Kind: worker.NoRoom, Detail: "write /secret: no space left on device"}, noRoom, "2"},
		{&worker.Failure{Kind: worker.TooLarge, Detail: "the answer has more than 10 bytes"}, longAnswer, ""},
		{status.Error(codes.Canceled, "context canceled"), canceled, ""},
		{status.Error(codes.DeadlineExceeded, "context deadline exceeded"), timedOut, ""},
		{errors.New("/secret"), failed, ""},
	} {
		w := httptest.NewRecorder()
		p := problemOf(c.err)
		p.write(w)
		if p.name() != c.kind.name || w.Code != c.kind.status || w.Header().Get("Retry-After") != c.retry || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%v: %d %s, Retry-After %q: %s", c.err, w.Code, p.name(), w.Header().Get("Retry-After"), w.Body)
		}
	}
}

// TestAWorkerWhosePluginIsGivenUpIsReplaced has plugins fail again and again. A worker that
// starts one no more would fail each request that comes to it.
func TestAWorkerWhosePluginIsGivenUpIsReplaced(t *testing.T) {
	o := testOptions(t)
	o.Workers, o.Pins = 1, map[string]string{apart: "/nothing"}
	s := start(t, o)
	for range 10 {
		if s.post(t, "/v1/stack", file(t, crashCore)); strings.Contains(s.log.String(), "a plugin was given up") {
			return
		}
	}
	t.Errorf("no worker was replaced:\n%s", s.log)
}
