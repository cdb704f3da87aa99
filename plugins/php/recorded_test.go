// SPDX-License-Identifier: Apache-2.0

package php_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/plugins/php"
	"github.com/unwindd/unwindd/sdk"
)

// recording is a process of PHP: the requests that an engine made about its core, and what it
// answered those of the plugin.
type recording struct {
	Trace     string // PHP's own trace: function, file and line of each frame, with tabs between them
	Open      sdk.OpenRuntimeRequest
	Frames    sdk.ManagedFramesRequest
	Memory    []part // by address
	Registers map[uint64]sdk.Registers
	Functions map[uint64]sdk.FunctionPlace
}

// part is memory.
type part struct {
	Address uint64
	Bytes   []byte
}

// read reads a recording.
func read(t testing.TB, path string) *recording {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	r := &recording{}
	if err := json.NewDecoder(z).Decode(r); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
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

// ReadMemory implements sdk.Engine.
func (r *recording) ReadMemory(_ context.Context, m sdk.MemoryRange, buf []byte) (int, error) {
	i, has := slices.BinarySearchFunc(r.Memory, m.Address, func(p part, a uint64) int {
		switch {
		case p.Address > a:
			return 1
		case a-p.Address >= uint64(len(p.Bytes)):
			return -1
		}
		return 0
	})
	if !has {
		return 0, fmt.Errorf("%#x was not recorded", m.Address)
	}
	p := r.Memory[i]
	n := copy(buf, p.Bytes[m.Address-p.Address:])
	if n < len(buf) {
		more, err := r.ReadMemory(context.Background(), sdk.MemoryRange{Address: m.Address + uint64(n)}, buf[n:])
		return n + more, err
	}
	return n, nil
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

// answers are what the plugin answers about a recording.
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
