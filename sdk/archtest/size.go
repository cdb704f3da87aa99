// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"context"
	"fmt"

	"github.com/unwindd/unwindd/sdk"
)

// The sizes of requests in the check of sizes. A real target may have each: a function
// of a megabyte of tables, a kernel with thousands of sections, a process with thousands
// of threads.
const (
	largeFunction   = 1 << 20 // bytes
	manyFunctions   = 10_000
	manyAddresses   = 50_000
	manySections    = 5_000
	sectionBytes    = 4096
	largeSection    = 16 << 20 // bytes
	maxThreadsBytes = 8 << 20  // of all threads' registers
	maxThreads      = 4096
)

// size makes large requests. The engine allows a call five seconds of processor time.
func (v *verifier) size() {
	code := noise(largeFunction)
	for offset := 0; len(v.code) > 0 && offset < len(code); offset += len(v.code) {
		copy(code[offset:], v.code)
	}
	const start = 0x400000
	v.frameRules("a function of a megabyte", &sdk.FrameRulesRequest{Functions: []sdk.CodeRange{
		{PC: start + largeFunction/2, Start: start, Code: code, Bounded: true, Name: "f", Exact: true}}})

	many := make([]sdk.CodeRange, manyFunctions)
	for i := range many {
		offset := i * 32 % (len(code) - 64)
		many[i] = sdk.CodeRange{PC: start + uint64(offset) + 8, Start: start + uint64(offset), Code: code[offset : offset+64], Bounded: true, Name: "f"}
	}
	v.frameRules(fmt.Sprintf("%d functions", manyFunctions), &sdk.FrameRulesRequest{Functions: many})
	v.classifyReturn(fmt.Sprintf("%d addresses", manyAddresses), v.returns(manyAddresses))
	v.disassemble("a megabyte of code", &sdk.DisassembleRequest{Address: start, Code: code})

	one := v.threads(1)
	n := min(maxThreads, max(1, maxThreadsBytes/max(1, len(one[0].Registers.Data))))
	threads := make([]sdk.ThreadState, n)
	for i := range threads {
		threads[i] = one[0]
		threads[i].Thread = uint64(i)
	}
	v.bindThreads(fmt.Sprintf("%d threads", n), &sdk.BindThreadsRequest{Threads: threads})
	v.largeObjects()
}

// largeObjects opens an object with many sections, and one whose sections are large.
func (v *verifier) largeObjects() {
	req := &sdk.OpenObjectRequest{Object: 1, Path: "large"}
	for _, r := range v.desc.Recognises {
		if r.ELFMachine != 0 {
			req.Machine, req.Flags, req.OSABI = r.ELFMachine, r.Flags, uint8(max(r.OSABI, 0))
			break
		}
	}
	for i, name := range v.desc.Symbols {
		req.Symbols = append(req.Symbols, sdk.SymbolInfo{Name: name, Address: uint64(i) * sectionBytes, Size: sectionBytes})
	}
	open := func(what string, sections, bytes int) {
		req.Sections = nil
		for i := range sections {
			req.Sections = append(req.Sections, sdk.SectionInfo{
				Name: fmt.Sprintf(".text.f%d", i), Type: 1, Flags: 6, Address: uint64(i) * uint64(bytes), Size: uint64(bytes)})
		}
		ask(v.session, "OpenObject", what, func(ctx context.Context) (*sdk.OpenObjectAnswer, error) {
			return v.arch.OpenObject(ctx, v.offer(garbageEngine{noise(bytes)}), req)
		}, func(a *sdk.OpenObjectAnswer) error { return a.Validate(v.desc, req) })
	}
	open(fmt.Sprintf("an object with %d sections", manySections), manySections, sectionBytes)
	open("an object with a section of 16 MiB", 1, largeSection)
}
