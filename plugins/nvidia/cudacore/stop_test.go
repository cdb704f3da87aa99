// SPDX-License-Identifier: Apache-2.0

package cudacore

import (
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/examples/cuda-core/corefile"
	"github.com/unwindd/unwindd/sdk"
)

const (
	lanePC  = 0x7fff_cf28_0300
	errorAt = 0x7fff_cf28_0340
)

// stopped is a thread that stopped, or a problem.
type stopped struct {
	id      string
	reason  string
	details string // that are among all of them
	pc      uint64
	exact   bool
	crashed bool
	lead    uint32
}

// TestWhoStopped has a row for each case of who is made responsible for an exception: the
// lane by its own; an active lane of a warp with an error PC by its SM's; a trap; a thread
// that stands for an SM whose warps have ended.
func TestWhoStopped(t *testing.T) {
	const illegalInstruction, misaligned, deviceIllegal = 4, 6, 10
	lane := func(number, exception uint32) corefile.Lane {
		return corefile.Lane{PC: lanePC, Number: number, Thread: [3]uint32{number}, Exception: exception}
	}
	warp := func(w corefile.Warp, lanes ...corefile.Lane) []corefile.Block {
		w.Lanes = lanes
		return []corefile.Block{{Grid: 1, Warps: []corefile.Warp{w}}}
	}
	const noSite = ""
	for _, test := range []struct {
		name    string
		sms     []corefile.SM
		want    []stopped
		problem string
	}{
		{"the lane's own exception", []corefile.SM{{Blocks: warp(corefile.Warp{Valid: 3, Active: 3}, lane(0, 0), lane(1, misaligned))}},
			[]stopped{{"d0.sm0.w0", sdk.StopAddressError, "misaligned address|WARP_MISALIGNED_ADDRESS|lane 1", lanePC, false, true, 1}}, ""},
		{"the lane's own goes before that of the SM", []corefile.SM{{Exception: deviceIllegal, ErrorPC: errorAt, HasErrorPC: true,
			Blocks: warp(corefile.Warp{Valid: 1, Active: 1, HasErrorPC: true, ErrorPC: errorAt}, lane(0, illegalInstruction))}},
			[]stopped{{"d0.sm0.w0", sdk.StopIllegalInstruction, "triggered at PC 0x7fffcf280340", lanePC, false, true, 0}}, "sm0 recorded an exception"},
		{"an active lane of a warp with an error PC has that of the SM", []corefile.SM{{Exception: illegalInstruction, ErrorPC: errorAt, HasErrorPC: true,
			Blocks: warp(corefile.Warp{Valid: 1, Active: 1, HasErrorPC: true, ErrorPC: errorAt}, lane(0, 0))}},
			[]stopped{{"d0.sm0.w0", sdk.StopIllegalInstruction, "recorded for the multiprocessor", lanePC, false, true, 0}}, ""},
		{"a lane that is not active has not", []corefile.SM{{Exception: illegalInstruction, ErrorPC: errorAt, HasErrorPC: true,
			Blocks: warp(corefile.Warp{Valid: 1, HasErrorPC: true, ErrorPC: errorAt}, lane(0, 0))}},
			[]stopped{{"d0.sm0.w0", "", noSite, lanePC, false, false, 0}}, "sm0 recorded an exception"},
		{"a lane of a warp without an error PC has not", []corefile.SM{{Exception: illegalInstruction,
			Blocks: warp(corefile.Warp{Valid: 1, Active: 1}, lane(0, 0))}},
			[]stopped{{"d0.sm0.w0", "", noSite, lanePC, false, false, 0}}, "sm0 recorded an exception"},
		{"the PC is exact where the warp's error PC is it", []corefile.SM{{
			Blocks: warp(corefile.Warp{Valid: 1, Active: 1, HasErrorPC: true, ErrorPC: lanePC}, lane(0, misaligned))}},
			[]stopped{{"d0.sm0.w0", sdk.StopAddressError, "misaligned address", lanePC, true, true, 0}}, ""},
		{"a code of a lane is exact", []corefile.SM{{Blocks: warp(corefile.Warp{Valid: 1}, lane(0, 11))}},
			[]stopped{{"d0.sm0.w0", sdk.StopAddressError, "LANE_MISALIGNED_ADDRESS", lanePC, true, true, 0}}, ""},
		{"a trap of an active lane", []corefile.SM{{Blocks: warp(corefile.Warp{Valid: 1, Active: 1, IsBroken: true}, lane(0, 0))}},
			[]stopped{{"d0.sm0.w0", sdk.StopTrap, noSite, lanePC, true, true, 0}}, ""},
		{"no trap of a lane that is not active", []corefile.SM{{Blocks: warp(corefile.Warp{Valid: 1, IsBroken: true}, lane(0, 0))}},
			[]stopped{{"d0.sm0.w0", "", noSite, lanePC, false, false, 0}}, ""},
		{"a trap is no crash beside an exception", []corefile.SM{
			{Blocks: warp(corefile.Warp{Valid: 1, Active: 1, IsBroken: true}, lane(0, 0))},
			{ID: 1, Blocks: warp(corefile.Warp{Valid: 1}, lane(0, misaligned))}},
			[]stopped{{"d0.sm0.w0", sdk.StopTrap, noSite, lanePC, true, false, 0}, {"d0.sm1.w0", sdk.StopAddressError, noSite, lanePC, false, true, 0}}, ""},
		{"the warps of the SM have ended", []corefile.SM{{Exception: deviceIllegal, ErrorPC: errorAt, HasErrorPC: true}},
			[]stopped{{"d0.sm0", sdk.StopMemoryFault, "another warp may have caused it", errorAt, false, true, 0}}, ""},
		{"an SM that is idle is no thread", []corefile.SM{{}, {ID: 1, Exception: deviceIllegal, ErrorPC: errorAt, HasErrorPC: true}, {ID: 2}},
			[]stopped{{"d0.sm1", sdk.StopMemoryFault, "illegal address", errorAt, false, true, 0}}, ""},
		{"the SM recorded no PC", []corefile.SM{{ID: 4, Exception: 5}},
			[]stopped{{"d0.sm4", sdk.StopAddressError, "WARP_OUT_OF_RANGE_ADDRESS", 0, false, true, 0}}, ""},
		{"what the SM says of a cluster", []corefile.SM{{Exception: 17, Target: &[3]uint32{1, 2, 3}, Text: "more"}},
			[]stopped{{"d0.sm0", sdk.StopAddressError, "the access went to block (1,2,3)|more|another block of the cluster may have caused it", 0, false, true, 0}}, ""},
		{"the exception of another SM", []corefile.SM{
			{Exception: deviceIllegal, ErrorPC: errorAt, HasErrorPC: true},
			{ID: 1, Blocks: warp(corefile.Warp{Valid: 1}, lane(0, illegalInstruction))}},
			[]stopped{{"d0.sm0", sdk.StopMemoryFault, noSite, errorAt, false, true, 0}, {"d0.sm1.w0", sdk.StopIllegalInstruction, noSite, lanePC, false, true, 0}}, ""},
		{"an exception that nobody knows", []corefile.SM{{Blocks: warp(corefile.Warp{Valid: 1}, lane(0, 99))}},
			[]stopped{{"d0.sm0.w0", sdk.StopException, "exception 99", lanePC, false, true, 0}}, ""},
		{"several exceptions of a group", []corefile.SM{{Blocks: warp(corefile.Warp{Valid: 7}, lane(0, misaligned), lane(1, 5), lane(2, misaligned))}},
			[]stopped{{"d0.sm0.w0", sdk.StopAddressError, "misaligned address|lanes 0,2|also address out of range", lanePC, false, true, 0}}, ""},
		{"the warp of lanes that have all ended", []corefile.SM{{Exception: 4, ErrorPC: errorAt, HasErrorPC: true, Blocks: warp(corefile.Warp{}, lane(0, 0))}},
			[]stopped{{"d0.sm0", sdk.StopIllegalInstruction, noSite, errorAt, false, true, 0}}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			core := corefile.Core{Driver: 615, Devices: []corefile.Device{{
				SM: "sm_90", Contexts: []corefile.Context{{ID: 1}}, Grids: []corefile.Grid{{ID: 1, Context: 1, Block: [3]uint32{32, 1, 1}}}, SMs: test.sms,
			}}}
			checkStopped(t, readCore(t, core.Build().Bytes()), test.want, test.problem)
		})
	}
}

func checkStopped(t *testing.T, a *sdk.OpenTargetAnswer, want []stopped, problem string) {
	t.Helper()
	if len(a.Threads) != len(want) {
		t.Fatalf("%d threads, expected %d", len(a.Threads), len(want))
	}
	for i, w := range want {
		got := &a.Threads[i]
		pc, _ := got.Registers.Uint64(testMachine.PC, sdk.LittleEndian)
		if got.ID != w.id || got.Stop.Reason != w.reason || pc != w.pc || got.HasCrashed != w.crashed || got.Lead != w.lead || got.Stop.IsPCExact != w.exact {
			t.Errorf("%s at %#x, %+v, crashed %v, lane %d; expected %+v", got.ID, pc, got.Stop, got.HasCrashed, got.Lead, w)
		}
		for detail := range strings.SplitSeq(w.details, "|") {
			if detail != "" && !slices.Contains(got.Stop.Details, detail) {
				t.Errorf("details %q, expected %q among them", got.Stop.Details, detail)
			}
		}
	}
	if text := strings.Join(a.Problems, "\n"); problem == "" && text != "" || !strings.Contains(text, problem) {
		t.Errorf("problems %q, expected %q", text, problem)
	}
}
