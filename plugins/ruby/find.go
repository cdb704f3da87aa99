// SPDX-License-Identifier: Apache-2.0

package ruby

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"sync"

	"github.com/unwindd/unwindd/sdk"
)

// reader reads the memory of a process while a call is under way.
type reader struct {
	*process
	*sdk.MemoryReader
	ctx    context.Context
	engine sdk.RuntimeEngine

	sequences map[uint64]*sequence // by address
	texts     map[uint64]string    // of strings, by address
	starts    map[uint64]uint64    // of functions outside the module, by an address in them
}

func newReader(ctx context.Context, e sdk.RuntimeEngine, g *process) *reader {
	return &reader{
		process: g, MemoryReader: sdk.NewMemoryReader(ctx, e, g.request.ByteOrder, g.request.AddressBits), ctx: ctx, engine: e,
		sequences: map[uint64]*sequence{}, texts: map[uint64]string{}, starts: map[uint64]uint64{},
	}
}

// word reads a word, and names it where it is not there.
func (r *reader) word(name string, address uint64) (uint64, error) {
	v, err := r.Uint(address, 8)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

// versionForm is the form of the text ruby_version.
var versionForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[1-9]\.[0-9]{1,2}\.[0-9]{1,2}$`) })

// version reads the version of Ruby.
func (r *reader) version() (string, error) {
	s := r.request.Symbols[symbolVersion]
	if !s.IsKnown {
		return "", errors.New("the module has no ruby_version: which Ruby it is is not known")
	}
	text, err := r.Text(s.Address, 16)
	if err != nil {
		return "", fmt.Errorf("ruby_version: %w", err)
	}
	if !versionForm().MatchString(text) {
		return "", fmt.Errorf("ruby_version at %#x is %q, expected a version", s.Address, text)
	}
	return text, nil
}

// isPlace reports whether a word may be the address of an object of the interpreter.
func isPlace(v uint64) bool { return v >= 4096 && v%8 == 0 && v < 1<<47 }

// findVM finds the VM: by its variable, by the code of a function that reads it, or among all
// variables.
func (r *reader) findVM() (uint64, error) {
	if s := r.request.Symbols[symbolVM]; s.IsKnown {
		vm, err := r.word("ruby_current_vm_ptr", s.Address)
		if err == nil && vm == 0 {
			err = errors.New("ruby_current_vm_ptr is 0: there is no VM, or not yet")
		}
		if err == nil {
			err = r.checkVM(vm)
		}
		return vm, err
	}
	variables := r.data()
	for _, address := range r.variablesOf(r.request.Symbols[symbolAtExit], variables) {
		if vm, err := r.Pointer(address); err == nil && r.checkVM(vm) == nil {
			return vm, nil
		}
	}
	var places []uint64
	for _, v := range variables {
		for i := 0; i+8 <= len(v.bytes); i += 8 {
			// It is made by malloc.
			if word := binary.LittleEndian.Uint64(v.bytes[i:]); isPlace(word) && word%16 == 0 {
				places = append(places, word)
			}
		}
	}
	r.Prefetch(places, 64)
	for _, vm := range places {
		if r.checkVM(vm) == nil {
			return vm, nil
		}
	}
	return 0, errors.New("the module has no symbol ruby_current_vm_ptr, and no variable of it leads to a VM")
}

// part is a range of the module's variables: its address in memory, and its bytes.
type part struct {
	address uint64
	bytes   []byte
}

// maxVariables bounds the bytes of variables that are searched.
const maxVariables = 4 << 20

// data returns the variables of the module as they are in memory.
func (r *reader) data() (list []part) {
	for _, name := range []string{".data", ".bss"} {
		for i := range r.request.Sections {
			s := &r.request.Sections[i]
			if s.Name != name || s.Size > maxVariables {
				continue
			}
			start, ok := r.request.MemoryAddress(s.Address)
			if !ok {
				continue
			}
			if b, err := r.Bytes(start, s.Size); err == nil {
				list = append(list, part{start, b})
			}
		}
	}
	return list
}

// maxFunction bounds the code that is searched for variables.
const maxFunction = 1 << 10

// variablesOf returns the addresses of variables that the code of a function loads from a distance
// to itself.
func (r *reader) variablesOf(f sdk.SymbolPlace, variables []part) (list []uint64) {
	if !f.IsKnown || f.Size == 0 || f.Size > maxFunction {
		return nil
	}
	code, err := r.Bytes(f.Address, f.Size)
	if err != nil {
		return nil
	}
	// A load has a prefix for 64 bits, 8b, and a ModRM that says "distance to the next instruction".
	for i := 0; i+7 <= len(code); i++ {
		if code[i]&0xfb != 0x48 || code[i+1] != 0x8b || code[i+2]&0xc7 != 5 {
			continue
		}
		distance := int64(int32(binary.LittleEndian.Uint32(code[i+3:]))) //nolint:gosec // signed
		address := f.Address + uint64(i) + 7 + uint64(distance)          //nolint:gosec // wraps
		for _, v := range variables {
			if address-v.address < uint64(len(v.bytes)) {
				list = append(list, address)
			}
		}
	}
	return list
}

// checkVM checks that a VM is at an address: its main thread names it, and is named by its
// execution context and its ractor.
func (r *reader) checkVM(vm uint64) error {
	if !isPlace(vm) {
		return fmt.Errorf("the VM at %#x: expected an address", vm)
	}
	main, err := r.word("the main thread", vm+r.vmMainThread)
	if err != nil {
		return err
	}
	if _, err := r.checkThread(main, vm); err != nil {
		return err
	}
	if r.vmMainRactor == absent {
		return nil
	}
	ractor, err := r.word("the main ractor", vm+r.vmMainRactor)
	if err == nil && !isPlace(ractor) {
		err = fmt.Errorf("the main ractor at %#x: expected an address", ractor)
	}
	if err != nil {
		return err
	}
	named, err := r.word("the main ractor's thread", ractor+r.ractorThread)
	if err == nil && named != main {
		err = fmt.Errorf("the main ractor's thread is %#x, expected %#x, the VM's", named, main)
	}
	return err
}

// checkThread checks that a thread of a VM is at an address, and returns its execution context.
func (r *reader) checkThread(thread, vm uint64) (ec uint64, err error) {
	if !isPlace(thread) {
		return 0, fmt.Errorf("the thread at %#x: expected an address", thread)
	}
	b, err := r.Bytes(thread, r.threadEC+8)
	if err != nil {
		return 0, fmt.Errorf("the thread: %w", err)
	}
	if its := r.Number(b[r.threadVM:][:8]); its != vm {
		return 0, fmt.Errorf("the thread at %#x is of the VM at %#x, expected %#x", thread, its, vm)
	}
	ec = r.Number(b[r.threadEC:][:8])
	if !isPlace(ec) {
		return 0, fmt.Errorf("the execution context at %#x of the thread at %#x: expected an address", ec, thread)
	}
	its, err := r.word("the execution context's thread", ec+r.ecThread)
	if err == nil && its != thread {
		err = fmt.Errorf("the execution context at %#x is of the thread at %#x, expected %#x", ec, its, thread)
	}
	return ec, err
}
