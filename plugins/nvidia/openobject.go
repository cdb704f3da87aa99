// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
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
	symbols []symbol
	// isPlaced says that sections have addresses of their own, as in the relocated image
	// of a core. Else all code begins at 0, and sections tell functions apart.
	isPlaced bool
	code     map[uint32][]byte // of sections that were read
	mended   int               // rules of call frame information that the code proved wrong
}

func (o *codeObject) describe() {
	o.answer.Processor = processorName(o.req.OSABI, o.req.Flags)
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
	if !slices.ContainsFunc(o.req.Sections, func(s sdk.SectionInfo) bool { return s.Name == name && s.Size > 0 }) {
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
	for i := range o.symbols {
		s := &o.symbols[i]
		if !o.isFunction(s) {
			continue
		}
		f := sdk.Function{Name: s.name, Start: s.value, End: s.value + s.size, Lanes: warpLanes}
		f.Section, _ = o.place(uint32(s.section), 0)
		if s.isKernel() {
			f.Kind = sdk.KernelFunction
			f.End = o.kernelEnd(s)
		}
		o.answer.Functions = append(o.answer.Functions, f)
	}
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

// kernelEnd returns where the code of a kernel ends: its symbol covers the device
// functions behind it, which are its own copies.
func (o *codeObject) kernelEnd(kernel *symbol) uint64 {
	end := kernel.value + kernel.size
	for i := range o.symbols {
		if s := &o.symbols[i]; s != kernel && s.section == kernel.section && s.value > kernel.value && o.isFunction(s) {
			end = min(end, s.value)
		}
	}
	return end
}
