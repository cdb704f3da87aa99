// SPDX-License-Identifier: Apache-2.0

//go:build linux

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
	"github.com/unwindd/unwindd/engine/service/internal/worker"
	"github.com/unwindd/unwindd/internal/confine"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/visa"
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

// bundled are the architectures of workers.
var bundled = []confine.Bundled{
	{Name: "x86_64", New: func() sdk.Architecture { return x86_64.New() }, Description: x86_64.Description},
	{Name: "amdgpu", New: func() sdk.Architecture { return amdgpu.New() }, Description: amdgpu.Description},
	{Name: "visa", New: func() sdk.Architecture { return visa.New() }, Description: visa.Description},
}

// inProcess are the same without processes of their own.
func inProcess() plugin.Options {
	var list []sdk.Architecture
	for _, b := range bundled {
		list = append(list, b.New())
	}
	return plugin.Options{InProcess: list}
}

// apart is the pin whose value is the executable that is the plugins of workers, as processes
// of their own.
const apart = "apart"

// TestMain makes this executable the workers of its servers, and the plugins of those, too.
func TestMain(m *testing.M) {
	var err error
	switch args := os.Args[1:]; {
	case worker.IsWorker(args):
		err = worker.Main(args[len(worker.Args):], func(s *worker.Setup) (plugin.Options, error) {
			switch {
			case s.Pins[probe] != "":
				return plugin.Options{}, probed(s.Pins[probe])
			case s.Pins[hoard] != "":
				return plugin.Options{}, hoarded(s.Pins[hoard])
			case s.Pins[apart] != "":
				return plugin.Options{Self: s.Pins[apart], Bundled: bundled}, nil
			}
			return inProcess(), nil
		})
	case len(args) == 1 && args[0] == hoard:
		hoardMain()
	case len(args) == 3 && args[0] == fleetWorker:
		err = fleetWorkerMain(args[1], args[2])
	case len(args) > 1 && args[0] == "plugin" && args[1] == "exec":
		err = confine.ExecMain(args[2:])
	case len(args) > 1 && args[0] == "plugin" && args[1] == "serve":
		err = confine.ServeMain(args[2:], bundled, nil)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A testServer is a server with a client.
type testServer struct {
	*Server
	client *http.Client
	url    string
	log    *logText
}

// testOptions are of a server of small limits.
func testOptions(t testing.TB) Options {
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
func start(t testing.TB, o Options) *testServer {
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
