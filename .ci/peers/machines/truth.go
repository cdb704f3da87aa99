// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/.ci/peers/stacks"
)

// chainMagic begins the chain of a thread; the sizes are from chain.h.
const (
	chainMagic   = 0x6368616e63686169
	chainHeader  = 3 * 8
	chainEntry   = 3 * 8
	chainEntries = 500
)

// entry is functions that a thread is in: where each returns to, and an address in it.
type entry struct{ back, here, times uint64 }

// truth has the stacks of a process as the process itself recorded them.
type truth struct {
	chains  map[string][]entry // by thread, innermost first
	names   symbols            // of the executable
	printed [][]uint64         // PCs of the stacks that the program printed, innermost first
}

// readTruth reads the chains that chain.h keeps, and what their program printed.
func readTruth(e *end, exe string) (*truth, error) {
	t := &truth{chains: map[string][]entry{}, printed: printedStacks(e.output)}
	data, err := os.ReadFile(e.chains)
	if e.chains == "" || errors.Is(err, fs.ErrNotExist) {
		data, err = writable(e.core)
	}
	if err != nil {
		return nil, err
	}
	for at := 0; at+chainHeader+chainEntries*chainEntry <= len(data); at += 8 {
		if binary.LittleEndian.Uint64(data[at:]) != chainMagic {
			continue
		}
		if thread, list := readChain(data[at:], binary.LittleEndian); len(list) > 0 {
			t.chains[thread] = list
		}
	}
	t.names, err = readSymbols(exe, t.chains)
	return t, err
}

// writable is the memory of a core that can be written, in order: it may be in several
// segments that follow each other. There is none where there is no core.
func writable(core string) (data []byte, err error) {
	if core == "" {
		return nil, nil
	}
	f, err := elf.Open(core)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_W == 0 || p.Filesz > 1<<25 {
			continue
		}
		part, err := io.ReadAll(p.Open())
		if err != nil {
			return nil, err
		}
		data = append(data, part...)
	}
	return data, nil
}

// readChain reads the chain of a thread.
func readChain(data []byte, order binary.ByteOrder) (thread string, list []entry) {
	thread = strconv.FormatUint(order.Uint64(data[8:]), 10)
	for i := range min(order.Uint64(data[16:]), chainEntries) {
		e := data[chainHeader+i*chainEntry:]
		list = append(list, entry{order.Uint64(e), order.Uint64(e[8:]), order.Uint64(e[16:])})
	}
	slices.Reverse(list)
	return thread, list
}

// printedPC matches a frame of a traceback by Go's runtime, or of a backtrace by Rust's.
var printedPC = regexp.MustCompile(`(?m) pc=(0x[0-9a-f]+)|^ +\d+: +(0x[0-9a-f]+) - `)

// printedStacks are the PCs of the stacks that a program printed: Go's of every goroutine,
// and of threads that a signal stopped.
func printedStacks(output string) (list [][]uint64) {
	for block := range strings.SplitSeq(output, "\n\n") {
		var stack []uint64
		for _, m := range printedPC.FindAllStringSubmatch(block, -1) {
			pc, _ := strconv.ParseUint(m[1]+m[2], 0, 64)
			if pc != 0 { // Rust prints one behind the first function of a thread
				stack = append(stack, pc) // inlined calls have none
			}
		}
		if len(stack) > 0 {
			list = append(list, stack)
		}
	}
	return list
}

// symbols are the functions t_... of an executable that is loaded, by address.
type symbols []symbol

type symbol struct {
	start, end uint64
	name       string
}

// ownName matches what a function of chain.h is called, in C and mangled: not those within it.
var ownName = regexp.MustCompile(`^(_Z(\d+|N\d+[A-Z][a-z]+\d+))?t_[a-z]`)

// readSymbols finds where the executable is loaded by the entry of t_main, from which the first
// thread calls all others.
func readSymbols(exe string, chains map[string][]entry) (list symbols, err error) {
	f, err := elf.Open(exe)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := f.Symbols()
	if errors.Is(err, elf.ErrNoSymbols) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && ownName.MatchString(s.Name) && s.Size > 0 {
			list = append(list, symbol{s.Value, s.Value + s.Size, s.Name})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].start < list[j].start })
	if f.Type != elf.ET_DYN || len(chains) == 0 {
		return list, nil
	}
	first := slices.MinFunc(slices.Collect(maps.Keys(chains)), func(a, b string) int {
		return cmp.Or(len(a)-len(b), strings.Compare(a, b)) // numbers
	})
	chain := chains[first]
	i := slices.IndexFunc(list, func(s symbol) bool { return strings.Contains(s.name, "t_main") })
	if i < 0 {
		return nil, fmt.Errorf("%s: it has no t_main", exe)
	}
	bias := (chain[len(chain)-1].here - list[i].start) &^ 0xfff
	for i := range list {
		list[i].start, list[i].end = list[i].start+bias, list[i].end+bias
	}
	return list, nil
}

// at is the name of the function at an address: "" of no function of the program's own.
func (s symbols) at(address uint64) string {
	i := sort.Search(len(s), func(i int) bool { return s[i].end > address })
	if i < len(s) && s[i].start <= address {
		return s[i].name
	}
	return ""
}

// check compares a stack with the truth, and returns its errors and its missing frames.
// isKnown reports whether anything is known of the thread.
func (t *truth) check(thread string, s *stacks.Stack) (wrong, missing string, isKnown bool) {
	if chain := t.chains[thread]; len(chain) > 0 {
		wrong, missing = t.checkChain(chain, s)
		return wrong, missing, true
	}
	wrong, missing, isKnown = t.checkPrinted(s)
	if !isKnown && s.IsCrashed && len(t.printed) > 0 {
		return "", fmt.Sprintf("all %d PCs that the program printed", len(t.printed[0])), true
	}
	return wrong, missing, isKnown
}

// checkChain: the program's own functions are the chain's, in order, and the frame behind
// each is at its return address. The innermost one may not have recorded itself yet.
func (t *truth) checkChain(chain []entry, s *stacks.Stack) (wrong, missing string) {
	var want []entry
	for _, e := range chain {
		for range e.times {
			want = append(want, e)
		}
	}
	if wrong, missing = t.follow(want, s, 0); wrong == "" || t.names.at(s.PCs[0]) == "" {
		return wrong, missing
	}
	return t.follow(want, s, 1)
}

// follow compares frames from one on with what the chain says.
func (t *truth) follow(want []entry, s *stacks.Stack, from int) (wrong, missing string) {
	n := 0
	for i := from; i < len(s.PCs); i++ {
		name := t.names.at(s.PCs[i] - uint64(min(i, 1))) // all but the first return there, or were interrupted
		switch {
		case name == "":
		case hasLeft(s, i):
		case n == len(want):
			return fmt.Sprintf("%s (frame %d) is beyond all that were called", name, i), ""
		case t.names.at(want[n].here) != name:
			return fmt.Sprintf("frame %d is in %s, the program is in %s", i, name, t.names.at(want[n].here)), ""
		case i+1 < len(s.PCs) && s.PCs[i+1] != want[n].back:
			return fmt.Sprintf("%s (frame %d) returns to %#x, not to %#x", name, i, want[n].back, s.PCs[i+1]), ""
		default:
			n++
		}
	}
	if n < len(want) {
		missing = fmt.Sprintf("%d functions of the program, from %s on", len(want)-n, t.names.at(want[n].here))
	}
	return "", missing
}

// hasLeft says that a function is on the stack, and in no chain any more: it has done what it does when an
// exception leaves it, and has called the unwinder to go on; or its last call, which a compiler may
// make a jump, it made as a call.
func hasLeft(s *stacks.Stack, i int) bool {
	return i > 0 && strings.HasPrefix(s.Text[i-1], "_Unwind_Resume in ") || strings.HasPrefix(s.Text[i], "t_jumps in ") || strings.HasPrefix(s.Text[i], "t_tail in ")
}

// checkPrinted: the stack that the program printed is this one, from the first frame on that
// they share: the program has returned from what printed it.
func (t *truth) checkPrinted(s *stacks.Stack) (wrong, missing string, isKnown bool) {
	for _, want := range t.printed {
		for skip, pc := range want {
			i := slices.Index(s.PCs, pc)
			if i < 0 || len(want)-skip < 3 {
				continue
			}
			rest := want[skip:]
			n := 0
			for n < min(len(rest), len(s.PCs)-i) && s.PCs[i+n] == rest[n] {
				n++
			}
			switch {
			case n < 3: // threads share what they wait in, and functions that call it
			case n == len(rest) && (n == len(s.PCs)-i || n+1 == len(s.PCs)-i && strings.HasPrefix(s.Text[i+n], "runtime.clone")):
				return "", "", true
			case n == len(rest):
				wrong = fmt.Sprintf("frame %d is beyond all that the program printed", i+n)
			case n == len(s.PCs)-i:
				missing = fmt.Sprintf("the PC %#x, which the program printed, and %d more", rest[n], len(rest)-n-1)
			default:
				wrong = fmt.Sprintf("frame %d is at %#x, the program printed %#x", i+n, s.PCs[i+n], rest[n])
			}
		}
	}
	return wrong, missing, wrong+missing != ""
}
