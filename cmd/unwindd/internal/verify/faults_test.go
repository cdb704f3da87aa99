// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// handshakes are faults of a process that does not shake hands as it should.
var handshakes = map[string]func(){
	"writes-half-a-line": func() { fmt.Print("1|2|unix|"); time.Sleep(time.Hour) },
	"speaks-another-protocol": func() {
		path := filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "s")
		if _, err := net.Listen("unix", path); err != nil {
			panic(err)
		}
		fmt.Printf("1|%d|unix|%s|netrpc|\n", sdk.ProtocolVersion, path)
		time.Sleep(time.Hour)
	},
	"listens-in-another-folder": func() { fmt.Printf("1|%d|unix|/tmp/s|grpc|\n", sdk.ProtocolVersion); time.Sleep(time.Hour) },
	"listens-nowhere": func() {
		fmt.Printf("1|%d|unix|%s|grpc|\n", sdk.ProtocolVersion, filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "s"))
		time.Sleep(time.Hour)
	},
	"writes-without-end": func() {
		for {
			fmt.Print("garbage ")
		}
	},
}

// hooks replace parts of the behaviour of a sound plugin by a fault.
type hooks struct {
	describe    func(*sdk.Description)
	openTarget  func(*sdk.OpenTargetRequest, *sdk.OpenTargetAnswer)
	openObject  func(*sdk.OpenObjectRequest, *sdk.OpenObjectAnswer)
	frameRules  func(*sdk.FrameRulesRequest, *sdk.FrameRulesAnswer)
	bindThreads func(*sdk.BindThreadsAnswer)
	translate   func(*sdk.TranslateRequest) (*sdk.TranslateAnswer, error)
	classify    func(*sdk.ClassifyReturnAnswer)
	disassemble func(*sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error)
}

// push is a vendor's operation.
var push = sdk.DialectOperation{Opcode: 0xe5, Name: "DW_OP_LLVM_push_lane"}

// opaque is a description with an address space, and threads whose memory there Translate finds.
func opaque(translate func(*sdk.TranslateRequest) (*sdk.TranslateAnswer, error)) hooks {
	return hooks{
		describe: func(d *sdk.Description) {
			d.AddressSpaces = []sdk.AddressSpace{{Number: 1, Name: "scratch", Bits: 32}, {Number: 2, Name: "local", Bits: 32}}
		},
		bindThreads: maps(sdk.SpaceMap{Space: 1, Ranges: []sdk.MapRange{{Kind: sdk.OpaqueMap, Size: 64}}}),
		translate:   translate,
	}
}

// maps answers that every thread has maps.
func maps(list ...sdk.SpaceMap) func(*sdk.BindThreadsAnswer) {
	return func(a *sdk.BindThreadsAnswer) {
		for i := range a.Threads {
			a.Threads[i].Maps = list
		}
	}
}

// variable answers that an object has a variable.
func variable(v sdk.Variable) hooks {
	return hooks{openObject: func(req *sdk.OpenObjectRequest, a *sdk.OpenObjectAnswer) {
		if v.Name = "x"; len(req.Symbols) > 0 || len(req.Sections) > 20 { // a sample object
			a.Variables = []sdk.Variable{v}
		}
	}}
}

// everyRow answers a row for the whole of every function.
func everyRow(row cfi.Row) hooks {
	return hooks{frameRules: func(req *sdk.FrameRulesRequest, a *sdk.FrameRulesAnswer) {
		for i, f := range req.Functions {
			if row.Start, row.End = f.Start, f.Start+uint64(len(f.Code)); row.End > row.Start {
				a.Functions[i].Rows = []cfi.Row{row}
			}
		}
	}}
}

var spFour = cfi.CFARule{Kind: cfi.CFARegister, Register: 2, Offset: 4}

// faults has the plugins whose calls are at fault, by name.
var faults = map[string]hooks{
	"register-names-with-blanks": {describe: func(d *sdk.Description) { d.Registers[0].Names[1] = "f p" }},
	"registers-without-end":      {describe: func(d *sdk.Description) { d.Registers[0].Count = 1 << 31 }},
	"recognises-nothing":         {describe: func(d *sdk.Description) { d.Recognises = nil }},
	"empty-dialect":              {describe: func(d *sdk.Description) { d.Dialects = []sdk.Dialect{{Name: "warp"}} }},
	"unknown-operation": {describe: func(d *sdk.Description) {
		d.Dialects = []sdk.Dialect{{Name: "warp", Operations: []sdk.DialectOperation{{Opcode: 0xe5, Name: "DW_OP_WARP_lane"}}}}
	}},
	"opcode-twice": {describe: func(d *sdk.Description) {
		d.Dialects = []sdk.Dialect{{Name: "warp", Operations: []sdk.DialectOperation{push, {Opcode: 0xe5, Name: "DW_OP_LLVM_offset"}}}}
	}},
	"other-encoding-of-a-built-in-dialect": {describe: func(d *sdk.Description) {
		d.Dialects = []sdk.Dialect{{Name: "llvm-user", Operations: []sdk.DialectOperation{push}}}
	}},
	"dialect-of-no-name": {openObject: func(_ *sdk.OpenObjectRequest, a *sdk.OpenObjectAnswer) { a.Dialect = "warp" }},

	"threads-of-no-agent": {openTarget: func(_ *sdk.OpenTargetRequest, a *sdk.OpenTargetAnswer) {
		a.Threads = []sdk.TargetThread{{ID: "w0", Wave: sdk.Wave{Agent: "gpu7"}}}
	}},
	"threads-without-end": {openTarget: func(_ *sdk.OpenTargetRequest, a *sdk.OpenTargetAnswer) {
		a.Threads = make([]sdk.TargetThread, 100_000)
		for i := range a.Threads {
			a.Threads[i].ID = "w" // the same name, again and again
		}
	}},
	"problems-without-end": {openTarget: func(_ *sdk.OpenTargetRequest, a *sdk.OpenTargetAnswer) { a.Problems = make([]string, 100_000) }},
	"registers-of-no-size": {openTarget: func(_ *sdk.OpenTargetRequest, a *sdk.OpenTargetAnswer) {
		var r sdk.Registers
		r.Set(0, make([]byte, 100))
		a.Threads = []sdk.TargetThread{{ID: "w0", Registers: r}}
	}},

	"variables-out-of-order": variable(sdk.Variable{Start: []uint64{0x401910, 0x401900}, End: []uint64{0x401918, 0x401908}, Locations: [][]byte{{0x50}, {0x50}}}),
	"variables-in-no-code":   variable(sdk.Variable{Start: []uint64{0x10}, End: []uint64{0x20}, Locations: [][]byte{{0x50}}}),
	"variables-pop-too-much": variable(sdk.Variable{Start: []uint64{0x401900}, End: []uint64{0x401908}, Locations: [][]byte{{0x22}}}),
	"variables-undecodable":  variable(sdk.Variable{Start: []uint64{0x401900}, End: []uint64{0x401908}, Locations: [][]byte{{0x03}}}),
	"variables-half-there":   variable(sdk.Variable{Start: []uint64{0x401900}, Locations: [][]byte{{0x50}}}),
	"refuses-objects":        {},
	"object-in-itself":       {},
	"forgets-its-rows":       {},
	"tables-without-a-reason": {openObject: func(_ *sdk.OpenObjectRequest, a *sdk.OpenObjectAnswer) {
		a.Tables = []sdk.RowTable{{Priority: sdk.OverridesCFI}}
	}},

	"unknown-column": everyRow(cfi.Row{ReturnAddress: 3, CFA: spFour, Rules: []cfi.RegisterRule{{Column: 77, Rule: cfi.Rule{Kind: cfi.SameValue}}}}),
	"rules-pop-too-much": everyRow(cfi.Row{ReturnAddress: 3, CFA: spFour, Rules: []cfi.RegisterRule{
		{Column: 3, Rule: cfi.Rule{Kind: cfi.Expression, Expr: []byte{0x13, 0x22}}}, // DW_OP_drop; DW_OP_plus
	}}),
	"rows-elsewhere": {frameRules: func(req *sdk.FrameRulesRequest, a *sdk.FrameRulesAnswer) {
		for i := range req.Functions {
			a.Functions[i].Rows = []cfi.Row{{Start: 1, End: 2, ReturnAddress: 3, CFA: spFour}}
		}
	}},
	"answers-by-the-batch": {frameRules: func(req *sdk.FrameRulesRequest, a *sdk.FrameRulesAnswer) {
		for i := range a.Functions {
			a.Functions[i].Reason = fmt.Sprint("one of ", len(req.Functions))
		}
	}},
	"answers-by-the-call": {frameRules: func(_ *sdk.FrameRulesRequest, a *sdk.FrameRulesAnswer) {
		if n := calls.Add(1); len(a.Functions) > 2 && len(a.Functions) < 100 {
			a.Functions[0].Reason = fmt.Sprint("call ", n)
		}
	}},
	"recurses-without-end": {frameRules: func(req *sdk.FrameRulesRequest, _ *sdk.FrameRulesAnswer) {
		debug.SetMaxStack(1 << 20) // Go's own limit takes seconds to reach
		_ = recurse(len(req.Functions))
	}},
	"exits-in-a-call": {frameRules: func(*sdk.FrameRulesRequest, *sdk.FrameRulesAnswer) {
		os.Exit(0)
	}},
	"kills-itself": {frameRules: func(*sdk.FrameRulesRequest, *sdk.FrameRulesAnswer) {
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
		time.Sleep(time.Hour)
	}},
	"computes-in-between": {frameRules: func(*sdk.FrameRulesRequest, *sdk.FrameRulesAnswer) {
		if calls.Add(1) == 1 {
			go spin()
		}
	}},
	"connects": {disassemble: func(*sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
		c, err := net.Dial("tcp", "127.0.0.1:9")
		if err == nil {
			c.Close()
		}
		return nil, err
	}},

	"more-threads-than-asked": {bindThreads: func(a *sdk.BindThreadsAnswer) { a.Threads = append(a.Threads, sdk.ThreadBinding{Lanes: 1}) }},
	"lanes-without-end": {bindThreads: func(a *sdk.BindThreadsAnswer) {
		for i := range a.Threads {
			a.Threads[i].Lanes = 1 << 20
		}
	}},
	"maps-that-overlap": {bindThreads: maps(sdk.SpaceMap{Ranges: []sdk.MapRange{{Kind: sdk.OpaqueMap, Size: 64}, {Kind: sdk.OpaqueMap, Start: 32, Size: 64}}})},
	"maps-in-circles": {describe: opaque(nil).describe, bindThreads: maps(
		sdk.SpaceMap{Space: 1, Ranges: []sdk.MapRange{{Size: 64, Into: 2}}}, sdk.SpaceMap{Space: 2, Ranges: []sdk.MapRange{{Size: 64, Into: 1}}})},
	"no-translation": opaque(nil),
	"translates-to-itself": opaque(func(*sdk.TranslateRequest) (*sdk.TranslateAnswer, error) {
		return &sdk.TranslateAnswer{Expr: []byte{0x30, 0x31, 0xe9, 2}}, nil // DW_OP_lit0; DW_OP_lit1; form_aspace_address
	}),
	"translates-to-nothing": opaque(func(*sdk.TranslateRequest) (*sdk.TranslateAnswer, error) { return &sdk.TranslateAnswer{}, nil }),
	"translates-otherwise": opaque(func(*sdk.TranslateRequest) (*sdk.TranslateAnswer, error) {
		return &sdk.TranslateAnswer{Expr: []byte{0x70, byte(calls.Add(1) % 64)}}, nil
	}),
	"translates-to-no-register": opaque(func(*sdk.TranslateRequest) (*sdk.TranslateAnswer, error) {
		return &sdk.TranslateAnswer{Expr: []byte{0x8f, 0}}, nil // DW_OP_breg31
	}),

	"classes-of-nothing": {classify: func(a *sdk.ClassifyReturnAnswer) { a.Classes = nil }},
	"unknown-class": {classify: func(a *sdk.ClassifyReturnAnswer) {
		for i := range a.Classes {
			a.Classes[i] = 99
		}
	}},
	"target-without-a-call": {classify: func(a *sdk.ClassifyReturnAnswer) {
		for i := range a.Targets {
			a.Targets[i] = 4
		}
	}},
	"instructions-past-the-code": {disassemble: func(req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
		return &sdk.DisassembleAnswer{Instructions: []sdk.Instruction{{Address: req.Address, Size: 200}}}, nil
	}},
	"options-for-a-tool": {disassemble: func(*sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
		return &sdk.DisassembleAnswer{LLVM: sdk.LLVMTarget{Triple: "odd", CPU: "x -o /etc/passwd"}}, nil
	}},
	"starts-a-tool": {disassemble: func(*sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
		return nil, errors.New("fork/exec /usr/bin/objdump: operation not permitted")
	}},
	"text-of-no-encoding": {disassemble: func(req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
		if len(req.Code) == 0 {
			return &sdk.DisassembleAnswer{}, nil
		}
		return &sdk.DisassembleAnswer{Instructions: []sdk.Instruction{{Address: req.Address, Size: 1, Text: "\xff\xfe"}}}, nil
	}},
}

// recurse uses up the stack.
func recurse(n int) int { return recurse(n+1) + 1 } //nolint:staticcheck // without end

// Translate implements sdk.Architecture.
func (o odd) Translate(ctx context.Context, e sdk.Engine, req *sdk.TranslateRequest) (*sdk.TranslateAnswer, error) {
	if f := faults[o.fault].translate; f != nil {
		return f(req)
	}
	return o.Base.Translate(ctx, e, req)
}

// ClassifyReturn implements sdk.Architecture.
func (o odd) ClassifyReturn(ctx context.Context, req *sdk.ClassifyReturnRequest) (*sdk.ClassifyReturnAnswer, error) {
	a, err := o.Base.ClassifyReturn(ctx, req)
	if f := faults[o.fault].classify; f != nil {
		f(a)
	}
	return a, err
}

// Disassemble implements sdk.Architecture.
func (o odd) Disassemble(ctx context.Context, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
	if f := faults[o.fault].disassemble; f != nil {
		return f(req)
	}
	return o.Base.Disassemble(ctx, req)
}
