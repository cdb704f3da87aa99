// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/sdk"
)

// laneCode is two functions by hand, outer calling inner, of which test cases say
// the lane attributes. inner's caller is in SGPR30 and 31, and has its execution
// mask in SGPR34 and 35.
const laneCode = `
	.amdgcn_target "amdgcn-amd-amdhsa--gfx90a"
	.text
	.globl outer
	.type outer,@function
outer:
	.cfi_sections .debug_frame
	.cfi_startproc
	.cfi_escape 0x0f, 0x04, 0x30, 0x36, 0xe9, 0x02
	.cfi_undefined 16
	s_nop 0
.Lbefore:
	s_nop 1
	s_swappc_b64 s[30:31], s[0:1]
.Lreturn:
	s_nop 2
	s_endpgm
	.cfi_endproc
.Louter_end:
	.size outer, .-outer
	.globl inner
	.type inner,@function
inner:
	.cfi_startproc
	.cfi_escape 0x30, 0x40, 0x00, 0x06
	.cfi_escape 0x10, 0x10, 0x08, 0x90, 0x3e, 0x93, 0x04, 0x90, 0x3f, 0x93, 0x04
	.cfi_escape 0x10, 0x11, 0x08, 0x90, 0x42, 0x93, 0x04, 0x90, 0x43, 0x93, 0x04
	s_nop 3
.Lnow:
	s_nop 4
.Lwait:
	s_nop 5
	s_setpc_b64 s[30:31]
	.cfi_endproc
.Linner_end:
	.size inner, .-inner
`

// execRule is the rule of laneCode that says where the caller's execution mask is.
const execRule = "\t.cfi_escape 0x10, 0x11, 0x08, 0x90, 0x42, 0x93, 0x04, 0x90, 0x43, 0x93, 0x04\n"

// laneAttribute is one of a function: a number, or lines of an expression.
type laneAttribute struct {
	number     int // DW_AT_*
	constant   int
	expression []string
}

const (
	atFrameBase  = 0x40
	atActiveLane = 0x3e08
	atLanes      = 0x3e0a
	atLanePC     = 0x3e0b
)

// withoutRule stands first where inner's call frame information has no execRule.
var withoutRule laneAttribute

func expr(number int, lines ...string) laneAttribute { return laneAttribute{number, 0, lines} }

// The operations of the lane attributes, 64 lanes.
var (
	undefinedLanes = []string{".byte 0xe9, 8, 0xe9, 11, 64, 64"} // undefined; extend 64 64
	activeLanes    = []string{".byte 0x90, 16, 0xe9, 11, 64, 64, 0xa5, 17", ".uleb128 .Lmask_type-.Lunit", ".byte 0xe9, 12, 64, 64"}
)

// lanesAt puts the lanes of the mask in a pair of scalar registers at a label.
func lanesAt(label string, sgpr int) []string {
	return []string{
		".byte 0x03", ".quad " + label, ".byte 0x9f, 0xe9, 11, 64, 64", // addr; stack_value; extend
		fmt.Sprintf(".byte 0x90, %d, 0x93, 4, 0x90, %d, 0x93, 4, 0xe9, 10, 0xa6, 8", 32+sgpr, 33+sgpr), // regx piece regx piece piece_end deref_type
		".uleb128 .Lmask_type-.Lunit", ".byte 0xe9, 12, 64, 64",
	}
}

func lines(parts ...[]string) (all []string) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// assembleLanes assembles code, which is laneCode or like it, with attributes.
func assembleLanes(t *testing.T, code string, outer, inner []laneAttribute) string {
	t.Helper()
	oracle.Tools(t, "clang", "ld.lld")
	var abbrev, info strings.Builder
	put := func(b *strings.Builder, format string, args ...any) { fmt.Fprintf(b, "\t"+format+"\n", args...) }
	put(&abbrev, ".section .debug_abbrev\n\t.byte 1, 0x11, 1, 0x11, 1, 0x12, 6, 0, 0") // unit: low_pc, high_pc
	put(&abbrev, ".byte 2, 0x24, 0, 3, 8, 0x3e, 11, 0x0b, 11, 0, 0")                   // base type
	put(&info, ".section .debug_info\n.Lunit:\n\t.long .Lunit_end-.Lunit_start\n.Lunit_start:\n\t.short 5\n\t.byte 1, 8\n\t.long .debug_abbrev")
	put(&info, ".byte 1\n\t.quad outer\n\t.long .Linner_end-outer")
	put(&info, "\n.Lmask_type:\n\t.byte 2\n\t.asciz \"mask\"\n\t.byte 7, 8")
	for i, f := range []struct {
		name       string
		attributes []laneAttribute
	}{{"outer", outer}, {"inner", inner}} {
		put(&abbrev, ".byte %d, 0x2e, 0, 3, 8, 0x11, 1, 0x12, 6", 3+i)
		put(&info, ".byte %d\n\t.asciz %q\n\t.quad %s\n\t.long .L%s_end-%s", 3+i, f.name, f.name, f.name, f.name)
		for j, a := range f.attributes {
			put(&abbrev, ".uleb128 %#x", a.number)
			if a.expression == nil {
				put(&abbrev, ".byte 11")
				put(&info, ".byte %d", a.constant)
				continue
			}
			put(&abbrev, ".byte 0x18")
			put(&info, ".uleb128 .Le%d_%d_end-.Le%d_%d\n.Le%d_%d:\n\t%s\n.Le%d_%d_end:", i, j, i, j, i, j, strings.Join(a.expression, "\n\t"), i, j)
		}
		put(&abbrev, ".byte 0, 0")
	}
	put(&abbrev, ".byte 0")
	put(&info, ".byte 0\n.Lunit_end:")
	dir := t.TempDir()
	source, object, file := filepath.Join(dir, "lanes.s"), filepath.Join(dir, "lanes.o"), filepath.Join(dir, "lanes.co")
	if err := os.WriteFile(source, []byte(code+abbrev.String()+info.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	oracle.Run(t, "clang", "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-c", source, "-o", object)
	oracle.Run(t, "ld.lld", "-shared", object, "-o", file)
	return file
}

// TestLanesThroughCalls is about the frames of a wave in outer, which called
// inner: what the attributes of each say of its lanes, what one says about the
// other, and what is known without them.
func TestLanesThroughCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("assembles code")
	}
	lanes64 := laneAttribute{number: atLanes, constant: 64}
	innerPlaces := lines(undefinedLanes, lanesAt(".Lwait", 34), activeLanes)
	outerPlaces := lines(undefinedLanes, lanesAt(".Lbefore", 36), activeLanes)
	for _, c := range []struct {
		name         string
		exec         uint64
		outer, inner []laneAttribute
		want         []string // of each frame
		problem      string   // part of one of the module's; "" for none
	}{
		{"nothing is described but the mask on entry", 0x0f, nil, nil, []string{
			"0-3 active now, 4-7 inactive, 8-63 not-on-entry",
			"0-7 active return, 8-63 inactive",
		}, ""},
		{"nothing at all is described", 0x0f, nil, []laneAttribute{withoutRule}, []string{
			"0-3 active now, 4-63 inactive",
			"0-3 active return, 4-63 unknown",
		}, ""},
		{"an operation of the whole wave: those on entry may execute", ^uint64(0), nil, nil, []string{
			"0-7 unknown, 8-63 not-on-entry",
			"0-7 active return, 8-63 inactive",
		}, ""},
		{"an operation of some lanes more than called", 0x0103, nil, nil, []string{
			"0-1 unknown, 2-7 inactive, 8-63 not-on-entry",
			"0-7 active return, 8-63 inactive",
		}, ""},
		{"DW_AT_LLVM_active_lane tells who executes within an operation of the whole wave", ^uint64(0),
			nil, []laneAttribute{lanes64, expr(atActiveLane, ".byte 0x90, 70, 0x93, 4, 0x90, 71, 0x93, 4")}, []string{
				"0-1 active now, 2-7 inactive, 8-63 not-on-entry",
				"0-7 active return, 8-63 inactive",
			}, ""},
		{"a lane that was not active on entry cannot execute", 0x0f, // the mask is that of outer's caller
			nil, []laneAttribute{lanes64, expr(atActiveLane, ".byte 0x90, 68, 0x93, 4, 0x90, 69, 0x93, 4")}, []string{
				"0-7 active now, 8-15 unknown, 16-63 not-on-entry",
				"0-7 active return, 8-63 inactive",
			}, ""},
		{"nor can it wait", 0x0f,
			nil, []laneAttribute{lanes64, expr(atLanePC, lines(undefinedLanes, lanesAt(".Lwait", 36), activeLanes)...)}, []string{
				"0-3 active now, 4-7 inactive wait, 8-15 unknown, 16-63 not-on-entry",
				"0-7 active return, 8-63 inactive",
			}, ""},
		{"a lane that waits in inner called it, one that was not active on entry did not", 0x0f,
			nil, []laneAttribute{lanes64, expr(atLanePC, innerPlaces...)}, []string{
				"0-3 active now, 4-7 inactive wait, 8-63 not-on-entry",
				"0-7 active return, 8-63 inactive",
			}, ""},
		{"each function describes its own lanes", 0x0f,
			[]laneAttribute{lanes64, expr(atLanePC, outerPlaces...)}, []laneAttribute{lanes64, expr(atLanePC, innerPlaces...)}, []string{
				"0-3 active now, 4-7 inactive wait, 8-63 not-on-entry",
				"0-7 active return, 8-15 inactive before, 16-63 not-on-entry",
			}, ""},
		{"EXEC is zero", 0,
			[]laneAttribute{lanes64, expr(atLanePC, outerPlaces...)}, []laneAttribute{lanes64, expr(atLanePC, innerPlaces...)}, []string{
				"0-7 inactive wait, 8-63 not-on-entry",
				"0-7 active return, 8-15 inactive before, 16-63 not-on-entry",
			}, ""},
		{"DW_AT_LLVM_active_lane overrules EXEC", ^uint64(0),
			nil, []laneAttribute{withoutRule, lanes64, expr(atActiveLane, ".byte 0x90, 70, 0x93, 4, 0x90, 71, 0x93, 4")}, []string{
				"0-1 active now, 2-63 inactive",
				"0-1 active return, 2-63 unknown",
			}, ""},
		{"places overrule EXEC, as in code that runs all lanes for its own ends", ^uint64(0),
			nil, []laneAttribute{lanes64, expr(atLanePC, lines(undefinedLanes, lanesAt(".Lwait", 34))...)}, []string{
				"0-7 inactive wait, 8-63 not-on-entry",
				"0-7 active return, 8-63 inactive",
			}, ""},
		{"of what contradicts itself nothing is known", 0x0f,
			nil, []laneAttribute{withoutRule, lanes64, expr(atActiveLane, ".byte 0x90, 70, 0x93, 4, 0x90, 71, 0x93, 4"), expr(atLanePC, undefinedLanes...)}, []string{
				"0-1 unknown, 2-63 not-on-entry",
				"0-1 unknown, 2-63 inactive",
			}, ""},
		{"a function of fewer lanes than the wave has", 0x0f,
			nil, []laneAttribute{withoutRule, {number: atLanes, constant: 2}, expr(atLanePC, ".byte 0xe9, 8, 0xe9, 11, 64, 2")}, []string{
				"0-1 not-on-entry, 2-3 active now, 4-63 inactive",
				"0-1 inactive, 2-3 active return, 4-63 unknown",
			}, ""},
		{"a mask of fewer lanes than the wave has", 0x0f,
			nil, []laneAttribute{withoutRule, {number: atLanes, constant: 4}, expr(atActiveLane, ".byte 0x90, 70")}, []string{
				"0-1 active now, 2-3 inactive, 4-63 unknown",
				"0-1 active return, 2-63 unknown",
			}, ""},
		{"an expression of one lane is evaluated for each", 0x0f,
			// push_lane; lit4; lt; bra; undefined; extend; skip; addr; stack_value; extend
			nil, []laneAttribute{lanes64, expr(atLanePC, ".byte 0xe9, 3, 0x34, 0x2d, 0x28, 9, 0, 0xe9, 8, 0xe9, 11, 64, 64, 0x2f, 14, 0",
				".byte 0x03", ".quad .Lwait", ".byte 0x9f, 0xe9, 11, 64, 64")}, []string{
				"0-3 inactive wait, 4-63 not-on-entry",
				"0-3 active return, 4-63 inactive",
			}, ""},
		{"what cannot be evaluated is a problem, and EXEC is what is known", 0x0f,
			nil, []laneAttribute{withoutRule, lanes64, expr(atLanePC, ".byte 0x22"), expr(atActiveLane, ".byte 0x96, 0x22")}, []string{
				"0-3 active now, 4-63 inactive",
				"0-3 active return, 4-63 unknown",
			}, "DW_AT_LLVM_lane_pc of inner"},
		{"a frame base that asks for itself", 0x0f,
			nil, []laneAttribute{withoutRule, lanes64, expr(atFrameBase, ".byte 0x91, 0"), expr(atLanePC, ".byte 0x91, 0")}, []string{
				"0-3 active now, 4-63 inactive",
				"0-3 active return, 4-63 unknown",
			}, "within each other"},
		{"a number of lanes that cannot be", 0x0f,
			nil, []laneAttribute{withoutRule, {number: atLanes, constant: 0}, expr(atLanePC, undefinedLanes...)}, []string{
				"0-3 active now, 4-63 inactive",
				"0-3 active return, 4-63 unknown",
			}, "DW_AT_LLVM_lanes is 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, inner := laneCode, c.inner
			if len(inner) > 0 && inner[0].number == 0 {
				code, inner = strings.Replace(laneCode, execRule, "", 1), inner[1:]
			}
			d := openLanes(t, assembleLanes(t, code, c.outer, inner), 64)
			places := map[uint64]string{}
			for _, s := range []struct {
				name   string
				offset uint64
			}{{"before", 4}, {"return", 12}, {"now", 24}, {"wait", 28}} {
				places[s.offset] = s.name
			}
			// The functions are the first code of the object.
			start := uint64(0)
			for _, s := range d.module.Object.Sections() {
				if s.Name == ".text" {
					start = s.Address
				}
			}
			var r sdk.Registers
			pair := func(sgpr int, v uint64) {
				b := binary.LittleEndian.AppendUint64(nil, v)
				r.Set(uint32(regSGPR0+sgpr), b[:4])
				r.Set(uint32(regSGPR0+sgpr+1), b[4:])
			}
			r.Set(regPC, binary.LittleEndian.AppendUint64(nil, loadedAt+start+24))
			r.Set(regExec64, binary.LittleEndian.AppendUint64(nil, c.exec))
			pair(30, loadedAt+start+12)
			pair(32, 0)
			pair(34, 0xff)   // that called inner
			pair(36, 0xffff) // that called outer
			pair(38, 0x3)
			tg, s := d.walk(r)
			defer tg.Close()
			var got []string
			for i := range s.Frames {
				var groups []string
				for _, g := range s.Frames[i].Lanes() {
					text := fmt.Sprintf("%s %s", g.Lanes, g.State)
					if g.HasPC {
						text += " " + places[g.PC-loadedAt-start]
					}
					groups = append(groups, text)
				}
				got = append(got, strings.Join(groups, ", "))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, s.Stopped)
			}
			problems := strings.Join(tg.ModuleInfo(&d.module.Module).Problems, "; ")
			if (c.problem == "") != (problems == "") || !strings.Contains(problems, c.problem) {
				t.Errorf("problems: %s, expected %q", problems, c.problem)
			}
		})
	}
}

// TestStackOfOneLane is a stack as each of a wave's lanes sees it.
func TestStackOfOneLane(t *testing.T) {
	active := trace.LaneGroup{Lanes: trace.LaneSet{0b0011}, State: trace.LaneActive, PC: 0x10, HasPC: true}
	waits := trace.LaneGroup{Lanes: trace.LaneSet{0b0100}, State: trace.LaneInactive, PC: 0x14, HasPC: true}
	unknown := trace.LaneGroup{Lanes: trace.LaneSet{0b1000}, State: trace.LaneInactive}
	absent := trace.LaneGroup{Lanes: trace.LaneSet{0b1100}, State: trace.LaneNotOnEntry}
	s := &trace.Stack{Frames: []trace.Frame{
		{PC: 0x10, Details: &trace.FrameDetails{Lanes: []trace.LaneGroup{active, absent}}},
		{PC: 0x20, Details: &trace.FrameDetails{Lanes: []trace.LaneGroup{active, waits, unknown}}},
	}}
	s.Frames[1].Lanes()[0].PC = 0x20
	for lane, want := range []string{"0x10 0x20", "0x10 0x20", "0x14", "0x20 unplaced"} {
		one, ok := s.Lane(uint32(lane))
		if !ok {
			t.Fatalf("no lane %d", lane)
		}
		var got []string
		for _, f := range one.Frames {
			got = append(got, fmt.Sprintf("%#x", f.PC))
			if len(f.Lanes()) != 1 || f.Lanes()[0].Lanes.String() != fmt.Sprint(lane) {
				t.Errorf("lane %d: %v", lane, f.Lanes())
			}
			if !f.Lanes()[0].HasPC {
				got = append(got, "unplaced")
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("lane %d: %s, expected %s", lane, text, want)
		}
	}
	if _, ok := s.Lane(4); ok {
		t.Error("there is a lane 4")
	}
}

func TestLanesAsRanges(t *testing.T) {
	for _, c := range []struct {
		set  trace.LaneSet
		want string
		n    int
	}{
		{nil, "", 0},
		{trace.LaneSet{0}, "", 0},
		{trace.LaneSet{1}, "0", 1},
		{trace.LaneSet{0b10001111}, "0-3,7", 5},
		{trace.LaneSet{^uint64(0)}, "0-63", 64},
		{trace.LaneSet{1 << 63, 1}, "63-64", 2},
	} {
		if got := c.set.String(); got != c.want || c.set.Len() != c.n {
			t.Errorf("%x: %q with %d lanes, expected %q with %d", c.set, got, c.set.Len(), c.want, c.n)
		}
	}
}
