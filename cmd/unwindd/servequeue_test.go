// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestAFleetPrintsWhatAServerHandsOver has 32 callers at once at a server with one worker, of which
// nobody waits, and two workers of a fleet: each gets what the command prints.
func TestAFleetPrintsWhatAServerHandsOver(t *testing.T) {
	dir := fleetDir(t)
	startWorker(t, dir, "--queue-listen", "localhost:0", "--workers", "1")
	startWorker(t, fleetDir(t), "--queue", queueOf(t, dir), "--workers", "1")
	s := serve(t, "--workers", "1", "--max-waiting", "0", "--queue", queueOf(t, dir))
	await(t, "the queue", func() bool { return strings.Contains(s.metrics(t), "\nunwindd_handed_over_ready 1\n") })
	want, _, _ := unwindd(t, "stack", "--lanes", mixed)
	var callers sync.WaitGroup
	for i := range 32 {
		callers.Go(func() {
			name := fmt.Sprintf("%d.snapshot", i)
			got, err := s.tryPost("/v1/stack?format=text&lanes&name="+name, mixed)
			if want := strings.Replace(want, mixed, name, 1); err != nil || got != want {
				t.Errorf("%v: %s\nexpected\n%s", err, got, want)
			}
		})
	}
	callers.Wait()
	if found := regexp.MustCompile(`(?m)^unwindd_handed_over_total\{outcome="done"\} [1-9]`).FindString(s.metrics(t)); found == "" {
		t.Error("nothing was handed over")
	}
	if status := s.end(t, syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if text := s.stderr.String(); strings.Contains(text, "panic") || !strings.Contains(text, " job=") {
		t.Error("the log does not name the jobs: " + text)
	}
}

// TestAQueueOfTheEnvironmentIsNoServersFleet has a variable that is for the commands of the fleet.
func TestAQueueOfTheEnvironmentIsNoServersFleet(t *testing.T) {
	t.Setenv("UNWINDD_QUEUE", "nats://127.0.0.1:1")
	if text := serve(t).metrics(t); strings.Contains(text, "handed_over") {
		t.Errorf("the server has a fleet:\n%s", text)
	}
}

// metrics are the server's.
func (s *served) metrics(t *testing.T) string {
	t.Helper()
	answer, err := s.client.Get("http://localhost/metrics") //nolint:noctx // the test has a limit
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
