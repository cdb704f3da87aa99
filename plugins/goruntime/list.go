// SPDX-License-Identifier: Apache-2.0

package goruntime

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/sdk"
)

// maxGoroutines bounds the goroutines of a process: each has a stack of 2 KiB or more.
const maxGoroutines = 1 << 24

// batch is how many goroutines are read at once.
const batch = 1 << 12

// lister lists the goroutines of a process.
type lister struct {
	*reader
	reasons  []string
	problems []string

	// parked has the registers of a goroutine that waits, and away the registers of one that
	// left for a system call or C.
	parked, away registerSet

	missing, stackless, repeated int // elements of the list
	numbers                      map[uint64]bool
}

func newLister(r *reader) *lister {
	q := r.request
	return &lister{
		numbers: map[uint64]bool{},
		reader:  r, reasons: r.readReasons(),
		parked: newRegisterSet(q, r.g.pc, r.g.sp, r.g.fp, r.g.lr),
		away:   newRegisterSet(q, r.g.syscallPC, r.g.syscallSP, r.g.syscallFP, field{}),
	}
}

func (l *lister) problem(format string, args ...any) {
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

// all returns the goroutines that have not ended, in the order of the list. Each omission is a
// problem.
func (l *lister) all() (list []sdk.ManagedThread) {
	addresses := l.addresses()
	for len(addresses) > 0 {
		n := min(len(addresses), batch)
		list = l.appendThreads(list, addresses[:n])
		addresses = addresses[n:]
	}
	if l.missing > 1 {
		l.problem("%d goroutines in all are not in the target", l.missing)
	}
	l.setWaits(list)
	if l.stackless > 0 {
		l.problem("%d elements of runtime.allgs are no goroutines: they have no stack", l.stackless)
	}
	if l.repeated > 0 {
		l.problem("%d elements of runtime.allgs are left out: they have the number of another goroutine", l.repeated)
	}
	return list
}

// addresses returns the addresses of the goroutines.
func (l *lister) addresses() []uint64 {
	list, err := l.word(l.list)
	if err != nil {
		l.problem("its goroutines are not listed: runtime.allgptr: %v", err)
		return nil
	}
	count, err := l.word(l.length)
	if err != nil {
		l.problem("its goroutines are not listed: runtime.allglen: %v", err)
		return nil
	}
	most := uint64(maxGoroutines)
	if l.sliceLength != 0 {
		if n, err := l.word(l.sliceLength); err == nil {
			most = min(most, n) // a new element is written before the number is increased
		}
	}
	if size := l.request.MemorySize; size != 0 {
		most = min(most, size/l.g.size) // no two share memory
	}
	if count > most {
		l.problem("runtime.allglen is %d, expected at most %d: no more goroutines are listed", count, most)
		count = most
	}
	addresses := l.pointers(list, count)
	kept := apart(addresses, l.g.size)
	if left := len(addresses) - len(kept); left > 0 {
		l.problem("%d of %d elements of runtime.allgs are no goroutines: they are 0 or lead to memory that another one leads to", left, len(addresses))
	}
	return kept
}

// pointers reads an array of pointers, as far as it is in the target.
func (l *lister) pointers(address, count uint64) (list []uint64) {
	buf := make([]byte, batch*l.pointer)
	for uint64(len(list)) < count {
		want := min(count-uint64(len(list)), batch) * l.pointer
		n, err := l.read(address+uint64(len(list))*l.pointer, buf[:want])
		for offset := uint64(0); offset+l.pointer <= uint64(n); offset += l.pointer { //nolint:gosec // not negative
			list = append(list, l.number(buf[offset:offset+l.pointer]))
		}
		if uint64(n) < want { //nolint:gosec // not negative
			l.problem("the list of its goroutines ends after %d of %d: %v", len(list), count, err)
			break
		}
	}
	return list
}

// apart returns the addresses of structs of a size, in the order of the list, without structs
// that share memory with one at a lower address.
func apart(list []uint64, size uint64) []uint64 {
	order := make([]uint32, len(list))
	for i := range order {
		order[i] = uint32(i) //nolint:gosec // at most maxGoroutines
	}
	slices.SortStableFunc(order, func(a, b uint32) int { return cmp.Compare(list[a], list[b]) })
	isBad := make([]bool, len(list))
	end := uint64(1) // so that address 0 is left out
	for _, i := range order {
		a := list[i]
		if isBad[i] = a < end || a+size < a; !isBad[i] {
			end = a + size
		}
	}
	kept := list[:0:0]
	for i, a := range list {
		if !isBad[i] {
			kept = append(kept, a)
		}
	}
	return kept
}

// appendThreads appends the goroutines at addresses.
func (l *lister) appendThreads(list []sdk.ManagedThread, addresses []uint64) []sdk.ManagedThread {
	data, isMissing, err := l.structs(addresses, l.g.size)
	var live []goroutine
	for i, address := range addresses {
		if isMissing[i] {
			if l.missing++; l.missing == 1 {
				l.problem("goroutine at %#x: %v", address, err)
			}
			continue
		}
		g := goroutine{address, data[uint64(i)*l.g.size:][:l.g.size]} //nolint:gosec // an index
		if !hasEnded(l.state(g)) {
			live = append(live, g)
		}
	}
	l.prepare(live)
	for _, g := range live {
		if l.get(g.bytes, l.g.stackLow) >= l.get(g.bytes, l.g.stackHigh) {
			l.stackless++ // the runtime lists a goroutine once it has a stack
			continue
		}
		t := l.thread(g)
		if l.numbers[t.Number] {
			l.repeated++
			continue
		}
		l.numbers[t.Number] = true
		list = append(list, t)
	}
	return list
}

// prepare asks once for all that threads of goroutines need.
func (l *lister) prepare(live []goroutine) {
	var machines, functions []uint64
	for _, g := range live {
		machines = append(machines, l.get(g.bytes, l.g.machine))
		functions = append(functions, l.get(g.bytes, l.g.start), l.setOf(g).at(l, g))
	}
	l.readMachines(machines)
	_ = l.findFunctions(functions) // without them no goroutine is the runtime's own
}

// setWaits sets how long goroutines have waited at least: until the latest time that the
// runtime recorded anywhere. A core does not have its own time.
func (l *lister) setWaits(list []sdk.ManagedThread) {
	latest := l.latestTime()
	for i := range list {
		latest = max(latest, list[i].WaitSince)
	}
	for i := range list {
		if t := &list[i]; t.WaitSince != 0 {
			t.WaitAtLeast = latest - t.WaitSince
		}
	}
}

// latestTime returns the latest of the times that the runtime recorded, in nanoseconds of its
// clock; 0 where none is in the target.
func (l *lister) latestTime() (latest uint64) {
	b := make([]byte, 8)
	for _, address := range l.times {
		if _, err := l.read(address, b); err == nil {
			latest = max(latest, l.number(b))
		}
	}
	return latest
}
