// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/plugin/confine"
	"github.com/unwindd/unwindd/engine/service/worker"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

const (
	examples   = "../../examples/"
	crashCore  = examples + "crash/server.core"
	crashExe   = examples + "crash/server"
	crashID    = "01092ed6fbfc989c60cdda4dd2cc30a56e23db6d"
	mixed      = examples + "mixed/mixed.snapshot"
	wordsData  = examples + "profile/perf.data"
	wordsExe   = examples + "profile/words"
	testCaller = "somebody"
)

// TestMain makes this executable the workers of its servers, too.
func TestMain(m *testing.M) {
	if worker.IsWorker(os.Args[1:]) {
		err := worker.Main(os.Args[1+len(worker.Args):], func(s *worker.Setup) (plugin.Options, error) {
			if s.Pins[probe] != "" {
				return plugin.Options{}, probed(s.Pins[probe])
			}
			if s.Pins[absent] != "" {
				return plugin.Options{Self: s.Pins[absent], Bundled: []confine.Bundled{{Name: "x86_64", New: func() sdk.Architecture { return x86_64.New() }, Description: x86_64.Description}}}, nil
			}
			return plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), amdgpu.New()}}, nil
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// A testServer is a server with a client.
type testServer struct {
	*Server
	client *http.Client
	url    string
	log    *logText
}

// testOptions are of a server of small limits.
func testOptions(t *testing.T) Options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "unwindd-test-") // of a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	o := Options{
		Limits: DefaultLimits, Self: self, State: filepath.Join(dir, "state"), Run: filepath.Join(dir, "run"),
	}
	o.Workers, o.Time = 2, time.Minute
	return o
}

// start starts a server at a port of this machine.
func start(t *testing.T, o Options) *testServer {
	t.Helper()
	log := &logText{}
	if o.Log == nil {
		o.Log = hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Debug})
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l, nil) }()
	transport := &http.Transport{}
	t.Cleanup(func() {
		_ = l.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Drain(ctx); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return &testServer{s, &http.Client{Transport: transport}, "http://" + strings.Replace(l.Addr().String(), "127.0.0.1", "localhost", 1), log}
}
