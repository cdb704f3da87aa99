// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"
	"testing"
)

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
