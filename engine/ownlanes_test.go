// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// The registers of the made architecture by their DWARF numbers, its address spaces and the
// places of its code. Its lanes have registers and a stack each.
const (
	lanedMachine = 0xfed1

	lanedSP, lanedR2, lanedR3, lanedShared, lanedPC, lanedMask = 1, 2, 3, 5, 16, 17

	lanedLocal, lanedGlobal = 6, 5

	lanedCode   = 0x70000000
	lanedKernel = lanedCode + 0x40
	lanedBare   = lanedCode + 0x80 // a function without rows
	lanedWindow = 0x90000000       // of the lane's memory, in the default space
)

// laned is an architecture whose cores are made of sections. It answers what a test made.
type laned struct {
	sdk.Base
	answer sdk.OpenTargetAnswer
}

func (*laned) Describe(context.Context) (*sdk.Description, error) {
	return &sdk.Description{
		Name: "laned", Version: "1", Recognises: []sdk.Recogniser{{ELFMachine: lanedMachine, OSABI: -1}}, AddressBits: 64,
		Registers: []sdk.RegisterRange{
			{First: 1, Count: 3, Names: []string{"sp", "r2", "r3"}, Bits: 32}, {First: lanedShared, Count: 1, Names: []string{"shared"}, Bits: 32},
			{First: lanedPC, Count: 1, Names: []string{"pc"}, Bits: 64, Class: sdk.ProgramCounter}, {First: lanedMask, Count: 1, Names: []string{"mask"}, Bits: 32, Class: sdk.Control},
		},
		PC: lanedPC, SP: lanedSP, FP: sdk.NoRegister, ReturnAddress: lanedPC, CallDistance: 1, MaxInstruction: 16,
		AddressSpaces: []sdk.AddressSpace{{Number: lanedGlobal, Name: "global", Bits: 64}, {Number: lanedLocal, Name: "local", Bits: 32, Scope: sdk.LaneScope}},
		DefaultRules:  []cfi.RegisterRule{{Column: lanedSP, Rule: cfi.Rule{Kind: cfi.ValOffset}}},
	}, nil
}

func (l *laned) OpenTarget(context.Context, sdk.Engine, *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, error) {
	return &l.answer, nil
}

func (*laned) OpenObject(context.Context, sdk.Engine, *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	cfa := cfi.CFARule{Kind: cfi.CFARegister, Register: lanedSP, Offset: 16, Space: lanedLocal}
	everywhere := func(name, text string) sdk.Variable {
		expr, err := locexpr.Parse(text, locexpr.TextOptions{Dialect: locexpr.Canonical})
		if err != nil {
			panic(err)
		}
		return sdk.Variable{Name: name, Start: []uint64{lanedCode}, End: []uint64{lanedCode + 0x100}, Locations: [][]byte{expr}}
	}
	return &sdk.OpenObjectAnswer{
		Tables: []sdk.RowTable{{Rows: []cfi.Row{
			{Start: lanedCode, End: lanedKernel, CFA: cfa, ReturnAddress: lanedPC, Rules: []cfi.RegisterRule{
				{Column: lanedR2, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -16}},
				{Column: lanedPC, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -8}},
			}},
		}}},
		Functions: []sdk.Function{
			{Name: "device", Start: lanedCode, End: lanedKernel}, {Name: "kernel", Start: lanedKernel, End: lanedBare, Kind: sdk.KernelFunction},
		},
		Variables: []sdk.Variable{
			everywhere("own", "reg2"), everywhere("shared", "reg5"), everywhere("lost", "reg3"),
			everywhere("window", fmt.Sprintf("addr %#x", lanedWindow+0x108)), everywhere("all", "addr 0x5000"),
		},
	}, nil
}

func (*laned) BindThreads(_ context.Context, _ sdk.Engine, req *sdk.BindThreadsRequest) (*sdk.BindThreadsAnswer, error) {
	a := &sdk.BindThreadsAnswer{}
	for _, th := range req.Threads {
		pc, _ := th.Registers.Get(lanedPC)
		mask, _ := th.Registers.Get(lanedMask)
		a.Threads = append(a.Threads, sdk.ThreadBinding{
			PC: binary.LittleEndian.Uint64(pc), Lanes: 4, ActiveLanes: mask[:1],
			Maps: []sdk.SpaceMap{
				{Space: 0, Ranges: []sdk.MapRange{{Kind: sdk.IdentityMap, Start: lanedWindow, Size: 0x1000, Into: lanedLocal}}},
				{Space: lanedGlobal, Ranges: []sdk.MapRange{{Kind: sdk.IdentityMap, Size: 1 << 63, Into: 0}}},
			},
		})
	}
	return a, nil
}

// lanedCore is a core that is being made.
type lanedCore struct {
	bytes []byte
	arch  *laned
}

// place puts bytes into the file, and returns their offset.
func (c *lanedCore) place(b ...byte) uint64 {
	offset := uint64(len(c.bytes))
	c.bytes = append(c.bytes, b...)
	return offset
}

func words32(list ...uint32) (b []byte) {
	for _, w := range list {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// lanedImage is a code object of 256 bytes of code, at lanedCode by its section alone.
func lanedImage() []byte {
	le := binary.LittleEndian
	b := make([]byte, 64+256+3*64)
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[16:], uint16(elf.ET_EXEC))
	le.PutUint16(b[18:], lanedMachine)
	le.PutUint32(b[20:], 1)
	le.PutUint64(b[40:], 64+256)
	le.PutUint16(b[52:], 64)
	le.PutUint16(b[58:], 64)
	le.PutUint16(b[60:], 2)
	h := b[64+256+64:]
	le.PutUint32(h[4:], uint32(elf.SHT_PROGBITS))
	le.PutUint64(h[8:], uint64(elf.SHF_ALLOC|elf.SHF_EXECINSTR))
	le.PutUint64(h[16:], lanedCode)
	le.PutUint64(h[24:], 64)
	le.PutUint64(h[32:], 256)
	return b
}

// newLanedCore makes a core of three threads: w0 is lanes 0 and 2 of a warp, in a function with
// rows; w0:1 is lane 1, in one without; w1 is all lanes of another, in one without, with nothing
// recorded.
func newLanedCore() *lanedCore {
	c := &lanedCore{bytes: make([]byte, 64), arch: &laned{}}
	le := binary.LittleEndian
	copy(c.bytes, "\x7fELF\x02\x01\x01")
	le.PutUint16(c.bytes[16:], uint16(elf.ET_CORE))
	le.PutUint16(c.bytes[18:], lanedMachine)
	image := lanedImage()
	at := c.place(image...)
	a := &c.arch.answer
	a.Kind = "laned-core"
	a.Objects = []sdk.TargetObject{{URI: "module", Size: uint64(len(image)), MemoryAddress: at, Into: sdk.FileSpace}}
	a.Memory = []sdk.SpaceMemory{{Start: 0x5000, Size: 4, Address: c.place(words32(0x5555)...), Into: sdk.FileSpace}}
	top := func(pc uint64, mask byte) (r sdk.Registers) {
		r.Set(lanedShared, words32(0xabc))
		r.Set(lanedPC, le.AppendUint64(nil, pc))
		r.Set(lanedMask, words32(uint32(mask)))
		return r
	}
	state := func(lane uint32) sdk.LaneState {
		stack := append(words32(0, 0x100+lane, 0x200+lane, 0), le.AppendUint64(nil, lanedKernel+8)...) // 0x100 to 0x118
		return sdk.LaneState{
			Lane:   lane,
			Saved:  []sdk.SavedRegisters{{First: lanedSP, Count: 2, Address: c.place(words32(0x108, 0x300+lane)...), Into: sdk.FileSpace}},
			Memory: []sdk.SpaceMemory{{Space: lanedLocal, Start: 0x100, Size: 24, Address: c.place(stack...), Into: sdk.FileSpace}},
		}
	}
	thread := func(id string, pc uint64, callers []uint64, lead uint32, lanes ...uint32) {
		th := sdk.TargetThread{ID: id, Lanes: 4, Callers: callers, Lead: lead, State: "blocked on barrier 2", Wave: sdk.Wave{Cluster: [3]uint32{1, 2, 3}, HasCluster: true}}
		mask := byte(0)
		for _, lane := range lanes {
			mask |= 1 << lane
			th.LaneStates = append(th.LaneStates, state(lane))
			if lane == lead {
				th.Saved, th.Memory = th.LaneStates[len(th.LaneStates)-1].Saved, th.LaneStates[len(th.LaneStates)-1].Memory
			}
		}
		th.Registers = top(pc, mask)
		a.Threads = append(a.Threads, th)
	}
	thread("w0", lanedCode+0x10, nil, 2, 0, 2)
	thread("w0:1", lanedBare+4, []uint64{lanedBare + 0x20, lanedKernel + 4}, 1, 1)
	thread("w1", lanedBare+4, []uint64{lanedBare + 0x20}, 0, 0, 1, 2, 3)
	le.PutUint64(c.bytes[40:], uint64(len(c.bytes)))
	le.PutUint16(c.bytes[58:], 64)
	le.PutUint16(c.bytes[60:], 1)
	c.place(make([]byte, 64)...)
	return c
}

// open writes and opens the core.
func (c *lanedCore) open(t *testing.T, options engine.Options) *engine.Target {
	t.Helper()
	path := filepath.Join(t.TempDir(), "laned.core")
	if err := os.WriteFile(path, c.bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	options.Plugins = plugin.Options{InProcess: []sdk.Architecture{c.arch}}
	e, err := engine.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	target, err := e.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// lanedText is a stack as text: its frames with lanes and variables.
func lanedText(s *trace.Stack) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", s.Thread.ID, s.Thread.State)
	for i := range s.Frames {
		f := &s.Frames[i]
		fmt.Fprintf(&b, "%#x %s", f.PC, f.FoundBy)
		for _, g := range f.Lanes() {
			fmt.Fprintf(&b, " %s:%s", g.State, g.Lanes)
		}
		fmt.Fprintln(&b)
		for _, level := range f.Locals() {
			for _, v := range level {
				fmt.Fprintf(&b, "  %s %s=%s\n", v.Name, v.Lanes, v.Text)
			}
		}
	}
	fmt.Fprintf(&b, "%s: %s\n", s.Stopped.Reason, s.Stopped.Detail)
	return b.String()
}

const lanedStacks = `w0 blocked on barrier 2
0x70000010 context active:0,2
  own 0=00000300
  own 2=00000302
  shared 0,2=00000abc
  lost 0,2=
  window 0=00000200 00000000 70000048 00000000
  window 2=00000202 00000000 70000048 00000000
  all 0,2=00005555
0x70000048 object active:0,2
  own 0=00000200 00000000 70000048 00000000
  own 2=00000202 00000000 70000048 00000000
  shared 0,2=
  lost 0,2=
  window 0=00000200 00000000 70000048 00000000
  window 2=00000202 00000000 70000048 00000000
  all 0,2=00005555
outermost: kernel is a kernel
w0:1 blocked on barrier 2
0x70000084 context active:1
  own 1=00000301
  shared 1=00000abc
  lost 1=
  window 1=00000201 00000000 70000048 00000000
  all 1=00005555
0x700000a0 callchain active:1
  own 1=
  shared 1=
  lost 1=
  window 1=00000201 00000000 70000048 00000000
  all 1=00005555
0x70000044 callchain active:1
  own 1=
  shared 1=
  lost 1=
  window 1=00000201 00000000 70000048 00000000
  all 1=00005555
outermost: kernel is a kernel
`

// lanedText1 is the stack of w1, whose outermost recorded frame has no row.
const lanedText1 = `0x700000a0 callchain active:0-3
  own 0-3=
  shared 0-3=
  lost 0-3=
`

func TestLanesWithStatesOfTheirOwn(t *testing.T) {
	target := newLanedCore().open(t, engine.Options{Lanes: true, Locals: &trace.ValueLimits{}})
	checkLaned(t, target)
	if p := target.Process().Problems(); len(p) > 0 {
		t.Errorf("problems %q", p)
	}
	if kind := target.Info().Kind; kind != "laned-core" {
		t.Errorf("kind %q", kind)
	}
}

// checkLaned compares the stacks of a target with those that were put into newLanedCore.
func checkLaned(t *testing.T, target *engine.Target) {
	t.Helper()
	var got strings.Builder
	for s := range target.Stacks(t.Context()) {
		got.WriteString(lanedText(s))
		if w := s.Thread.Wave; w == nil || !w.HasCluster || w.Cluster != [3]uint32{1, 2, 3} {
			t.Errorf("the wave of %s is %+v", s.Thread.ID, w)
		}
	}
	first, rest, _ := strings.Cut(got.String(), "w1 ")
	if diff := cmp.Diff(lanedStacks, first); diff != "" {
		t.Errorf("stacks (-want +got):\n%s", diff)
	}
	if !strings.Contains(rest, lanedText1) || !strings.Contains(rest, "the target recorded no caller of it") {
		t.Errorf("w1: %s", rest)
	}
}

func TestRegistersAndMemoryOfALane(t *testing.T) {
	target := newLanedCore().open(t, engine.Options{})
	threads := target.Threads()
	value := func(lane uint32, text string) (uint32, error) {
		expr, err := locexpr.Parse(text, locexpr.TextOptions{Dialect: locexpr.Canonical})
		if err != nil {
			t.Fatal(err)
		}
		var b [4]byte
		err = target.Process().Evaluate(t.Context(), threads[0], 0, walk.Surroundings{Lane: &lane}, nil, func(c locexpr.Context, ev *locexpr.Evaluator) error {
			l, err := ev.Location(t.Context(), expr, c)
			if err != nil {
				return err
			}
			return l.Read(t.Context(), c, b[:], 32)
		})
		return binary.LittleEndian.Uint32(b[:]), err
	}
	for _, tt := range []struct {
		lane uint32
		expr string
		want uint32
	}{
		{0, "reg2", 0x300}, {2, "reg2", 0x302}, {0, "reg5", 0xabc}, {0, "addr 0x90000104", 0x100}, {2, "addr 0x90000104", 0x102},
		{0, "addr 0x5000", 0x5555},
	} {
		if got, err := value(tt.lane, tt.expr); err != nil || got != tt.want {
			t.Errorf("lane %d: %s is %#x, %v; expected %#x", tt.lane, tt.expr, got, err, tt.want)
		}
	}
	if _, err := value(1, "reg2"); err == nil || !strings.Contains(err.Error(), "no state of lane 1") {
		t.Errorf("lane 1, which is of another thread: %v", err)
	}
	var b [4]byte
	for lane, want := range map[int32]uint32{-1: 0x102, 0: 0x100, 2: 0x102} {
		r := sdk.MemoryRange{Space: lanedLocal, Address: 0x104, Lane: lane}
		if _, err := target.Process().Engine().ReadMemory(t.Context(), r, b[:]); err != nil || binary.LittleEndian.Uint32(b[:]) != want {
			t.Errorf("a plugin reads %x of lane %d, %v; expected %#x", b, lane, err, want)
		}
	}
}

// TestSnapshotOfLanes: a snapshot has the lanes' registers and memory, and so has one of it.
func TestSnapshotOfLanes(t *testing.T) {
	c := newLanedCore()
	target := c.open(t, engine.Options{Lanes: true, Locals: &trace.ValueLimits{}})
	for _, what := range []string{"of the core", "of a snapshot"} {
		s, err := target.Snapshot(t.Context(), engine.SnapshotOptions{Files: true})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := s.Write(&b); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if len(s.Problems) > 0 {
			t.Errorf("%s: problems %q", what, s.Problems)
		}
		again := &lanedCore{bytes: b.Bytes(), arch: c.arch}
		target = again.open(t, engine.Options{Lanes: true, Locals: &trace.ValueLimits{}})
		if p := target.Process().Problems(); len(p) > 0 {
			t.Errorf("%s: problems %q", what, p)
		}
		checkLaned(t, target)
	}
}
