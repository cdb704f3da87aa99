// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// ask sends a server a target, as soon as it listens, and ends it.
func (b *bench) ask(cmd *exec.Cmd, r *result) {
	socket := filepath.Join(b.folder("out"), "socket")
	hasEnded := func() bool {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		_, rest, _ := bytes.Cut(state, []byte(") "))
		return err != nil || bytes.HasPrefix(rest, []byte("Z"))
	}
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if c, err := net.Dial("unix", socket); err == nil {
			_ = c.Close()
			break
		}
		if hasEnded() || time.Since(begun) > timeLimit/2 {
			return
		}
	}
	b.post(socket, r)
	// One that hung up may be about to end with an error, and its status counts.
	for begun := time.Now(); r.hungUp && !hasEnded() && time.Since(begun) < grace; {
		time.Sleep(5 * time.Millisecond)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
}

// post sends the target.
func (b *bench) post(socket string, r *result) {
	client := &http.Client{Timeout: timeLimit / 2, Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", socket)
	}}}
	defer client.CloseIdleConnections()
	body, err := os.Open(filepath.Join(b.material(), "mixed.snapshot"))
	if err != nil {
		r.left = append(r.left, err.Error())
		return
	}
	defer body.Close()
	answer, err := client.Post("http://localhost/v1/stack", "", body)
	if err != nil {
		r.refused, r.hungUp = err.Error(), true
		return
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.refused, r.hungUp = err.Error(), true // and that was noticed
		return
	}
	if answer.StatusCode == http.StatusOK {
		r.answer = text
		return
	}
	var problem struct{ Detail, Title string }
	if err := json.Unmarshal(text, &problem); err != nil || problem.Title == "" {
		r.left = append(r.left, fmt.Sprintf("an answer of status %d that says %q", answer.StatusCode, text))
	}
	r.refused = fmt.Sprintf("%s: %s", answer.Status, problem.Detail)
}
