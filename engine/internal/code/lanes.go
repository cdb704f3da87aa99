// SPDX-License-Identifier: Apache-2.0

package code

import (
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
)

// LaneAttributes are the lane attributes of the functions and inlined calls at an address,
// innermost first.
type LaneAttributes struct {
	Scopes     []LaneScope     // with DW_AT_LLVM_lane_pc
	Active     *dwarf.Location // DW_AT_LLVM_active_lane of the innermost that has one; nil: none has
	Holder     *LaneScope      // the scope of Active
	Function   dwarf.Entry     // that contains all scopes
	Lanes      uint64          // DW_AT_LLVM_lanes of the innermost that has it; 0: none has
	Iterations *dwarf.Location // DW_AT_LLVM_iterations, likewise
}

// A LaneScope is a function or inlined call with DW_AT_LLVM_lane_pc or
// DW_AT_LLVM_active_lane.
type LaneScope struct {
	Entry    dwarf.Entry
	Function dwarf.Entry     // the same, or the one that contains it
	Lanes    uint64          // DW_AT_LLVM_lanes; 0: it has none
	PC       *dwarf.Location // DW_AT_LLVM_lane_pc; nil: it has none
}

const laneBytes = 300 // about how much memory LaneAttributes take

// LaneAttributes finds the lane attributes at an address of the object; nil where
// no function is described.
func (o *Object) LaneAttributes(address uint64) *LaneAttributes {
	d := o.DWARF()
	if d == nil || d.IsGenerated() {
		return nil
	}
	known, ok := o.answers.lanes.find(address)
	if ok || !o.hasOpened() {
		return known
	}
	found, err := readLaneAttributes(d, address)
	if err != nil {
		o.Problem("%s", err)
	}
	keep(o, &o.answers.lanes, address, found, laneBytes)
	return found
}

func readLaneAttributes(d *dwarf.Reader, address uint64) (*LaneAttributes, error) {
	scopes, err := d.Scopes(address)
	if err != nil || len(scopes) == 0 {
		return nil, err
	}
	a := &LaneAttributes{Function: scopes[len(scopes)-1].Entry}
	for _, s := range scopes {
		switch s.Tag() {
		case dw.TagSubprogram, dw.TagInlinedSubroutine, dw.TagEntryPoint:
		default:
			continue
		}
		l := LaneScope{Entry: s.Entry, Function: a.Function}
		n, ok, err := s.Number(dw.AttrLLVMLanes)
		if err != nil {
			return nil, err
		}
		if ok {
			if n <= 0 {
				return nil, locexpr.IllFormedError(fmt.Errorf("%s: DW_AT_LLVM_lanes is %d, expected 1 or more", s.Entry, n)) // A.3.3.5
			}
			l.Lanes = uint64(n)
			if a.Lanes == 0 {
				a.Lanes = l.Lanes
			}
		}
		iterations, hasIterations, err := s.Location(dw.AttrLLVMIterations)
		if err != nil {
			return nil, err
		}
		if hasIterations && a.Iterations == nil {
			a.Iterations = &iterations
		}
		pc, hasPC, err := s.Location(dw.AttrLLVMLanePC)
		if err != nil {
			return nil, err
		}
		if hasPC {
			l.PC = &pc
		}
		active, hasActive, err := s.Location(dw.AttrLLVMActiveLane)
		if err != nil {
			return nil, err
		}
		if hasActive && a.Active == nil {
			a.Active, a.Holder = &active, &l
		}
		if hasPC {
			a.Scopes = append(a.Scopes, l)
		}
	}
	return a, nil
}
