// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"

	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// noise returns bytes that are no code, the same in every run.
func noise(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// codeRanges returns functions for requests of rows: pieces of the user-provided code,
// and bytes that are hardly code.
func (v *verifier) codeRanges() []sdk.CodeRange {
	const start = 0x401000
	pieces := [][]byte{make([]byte, 64), noise(256), {0}}
	for code := v.code; len(code) > 0; {
		n := min(len(code), 4096)
		pieces, code = append(pieces, code[:n]), code[n:]
	}
	var ranges []sdk.CodeRange
	for _, piece := range pieces {
		for _, index := range []int{0, len(piece) / 2, len(piece) - 1} {
			r := sdk.CodeRange{PC: start + uint64(index), Start: start, Code: piece, Bounded: true, Name: "f", Exact: true}
			ranges = append(ranges, r)
			r.Bounded, r.Name, r.Exact = false, "", false
			ranges = append(ranges, r)
		}
	}
	return ranges
}

func (v *verifier) frameRules(what string, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, bool) {
	return v.frameRulesOf(emptyEngine{}, what, req)
}

func (v *verifier) frameRulesOf(e sdk.Engine, what string, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, bool) {
	answer, ok := ask(v.session, "FrameRules", what, func(ctx context.Context) (*sdk.FrameRulesAnswer, error) {
		return v.arch.FrameRules(ctx, v.offer(e), req)
	}, func(a *sdk.FrameRulesAnswer) error { return a.Validate(v.desc, req) })
	if ok {
		for i := range answer.Functions {
			subject := fmt.Sprintf("FrameRules of %s: Functions[%d].Rows", what, i)
			v.rowCycles(subject, answer.Functions[i].Rows)
			v.rowExpressions(subject, answer.Functions[i].Rows)
		}
	}
	return answer, ok
}

func (v *verifier) bindThreads(what string, req *sdk.BindThreadsRequest) (*sdk.BindThreadsAnswer, bool) {
	return v.bindThreadsOf(emptyEngine{}, what, req)
}

func (v *verifier) bindThreadsOf(e sdk.Engine, what string, req *sdk.BindThreadsRequest) (*sdk.BindThreadsAnswer, bool) {
	answer, ok := ask(v.session, "BindThreads", what, func(ctx context.Context) (*sdk.BindThreadsAnswer, error) {
		return v.arch.BindThreads(ctx, v.offer(e), req)
	}, func(a *sdk.BindThreadsAnswer) error { return a.Validate(v.desc, req) })
	if ok {
		for i := range answer.Threads {
			subject := fmt.Sprintf("BindThreads of %s: Threads[%d]", what, i)
			v.mapCycles(subject, &answer.Threads[i])
			v.keepOpaque(subject, req.Threads[i].Thread, e, &answer.Threads[i])
		}
	}
	return answer, ok
}

func (v *verifier) classifyReturn(what string, req *sdk.ClassifyReturnRequest) (*sdk.ClassifyReturnAnswer, bool) {
	return ask(v.session, "ClassifyReturn", what, func(ctx context.Context) (*sdk.ClassifyReturnAnswer, error) {
		return v.arch.ClassifyReturn(ctx, req)
	}, func(a *sdk.ClassifyReturnAnswer) error { return a.Validate(v.desc, req) })
}

func (v *verifier) disassemble(what string, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, bool) {
	return ask(v.session, "Disassemble", what, func(ctx context.Context) (*sdk.DisassembleAnswer, error) {
		return v.arch.Disassemble(ctx, req)
	}, func(a *sdk.DisassembleAnswer) error { return a.Validate(v.desc, req) })
}

// rows requests the rows of code.
func (v *verifier) rows() {
	ranges := v.codeRanges()
	what := fmt.Sprintf("%d functions", len(ranges))
	answer, ok := v.frameRules(what, &sdk.FrameRulesRequest{Functions: ranges})
	v.unanswered(Warning, "FrameRules", what)
	if !ok {
		return
	}
	v.reasons("", ranges, answer)
	if len(v.code) > 0 {
		v.disassemble("the sample code", &sdk.DisassembleRequest{Address: 0x401000, Code: v.code})
	}
}

// reasons looks for PCs that have neither a row nor a reason. subject names the code, with
// a blank at its end.
func (v *verifier) reasons(subject string, ranges []sdk.CodeRange, answer *sdk.FrameRulesAnswer) {
	for i, f := range answer.Functions {
		pc := ranges[i].PC
		covered := f.GapReason(pc) != "" || f.Reason != ""
		for _, row := range f.Rows {
			covered = covered || row.Start <= pc && pc < row.End
		}
		if !covered {
			v.find(Warning, "Say in Reason why there is no row for the PC: it is printed where the stack ends.",
				"FrameRules: %sFunctions[%d] has neither a row for PC %#x nor a reason", subject, i, pc)
			return
		}
	}
}

// threads returns n threads with all of the description's registers.
func (v *verifier) threads(n int) []sdk.ThreadState {
	list := make([]sdk.ThreadState, n)
	for i := range list {
		list[i].Thread = uint64(i)
		for _, r := range v.desc.Registers {
			for j := range min(r.Count, 256) {
				value := make([]byte, (r.Bits+7)/8)
				value[0] = byte(i + int(j))
				list[i].Registers.Set(r.First+j, value)
			}
		}
	}
	return list
}

func (v *verifier) returns(n int) *sdk.ClassifyReturnRequest {
	size := max(int(v.desc.MaxInstruction), 1)
	r := &sdk.ClassifyReturnRequest{Offsets: []uint32{0}}
	bytes := append(noise(4096), v.code...)
	for i := range n {
		offset := i * size % (len(bytes) - size)
		r.PCs = append(r.PCs, 0x401000+uint64(offset))
		r.Code = append(r.Code, bytes[offset:offset+size]...)
		r.Offsets = append(r.Offsets, uint32(len(r.Code)))
	}
	return r
}

const batchFix = "Answer one entry for every entry of the request, in order, whatever the size of the batch; an entry does not depend on its neighbours."

// batches makes the same request in batches of several sizes: an entry's answer must
// not depend on its batch.
func (v *verifier) batches() {
	const size = 257
	ranges := v.codeRanges()
	for len(ranges) < size {
		ranges = append(ranges, ranges...)
	}
	ranges = ranges[:size]
	threads, returns := v.threads(size), v.returns(size)

	all, okAll := v.frameRules("257 functions", &sdk.FrameRulesRequest{Functions: ranges})
	one, okOne := v.frameRules("one function", &sdk.FrameRulesRequest{Functions: ranges[size-1:]})
	if okAll && okOne && !reflect.DeepEqual(all.Functions[size-1:], one.Functions) {
		v.find(Error, batchFix, "FrameRules: a function has other rows in a batch than alone")
	}
	v.frameRules("no functions", &sdk.FrameRulesRequest{})

	bound, okAll := v.bindThreads("257 threads", &sdk.BindThreadsRequest{Threads: threads})
	v.unanswered(Warning, "BindThreads", "257 threads")
	alone, okOne := v.bindThreads("one thread", &sdk.BindThreadsRequest{Threads: threads[size-1:]})
	if okAll && okOne && !reflect.DeepEqual(bound.Threads[size-1:], alone.Threads) {
		v.find(Error, batchFix, "BindThreads: a thread is bound in another way in a batch than alone")
	}
	if okAll && v.desc.PC != sdk.NoRegister && bound.Threads[0].Problem != "" {
		v.find(Warning, "Bind the thread, or leave BindThreads to sdk.Base.",
			"BindThreads: a thread that has all registers has a problem: %s", bound.Threads[0].Problem)
	}
	v.bindThreads("no threads", &sdk.BindThreadsRequest{})

	last := &sdk.ClassifyReturnRequest{
		PCs: returns.PCs[size-1:], Code: returns.Code[returns.Offsets[size-1]:],
		Offsets: []uint32{0, returns.Offsets[size] - returns.Offsets[size-1]},
	}
	classes, okAll := v.classifyReturn("257 addresses", returns)
	v.unanswered(Warning, "ClassifyReturn", "257 addresses")
	class, okOne := v.classifyReturn("one address", last)
	if okAll && okOne && (classes.Classes[size-1] != class.Classes[0] || classes.Targets[size-1] != class.Targets[0]) {
		v.find(Error, batchFix, "ClassifyReturn: an address has another class in a batch than alone")
	}
	v.classifyReturn("no addresses", &sdk.ClassifyReturnRequest{})
}

// garbage makes requests without sense. An error is a good answer.
func (v *verifier) garbage() {
	v.garbageCode()
	v.garbageThreads()
	v.garbageReturns()
	v.garbageAddresses()
	v.garbageFiles()
	for _, e := range []garbageSource{
		{"nothing of which can be read", emptyEngine{}},
		{"whose sections are noise", garbageEngine{noise(1000)}},
	} {
		v.garbageObject(e)
		v.garbageTarget(e)
	}
}

// garbageSource is an engine that answers badly, with a name for findings.
type garbageSource struct {
	name   string
	engine sdk.Engine
}

func (v *verifier) garbageCode() {
	v.frameRules("a function without code", &sdk.FrameRulesRequest{Functions: []sdk.CodeRange{{}}})
	v.frameRules("a PC outside its code", &sdk.FrameRulesRequest{Object: math.MaxUint64, Functions: []sdk.CodeRange{
		{PC: 0, Start: 0x1000, Code: noise(16), Bounded: true},
		{PC: math.MaxUint64, Start: 0x1000, Code: noise(16), Exact: true},
	}})
	v.frameRules("code at the end of the address space", &sdk.FrameRulesRequest{Functions: []sdk.CodeRange{
		{PC: math.MaxUint64, Start: math.MaxUint64 - 15, Code: noise(16), Exact: true},
		{PC: math.MaxUint64 - 8, Start: math.MaxUint64 - 15, Code: make([]byte, 16), Bounded: true},
	}})
}

func (v *verifier) garbageThreads() {
	v.bindThreads("a thread without registers", &sdk.BindThreadsRequest{Threads: make([]sdk.ThreadState, 1)})
	var short, unknown sdk.Registers
	for _, r := range v.desc.Registers {
		for i := range min(r.Count, 256) {
			short.Set(r.First+i, nil)
		}
	}
	unknown.Set(sdk.NoRegister-1, make([]byte, 3))
	v.bindThreads("a thread whose registers have no bytes", &sdk.BindThreadsRequest{Threads: []sdk.ThreadState{{Registers: short}}})
	v.bindThreads("a thread with an unknown register and processor", &sdk.BindThreadsRequest{
		Threads: []sdk.ThreadState{{Thread: math.MaxUint64, Registers: unknown, Processor: "no such processor"}}})
}

func (v *verifier) garbageReturns() {
	v.classifyReturn("an address without code", &sdk.ClassifyReturnRequest{PCs: []uint64{0}, Offsets: []uint32{0, 0}})
	v.classifyReturn("an address with more code than an instruction", &sdk.ClassifyReturnRequest{
		PCs: []uint64{math.MaxUint64}, Offsets: []uint32{0, 1000}, Code: noise(1000)})

	v.disassemble("no code", &sdk.DisassembleRequest{})
	v.disassemble("noise at the end of the address space", &sdk.DisassembleRequest{
		Address: math.MaxUint64 - 99, Code: noise(100), Processor: "no such processor"})
}

func (v *verifier) garbageAddresses() {
	for _, req := range []*sdk.TranslateRequest{
		{Space: math.MaxUint64, Address: math.MaxUint64, Thread: math.MaxUint64, Lane: -1},
		{Expr: []byte{}, Lane: math.MaxInt32, Frame: math.MaxUint32},
		{Expr: noise(100), Space: locexpr.DefaultSpace},
	} {
		ask(v.session, "Translate", "an address in no range", func(ctx context.Context) (*sdk.TranslateAnswer, error) {
			return v.arch.Translate(ctx, v.offer(emptyEngine{}), req)
		}, func(a *sdk.TranslateAnswer) error { return a.Validate(v.desc, req) })
	}
}

func (v *verifier) openGarbage(what string, e sdk.Engine, req *sdk.OpenObjectRequest) {
	ask(v.session, "OpenObject", what, func(ctx context.Context) (*sdk.OpenObjectAnswer, error) {
		return v.arch.OpenObject(ctx, v.offer(e), req)
	}, func(a *sdk.OpenObjectAnswer) error { return a.Validate(v.desc, req) })
}

func (v *verifier) garbageFiles() {
	for _, r := range v.desc.Recognises {
		if len(r.Magic) > 0 && r.ELFMachine == 0 {
			file := append(slices.Clone(r.Magic), noise(1000)...)
			v.openGarbage("a file of noise that begins as the plugin recognises it", garbageEngine{file}, &sdk.OpenObjectRequest{Object: 1, Path: "noise"})
			v.openGarbage("a file of which only what the plugin recognises is there", garbageEngine{r.Magic}, &sdk.OpenObjectRequest{Object: 1})
		}
	}
}

func (v *verifier) garbageObject(e garbageSource) {
	req := &sdk.OpenObjectRequest{
		Object: 1, Path: "\xff\x00", Machine: math.MaxUint16, Flags: math.MaxUint32,
		Sections: []sdk.SectionInfo{{Name: ".text", Size: math.MaxUint64}, {Name: "", Address: math.MaxUint64, Size: 1}},
		Symbols:  []sdk.SymbolInfo{{Address: math.MaxUint64, Size: math.MaxUint64}, {Name: "\xff"}},
	}
	for _, name := range v.desc.Symbols {
		req.Symbols = append(req.Symbols, sdk.SymbolInfo{Name: name, Address: math.MaxUint64, Size: math.MaxUint64})
	}
	for i, suffix := range v.desc.Companions {
		req.Companions = append(req.Companions, sdk.Companion{Suffix: suffix, Object: uint64(i) + 2})
	}
	v.openGarbage("an object "+e.name, e.engine, req)
}

func (v *verifier) garbageTarget(e garbageSource) {
	notes := &sdk.OpenTargetRequest{Notes: []sdk.Note{{}, {Owner: "\xff", Type: math.MaxUint32, Data: noise(100)}}}
	for _, r := range v.desc.Recognises {
		for n := range 40 {
			notes.Notes = append(notes.Notes, sdk.Note{Owner: r.NoteOwner, Type: uint32(n), Data: noise(7 * n)})
		}
	}
	ask(v.session, "OpenTarget", "notes of noise, of a target "+e.name, func(ctx context.Context) (*sdk.OpenTargetAnswer, error) {
		return v.arch.OpenTarget(ctx, v.offer(e.engine), notes)
	}, func(a *sdk.OpenTargetAnswer) error { return a.Validate(v.desc, notes) })
	for i, r := range v.desc.Recognises {
		if r.ELFMachine == 0 || i > 0 && r.ELFMachine == v.desc.Recognises[i-1].ELFMachine {
			continue
		}
		v.openNotes(e.engine, fmt.Sprintf("a core of sections of machine %d, of a target %s", r.ELFMachine, e.name), &sdk.OpenTargetRequest{File: &sdk.TargetFile{
			Machine: r.ELFMachine, OSABI: math.MaxUint8, ABIVersion: math.MaxUint8, Flags: math.MaxUint32, Size: 1 << 20,
			SectionsOffset: 64, Sections: 1<<14 - 1, SectionSize: 64, SectionNames: math.MaxUint32,
		}})
	}
}

// concurrency makes the same requests from several goroutines at once.
func (v *verifier) concurrency() {
	req := &sdk.FrameRulesRequest{Functions: v.codeRanges()}
	returns := v.returns(64)
	threads := &sdk.BindThreadsRequest{Threads: v.threads(8)}
	calls := func(ctx context.Context) ([3]any, error) {
		rules, err1 := v.arch.FrameRules(ctx, v.offer(emptyEngine{}), req)
		classes, err2 := v.arch.ClassifyReturn(ctx, returns)
		bound, err3 := v.arch.BindThreads(ctx, v.offer(emptyEngine{}), threads)
		return [3]any{rules, classes, bound}, errors.Join(err1, err2, err3)
	}
	v.atOnce("FrameRules, ClassifyReturn and BindThreads", calls)
}
