// SPDX-License-Identifier: Apache-2.0

package archtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/archtest"
)

// tiny is a whole architecture: a description.
type tiny struct{ sdk.Base }

func (tiny) Describe(context.Context) (*sdk.Description, error) {
	return &sdk.Description{
		Name: "tiny", Recognises: []sdk.Recogniser{{ELFMachine: 0xfe00, OSABI: -1}, {OSABI: -1, Magic: []byte("TINY")}}, AddressBits: 32, Companions: []string{".tiny"},
		Registers:    []sdk.RegisterRange{{Count: 4, Names: []string{"a", "fp", "sp", "pc"}, Bits: 32}},
		RegisterSets: []sdk.RegisterSet{{Owner: "CORE", Type: 1, Fields: []sdk.RegisterField{{Size: 4, Register: 3}}}},
		PC:           3, SP: 2, FP: 1, ReturnAddress: 3,
		DefaultRules: []cfi.RegisterRule{{Column: 2, Rule: cfi.Rule{Kind: cfi.ValOffset}}},
		Entry: &cfi.Row{
			CFA:           cfi.CFARule{Kind: cfi.CFARegister, Register: 2, Offset: 4},
			Rules:         []cfi.RegisterRule{{Column: 3, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -4}}},
			ReturnAddress: 3,
		},
		CallDistance: 1, MaxInstruction: 4, StackAlign: 4,
	}, nil
}

// bad is tiny with one fault.
type bad struct {
	tiny
	describe    func(*sdk.Description)
	openTarget  func(context.Context, sdk.Engine, *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, error)
	openObject  func(context.Context, sdk.Engine, *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error)
	frameRules  func(*sdk.FrameRulesRequest, *sdk.FrameRulesAnswer)
	frameErr    error
	bindThreads func(*sdk.BindThreadsRequest, *sdk.BindThreadsAnswer)
	translate   func(*sdk.TranslateRequest) (*sdk.TranslateAnswer, error)
	classify    func(*sdk.ClassifyReturnRequest, *sdk.ClassifyReturnAnswer)
	disassemble func(context.Context, *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error)
}

func (b *bad) Describe(ctx context.Context) (*sdk.Description, error) {
	d, err := b.tiny.Describe(ctx)
	if b.describe != nil {
		b.describe(d)
	}
	return d, err
}

func (b *bad) OpenTarget(ctx context.Context, e sdk.Engine, req *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, error) {
	if b.openTarget != nil {
		return b.openTarget(ctx, e, req)
	}
	return b.tiny.OpenTarget(ctx, e, req)
}

func (b *bad) OpenObject(ctx context.Context, e sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	if b.openObject != nil {
		return b.openObject(ctx, e, req)
	}
	return b.tiny.OpenObject(ctx, e, req)
}

func (b *bad) FrameRules(ctx context.Context, e sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	a, err := b.tiny.FrameRules(ctx, e, req)
	if b.frameRules != nil {
		b.frameRules(req, a)
	}
	if b.frameErr != nil {
		return nil, b.frameErr
	}
	return a, err
}

func (b *bad) BindThreads(ctx context.Context, e sdk.Engine, req *sdk.BindThreadsRequest) (*sdk.BindThreadsAnswer, error) {
	if b.bindThreads == nil {
		return b.tiny.BindThreads(ctx, e, req)
	}
	d, _ := b.tiny.Describe(ctx)
	a := sdk.DefaultBindThreads(d, req)
	b.bindThreads(req, a)
	return a, nil
}

func (b *bad) Translate(ctx context.Context, e sdk.Engine, req *sdk.TranslateRequest) (*sdk.TranslateAnswer, error) {
	if b.translate != nil {
		return b.translate(req)
	}
	return b.tiny.Translate(ctx, e, req)
}

func (b *bad) ClassifyReturn(ctx context.Context, req *sdk.ClassifyReturnRequest) (*sdk.ClassifyReturnAnswer, error) {
	a, err := b.tiny.ClassifyReturn(ctx, req)
	if b.classify != nil {
		b.classify(req, a)
	}
	return a, err
}

func (b *bad) Disassemble(ctx context.Context, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
	if b.disassemble != nil {
		return b.disassemble(ctx, req)
	}
	return b.tiny.Disassemble(ctx, req)
}

func TestArchitectureOfADescriptionAloneHasNoFindings(t *testing.T) {
	archtest.Test(t, tiny{}, archtest.Options{})
	for _, f := range archtest.Verify(t.Context(), tiny{}, archtest.Options{Code: []byte{1, 2, 3, 4}}) {
		t.Errorf("%+v", f)
	}
}

func TestFaultsAreFoundByTheirChecks(t *testing.T) {
	var calls atomic.Uint32
	block := make(chan struct{})
	t.Cleanup(func() { close(block) })
	for _, c := range []struct {
		name     string
		arch     *bad
		check    string
		severity archtest.Severity
		detail   string
	}{
		{"invalid description", &bad{describe: func(d *sdk.Description) { d.PC = 9 }},
			"description", archtest.Error, "Description.PC: 9"},
		{"Describe panics", &bad{describe: func(d *sdk.Description) { _ = d.Registers[9] }},
			"description", archtest.Error, "archtest_test.go:"},
		{"recognises nothing", &bad{describe: func(d *sdk.Description) { d.Recognises = nil }},
			"description", archtest.Warning, "Recognises"},
		{"call distance forgotten", &bad{describe: func(d *sdk.Description) { d.CallDistance = 0 }},
			"description", archtest.Warning, "CallDistance"},
		{"entry forgotten", &bad{describe: func(d *sdk.Description) { d.Entry = nil }},
			"description", archtest.Warning, "Entry is nil"},
		{"description changes", &bad{describe: func(d *sdk.Description) { d.StackAlign = 1 << (calls.Add(1) % 8) }},
			"description-constant", archtest.Error, "Description.StackAlign"},
		{"no default rules", &bad{describe: func(d *sdk.Description) { d.DefaultRules = nil }},
			"default-rules", archtest.Warning, "empty"},
		{"no default rule for the stack pointer", &bad{describe: func(d *sdk.Description) { d.DefaultRules[0].Column = 1 }},
			"default-rules", archtest.Warning, "stack pointer, sp"},
		{"register set without PC", &bad{describe: func(d *sdk.Description) { d.RegisterSets[0].Fields[0].Register = 0 }},
			"register-sets", archtest.Warning, "PC"},
		{"register set without fields", &bad{describe: func(d *sdk.Description) { d.RegisterSets[0].Fields = nil }},
			"register-sets", archtest.Warning, "no fields"},
		{"register recorded in part", &bad{describe: func(d *sdk.Description) { d.RegisterSets[0].Fields[0].Size = 2 }},
			"register-sets", archtest.Warning, "32 bits, its record 16"},
		{"register set whose fields overlap", &bad{describe: func(d *sdk.Description) {
			d.RegisterSets[0].Fields = append(d.RegisterSets[0].Fields, sdk.RegisterField{Offset: 2, Size: 4, Register: 1})
		}}, "register-sets", archtest.Warning, "pc at 0 and fp at 2 overlap"},
		{"mask of the wrong width", &bad{describe: func(d *sdk.Description) {
			d.Registers = append(d.Registers, sdk.RegisterRange{First: 10, Count: 1, Names: []string{"exec"}, Bits: 64, Class: sdk.Mask, Lanes: 32})
		}}, "lanes", archtest.Warning, "the mask exec of threads with 32 lanes has 64 bits"},
		{"two masks", &bad{describe: func(d *sdk.Description) {
			d.Registers = append(d.Registers, sdk.RegisterRange{First: 10, Count: 2, Names: []string{"exec", "vcc"}, Bits: 32, Class: sdk.Mask, Lanes: 32})
		}}, "lanes", archtest.Warning, "two execution masks, vcc and exec"},
		{"row that leads to itself", &bad{frameRules: func(req *sdk.FrameRulesRequest, a *sdk.FrameRulesAnswer) {
			for i, f := range req.Functions {
				a.Functions[i].Rows = []cfi.Row{{Start: f.Start, End: f.Start + 1, ReturnAddress: 3, CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: 2},
					Rules: []cfi.RegisterRule{{Column: 3, Rule: cfi.Rule{Kind: cfi.Register, Register: 3}}}}}
			}
		}}, "cycles", archtest.Error, "the stack pointer of the frame itself"},
		{"maps in a circle", &bad{
			describe: func(d *sdk.Description) {
				d.AddressSpaces = []sdk.AddressSpace{{Number: 1, Name: "a", Bits: 32}, {Number: 2, Name: "b", Bits: 32}}
			},
			bindThreads: func(_ *sdk.BindThreadsRequest, a *sdk.BindThreadsAnswer) {
				for i := range a.Threads {
					a.Threads[i].Maps = []sdk.SpaceMap{
						{Space: 1, Ranges: []sdk.MapRange{{Kind: sdk.InterleavedMap, Size: 64, Into: 2, Element: 4, Stride: 4}}},
						{Space: 2, Ranges: []sdk.MapRange{{Size: 64, Into: 1}}}}
				}
			}}, "cycles", archtest.Error, "round in a circle"},
		{"function that is refused", &bad{frameErr: errors.New("no licence")}, "rows", archtest.Warning, "an error: no licence"},
		{"code of other sizes than usual", &bad{frameRules: func(req *sdk.FrameRulesRequest, _ *sdk.FrameRulesAnswer) {
			for _, f := range req.Functions {
				if len(f.Code) > 1<<16 {
					panic("too large")
				}
			}
		}}, "size", archtest.Error, "a function of a megabyte: panic: too large, at archtest_test."},
		{"engine that is not offered", &bad{
			describe: func(d *sdk.Description) { d.NoEngine = true },
			openObject: func(ctx context.Context, e sdk.Engine, _ *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
				_, _ = e.ReadSection(ctx, 1, "")
				return &sdk.OpenObjectAnswer{}, nil
			}}, "garbage", archtest.Error, "nil pointer"},
		{"process that is started", &bad{disassemble: func(context.Context, *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
			return nil, errors.New("fork/exec /usr/bin/objdump: operation not permitted")
		}}, "garbage", archtest.Error, "objdump: operation not permitted"},
		{"process that dies", &bad{disassemble: func(context.Context, *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
			return nil, &archtest.ProcessError{How: "exited with status 2"}
		}}, "garbage", archtest.Error, "no code: its process exited with status 2"},
		{"process that hangs", &bad{disassemble: func(context.Context, *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
			return nil, &archtest.ProcessError{How: "5s of processor time", IsLate: true}
		}}, "garbage", archtest.Error, "no code: no answer within 5s of processor time"},
		{"rows without a CFA", &bad{frameRules: func(req *sdk.FrameRulesRequest, a *sdk.FrameRulesAnswer) {
			for i := range a.Functions {
				a.Functions[i].Rows = []cfi.Row{{Start: req.Functions[i].Start, End: req.Functions[i].Start + 1}}
			}
		}}, "rows", archtest.Error, "CFA.Kind"},
		{"rows outside the code", &bad{frameRules: func(req *sdk.FrameRulesRequest, a *sdk.FrameRulesAnswer) {
			for i := range a.Functions {
				a.Functions[i].Rows = []cfi.Row{{Start: 0, End: 1}}
			}
		}}, "rows", archtest.Error, "Start: 0x0"},
		{"no row and no reason", &bad{frameRules: func(_ *sdk.FrameRulesRequest, a *sdk.FrameRulesAnswer) { clear(a.Functions) }},
			"rows", archtest.Warning, "neither a row for PC"},
		{"too few functions", &bad{frameRules: func(_ *sdk.FrameRulesRequest, a *sdk.FrameRulesAnswer) {
			if len(a.Functions) > 100 {
				a.Functions = a.Functions[:100]
			}
		}}, "batches", archtest.Error, "100 for 257"},
		{"functions that depend on the batch", &bad{frameRules: func(_ *sdk.FrameRulesRequest, a *sdk.FrameRulesAnswer) {
			for i := range a.Functions {
				a.Functions[i].Reason = fmt.Sprint(i)
			}
		}}, "batches", archtest.Error, "a function has other rows"},
		{"too many threads", &bad{bindThreads: func(_ *sdk.BindThreadsRequest, a *sdk.BindThreadsAnswer) {
			a.Threads = append(a.Threads, sdk.ThreadBinding{Lanes: 1})
		}}, "batches", archtest.Error, "258 for 257"},
		{"thread that is not bound", &bad{bindThreads: func(_ *sdk.BindThreadsRequest, a *sdk.BindThreadsAnswer) {
			a.Threads = append(a.Threads[:0:0], a.Threads...)
			for i := range a.Threads {
				a.Threads[i].Problem = "no"
			}
		}}, "batches", archtest.Warning, "has a problem: no"},
		{"empty batch panics", &bad{classify: func(req *sdk.ClassifyReturnRequest, _ *sdk.ClassifyReturnAnswer) { _ = req.PCs[0] }},
			"batches", archtest.Error, "panic"},
		{"target without a call", &bad{classify: func(_ *sdk.ClassifyReturnRequest, a *sdk.ClassifyReturnAnswer) {
			for i := range a.Targets {
				a.Targets[i] = 1
			}
		}}, "batches", archtest.Error, "Targets[0]"},
		{"code that is not there", &bad{frameRules: func(req *sdk.FrameRulesRequest, _ *sdk.FrameRulesAnswer) {
			for _, f := range req.Functions {
				_ = f.Code[f.PC-f.Start]
			}
		}}, "garbage", archtest.Error, "panic"},
		{"instruction past the code", &bad{disassemble: func(_ context.Context, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
			return &sdk.DisassembleAnswer{Instructions: []sdk.Instruction{{Address: req.Address, Size: 4}}}, nil
		}}, "garbage", archtest.Error, "Instructions[0]"},
		{"CPU that is another option", &bad{disassemble: func(context.Context, *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
			return &sdk.DisassembleAnswer{LLVM: sdk.LLVMTarget{Triple: "amdgcn", CPU: "a -o=/b"}}, nil
		}}, "garbage", archtest.Error, "LLVM.CPU"},
		{"expression that cannot be decoded", &bad{translate: func(req *sdk.TranslateRequest) (*sdk.TranslateAnswer, error) {
			return &sdk.TranslateAnswer{Expr: []byte{0xff}}, nil
		}}, "garbage", archtest.Error, "TranslateAnswer.Expr"},
		{"unknown dialect", &bad{openObject: func(context.Context, sdk.Engine, *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
			return &sdk.OpenObjectAnswer{Dialect: "x"}, nil
		}}, "garbage", archtest.Error, "Dialect"},
		{"file that is believed where its name is right", &bad{openObject: func(ctx context.Context, e sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
			if file, err := e.ReadSection(ctx, req.Object, ""); err == nil && string(file[:4]) == "TINY" {
				return &sdk.OpenObjectAnswer{Functions: []sdk.Function{{Start: uint64(file[8]), End: 1 << 20}}}, nil
			}
			return &sdk.OpenObjectAnswer{}, nil
		}}, "garbage", archtest.Error, "panic"},
		{"companion that is believed", &bad{openObject: func(ctx context.Context, e sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
			a := &sdk.OpenObjectAnswer{}
			for _, c := range req.Companions {
				if _, err := e.ReadSection(ctx, c.Object, ""); err == nil {
					a.Functions = []sdk.Function{{Section: 2, End: 1}}
				}
			}
			return a, nil
		}}, "garbage", archtest.Error, "Functions[0].Section"},
		{"neither answer nor error", &bad{openTarget: func(context.Context, sdk.Engine, *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, error) {
			return nil, nil
		}}, "garbage", archtest.Error, "neither an answer nor an error"},
		{"notes that are believed", &bad{openTarget: func(_ context.Context, _ sdk.Engine, req *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, error) {
			_ = req.Notes[0].Data[8]
			return &sdk.OpenTargetAnswer{}, nil
		}}, "garbage", archtest.Error, "panic"},
		{"shared state", &bad{frameRules: func(_ *sdk.FrameRulesRequest, a *sdk.FrameRulesAnswer) {
			n := calls.Add(1)
			for i := range a.Functions {
				if len(a.Functions) < 100 && len(a.Functions) > 2 {
					a.Functions[i].Reason = fmt.Sprint("call ", n)
				}
			}
		}}, "concurrency", archtest.Error, "different answers"},
		{"call that ignores its context", &bad{openObject: func(ctx context.Context, e sdk.Engine, _ *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
			if _, err := e.ReadSection(ctx, 1, ".text"); err != nil && errors.Is(err, ctx.Err()) {
				<-block
			}
			return &sdk.OpenObjectAnswer{}, nil
		}}, "deadlines", archtest.Error, "OpenObject: no return"},
		{"read that ignores the context", &bad{openTarget: func(_ context.Context, e sdk.Engine, _ *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, error) {
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
			defer cancel()
			e.ReadMemory(ctx, sdk.MemoryRange{}, make([]byte, 1))
			return &sdk.OpenTargetAnswer{}, nil
		}}, "deadlines", archtest.Error, "OpenTarget: no return"},
		{"call that hangs", &bad{disassemble: func(context.Context, *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
			<-block
			return nil, nil
		}}, "garbage", archtest.Error, "Disassemble of no code: no return"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			deadline := 100 * time.Millisecond
			if c.severity == archtest.Warning { // a call that is late on a busy machine is an error
				deadline = 10 * time.Second
			}
			findings := archtest.Verify(context.Background(), c.arch, archtest.Options{Deadline: deadline})
			for _, f := range findings {
				if f.Check == c.check && f.Severity == c.severity && strings.Contains(f.Detail, c.detail) {
					if f.Fix == "" {
						t.Error("without a fix")
					}
					if passed := archtest.Passed(findings); passed != (c.severity == archtest.Warning) {
						t.Errorf("passed: %v", passed)
					}
					return
				}
			}
			t.Errorf("not found; findings: %+v", findings)
		})
	}
}

// sample is a code object of tiny with two functions.
func sample() archtest.Object {
	sections := map[string][]byte{"": []byte("a whole file"), ".tiny": {2, 0, 0, 0}}
	return archtest.Object{
		Name:    "sample",
		Request: sdk.OpenObjectRequest{Object: 7, Machine: 0xfe00, Sections: []sdk.SectionInfo{{}, {Name: ".tiny", Size: 4}}},
		Read: func(object uint64, name string) ([]byte, error) {
			b, ok := sections[name]
			if object != 7 || !ok {
				return nil, errors.New("no such section")
			}
			return b, nil
		},
		Functions: []sdk.CodeRange{
			{Start: 0x100, Code: []byte{1, 2, 3, 4}, Bounded: true, Name: "f"},
			{Start: 0x200, Code: []byte{1, 2, 3, 4}, Bounded: true, Name: "g"},
		},
	}
}

func TestSampleObjectsAreOpenedAndDamaged(t *testing.T) {
	type open = func(context.Context, sdk.Engine, *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error)
	reads := func(then func(b []byte) *sdk.OpenObjectAnswer) open {
		return func(ctx context.Context, e sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
			b, err := e.ReadSection(ctx, req.Object, ".tiny")
			if err != nil || req.Machine != 0xfe00 {
				return &sdk.OpenObjectAnswer{}, nil //nolint:nilerr // another object
			}
			return then(b), nil
		}
	}
	for _, c := range []struct {
		name, check, detail string
		arch                *bad
	}{
		{"sound", "", "", &bad{openObject: reads(func([]byte) *sdk.OpenObjectAnswer { return &sdk.OpenObjectAnswer{} })}},
		{"object refused", "objects", "OpenObject of sample: an error: no", &bad{openObject: func(context.Context, sdk.Engine, *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
			return nil, errors.New("no")
		}}},
		{"object in itself", "cycles", "Nested[0] is the whole file", &bad{openObject: reads(func([]byte) *sdk.OpenObjectAnswer {
			return &sdk.OpenObjectAnswer{Nested: []sdk.NestedObject{{Name: "x", Size: 12}}}
		})}},
		{"section of a size that is believed", "damage", "every section empty: panic", &bad{openObject: reads(func(b []byte) *sdk.OpenObjectAnswer {
			return &sdk.OpenObjectAnswer{Problems: []string{string(b[:1])}}
		})}},
		{"number that is believed", "damage", "Functions[0].End", &bad{openObject: reads(func(b []byte) *sdk.OpenObjectAnswer {
			if len(b) < 4 {
				return &sdk.OpenObjectAnswer{}
			}
			return &sdk.OpenObjectAnswer{Functions: []sdk.Function{{Start: 5 - uint64(b[0])%4, End: 4}}}
		})}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			findings := archtest.Verify(t.Context(), c.arch, archtest.Options{Objects: []archtest.Object{sample()}})
			for _, f := range findings {
				if f.Check == c.check && f.Severity == archtest.Error && strings.Contains(f.Detail, c.detail) {
					return
				}
			}
			if c.check != "" || len(findings) > 0 {
				t.Errorf("not found; findings: %+v", findings)
			}
		})
	}
}

func TestACallThatHangsIsNotMadeForEver(t *testing.T) {
	calls := 0
	findings := archtest.Verify(t.Context(), &bad{disassemble: func(context.Context, *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
		calls++
		return nil, &archtest.ProcessError{How: "was killed"}
	}}, archtest.Options{})
	if calls != 2 || archtest.Passed(findings) {
		t.Errorf("%d calls; findings: %+v", calls, findings)
	}
}

func TestVerifyEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	begin := time.Now()
	if findings := archtest.Verify(ctx, tiny{}, archtest.Options{}); len(findings) != 0 {
		t.Errorf("findings: %+v", findings)
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}

// recorder is a test that is told of failures.
type recorder struct{ errors, logs []string }

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return context.Background() }
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
func (r *recorder) Logf(format string, args ...any) {
	r.logs = append(r.logs, fmt.Sprintf(format, args...))
}

func TestTestFailsOnErrorsAndLogsWarnings(t *testing.T) {
	var r recorder
	archtest.Test(&r, &bad{
		describe: func(d *sdk.Description) { d.MaxInstruction = 0 },
		frameRules: func(_ *sdk.FrameRulesRequest, a *sdk.FrameRulesAnswer) {
			a.Functions = nil
		},
	}, archtest.Options{})
	if len(r.errors) == 0 || !strings.Contains(r.errors[0], "FrameRulesAnswer.Functions: 0 for") {
		t.Errorf("errors: %q", r.errors)
	}
	if len(r.logs) != 1 || !strings.Contains(r.logs[0], "MaxInstruction") {
		t.Errorf("logs: %q", r.logs)
	}
}
