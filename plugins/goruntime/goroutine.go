// SPDX-License-Identifier: Apache-2.0

package goruntime

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// goroutine is a runtime.g: its address and its bytes.
type goroutine struct {
	address uint64
	bytes   []byte
}

// hasEnded reports whether a state belongs to a goroutine that has ended, or has not begun: the
// runtime keeps its memory for the next one.
func hasEnded(state string) bool { return strings.HasPrefix(state, "dead") }

// state returns the name of a goroutine's state, without the bit of the garbage collector.
func (r *reader) state(g goroutine) string {
	n := r.get(g.bytes, r.g.status) &^ r.scan
	if name, ok := r.name[n]; ok {
		return name
	}
	return fmt.Sprintf("state %d", n)
}

// thread makes a thread of a goroutine.
func (l *lister) thread(g goroutine) sdk.ManagedThread {
	state, b := l.state(g), g.bytes
	t := sdk.ManagedThread{
		Number: l.get(b, l.g.id), State: state, Parent: l.get(b, l.g.parent),
		CreatedAt: l.get(b, l.g.creator), StartedAt: l.get(b, l.g.start),
		IsScanned: l.get(b, l.g.status)&l.scan != 0, IsPinned: l.get(b, l.g.lockedTo) != 0,
		StackLow: l.get(b, l.g.stackLow), StackHigh: l.get(b, l.g.stackHigh),
	}
	t.IsSystem = isSystem(l.functions[t.StartedAt].Name)
	if t.Number == 1 {
		t.CreatedAt = 0 // assembly made the first one
	}
	if state == "waiting" {
		t.Reason = l.reason(l.get(b, l.g.waitReason))
	}
	if state == "waiting" || state == "syscall" { // in other states it is from the time before
		t.WaitSince = l.get(b, l.g.waitSince)
	}
	if m := l.machines[l.get(b, l.g.machine)]; m.using == g.address {
		t.Carrier = m.thread
	}
	// (*unwinder).initAt of src/runtime/traceback.go has this order.
	isAway := l.get(b, l.g.syscallSP) != 0
	if t.IsMounted = state == "running" && !isAway; !t.IsMounted {
		l.setRegisters(&t, g)
	}
	return t
}

// isSystem reports whether the runtime made a goroutine for itself, by the function that it
// began with: all of the runtime's except those that execute the program's functions
// (isSystemGoroutine in src/runtime/traceback.go).
func isSystem(function string) bool {
	switch function {
	case "runtime.main", "runtime.corostart", "runtime.handleAsyncEvent":
		return false
	}
	return strings.HasPrefix(function, "runtime.")
}

// registerSet is where a goroutine that no thread executes has its registers, in the order of
// their numbers.
type registerSet struct {
	pc               field
	from             []field
	numbers, offsets []uint32 // as sdk.Registers has them
}

// newRegisterSet makes a set without the registers that the version of Go does not keep.
func newRegisterSet(q *sdk.OpenRuntimeRequest, pc, sp, fp, lr field) (s registerSet) {
	if q.ReturnAddress == q.PC {
		lr = field{}
	}
	type place struct {
		register uint32
		from     field
	}
	places := []place{{q.PC, pc}, {q.SP, sp}, {q.FP, fp}, {q.ReturnAddress, lr}}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.register, b.register) })
	s.pc, s.offsets = pc, []uint32{0}
	for i, p := range places {
		if p.from.size == 0 || p.register == sdk.NoRegister {
			continue
		}
		s.from, s.numbers = append(s.from, p.from), append(s.numbers, p.register)
		s.offsets = append(s.offsets, s.offsets[len(s.offsets)-1]+uint32(places[i].from.size)) //nolint:gosec // at most 8
	}
	return s
}

// at returns the PC of a goroutine by a set.
func (s *registerSet) at(l *lister, g goroutine) uint64 { return l.get(g.bytes, s.pc) }

// setOf returns the set that has the registers of a goroutine.
func (l *lister) setOf(g goroutine) *registerSet {
	if l.get(g.bytes, l.g.syscallSP) != 0 {
		return &l.away
	}
	return &l.parked
}

// setRegisters gives a thread the registers that its goroutine has where no thread executes it.
func (l *lister) setRegisters(t *sdk.ManagedThread, g goroutine) {
	set := l.setOf(g)
	pc := set.at(l, g)
	if pc == 0 {
		t.Problem = "where the goroutine goes on is not known: its PC is 0"
		return
	}
	// A goroutine that was created and not executed yet is where a function begins.
	t.IsInCall = !l.isFunction(pc, true)
	data := make([]byte, 0, set.offsets[len(set.numbers)])
	for _, f := range set.from {
		data = append(data, g.bytes[f.offset:f.offset+f.size]...)
	}
	t.Registers = sdk.Registers{Numbers: set.numbers, Offsets: set.offsets, Data: data}
}

// maxReasonText bounds the text of a wait reason, in bytes.
const maxReasonText = 256

// readReasons reads the texts of wait reasons. Texts that are not in the target are "".
func (r *reader) readReasons() []string {
	if r.layout.reasons == 0 || r.reasonCount == 0 {
		return nil
	}
	headers := make([]byte, r.reasonCount*2*r.pointer)
	n, _ := r.read(r.layout.reasons, headers)
	list := make([]string, r.reasonCount)
	for i := range list {
		if end := (i + 1) * 2 * int(r.pointer); end <= n { //nolint:gosec // 4 or 8
			list[i], _ = r.text(headers[end-2*int(r.pointer) : end]) //nolint:gosec // 4 or 8
		}
	}
	return list
}

// text reads a string of Go of at most maxReasonText bytes, an address and a length.
func (r *reader) text(header []byte) (string, bool) {
	address, size := r.number(header[:r.pointer]), r.number(header[r.pointer:])
	if size > maxReasonText {
		return "", false
	}
	b := make([]byte, size)
	if size > 0 {
		if _, err := r.read(address, b); err != nil {
			return "", false
		}
	}
	return string(b), true
}

// reason returns the text of a wait reason; "" for 0.
func (l *lister) reason(n uint64) string {
	switch {
	case n == 0:
		return ""
	case n < uint64(len(l.reasons)) && l.reasons[n] != "":
		return l.reasons[n]
	}
	return fmt.Sprintf("wait reason %d", n)
}
