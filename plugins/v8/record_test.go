// SPDX-License-Identifier: Apache-2.0

//go:build record

package v8_test

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
	"github.com/unwindd/unwindd/plugins/v8"
	"github.com/unwindd/unwindd/sdk"
)

// TestRecord writes a recording of the core $CORE, whose process wrote V8's own frames to $SITES, to
// the file $TO. testdata/make.sh calls it.
func TestRecord(t *testing.T) {
	sites, err := os.ReadFile(os.Getenv("SITES"))
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{Runtime: v8.New(), to: &recording{Sites: string(sites), Registers: map[uint64]sdk.Registers{}}}
	enginetest.Text(t, os.Getenv("CORE"), func(a *enginetest.Ask) {
		a.Engine.Plugins.InProcessRuntimes = []sdk.Runtime{r}
		a.Stack.Crashed = true
	})
	r.to.Open.Path = filepath.Base(r.to.Open.Path)
	f, err := os.Create(os.Getenv("TO"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	r.to.merge()
	r.to.Names = v8.Description().Symbols
	if err := json.NewEncoder(z).Encode(r.to); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// recorder is the plugin, which records the calls and what the engine answers.
type recorder struct {
	sdk.Runtime
	to      *recording
	isOpen  bool
	runtime uint64
}

// Describe is the plugin's, under a name of its own.
func (r *recorder) Describe(ctx context.Context) (*sdk.RuntimeDescription, error) {
	d, err := r.Runtime.Describe(ctx)
	d.Name = "v8-recorder"
	return d, err
}

func (r *recorder) OpenRuntime(ctx context.Context, e sdk.RuntimeEngine, req *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error) {
	a, err := r.Runtime.OpenRuntime(ctx, &recordingEngine{e, r.to}, req)
	if err == nil && a.HasFrames { // V8's file is there twice
		r.to.Open, r.runtime = *req, req.Runtime
	}
	return a, err
}

func (r *recorder) CodeRules(ctx context.Context, e sdk.RuntimeEngine, req *sdk.CodeRulesRequest) (*sdk.CodeRulesAnswer, error) {
	r.to.PCs = append(r.to.PCs, req.PCs...)
	return r.Runtime.CodeRules(ctx, &recordingEngine{e, r.to}, req)
}

func (r *recorder) ManagedFrames(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
	r.to.Frames = *req
	return r.Runtime.ManagedFrames(ctx, &recordingEngine{e, r.to}, req)
}

// recordingEngine records what the engine answers.
type recordingEngine struct {
	sdk.RuntimeEngine
	to *recording
}

func (e *recordingEngine) ReadMemory(ctx context.Context, m sdk.MemoryRange, buf []byte) (int, error) {
	n, err := e.RuntimeEngine.ReadMemory(ctx, m, buf)
	if n > 0 {
		e.to.Memory = append(e.to.Memory, managed.Part{Address: m.Address, Bytes: slices.Clone(buf[:n])})
	}
	return n, err
}

func (e *recordingEngine) ReadRegisters(ctx context.Context, thread uint64, numbers []uint32) (sdk.Registers, error) {
	s, err := e.RuntimeEngine.ReadRegisters(ctx, thread, numbers)
	if err == nil {
		e.to.Registers[thread] = s
	}
	return s, err
}

// merge merges parts that share or adjoin memory.
func (r *recording) merge() {
	slices.SortStableFunc(r.Memory, func(a, b managed.Part) int { return cmp.Compare(a.Address, b.Address) })
	var merged managed.Memory
	for _, p := range r.Memory {
		if n := len(merged) - 1; n >= 0 && p.Address <= merged[n].End() {
			if p.End() > merged[n].End() {
				merged[n].Bytes = append(merged[n].Bytes, p.Bytes[merged[n].End()-p.Address:]...)
			}
			continue
		}
		merged = append(merged, managed.Part{Address: p.Address, Bytes: slices.Clone(p.Bytes)})
	}
	r.Memory = merged
}
