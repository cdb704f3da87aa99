// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"testing"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// newX86Process is a process of a target, whose architecture is in this process.
func newX86Process(t testing.TB, state target.Target) *Process {
	t.Helper()
	return newProcess(t, x86_64.New(), Options{MaxFrames: 4096}, state)
}

// newProcess is a process of a target, whose only architecture is given.
func newProcess(t testing.TB, arch sdk.Architecture, o Options, state target.Target) *Process {
	t.Helper()
	plugins, err := plugin.NewManager(plugin.Options{InProcess: []sdk.Architecture{arch}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plugins.Close)
	library := code.NewLibrary(plugins, 0)
	t.Cleanup(library.Close)
	p := NewShared(library, o).NewProcess(state, object.Finder{})
	t.Cleanup(p.Close)
	return p
}
