// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/confine"
	"github.com/unwindd/unwindd/internal/recorded"
)

// TestMain lets the test binary be what the engine starts as the parent of plugins,
// and the plugin for AMDGPU.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "plugin" {
		err := fmt.Errorf("no such command: %q", os.Args[2])
		switch os.Args[2] {
		case "exec":
			err = confine.ExecMain(os.Args[3:])
		case "serve":
			err = confine.ServeMain(os.Args[3:], bundledAMDGPU, nil)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	status := m.Run()
	recorded.Clean()
	os.Exit(status)
}

// profiled is the profile of a recording, without symbols.
func profiled(tb testing.TB, path string) *trace.Profile {
	tb.Helper()
	p, err := newX86Engine(tb, Options{NoSymbols: true}).Profile(context.Background(), path, trace.ProfileOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}
