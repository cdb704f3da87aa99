// SPDX-License-Identifier: Apache-2.0

package cudacore

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// stopCause is why a lane stopped: an exception, or a breakpoint of the warp. The zero value
// stands for a lane that did not stop.
type stopCause struct {
	code   uint32 // of the exception; 0: none
	fromSM bool   // the SM recorded it, and not the lane
	isTrap bool
}

// rank orders the causes of lanes: exceptions go before traps.
func (c stopCause) rank() uint8 {
	switch {
	case c.code != 0 && !c.fromSM:
		return 3
	case c.code != 0:
		return 2
	case c.isTrap:
		return 1
	}
	return 0
}

// causeOf says why a lane stopped: by an exception of its own; else, where the warp has an
// error PC and the lane is active, by that of its SM; else by a trap, where the warp is broken
// and the lane active.
func causeOf(l *lane, w *warp, m *sm) stopCause {
	isActive := w.active>>(l.number%lanesOfWarp)&1 != 0
	switch {
	case l.exception != 0:
		return stopCause{code: l.exception}
	case w.hasErrorPC && isActive && m.exception != 0:
		return stopCause{code: m.exception, fromSM: true}
	case w.isBroken && isActive:
		return stopCause{isTrap: true}
	}
	return stopCause{}
}

// findStop finds why a group stopped. Its lead is the lowest lane of those with the first
// cause by rank.
func (r *reader) findStop(w *warpLanes, g *group) {
	row := &r.warps[w.warp]
	m := &r.sms[r.blocks[row.block].sm]
	for mask := g.mask; mask != 0; mask &= mask - 1 {
		i := uint32(bits.TrailingZeros32(mask)) //nolint:gosec // below 32
		c := causeOf(w.lanes[i], row, m)
		switch {
		case c.rank() > g.stop.rank():
			if g.stop.code != 0 && g.stop.code != c.code {
				g.others = append(g.others, g.stop.code)
			}
			g.stop, g.lead, g.stopped = c, i, 1<<i
		case c == g.stop && c.rank() > 0:
			g.stopped |= 1 << i
		case c.code != 0 && c.code != g.stop.code && !slices.Contains(g.others, c.code):
			g.others = append(g.others, c.code)
		}
	}
	if g.stop.fromSM {
		r.reported[r.blocks[row.block].sm] = true
	}
}

// stopOf describes why a group stopped.
func (r *reader) stopOf(w *warpLanes, g *group) sdk.ThreadStop {
	row := &r.warps[w.warp]
	if g.stop.code == 0 {
		if !g.stop.isTrap {
			return sdk.ThreadStop{}
		}
		return sdk.ThreadStop{Reason: sdk.StopTrap, Details: []string{"the warp stopped at a breakpoint or a trap"}, IsPCExact: true, HasPCExact: true}
	}
	m := &r.sms[r.blocks[row.block].sm]
	stop := r.exceptionStop(g.stop.code)
	if g.stopped != g.mask {
		stop.Details = append(stop.Details, laneList(g.stopped))
	}
	if g.stop.fromSM {
		stop.Details = append(stop.Details, "recorded for the multiprocessor")
	}
	for _, code := range g.others {
		stop.Details = append(stop.Details, "also "+exceptionOf(code).words)
	}
	if row.hasErrorPC && w.lanes[g.lead] != nil {
		if row.errorPC == w.lanes[g.lead].pc {
			stop.IsPCExact = true
		} else {
			stop.Details = append(stop.Details, fmt.Sprintf("triggered at PC %#x", row.errorPC))
		}
	}
	stop.Details = append(stop.Details, r.smDetails(m, g.stop.code)...)
	return stop
}

// exceptionStop describes an exception.
func (r *reader) exceptionStop(code uint32) sdk.ThreadStop {
	e := exceptionOf(code)
	stop := sdk.ThreadStop{Reason: e.reason, HasPCExact: true, IsPCExact: e.precision == byLane, Details: []string{e.words, e.name}}
	switch e.precision {
	case byCluster:
		stop.Details = append(stop.Details, "another block of the cluster may have caused it")
	case byDevice:
		stop.Details = append(stop.Details, "another warp may have caused it")
	}
	return stop
}

// smDetails returns what an SM recorded of its exception.
func (r *reader) smDetails(m *sm, code uint32) (details []string) {
	if m.exception != code {
		return nil
	}
	if m.hasTarget {
		details = append(details, fmt.Sprintf("the access went to block (%d,%d,%d)", m.target[0], m.target[1], m.target[2]))
	}
	if text := r.text(m.text, "the text of an exception"); text != "" {
		details = append(details, cut(text, sdk.MaxName))
	}
	return details
}

// laneList names lanes: "lanes 0-3,7".
func laneList(mask uint32) string {
	var parts []string
	for mask != 0 {
		first := bits.TrailingZeros32(mask)
		count := bits.TrailingZeros32(^(mask >> first))
		if count == 1 {
			parts = append(parts, fmt.Sprint(first))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", first, first+count-1))
		}
		mask &^= uint32(1<<count-1) << first
	}
	if len(parts) == 1 && !strings.Contains(parts[0], "-") {
		return "lane " + parts[0]
	}
	return "lanes " + strings.Join(parts, ",")
}

// cut returns at most size bytes of a text, at the end of a character.
func cut(text string, size int) string {
	if len(text) <= size {
		return text
	}
	return strings.ToValidUTF8(text[:size], "")
}
