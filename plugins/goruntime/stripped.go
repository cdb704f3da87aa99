// SPDX-License-Identifier: Apache-2.0

package goruntime

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"go/version"
	"maps"
	"slices"
	"strings"
)

// This file lists the goroutines of programs without DWARF. The layouts of runtime.g and
// runtime.m are known by the version of Go, and the list is found by its contents in memory.
// Every goroutine verifies both; where one contradicts, none is listed.

// knownLayouts are for machines with pointers of 8 bytes, the newest first. On Linux they are
// the same for all architectures.
var knownLayouts = []struct {
	from                           string // the first version of Go that has it
	hasReturn, hasSyscallFP        bool   // members ret of gobuf, and syscallbp of g
	locked, parent, creator, start uint64
	machineThread, machineUsing    uint64
}{
	{"go1.26", false, true, 208, 280, 288, 304, 64, 184},
	{"go1.25", false, true, 208, 272, 280, 296, 64, 184},
	{"go1.23", true, true, 216, 280, 288, 304, 72, 192},
	{"go1.21", true, false, 208, 272, 280, 296, 72, 192},
	{"go1.18", true, false, 232, 0, 296, 312, 72, 192},
}

// selfAt is the offset of runtime.g's own address, in its gobuf, in all known layouts.
const selfAt = 72

// layoutOf returns the layout of a version of Go.
func layoutOf(goVersion string) (*layout, error) {
	for _, k := range knownLayouts {
		if version.Compare(goVersion, k.from) < 0 {
			continue
		}
		offset := uint64(selfAt + 16) // after ctxt
		next := func() field {
			offset += 8
			return field{offset - 8, 8}
		}
		l := &layout{pointer: 8, scan: 0x1000, name: maps.Clone(knownStates)}
		l.name[10], l.name[11] = "leaked", "deadextra" // Go 1.26
		g := &l.g
		g.stackLow, g.stackHigh, g.machine = field{0, 8}, field{8, 8}, field{48, 8}
		g.sp, g.pc = field{56, 8}, field{64, 8}
		if k.hasReturn {
			next()
		}
		g.lr, g.fp, g.syscallSP, g.syscallPC = next(), next(), next(), next()
		if k.hasSyscallFP {
			g.syscallFP = next()
		}
		offset += 16 // stktopsp, param
		g.status, g.id = field{offset, 4}, field{offset + 8, 8}
		g.waitSince, g.waitReason = field{offset + 24, 8}, field{offset + 32, 1}
		g.lockedTo, g.creator, g.start = field{k.locked, 8}, field{k.creator, 8}, field{k.start, 8}
		if k.parent != 0 {
			g.parent = field{k.parent, 8}
		}
		g.size = k.start + 8
		l.m = machineLayout{k.machineUsing + 8, field{k.machineThread, 8}, field{k.machineUsing, 8}}
		return l, nil
	}
	return nil, fmt.Errorf("it was made by %s, and without DWARF goroutines are known from Go 1.18 on", goVersion)
}

// errNoVersion is returned for programs whose version of Go is not known.
var errNoVersion = errors.New("it has no DWARF, and .go.buildinfo does not say by which version of Go it was made")

// goVersion returns the version of Go that the module was built by, as .go.buildinfo has it from
// Go 1.18 on: after 32 bytes, the length of a text and the text.
func (r *reader) goVersion() (string, error) {
	const textAt, flagsAt, isInline = 32, 15, 2
	b, err := r.engine.ReadSection(r.ctx, r.request.Object, ".go.buildinfo")
	if err != nil {
		return "", errNoVersion
	}
	if len(b) < textAt || !bytes.HasPrefix(b, []byte("\xff Go buildinf:")) || b[flagsAt]&isInline == 0 {
		return "", errNoVersion
	}
	b = b[textAt:]
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) { //nolint:gosec // n is at most the length
		return "", errNoVersion
	}
	text, _, _ := strings.Cut(string(b[n:n+int(size)]), " ") //nolint:gosec // at most the length; experiments follow
	if !version.IsValid(text) {
		return "", fmt.Errorf("%w: %q", errNoVersion, text)
	}
	return text, nil
}

// maxData bounds the bytes of variables that are searched.
const maxData = 64 << 20

// findStripped finds the layout and the list of a program without DWARF, and its version of Go.
func (r *reader) findStripped() (string, error) {
	goVersion, err := r.goVersion()
	if err != nil {
		return "", err
	}
	if r.request.AddressBits != 64 {
		return goVersion, errors.New("it has no DWARF, and without it goroutines are known of machines with addresses of 64 bits")
	}
	if r.layout, err = layoutOf(goVersion); err != nil {
		return goVersion, err
	}
	data := r.variables()
	list, err := r.findList(data)
	if err != nil {
		return goVersion, fmt.Errorf("it has no DWARF, and what is known of %s does not lead to them: %w", goVersion, err)
	}
	r.list, r.length = list, list+r.pointer
	r.findReasons(data)
	return goVersion, nil
}

// maxVerified bounds the elements of lists that are verified.
const maxVerified = 2 * maxGoroutines

// part is a range of the program's variables: its address in memory, and its bytes.
type part struct {
	address uint64
	bytes   []byte
}

// variables returns the program's data as it is in memory, as far as it is there.
func (r *reader) variables() (list []part) {
	left := uint64(maxData)
	for _, name := range []string{".bss", ".noptrbss", ".data"} {
		for i := range r.request.Sections {
			s := &r.request.Sections[i]
			if s.Name != name || s.Size > left {
				continue
			}
			start, ok := r.request.MemoryAddress(s.Address)
			if !ok {
				continue
			}
			b := make([]byte, s.Size)
			n, _ := r.read(start, b)
			left -= s.Size
			list = append(list, part{start, b[:n]})
			break
		}
	}
	return list
}

// slice is a slice of Go among the variables: where it is, and the elements that it has.
type slice struct{ address, start, count uint64 }

// findList finds runtime.allgs: the longest slice among the variables whose elements are all
// goroutines.
func (r *reader) findList(data []part) (list uint64, err error) {
	contradiction := errors.New("no slice of goroutines is among its variables")
	left := uint64(maxVerified)
	for _, s := range r.slices(data) {
		if s.count > left {
			return 0, fmt.Errorf("what seem to be lists of goroutines have more than %d elements together", maxVerified)
		}
		left -= s.count
		err := r.verify(s)
		if err == nil {
			return s.address, nil
		}
		contradiction = err
	}
	return 0, contradiction
}

// slices returns the slices among the variables whose first element may be a goroutine, the
// longest first: it has its own address.
func (r *reader) slices(data []part) (found []slice) {
	var all []slice
	var firsts []uint64
	for _, p := range data {
		for i := 0; i+24 <= len(p.bytes); i += 8 {
			start, count, capacity := r.order.Uint64(p.bytes[i:]), r.order.Uint64(p.bytes[i+8:]), r.order.Uint64(p.bytes[i+16:])
			if start != 0 && start%8 == 0 && count != 0 && count <= capacity && capacity <= maxGoroutines {
				all, firsts = append(all, slice{p.address + uint64(i), start, count}), append(firsts, start) //nolint:gosec // an index
			}
		}
	}
	elements, isMissing, _ := r.structs(firsts, r.pointer)
	var selves []uint64
	for i := range all {
		if address := r.order.Uint64(elements[8*i:]); !isMissing[i] && address != 0 && address%8 == 0 {
			found, selves = append(found, all[i]), append(selves, address+selfAt)
		}
	}
	values, isMissing, _ := r.structs(selves, r.pointer)
	kept := found[:0]
	for i, s := range found {
		if !isMissing[i] && r.order.Uint64(values[8*i:]) == selves[i]-selfAt {
			kept = append(kept, s)
		}
	}
	slices.SortStableFunc(kept, func(a, b slice) int { return cmp.Compare(b.count, a.count) })
	return kept
}

// verify checks the goroutines of a list against the layout.
func (r *reader) verify(s slice) error {
	ids := map[uint64]bool{}
	for done := uint64(0); done < s.count; done += batch {
		n := min(s.count-done, batch)
		pointers := make([]byte, n*r.pointer)
		if _, err := r.read(s.start+done*r.pointer, pointers); err != nil {
			return err
		}
		addresses := make([]uint64, n)
		for i := range addresses {
			addresses[i] = r.order.Uint64(pointers[8*i:])
		}
		if err := r.verifyAt(addresses, ids); err != nil {
			return err
		}
	}
	if len(ids) == 0 {
		return errors.New("no goroutine is alive")
	}
	return nil
}

// verifyAt checks the goroutines at addresses, whose numbers are in none of ids.
func (r *reader) verifyAt(addresses []uint64, ids map[uint64]bool) error {
	data, isMissing, err := r.structs(addresses, r.g.size)
	all := make([]goroutine, len(addresses))
	var machines, functions []uint64
	for i, address := range addresses {
		if isMissing[i] {
			return fmt.Errorf("goroutine at %#x: %w", address, err)
		}
		all[i] = goroutine{address, data[uint64(i)*r.g.size:][:r.g.size]} //nolint:gosec // an index
		b := all[i].bytes
		machines = append(machines, r.get(b, r.g.machine))
		functions = append(functions, r.get(b, r.g.start), r.get(b, r.g.creator), r.get(b, r.g.pc), r.get(b, r.g.syscallPC))
	}
	r.readMachines(machines)
	if err := r.findFunctions(functions); err != nil {
		return err
	}
	for _, g := range all {
		if err := r.verifyOne(g, ids); err != nil {
			return fmt.Errorf("goroutine at %#x: %w", g.address, err)
		}
	}
	return nil
}

// verifyOne checks a goroutine, and adds its number to ids.
func (r *reader) verifyOne(g goroutine, ids map[uint64]bool) error {
	status := r.get(g.bytes, r.g.status) &^ r.scan
	state, isState := r.name[status]
	switch self := r.order.Uint64(g.bytes[selfAt:]); {
	case !isState:
		return fmt.Errorf("state %d", status)
	case hasEnded(state):
		return nil
	case self != g.address:
		return fmt.Errorf("it has another address, %#x", self)
	}
	if what := r.contradicts(g.bytes, state); what != "" {
		return errors.New(what)
	}
	id := r.get(g.bytes, r.g.id)
	if ids[id] || id == 0 {
		return fmt.Errorf("its number is %d, as that of another", id)
	}
	ids[id] = true
	if m := r.machines[r.get(g.bytes, r.g.machine)]; state == "running" && (m.using != g.address || !r.hasThread(m.thread)) {
		return fmt.Errorf("thread %s does not execute it", m.thread)
	}
	return nil
}

// contradicts describes a value that no live goroutine can have; "" where there is none.
func (r *reader) contradicts(b []byte, state string) string {
	low, high := r.get(b, r.g.stackLow), r.get(b, r.g.stackHigh)
	start, creator := r.get(b, r.g.start), r.get(b, r.g.creator)
	pc, sp := r.get(b, r.g.pc), r.get(b, r.g.sp)
	if away := r.get(b, r.g.syscallSP); away != 0 {
		pc, sp = r.get(b, r.g.syscallPC), away
	}
	isParked := state != "running" && state != "idle"
	switch {
	case low >= high || low%8 != 0:
		return fmt.Sprintf("a stack from %#x to %#x", low, high)
	case start != 0 && !r.isFunction(start, true):
		return fmt.Sprintf("no function begins at %#x, where it did", start)
	case creator != 0 && !r.isFunction(creator, false):
		return fmt.Sprintf("no function is at %#x, which made it", creator)
	case isParked && !r.isFunction(pc, false):
		return fmt.Sprintf("no function is at %#x, where it goes on", pc)
	case isParked && (sp <= low || sp > high):
		return fmt.Sprintf("its stack pointer %#x is not in its stack from %#x to %#x", sp, low, high)
	}
	return ""
}

// firstReasons are the first texts of runtime.waitReasonStrings, after an empty one.
var firstReasons = []string{"", "GC assist marking", "IO wait"}

// findReasons finds runtime.waitReasonStrings by its first texts. It ends where no text is.
func (r *reader) findReasons(data []part) {
	for _, p := range data {
		for i := 0; i+16*len(firstReasons) <= len(p.bytes); i += 8 {
			if r.order.Uint64(p.bytes[i+8:]) != 0 || r.order.Uint64(p.bytes[i+24:]) != uint64(len(firstReasons[1])) || r.order.Uint64(p.bytes[i+40:]) != uint64(len(firstReasons[2])) {
				continue
			}
			n := uint64(0)
			for ; n < maxReasons && uint64(i)+16*n+16 <= uint64(len(p.bytes)); n++ {
				text, ok := r.text(p.bytes[uint64(i)+16*n:][:16])
				if !ok || !isPrintable(text) || n < uint64(len(firstReasons)) && text != firstReasons[n] || n > 0 && text == "" {
					break
				}
			}
			if n > uint64(len(firstReasons)) {
				r.layout.reasons, r.reasonCount = p.address+uint64(i), n
				return
			}
		}
	}
}

// isPrintable reports whether a text has printable characters of ASCII alone.
func isPrintable(text string) bool {
	return strings.IndexFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) < 0
}
