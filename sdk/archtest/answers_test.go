// SPDX-License-Identifier: Apache-2.0

package archtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/archtest"
)

// finds fails the test unless a finding of a check has the expected detail and fix.
func finds(t *testing.T, findings []archtest.Finding, check string, severity archtest.Severity, detail, fix string) {
	t.Helper()
	for _, f := range findings {
		if f.Check == check && f.Severity == severity && strings.Contains(f.Detail, detail) && strings.Contains(f.Fix, fix) {
			return
		}
	}
	t.Errorf("not found: %s, %q; findings: %+v", check, detail, findings)
}

func TestDialectsOfADescription(t *testing.T) {
	push := sdk.DialectOperation{Opcode: 0xe5, Name: "DW_OP_LLVM_push_lane"}
	for _, c := range []struct {
		name     string
		dialects []sdk.Dialect
		check    string
		severity archtest.Severity
		detail   string
		fix      string
	}{
		{"no operations", []sdk.Dialect{{Name: "warp"}}, "dialects", archtest.Warning, "warp has no operations", "Built in are dwarf5"},
		{"another case", []sdk.Dialect{{Name: "LLVM-User"}}, "dialects", archtest.Warning, "LLVM-User, and llvm-user is built in", "compared exactly"},
		{"two names", []sdk.Dialect{{Name: "warp", Operations: []sdk.DialectOperation{push}}, {Name: "Warp", Operations: []sdk.DialectOperation{push}}},
			"dialects", archtest.Warning, "Warp, and Dialects[0] is warp", "more than case"},
		{"an operation twice", []sdk.Dialect{{Name: "warp", Operations: []sdk.DialectOperation{push, {Opcode: 0xe6, Name: push.Name}}}},
			"dialects", archtest.Warning, "Operations[1]: DW_OP_LLVM_push_lane is Operations[0] too", "one encoding"},
		{"an opcode twice", []sdk.Dialect{{Name: "warp", Operations: []sdk.DialectOperation{push, {Opcode: 0xe5, Name: "DW_OP_LLVM_offset"}}}},
			"description", archtest.Error, "is both", "Mend the field"},
		{"an unknown operation", []sdk.Dialect{{Name: "warp", Operations: []sdk.DialectOperation{{Opcode: 0xe5, Name: "DW_OP_WARP_lane"}}}},
			"description", archtest.Error, `no operation is called "DW_OP_WARP_lane"`, "Mend the field"},
		{"a standard opcode", []sdk.Dialect{{Name: "warp", Operations: []sdk.DialectOperation{{Opcode: 0x22, Name: push.Name}}}},
			"description", archtest.Error, "0xe0 to 0xff expected", "Mend the field"},
		{"another encoding of a built-in name", []sdk.Dialect{{Name: "llvm-user", Operations: []sdk.DialectOperation{push}}},
			"description", archtest.Error, "expected what the dialect llvm-user that is built in has", "Mend the field"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			arch := &bad{describe: func(d *sdk.Description) { d.Dialects = c.dialects }}
			finds(t, archtest.Verify(t.Context(), arch, archtest.Options{}), c.check, c.severity, c.detail, c.fix)
		})
	}
	sound := &bad{describe: func(d *sdk.Description) {
		d.Dialects = []sdk.Dialect{{Name: "llvm-user"}, {Name: "warp", Operations: []sdk.DialectOperation{push}}}
	}}
	if findings := archtest.Verify(t.Context(), sound, archtest.Options{}); len(findings) > 0 {
		t.Errorf("%+v", findings)
	}
}

// codeSample is a code object with code at 0x100 to 0x300, and call frame information whose
// only row has a vendor's operation, 0xe5.
func codeSample() archtest.Object {
	o := sample()
	o.Request.Sections = append(o.Request.Sections, sdk.SectionInfo{Name: ".text", Flags: 4, Address: 0x100, Size: 0x200}, sdk.SectionInfo{Name: ".debug_frame", Size: 40})
	frames := []byte{
		16, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 4, 0, 4, 0, 1, 0x7c, 3, 0x0c, 2, 4, 0, 0, // a CIE: CFA = sp+4
		20, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 16, 0, 0, 0, 0x0f, 4, 0x72, 0, 0xe5, 0x22, 0, 0, // an FDE: CFA = breg2 0; 0xe5; plus
	}
	read := o.Read
	o.Read = func(object uint64, name string) ([]byte, error) {
		if name == ".debug_frame" {
			return frames, nil
		}
		return read(object, name)
	}
	return o
}

func TestAnswersAboutASampleObject(t *testing.T) {
	warp := func(d *sdk.Description) {
		d.Dialects = []sdk.Dialect{{Name: "warp", Operations: []sdk.DialectOperation{{Opcode: 0xe5, Name: "DW_OP_LLVM_push_lane"}}}}
	}
	answers := func(change func(a *sdk.OpenObjectAnswer)) *bad {
		return &bad{describe: warp, openObject: func(context.Context, sdk.Engine, *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
			a := &sdk.OpenObjectAnswer{Dialect: "warp"}
			change(a)
			return a, nil
		}}
	}
	variable := func(v sdk.Variable) *bad {
		return answers(func(a *sdk.OpenObjectAnswer) { a.Variables = []sdk.Variable{v} })
	}
	reg0 := []byte{0x50}
	row := func(r cfi.Row) *bad {
		return answers(func(a *sdk.OpenObjectAnswer) { a.Tables = []sdk.RowTable{{Rows: []cfi.Row{r}}} })
	}
	sp4 := cfi.CFARule{Kind: cfi.CFARegister, Register: 2, Offset: 4}
	for _, c := range []struct {
		name, check, detail, fix string
		arch                     *bad
	}{
		{"sound", "", "", "", answers(func(a *sdk.OpenObjectAnswer) {
			a.Functions = []sdk.Function{{Name: "f", Start: 0x100, End: 0x120}}
			a.Variables = []sdk.Variable{{Name: "x", Start: []uint64{0x100, 0x110}, End: []uint64{0x110, 0x120}, Locations: [][]byte{reg0, {0x9c, 0x23, 4}}}}
		})},
		{"the wrong dialect", "expressions", ".debug_frame, FDE at offset 0x14, PC 0x100, in dialect dwarf5: ill-formed expression", "warp has all its operations",
			answers(func(a *sdk.OpenObjectAnswer) { a.Dialect = "" })},
		{"ranges out of order", "variables", "Variables[0].Start[1]: 0x100, expected at least 0x108", "Sort the ranges",
			variable(sdk.Variable{Name: "x", Start: []uint64{0x104, 0x100}, End: []uint64{0x108, 0x104}, Locations: [][]byte{reg0, reg0}})},
		{"ranges that overlap", "variables", "Start[1]: 0x104, expected at least 0x108", "of ranges that overlap the first is used",
			variable(sdk.Variable{Name: "x", Start: []uint64{0x100, 0x104}, End: []uint64{0x108, 0x110}, Locations: [][]byte{reg0, reg0}})},
		{"a range outside code", "variables", "[0x1000, 0x1008) of section 0 is in no section of code", "addresses of the file",
			variable(sdk.Variable{Name: "x", Start: []uint64{0x1000}, End: []uint64{0x1008}, Locations: [][]byte{reg0}})},
		{"a range in a section of data", "variables", "[0x0, 0x4) of section 1 is in no section of code", "Section",
			variable(sdk.Variable{Name: "x", Section: 1, Start: []uint64{0}, End: []uint64{4}, Locations: [][]byte{reg0}})},
		{"a range in no function", "variables", "[0x200, 0x208) of section 0 is in none of the answer's Functions", "list that function",
			answers(func(a *sdk.OpenObjectAnswer) {
				a.Functions = []sdk.Function{{Start: 0x100, End: 0x120}}
				a.Variables = []sdk.Variable{{Name: "x", Start: []uint64{0x200}, End: []uint64{0x208}, Locations: [][]byte{reg0}}}
			})},
		{"a variable without a name", "variables", "Variables[0].Name: empty", "name",
			variable(sdk.Variable{Start: []uint64{0x100}, End: []uint64{0x108}, Locations: [][]byte{reg0}})},
		{"a location that pops too much", "variables", "Variables[0].Locations[0]: ill-formed expression: offset 0: DW_OP_plus", "Mend the expression",
			variable(sdk.Variable{Name: "x", Start: []uint64{0x100}, End: []uint64{0x108}, Locations: [][]byte{{0x22}}})},
		{"a location in no register", "variables", "register 31: the description has no such register", "Mend the expression",
			variable(sdk.Variable{Name: "x", Start: []uint64{0x100}, End: []uint64{0x108}, Locations: [][]byte{{0x8f, 0}}})},
		{"a row whose CFA pops too much", "expressions", "Tables[0].Rows[0].CFA.Expr: ill-formed expression: offset 0: DW_OP_deref", "an empty stack",
			row(cfi.Row{Start: 0x100, End: 0x108, ReturnAddress: 3, CFA: cfi.CFARule{Kind: cfi.CFAExpression, Expr: []byte{0x06}}})},
		{"a rule with an operation that rows must not have", "expressions", "Rows[0].Rules[0].Rule.Expr: ", "Mend the expression",
			row(cfi.Row{Start: 0x100, End: 0x108, ReturnAddress: 3, CFA: sp4, Rules: []cfi.RegisterRule{{Column: 3, Rule: cfi.Rule{Kind: cfi.Expression, Expr: []byte{0x97}}}}})},
		{"a value without an operand", "expressions", "Rows[0].Rules[0].Rule.Expr: ill-formed expression", "with the CFA on the stack",
			row(cfi.Row{Start: 0x100, End: 0x108, ReturnAddress: 3, CFA: sp4, Rules: []cfi.RegisterRule{{Column: 3, Rule: cfi.Rule{Kind: cfi.ValExpression, Expr: []byte{0x13, 0x13}}}}})},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			findings := archtest.Verify(t.Context(), c.arch, archtest.Options{Objects: []archtest.Object{codeSample()}})
			if c.check != "" {
				finds(t, findings, c.check, archtest.Error, c.detail, c.fix)
				return
			}
			for _, f := range findings {
				if f.Check != "garbage" && f.Check != "damage" { // the answer does not look at what it is asked about
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

// opaque answers that each thread has 64 bytes of address space 1 that Translate finds.
func opaque(translate func(*sdk.TranslateRequest) (*sdk.TranslateAnswer, error)) *bad {
	return &bad{
		describe: func(d *sdk.Description) { d.AddressSpaces = []sdk.AddressSpace{{Number: 1, Name: "a", Bits: 32}} },
		bindThreads: func(_ *sdk.BindThreadsRequest, a *sdk.BindThreadsAnswer) {
			for i := range a.Threads {
				a.Threads[i].Maps = []sdk.SpaceMap{{Space: 1, Ranges: []sdk.MapRange{{Kind: sdk.OpaqueMap, Start: 16, Size: 64}}}}
			}
		},
		translate: translate,
	}
}

func TestTranslateOfOpaqueRanges(t *testing.T) {
	calls := 0
	fixed := func(expr ...byte) func(*sdk.TranslateRequest) (*sdk.TranslateAnswer, error) {
		return func(*sdk.TranslateRequest) (*sdk.TranslateAnswer, error) {
			return &sdk.TranslateAnswer{Expr: expr}, nil
		}
	}
	for _, c := range []struct {
		name, check, detail, fix string
		translate                func(*sdk.TranslateRequest) (*sdk.TranslateAnswer, error)
	}{
		{"sound", "", "", "", func(req *sdk.TranslateRequest) (*sdk.TranslateAnswer, error) {
			if req.Space != 1 || req.Address < 16 || req.Address >= 80 || req.Lane > 0 {
				return nil, errors.New("no such place")
			}
			return &sdk.TranslateAnswer{Expr: []byte{0x70, 8}}, nil // register 0, plus 8
		}},
		{"not written", "translate", "not implemented, and BindThreads answered an opaque range", "Write Translate", nil},
		{"not decodable", "translate", "TranslateAnswer.Expr", "Mend the field", fixed(0xff)},
		{"empty", "translate", "TranslateAnswer.Expr: empty", "Mend the field", fixed()},
		{"pops too much", "translate", "TranslateAnswer.Expr of address 0x10 of space 1, lane -1, BindThreads of 257 threads: Threads[0]: ill-formed", "empty stack", fixed(0x22)},
		{"into itself", "cycles", "it leads to 0x20 of the same space", "in another space", fixed(0x08, 0x20, 0x31, 0xe9, 2)},
		{"by the number of calls", "translate", "two calls gave different expressions", "nothing of the time", func(*sdk.TranslateRequest) (*sdk.TranslateAnswer, error) {
			calls++
			return &sdk.TranslateAnswer{Expr: []byte{0x70, byte(calls % 64)}}, nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			findings := archtest.Verify(t.Context(), opaque(c.translate), archtest.Options{})
			if c.check != "" {
				finds(t, findings, c.check, archtest.Error, c.detail, c.fix)
			} else if len(findings) > 0 {
				t.Errorf("%+v", findings)
			}
		})
	}
}

// memory is an engine with the bytes of the default address space from 0x1000 on, up to 0x2000.
type memory struct{}

func (memory) ReadMemory(_ context.Context, m sdk.MemoryRange, buf []byte) (int, error) {
	n := 0
	if m.Space != 0 {
		return 0, errors.New("the target has no file")
	}
	for n < len(buf) && m.Address+uint64(n) >= 0x1000 && m.Address+uint64(n) < 0x2000 {
		buf[n], n = byte(n), n+1
	}
	if n < len(buf) {
		return n, errors.New("not in the target")
	}
	return n, nil
}

func (memory) ReadRegisters(context.Context, uint64, []uint32) (sdk.Registers, error) {
	return sdk.Registers{}, nil
}

func (memory) ReadSection(context.Context, uint64, string) ([]byte, error) {
	return nil, errors.New("no such section")
}

// dump returns a sound plugin's answer about a dump: two waves of one group of one dispatch.
func dump() *sdk.OpenTargetAnswer {
	a := &sdk.OpenTargetAnswer{
		Kind: "tiny-core", Agents: []sdk.TargetAgent{{ID: "a0"}, {ID: "a1"}},
		Queues:        []sdk.TargetQueue{{ID: "q0", Agent: "a0"}, {ID: "q1", Agent: "a1"}},
		Dispatches:    []sdk.TargetDispatch{{ID: "d0", Queue: "q0", Grid: [3]uint32{128, 1, 1}, Group: [3]uint32{64, 1, 1}, Signal: 7}},
		WaitFunctions: []string{"wait"},
		Objects:       []sdk.TargetObject{{URI: "memory://", MemoryAddress: 0x1000, Size: 0x100}},
	}
	for i := range uint32(2) {
		var pc sdk.Registers
		pc.Set(3, []byte{0, 1, 0, 0})
		a.Threads = append(a.Threads, sdk.TargetThread{
			ID: fmt.Sprint("w", i), Processor: "tiny1", Lanes: 32, Registers: pc, Saved: []sdk.SavedRegisters{{Count: 3, Address: 0x1800}},
			Wave: sdk.Wave{Agent: "a0", Queue: "q0", Dispatch: "d0", Group: [3]uint32{1, 0, 0}, HasGroup: true, InGroup: i, HasInGroup: true},
		})
	}
	return a
}

func TestContradictionsOfARecordedTarget(t *testing.T) {
	calls := 0
	thread := func(change func(*sdk.TargetThread)) func(*sdk.OpenTargetAnswer) {
		return func(a *sdk.OpenTargetAnswer) { change(&a.Threads[1]) }
	}
	for _, c := range []struct {
		name, detail, fix string
		severity          archtest.Severity
		change            func(*sdk.OpenTargetAnswer)
	}{
		{"sound", "", "", "", func(*sdk.OpenTargetAnswer) {}},
		{"no kind", "Kind is empty beside 2 threads and 1 code objects", "Set Kind", archtest.Warning, func(a *sdk.OpenTargetAnswer) { a.Kind = "" }},
		{"another queue", "Threads[1].Wave.Queue is q1, and its dispatch d0 is of queue q0", "name the same", archtest.Error, thread(func(th *sdk.TargetThread) { th.Wave.Queue = "q1" })},
		{"another agent", "Threads[1].Wave.Agent is a1, and its queue q0 is of agent a0", "name the same", archtest.Error, thread(func(th *sdk.TargetThread) { th.Wave.Agent = "a1" })},
		{"a group that is not there", "Threads[1].Wave.Group[0] is 2, and its dispatch d0 has 2 groups", "from 0 on", archtest.Error, thread(func(th *sdk.TargetThread) { th.Wave.Group[0] = 2 })},
		{"a group larger than the grid", "Dispatches[0].Group has 256 work-items on axis 0, its Grid 128", "work-items", archtest.Error, func(a *sdk.OpenTargetAnswer) { a.Dispatches[0].Group[0] = 256 }},
		{"too many waves", "Threads[1].Wave.InGroup is 2, and a work-group of dispatch d0 has 2 waves of 32 lanes", "from 0 on", archtest.Error, thread(func(th *sdk.TargetThread) { th.Wave.InGroup = 2 })},
		{"a wave twice", "Threads[0] and Threads[1] are both wave 0", "each once", archtest.Error, thread(func(th *sdk.TargetThread) { th.Wave.InGroup = 0 })},
		{"an agent that is none", `Wave.Agent: "a7" is the ID of none`, "Mend the field", archtest.Error, thread(func(th *sdk.TargetThread) { th.Wave.Agent = "a7" })},
		{"registers in no memory", "Threads[1].Saved[0]: the target does not have the 0xc bytes at 0x1ff8", "the core has the bytes", archtest.Error, thread(func(th *sdk.TargetThread) { th.Saved[0].Address = 0x1ff8 })},
		{"an object in no memory", "Objects[0]: the target does not have the 0x100 bytes at 0x1f80", "the core has the bytes", archtest.Error, func(a *sdk.OpenTargetAnswer) { a.Objects[0].MemoryAddress = 0x1f80 }},
		{"a lane's registers in no memory", "Threads[1].LaneStates[0].Saved[0]: the target does not have the 0xc bytes at 0x1ff8", "the core has the bytes", archtest.Error,
			thread(func(th *sdk.TargetThread) {
				th.LaneStates = []sdk.LaneState{{Saved: []sdk.SavedRegisters{{Count: 3, Address: 0x1ff8}}}}
			})},
		{"memory of all in no memory", "Memory[0]: the target does not have the 0x100 bytes at 0x1000", "the core has the bytes", archtest.Error, func(a *sdk.OpenTargetAnswer) {
			a.Memory = []sdk.SpaceMemory{{Start: 0x10, Size: 0x100, Address: 0x1000, Into: sdk.FileSpace}}
		}},
		{"lanes of one wave", "", "", "", func(a *sdk.OpenTargetAnswer) {
			a.Threads[1].Wave.InGroup = 0
			a.Threads[0].LaneStates, a.Threads[1].LaneStates = []sdk.LaneState{{Lane: 0}}, []sdk.LaneState{{Lane: 1}}
			a.Threads[1].Lead = 1
		}},
		{"a lane twice", "Threads[0] and Threads[1] are both wave 0", "each once", archtest.Error, func(a *sdk.OpenTargetAnswer) {
			a.Threads[1].Wave.InGroup = 0
			a.Threads[0].LaneStates, a.Threads[1].LaneStates = []sdk.LaneState{{Lane: 0}}, []sdk.LaneState{{Lane: 0}}
		}},
		{"no PC", "Threads[1], w1, has neither its PC among Registers nor a Problem", "Give the PC", archtest.Warning, thread(func(th *sdk.TargetThread) { th.Registers = sdk.Registers{} })},
		{"a value that is not used", "Threads[1].Stop.Address is set and Stop.HasAddress is not", "Has member", archtest.Warning, thread(func(th *sdk.TargetThread) { th.Stop.Address = 4 })},
		{"nobody waits", "Dispatches[0].Signal is 0x7, and WaitFunctions is empty", "WaitFunctions", archtest.Warning, func(a *sdk.OpenTargetAnswer) { a.WaitFunctions = nil }},
		{"an unknown processor", `Threads[1].Processor "tiny2" is none of the description's`, "Processors", archtest.Warning, thread(func(th *sdk.TargetThread) { th.Processor = "tiny2" })},
		{"lanes of another processor", "Threads[1].Lanes is 16, and threads of tiny1 have [32]", "lane counts", archtest.Warning, thread(func(th *sdk.TargetThread) { th.Lanes = 16 })},
		{"crashed and running", "Threads[1], w1, has crashed and is running", "set one of both", archtest.Warning, thread(func(th *sdk.TargetThread) { th.HasCrashed, th.IsRunning = true, true })},
		{"other answers", "two calls gave different answers", "in an order that they give", archtest.Error, func(a *sdk.OpenTargetAnswer) { calls++; a.Kind = fmt.Sprint("kind", calls) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			arch := &bad{
				describe: func(d *sdk.Description) { d.Processors = []sdk.Processor{{Name: "tiny1", Lanes: []uint32{32}}} },
				openTarget: func(_ context.Context, _ sdk.Engine, req *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, error) {
					if len(req.Notes) != 1 || req.Notes[0].Owner != "TINY" || string(req.Notes[0].Data) != "dump" {
						return &sdk.OpenTargetAnswer{}, nil
					}
					a := dump()
					c.change(a)
					return a, nil
				},
			}
			findings := archtest.Verify(t.Context(), arch, archtest.Options{Targets: []archtest.Target{{
				Name: "core", Request: sdk.OpenTargetRequest{Notes: []sdk.Note{{Owner: "TINY", Data: []byte("dump")}}}, Engine: memory{},
			}}})
			if c.detail != "" {
				finds(t, findings, "targets", c.severity, c.detail, c.fix)
			} else if len(findings) > 0 {
				t.Errorf("%+v", findings)
			}
		})
	}
}

// TestNotesOfARecordedTargetAreDamaged has a plugin that believes the notes of its own cores.
func TestNotesOfARecordedTargetAreDamaged(t *testing.T) {
	t.Parallel()
	arch := &bad{openTarget: func(_ context.Context, _ sdk.Engine, req *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, error) {
		for _, n := range req.Notes {
			if n.Owner == "TINY" {
				_ = n.Data[3]
			}
		}
		return &sdk.OpenTargetAnswer{}, nil
	}}
	notes := sdk.OpenTargetRequest{Notes: []sdk.Note{{Owner: "TINY", Data: []byte("dump")}}}
	findings := archtest.Verify(t.Context(), arch, archtest.Options{Targets: []archtest.Target{{Name: "core", Request: notes}}})
	finds(t, findings, "damage", archtest.Error, "OpenTarget of core, the notes damaged: every section empty: panic", "Check lengths")
}

// TestThreadsOfARecordedTargetAreBound has a plugin that cannot bind a thread that was recorded.
func TestThreadsOfARecordedTargetAreBound(t *testing.T) {
	t.Parallel()
	var registers sdk.Registers
	registers.Set(0, []byte{9, 9, 9, 9})
	findings := archtest.Verify(t.Context(), tiny{}, archtest.Options{Targets: []archtest.Target{{Name: "core", Threads: []sdk.ThreadState{{Registers: registers}}}}})
	finds(t, findings, "targets", archtest.Warning, "BindThreads of 1 threads of core: Threads[0] has a problem: the PC, register pc, is not", "Bind the thread")
}

// TestFileOfARecordedTargetIsDamaged: a plugin that trusts what a core of sections says is found.
func TestFileOfARecordedTargetIsDamaged(t *testing.T) {
	arch := &bad{openTarget: func(ctx context.Context, e sdk.Engine, req *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, error) {
		if req.File == nil {
			return &sdk.OpenTargetAnswer{}, nil
		}
		buf := make([]byte, 16)
		if _, err := e.ReadMemory(ctx, sdk.MemoryRange{Space: sdk.FileSpace, Address: req.File.SectionsOffset}, buf); err != nil {
			return nil, err
		}
		_ = buf[8-int(buf[0]):] // expects 8 there
		return &sdk.OpenTargetAnswer{Kind: "core"}, nil
	}}
	findings := archtest.Verify(t.Context(), arch, archtest.Options{Targets: []archtest.Target{{
		Name: "core", Request: sdk.OpenTargetRequest{File: &sdk.TargetFile{Size: 64, SectionsOffset: 8, Sections: 1, SectionSize: 64}}, Engine: file{memory{}},
	}}})
	finds(t, findings, "damage", archtest.Error, "OpenTarget of core, the file damaged: ", "Check lengths")
}

// file has bytes of sdk.FileSpace beside memory.
type file struct{ memory }

func (f file) ReadMemory(ctx context.Context, m sdk.MemoryRange, buf []byte) (int, error) {
	if m.Space != sdk.FileSpace {
		return f.memory.ReadMemory(ctx, m, buf)
	}
	for i := range buf {
		buf[i] = byte(8 + i)
	}
	return len(buf), nil
}
