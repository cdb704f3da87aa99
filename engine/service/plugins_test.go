// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"strconv"
	"syscall"
	"testing"
)

// withPlugins are the options of a server with one worker, whose plugins are processes of
// their own.
func withPlugins(t *testing.T) Options {
	t.Helper()
	o := oneWorker(t)
	o.Pins = map[string]string{apart: o.Self}
	return o
}

// killPlugins kills the plugins of the worker, and returns how many there were.
func killPlugins(t *testing.T) (killed int) {
	t.Helper()
	for _, w := range workers(t) {
		for _, pid := range children(t, w, "plugin") {
			if syscall.Kill(pid, syscall.SIGKILL) == nil {
				killed++
			}
		}
	}
	return killed
}

// TestServeForgetsWhatHappenedToPlugins kills the plugins of a worker: what is walked by
// their successors is not told of that.
func TestServeForgetsWhatHappenedToPlugins(t *testing.T) {
	s := start(t, withPlugins(t))
	want := s.post(t, "/v1/stack", file(t, mixed))
	if killed := killPlugins(t); killed != 2 {
		t.Fatalf("%d plugins were killed, expected two", killed)
	}
	s.post(t, "/v1/stack", file(t, mixed)) // which may tell it
	if got := s.post(t, "/v1/stack", file(t, mixed)); got != want {
		t.Errorf("%s\nexpected\n%s", got, want)
	}
}

// TestServeCountsPluginsThatEnd kills the process of a plugin between two requests.
func TestServeCountsPluginsThatEnd(t *testing.T) {
	s := start(t, withPlugins(t))
	count := func(event string, n int) string {
		return `unwindd_plugin_processes_total{event="` + event + `",plugin="x86_64"} ` + strconv.Itoa(n)
	}
	s.post(t, "/v1/stack", file(t, crashCore))
	s.wantMetrics(t, count("started", 1), count("restarted", 0), count("failed", 0))
	if killPlugins(t) == 0 {
		t.Fatal("no process of a plugin was found")
	}
	s.post(t, "/v1/stack", file(t, crashCore))
	s.wantMetrics(t, count("started", 2), count("restarted", 1))
}
