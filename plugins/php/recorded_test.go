// SPDX-License-Identifier: Apache-2.0

package php_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/damage/managed"
	"github.com/unwindd/unwindd/plugins/php"
	"github.com/unwindd/unwindd/sdk"
)

// recording is a process of PHP: the engine's requests about its core, and its answers to the
// requests of the plugin.
type recording struct {
	Trace  string // PHP's own trace: function, file and line of each frame, with tabs between them
	Open   sdk.OpenRuntimeRequest
	Frames sdk.ManagedFramesRequest
	managed.Memory
	Registers map[uint64]sdk.Registers
	Functions map[uint64]sdk.FunctionPlace
}

// read reads a recording.
func read(t testing.TB, path string) *recording {
	t.Helper()
	r := &recording{}
	managed.Unpack(t, path, r)
	return r
}

// all reads all recordings, by name.
func all(t testing.TB) (names []string, list []*recording) {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.json.gz")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, p := range paths {
		names, list = append(names, strings.TrimSuffix(filepath.Base(p), ".json.gz")), append(list, read(t, p))
	}
	return names, list
}

// ReadRegisters implements sdk.Engine.
func (r *recording) ReadRegisters(_ context.Context, thread uint64, _ []uint32) (sdk.Registers, error) {
	s, has := r.Registers[thread]
	if !has {
		return s, errors.New("its registers were not recorded")
	}
	return s, nil
}

// ReadSection implements sdk.Engine.
func (*recording) ReadSection(context.Context, uint64, string) ([]byte, error) {
	return nil, errors.New("sections were not recorded")
}

// FindFunctions implements sdk.RuntimeEngine.
func (r *recording) FindFunctions(_ context.Context, addresses []uint64) ([]sdk.FunctionPlace, error) {
	out := make([]sdk.FunctionPlace, len(addresses))
	for i, a := range addresses {
		out[i] = r.Functions[a]
	}
	return out, nil
}

// answers has the answers of the plugin about a recording.
type answers struct {
	open    *sdk.OpenRuntimeAnswer
	frames  *sdk.ManagedFramesAnswer
	threads *sdk.ManagedThreadsAnswer
}

// ask makes the calls about a recording, and checks the answers.
func (r *recording) ask(t testing.TB) (a answers) {
	t.Helper()
	var err error
	p, d := php.New(), php.Description()
	if a.open, err = p.OpenRuntime(t.Context(), r, &r.Open); err == nil {
		err = a.open.Validate(d, &r.Open)
	}
	if err != nil {
		t.Fatal(err)
	}
	request := r.Frames
	request.Runtime = r.Open.Runtime
	if a.frames, err = p.ManagedFrames(t.Context(), r, &request); err == nil {
		err = a.frames.Validate(d, &request)
	}
	if err != nil {
		t.Fatal(err)
	}
	threads := &sdk.ManagedThreadsRequest{Runtime: r.Open.Runtime, Frames: true}
	if a.threads, err = p.ManagedThreads(t.Context(), r, threads); err == nil {
		err = a.threads.Validate(d, threads)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}
