// SPDX-License-Identifier: Apache-2.0

//go:build record

package php_test

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/internal/damage/managed"
	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/plugins/php"
	"github.com/unwindd/unwindd/sdk"
)

// TestRecord writes a recording of the core $CORE, whose process wrote PHP's own trace to $TRACE, to
// the file $TO. testdata/make.sh calls it.
func TestRecord(t *testing.T) {
	trace, err := os.ReadFile(os.Getenv("TRACE"))
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{Runtime: php.New(), parts: map[uint64][]byte{}}
	r.to.Trace, r.to.Registers, r.to.Functions = string(trace), map[uint64]sdk.Registers{}, map[uint64]sdk.FunctionPlace{}
	enginetest.Text(t, os.Getenv("CORE"), func(a *enginetest.Ask) {
		a.Engine.Plugins.InProcessRuntimes = []sdk.Runtime{r}
		yes := true
		a.Stack.Locals, a.Stack.Goroutines = true, &yes
	})
	for address, b := range r.parts {
		r.to.Memory = append(r.to.Memory, managed.Part{Address: address, Bytes: b})
	}
	slices.SortFunc(r.to.Memory, func(a, b managed.Part) int { return cmp.Compare(a.Address, b.Address) })
	r.to.Open.Path = filepath.Base(r.to.Open.Path)
	f, err := os.Create(os.Getenv("TO"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(z).Encode(&r.to); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// recorder is the plugin, which records the first calls and what the engine answers.
type recorder struct {
	sdk.Runtime
	to    recording
	parts map[uint64][]byte
}

// Describe is the plugin's, under a name of its own.
func (r *recorder) Describe(ctx context.Context) (*sdk.RuntimeDescription, error) {
	d, err := r.Runtime.Describe(ctx)
	d.Name = "php-recorder"
	return d, err
}

func (r *recorder) OpenRuntime(ctx context.Context, e sdk.RuntimeEngine, req *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error) {
	r.to.Open = *req
	return r.Runtime.OpenRuntime(ctx, &recordingEngine{e, r}, req)
}

func (r *recorder) ManagedFrames(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
	if r.to.Frames.Threads == nil {
		r.to.Frames = *req
	}
	return r.Runtime.ManagedFrames(ctx, &recordingEngine{e, r}, req)
}

func (r *recorder) ManagedThreads(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedThreadsRequest) (*sdk.ManagedThreadsAnswer, error) {
	return r.Runtime.ManagedThreads(ctx, &recordingEngine{e, r}, req)
}

// recordingEngine records what the engine answers.
type recordingEngine struct {
	sdk.RuntimeEngine
	r *recorder
}

func (e *recordingEngine) ReadMemory(ctx context.Context, m sdk.MemoryRange, buf []byte) (int, error) {
	n, err := e.RuntimeEngine.ReadMemory(ctx, m, buf)
	const page = 4096 // the reader's own
	if n == page && m.Address%page == 0 {
		e.r.parts[m.Address] = slices.Clone(buf[:n])
	}
	return n, err
}

func (e *recordingEngine) ReadRegisters(ctx context.Context, thread uint64, numbers []uint32) (sdk.Registers, error) {
	s, err := e.RuntimeEngine.ReadRegisters(ctx, thread, numbers)
	if err == nil {
		e.r.to.Registers[thread] = s
	}
	return s, err
}

func (e *recordingEngine) FindFunctions(ctx context.Context, addresses []uint64) ([]sdk.FunctionPlace, error) {
	list, err := e.RuntimeEngine.FindFunctions(ctx, addresses)
	for i, p := range list {
		e.r.to.Functions[addresses[i]] = p
	}
	return list, err
}
