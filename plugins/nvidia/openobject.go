// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// ELF's types and flags of sections.
const (
	sectionProgBits = 1 // SHT_PROGBITS
	flagExec        = 4 // SHF_EXECINSTR
)

// Bounds of an answer.
const (
	maxProblems    = 256
	maxProblemText = 1024 // bytes
)

// OpenObject describes a cubin: its processor, its kernels and device functions, the
// frames of both, and where kernels have their parameters.
func (architecture) OpenObject(ctx context.Context, e sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	o := &codeObject{ctx: ctx, engine: e, req: req, answer: &sdk.OpenObjectAnswer{}}
	if req.Machine == machine {
		o.describe()
	}
	return o.answer, ctx.Err()
}

// codeObject is a cubin that is being read.
type codeObject struct {
	ctx     context.Context
	engine  sdk.Engine
	req     *sdk.OpenObjectRequest
	answer  *sdk.OpenObjectAnswer
	names   map[string]bool // of sections that have bytes
	symbols []symbol
	// functions are the symbols of functions, by section and address.
	functions []*symbol
	byName    map[string]*symbol
	// isPlaced says that sections have addresses of their own, as in the relocated image
	// of a core. Else all code begins at 0, and sections tell functions apart.
	isPlaced bool
	placed   []placedSection   // nil until they are needed
	code     map[uint32][]byte // of sections that were read
	mended   int               // rules of call frame information that the code proved wrong
}

func (o *codeObject) describe() {
	o.answer.Processor = processorName(o.req.OSABI, o.req.Flags)
	o.names = map[string]bool{}
	for i := range o.req.Sections {
		if s := &o.req.Sections[i]; s.Size > 0 {
			o.names[s.Name] = true
		}
	}
	o.isPlaced = slices.ContainsFunc(o.req.Sections, func(s sdk.SectionInfo) bool { return isCode(&s) && s.Address != 0 })
	o.readSymbols()
	o.describeFunctions()
	o.describeFrames()
	o.describeParameters()
	o.describeRegisters()
}

// isCode reports whether a section has instructions.
func isCode(s *sdk.SectionInfo) bool {
	return s.Type == sectionProgBits && s.Flags&flagExec != 0 && s.Size > 0
}

// problem reports what could not be read, or is wrong. The rest of the answer stands.
func (o *codeObject) problem(format string, args ...any) {
	if len(o.answer.Problems) < maxProblems {
		text := strings.ToValidUTF8(fmt.Sprintf(format, args...), "?")
		o.answer.Problems = append(o.answer.Problems, text[:min(len(text), maxProblemText)])
	}
}

// section returns a section's bytes, or nil where there are none. That it cannot be read is
// a problem.
func (o *codeObject) section(name string) []byte {
	if !o.names[name] {
		return nil
	}
	b, err := o.engine.ReadSection(o.ctx, o.req.Object, name)
	if err != nil {
		o.problem("%v", err)
		return nil
	}
	return b
}

// place returns the section and the address of an answer for an address of a section of
// code.
func (o *codeObject) place(section uint32, address uint64) (uint32, uint64) {
	if o.isPlaced {
		return 0, address
	}
	return section, address
}

// describeFunctions adds kernels and device functions, by their symbols.
func (o *codeObject) describeFunctions() {
	o.byName = map[string]*symbol{}
	for i := range o.symbols {
		if s := &o.symbols[i]; o.isFunction(s) {
			o.functions = append(o.functions, s)
			o.byName[s.name] = s
		}
	}
	slices.SortStableFunc(o.functions, compareSymbols)
	for i, s := range o.functions {
		f := sdk.Function{Name: s.name, Start: s.value, End: s.value + s.size, Lanes: warpLanes}
		f.Section, _ = o.place(uint32(s.section), 0)
		if s.isKernel() {
			f.Kind = sdk.KernelFunction
			f.End = o.kernelEnd(i)
		}
		o.answer.Functions = append(o.answer.Functions, f)
	}
}

// compareSymbols orders symbols by section and address.
func compareSymbols(a, b *symbol) int {
	return cmp.Or(cmp.Compare(a.section, b.section), cmp.Compare(a.value, b.value))
}

// isFunction reports whether a symbol is a function within its section.
func (o *codeObject) isFunction(s *symbol) bool {
	if s.kind != symbolFunction || s.size == 0 || int(s.section) >= len(o.req.Sections) {
		return false
	}
	code := &o.req.Sections[s.section]
	offset := s.value - code.Address
	return isCode(code) && s.value >= code.Address && offset < code.Size && s.size <= code.Size-offset
}

// kernelEnd returns where the code of a kernel ends: its symbol covers the device functions
// behind it, which are its own copies.
func (o *codeObject) kernelEnd(index int) uint64 {
	kernel := o.functions[index]
	for _, s := range o.functions[index+1:] {
		if s.section != kernel.section {
			break
		}
		if s.value > kernel.value {
			return min(kernel.value+kernel.size, s.value)
		}
	}
	return kernel.value + kernel.size
}

// functionAt returns the symbol of the function that begins at an address of a section, 0 being
// the section of all addresses of a placed object; nil without one.
func (o *codeObject) functionAt(section uint32, start uint64) *symbol {
	if section == 0 {
		if section = o.sectionAt(start); section == 0 {
			return nil
		}
	}
	i, found := slices.BinarySearchFunc(o.functions, start, func(s *symbol, start uint64) int {
		return cmp.Or(cmp.Compare(uint32(s.section), section), cmp.Compare(s.value, start))
	})
	if !found {
		return nil
	}
	return o.functions[i]
}

// sectionAt returns the section of code that has an address of a placed object; 0 without one.
func (o *codeObject) sectionAt(address uint64) uint32 {
	if o.placed == nil {
		for i := range o.req.Sections {
			if s := &o.req.Sections[i]; isCode(s) {
				o.placed = append(o.placed, placedSection{s.Address, s.Size, uint32(i)}) //nolint:gosec // sections are few
			}
		}
		slices.SortStableFunc(o.placed, func(a, b placedSection) int { return cmp.Compare(a.start, b.start) })
	}
	i, found := slices.BinarySearchFunc(o.placed, address, func(s placedSection, address uint64) int { return cmp.Compare(s.start, address) })
	if !found {
		i--
	}
	if i < 0 || address-o.placed[i].start >= o.placed[i].size {
		return 0
	}
	return o.placed[i].index
}

// placedSection is a section of code by its address.
type placedSection struct {
	start, size uint64
	index       uint32
}
