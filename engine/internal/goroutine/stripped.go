// SPDX-License-Identifier: Apache-2.0

package goroutine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"go/version"
	"maps"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
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

// versionOf returns the version of Go that an object was built by, as .go.buildinfo has it from
// Go 1.18 on: after 32 bytes, the length of a text and the text.
func versionOf(o *object.Object) (string, error) {
	const textAt, flagsAt, isInline = 32, 15, 2
	s := o.Section(".go.buildinfo")
	if s == nil {
		return "", errNoVersion
	}
	b, err := s.Data()
	if err != nil || len(b) < textAt || !bytes.HasPrefix(b, []byte("\xff Go buildinf:")) || b[flagsAt]&isInline == 0 {
		return "", errors.Join(errNoVersion, err)
	}
	b = b[textAt:]
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return "", errNoVersion
	}
	text, _, _ := strings.Cut(string(b[n:n+int(size)]), " ") // experiments follow
	if !version.IsValid(text) {
		return "", fmt.Errorf("%w: %q", errNoVersion, text)
	}
	return text, nil
}

// maxData bounds the bytes of variables that are searched.
const maxData = 64 << 20

// findStripped finds the layout and the list of a program without DWARF.
func (r *runtime) findStripped() error {
	file := r.module.Object
	goVersion, err := versionOf(file)
	if err != nil {
		return err
	}
	if file.AddressSize() != 8 {
		return errors.New("it has no DWARF, and without it goroutines are known of machines with addresses of 64 bits")
	}
	if r.layout, err = layoutOf(goVersion); err != nil {
		return err
	}
	list, data, err := r.findList(goVersion)
	if err != nil {
		return err
	}
	r.list, r.length = list, list+r.pointer
	r.findReasons(data)
	return nil
}

// maxVerified bounds the elements of lists that are verified.
const maxVerified = 2 * maxGoroutines

// part is a range of the program's variables: its place in the object, and its bytes.
type part struct {
	address uint64
	bytes   []byte
}

// variables returns the program's data as it is in memory, as far as it is there.
func (r *runtime) variables() (list []part) {
	left := uint64(maxData)
	for _, name := range []string{".bss", ".noptrbss", ".data"} {
		s := r.module.Object.Section(name)
		if s == nil || s.Size > left {
			continue
		}
		start, ok := r.module.Start(s.Address)
		if !ok {
			continue
		}
		b := make([]byte, s.Size)
		n, _ := r.read(start, b)
		left -= s.Size
		list = append(list, part{s.Address, b[:n]})
	}
	return list
}

// findList finds runtime.allgs, an ELF virtual address: the longest slice among the variables
// whose elements are all goroutines.
func (r *runtime) findList(goVersion string) (list uint64, data []part, err error) {
	longest, left := uint64(0), uint64(maxVerified)
	data = r.variables()
	contradiction := errors.New("no slice of goroutines is among its variables")
	for _, p := range data {
		for i := 0; i+24 <= len(p.bytes); i += 8 {
			start, count, capacity := r.order.Uint64(p.bytes[i:]), r.order.Uint64(p.bytes[i+8:]), r.order.Uint64(p.bytes[i+16:])
			if start == 0 || start%8 != 0 || count == 0 || count > capacity || capacity > maxGoroutines || count <= longest || !r.isGoroutine(start) {
				continue
			}
			if count > left {
				return 0, nil, fmt.Errorf("it has no DWARF, and what seem to be lists of goroutines have more than %d elements together", maxVerified)
			}
			left -= count
			if err := r.verify(start, count); err != nil {
				contradiction = err
				continue
			}
			list, longest = p.address+uint64(i), count
		}
	}
	if longest == 0 {
		return 0, nil, fmt.Errorf("it has no DWARF, and what is known of %s does not lead to them: %w", goVersion, contradiction)
	}
	return list, data, nil
}

// isGoroutine reports whether the first element of a list may be a goroutine: it has its own
// address.
func (r *runtime) isGoroutine(list uint64) bool {
	address, err := r.word(list)
	if err != nil || address == 0 || address%8 != 0 {
		return false
	}
	self, err := r.word(address + selfAt)
	return err == nil && self == address
}

// verify checks the goroutines of a list against the layout.
func (r *runtime) verify(list, count uint64) error {
	ids := map[uint64]bool{}
	b := make([]byte, r.g.size)
	for i := range count {
		address, err := r.word(list + i*r.pointer)
		if err != nil {
			return err
		}
		if _, err := r.read(address, b); err != nil {
			return fmt.Errorf("goroutine at %#x: %w", address, err)
		}
		status := r.get(b, r.g.status) &^ r.scan
		state, isState := r.layout.name[status]
		switch {
		case !isState:
			return fmt.Errorf("goroutine at %#x: state %d", address, status)
		case hasEnded(state):
			continue
		case r.order.Uint64(b[selfAt:]) != address:
			return fmt.Errorf("goroutine at %#x: it has another address, %#x", address, r.order.Uint64(b[selfAt:]))
		}
		if what := r.contradicts(b, state); what != "" {
			return fmt.Errorf("goroutine at %#x: %s", address, what)
		}
		id := r.get(b, r.g.id)
		if ids[id] || id == 0 {
			return fmt.Errorf("goroutine at %#x: its number is %d, as that of another", address, id)
		}
		ids[id] = true
		if m := r.machineAt(r.get(b, r.g.machine)); state == "running" && (m.using != address || !r.hasThread(m.thread)) {
			return fmt.Errorf("goroutine at %#x: thread %s does not execute it", address, m.thread)
		}
	}
	if len(ids) == 0 {
		return errors.New("no goroutine is alive")
	}
	return nil
}

// contradicts describes a value that no live goroutine can have; "" where there is none.
func (r *runtime) contradicts(b []byte, state string) string {
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

// isFunction reports whether the table of the runtime has a function at an address, and with
// isStart whether it begins there.
func (r *runtime) isFunction(pc uint64, isStart bool) bool {
	s := r.process.Segment(pc)
	if s == nil {
		return false
	}
	address := s.ObjectAddress(pc)
	frames := s.Module.Names(address, true)
	return len(frames) > 0 && (!isStart || frames[0].HasStart && frames[0].Start == address)
}

// hasThread reports whether the target has a thread.
func (r *runtime) hasThread(id string) bool {
	for _, th := range r.process.Threads() {
		if th.ID == id {
			return true
		}
	}
	return false
}

// firstReasons are the first texts of runtime.waitReasonStrings, after an empty one.
var firstReasons = []string{"", "GC assist marking", "IO wait"}

// findReasons finds runtime.waitReasonStrings by its first texts. It ends where no text is.
func (r *runtime) findReasons(data []part) {
	for _, p := range data {
		for i := 0; i+16*len(firstReasons) <= len(p.bytes); i += 8 {
			if r.order.Uint64(p.bytes[i+8:]) != 0 || r.order.Uint64(p.bytes[i+24:]) != uint64(len(firstReasons[1])) || r.order.Uint64(p.bytes[i+40:]) != uint64(len(firstReasons[2])) {
				continue
			}
			n := uint64(0)
			for ; n < maxReasons && uint64(i)+16*n+16 <= uint64(len(p.bytes)); n++ {
				text, ok := r.text(p.bytes[uint64(i)+16*n:])
				if !ok || n < uint64(len(firstReasons)) && text != firstReasons[n] || n > 0 && text == "" {
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

// text returns a string of Go, an address and a length, of at most maxReasonText bytes.
func (r *runtime) text(header []byte) (string, bool) {
	address, size := r.order.Uint64(header), r.order.Uint64(header[8:])
	if size > maxReasonText {
		return "", false
	}
	b := make([]byte, size)
	if size > 0 {
		if _, err := r.read(address, b); err != nil {
			return "", false
		}
	}
	return string(b), bytes.IndexFunc(b, func(c rune) bool { return c < ' ' || c > '~' }) < 0
}
