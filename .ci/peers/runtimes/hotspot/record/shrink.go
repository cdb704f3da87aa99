// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/unwindd/unwindd/plugins/hotspot"
	"github.com/unwindd/unwindd/sdk"
)

// replay is a recording as an engine.
type replay struct {
	sdk.RuntimeEngine
	*recording
}

var errMissing = errors.New("it was not recorded")

func (r replay) ReadMemory(_ context.Context, m sdk.MemoryRange, buf []byte) (int, error) {
	n := copy(buf, r.Memory[m.Address])
	if n < len(buf) {
		return n, errMissing
	}
	return n, nil
}

func (r replay) ReadRegisters(_ context.Context, thread uint64, _ []uint32) (sdk.Registers, error) {
	return r.Registers[thread], nil
}

// answers are all answers of the plugin to a recording.
func (r *recording) answers() []byte {
	ctx, p, e := context.Background(), hotspot.New(), replay{recording: r}
	var b bytes.Buffer
	w := json.NewEncoder(&b)
	open, err := p.OpenRuntime(ctx, e, &r.Open)
	_ = w.Encode(open)
	if err != nil || len(open.Code) == 0 {
		return b.Bytes()
	}
	code, _ := p.CodeRules(ctx, e, &sdk.CodeRulesRequest{Runtime: r.Open.Runtime, PCs: r.PCs})
	frames, _ := p.ManagedFrames(ctx, e, &sdk.ManagedFramesRequest{Runtime: r.Open.Runtime, Threads: r.Stacks})
	threads, _ := p.ManagedThreads(ctx, e, &sdk.ManagedThreadsRequest{Runtime: r.Open.Runtime, Frames: true})
	for _, answer := range []any{code, frames, threads} {
		_ = w.Encode(answer)
	}
	return b.Bytes()
}

// block is the smallest part of memory that is cleared, in bytes.
const block = 256

// shrink clears memory on which no answer depends.
func (r *recording) shrink() {
	want := r.answers()
	type part struct{ page, offset uint64 }
	var parts []part
	for _, page := range slices.Sorted(maps.Keys(r.Memory)) {
		for at := 0; at < len(r.Memory[page]); at += block {
			parts = append(parts, part{page, uint64(at)}) //nolint:gosec // an index
		}
	}
	bytesOf := func(p part) []byte {
		data := r.Memory[p.page][p.offset:]
		return data[:min(block, len(data))]
	}
	var try func(list []part)
	try = func(list []part) {
		kept := make([][]byte, len(list))
		for i, p := range list {
			kept[i] = slices.Clone(bytesOf(p))
			clear(bytesOf(p))
		}
		if bytes.Equal(r.answers(), want) {
			return
		}
		for i, p := range list {
			copy(bytesOf(p), kept[i])
		}
		if n := len(list) / 2; n > 0 {
			try(list[:n])
			try(list[n:])
		}
	}
	for list := range slices.Chunk(parts, 64) {
		try(list)
	}
}
