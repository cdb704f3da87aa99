// SPDX-License-Identifier: Apache-2.0

// Command record writes down what the plugin of HotSpot is asked about a core, and the memory that it reads, for
// the tests of the plugin.
//
//	go run ./runtimes/hotspot/record -o mixed.gz core
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/gob"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/plugins/hotspot"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// recording is what the tests replay.
type recording struct {
	Open      sdk.OpenRuntimeRequest
	PCs       []uint64
	Stacks    []sdk.NativeStack
	Registers map[uint64]sdk.Registers // by thread
	Memory    map[uint64][]byte        // by address
}

func main() {
	out := flag.String("o", "", "the file to write")
	root := flag.String("sysroot", "", "where the core's files are")
	only := flag.String("only", "", "record stacks with a function of this text alone")
	flag.Parse()
	if err := run(*out, *root, *only, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func run(out, root, only, core string) error {
	r := &recorder{Runtime: hotspot.New(), only: only, recording: recording{Registers: map[uint64]sdk.Registers{}, Memory: map[uint64][]byte{}}}
	e, err := engine.New(engine.Options{InProcess: []sdk.Architecture{x86_64.New()}, InProcessRuntimes: []sdk.Runtime{r}, Sysroot: root})
	if err != nil {
		return err
	}
	defer e.Close()
	t, err := e.Open(core)
	if err != nil {
		return err
	}
	defer t.Close()
	for range t.Stacks(context.Background()) {
	}
	// What the stacks that are kept need is read again, and it alone is written down.
	r.Memory = map[uint64][]byte{}
	if err := r.again(context.Background()); err != nil {
		return err
	}
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err := gob.NewEncoder(z).Encode(&r.recording); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(out, b.Bytes(), 0o600)
}

// recorder is the plugin, and records its calls.
type recorder struct {
	sdk.Runtime
	only string
	mu   sync.Mutex
	recording
	engine sdk.RuntimeEngine
}

// memory records the memory that is read.
type memory struct {
	sdk.RuntimeEngine
	r *recorder
}

func (m memory) ReadMemory(ctx context.Context, at sdk.MemoryRange, buf []byte) (int, error) {
	n, err := m.RuntimeEngine.ReadMemory(ctx, at, buf)
	m.r.mu.Lock()
	defer m.r.mu.Unlock()
	if n > len(m.r.Memory[at.Address]) {
		m.r.Memory[at.Address] = slices.Clone(buf[:n])
	}
	return n, err
}

func (m memory) ReadRegisters(ctx context.Context, thread uint64, numbers []uint32) (sdk.Registers, error) {
	list, err := m.RuntimeEngine.ReadRegisters(ctx, thread, numbers)
	if err == nil {
		m.r.Registers[thread] = list
	}
	return list, err
}

func (r *recorder) OpenRuntime(ctx context.Context, e sdk.RuntimeEngine, req *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error) {
	r.Open, r.engine = *req, e
	return r.Runtime.OpenRuntime(ctx, memory{e, r}, req)
}

func (r *recorder) CodeRules(ctx context.Context, e sdk.RuntimeEngine, req *sdk.CodeRulesRequest) (*sdk.CodeRulesAnswer, error) {
	return r.Runtime.CodeRules(ctx, memory{e, r}, req)
}

func (r *recorder) ManagedFrames(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
	a, err := r.Runtime.ManagedFrames(ctx, memory{e, r}, req)
	if err != nil {
		return nil, err
	}
	for i, s := range req.Threads {
		has := r.only == ""
		for _, run := range a.Stacks[i].Runs {
			for _, f := range run.Frames {
				has = has || strings.Contains(f.Function, r.only)
			}
		}
		if has {
			r.Stacks = append(r.Stacks, s)
		}
	}
	return a, nil
}

// again makes the calls about the stacks that are kept.
func (r *recorder) again(ctx context.Context) error {
	if r.engine == nil {
		return fmt.Errorf("no module has the runtime")
	}
	kept := map[uint64]bool{}
	for _, s := range r.Stacks {
		kept[s.Thread] = true
		for i, f := range s.Frames {
			if i > 0 {
				f.PC--
			}
			r.PCs = append(r.PCs, f.PC)
		}
	}
	r.Open.Threads = slices.DeleteFunc(slices.Clone(r.Open.Threads), func(t sdk.RuntimeThread) bool { return !kept[t.Thread] })
	slices.Sort(r.PCs)
	r.PCs = slices.Compact(r.PCs)
	m := memory{r.engine, r}
	answer, err := r.Runtime.OpenRuntime(ctx, m, &r.Open)
	if err != nil {
		return err
	}
	r.PCs = slices.DeleteFunc(r.PCs, func(pc uint64) bool {
		return !slices.ContainsFunc(answer.Code, func(c sdk.RuntimeCode) bool { return pc >= c.Start && pc < c.End })
	})
	if _, err := r.Runtime.CodeRules(ctx, m, &sdk.CodeRulesRequest{Runtime: r.Open.Runtime, PCs: r.PCs}); err != nil {
		return err
	}
	if _, err := r.Runtime.ManagedFrames(ctx, m, &sdk.ManagedFramesRequest{Runtime: r.Open.Runtime, Threads: r.Stacks}); err != nil {
		return err
	}
	_, err = r.Runtime.ManagedThreads(ctx, m, &sdk.ManagedThreadsRequest{Runtime: r.Open.Runtime, Frames: true})
	return err
}
