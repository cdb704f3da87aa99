// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"debug/elf"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// countsBySection reports whether addresses of a file count from the beginning of a section: in
// cubins that no driver has placed. Object files of other machines have the answers of
// llvm-symbolizer, which takes the first section that is large enough.
func countsBySection(o *object.Object) bool {
	return elf.Machine(o.Machine()) == elf.EM_CUDA && o.IsRelocatable()
}

// layOut gives the sections of a file addresses of their own where addresses count from the
// beginning of a section.
func (s *Symbolizer) layOut(o *object.Object) *object.Object {
	if !countsBySection(o) {
		return o
	}
	laid, err := o.LaidOut()
	if err != nil {
		if s.options.Warn != nil {
			s.options.Warn(err.Error())
		}
		return o
	}
	return laid
}

// numbered returns the address of a number without the name of a section: in the only section of
// code.
func (f *File) numbered(number uint64) (uint64, error) {
	var code []*object.Section
	for _, s := range f.Object.Sections() {
		if isCode(s) {
			code = append(code, s)
		}
	}
	if len(code) != 1 {
		return 0, fmt.Errorf("%d sections of code begin at address 0, expected FUNCTION+OFFSET or SECTION+OFFSET", len(code))
	}
	return code[0].Address + number, nil
}

func isCode(s *object.Section) bool { return s.Occupies() && s.Flags&elf.SHF_EXECINSTR != 0 }

// begin returns where a section of code or a function begins, and its size. A function has its
// name as linkers or as people write it.
func (f *File) begin(name string) (start, size uint64, ok bool) {
	for _, s := range f.Object.Sections() {
		if isCode(s) && s.Name == name {
			return s.Address, s.Size, true
		}
	}
	list := f.symbols().find(name)
	for i := 0; len(list) == 0 && i < len(f.symbols().all); i++ {
		if a := &f.symbols().all[i]; a.isFunction() && symbol.Demangle(symbol.StripVersion(a.name)) == name {
			list = append(list, a.named())
		}
	}
	if len(list) == 0 {
		return 0, 0, false
	}
	return list[0].Start, list[0].Size, true
}

// find returns the address that FUNCTION+OFFSET or SECTION+OFFSET is of. isKnown is false where the
// file has neither of the name.
func (f *File) find(text string, isHex bool) (address uint64, isKnown bool, err error) {
	start, size, isKnown := f.begin(text)
	offset := uint64(0)
	if plus := strings.LastIndexByte(text, '+'); !isKnown && plus > 0 {
		digits := text[plus+1:]
		if isHex && !strings.HasPrefix(digits, "0x") {
			digits = "0x" + digits
		}
		if offset, err = ParseNumber(digits); err == nil {
			start, size, isKnown = f.begin(text[:plus])
		}
	}
	if !isKnown {
		return 0, false, fmt.Errorf("no function and no section of code has the name, expected FUNCTION+OFFSET or SECTION+OFFSET")
	}
	if offset >= max(size, 1) {
		return 0, true, fmt.Errorf("offset %#x, expected less than the size %#x", offset, size)
	}
	return start + offset, true, nil
}

// fillBySection answers a question about a file whose addresses count from the beginning of a
// section.
func (s *Session) fillBySection(p *pending, frames []trace.Symbol) {
	q, f := &p.question, p.file
	if p.Kind == AnswerNamed {
		p.Kind = AnswerCode
	}
	var address uint64
	var err error
	if q.symbol == "" {
		address, err = f.numbered(q.address - s.AdjustVMA)
	} else {
		var isKnown bool
		if address, isKnown, err = f.find(q.text, s.Hex); !isKnown {
			s.notFound(p, q.text)
		}
		p.Symbol = q.text
	}
	switch {
	case err != nil && s.Output.Style == StyleJSON:
		p.Error = err.Error()
	case err != nil:
		p.message = s.message(q.text, err.Error())
	default:
		s.fillAddress(p, frames, address)
		f.fromSections(p)
	}
}

// fromSections turns the addresses of an answer into offsets in their sections.
func (f *File) fromSections(p *pending) {
	base := func(address uint64) uint64 {
		for _, s := range f.Object.Sections() {
			if s.Occupies() && address >= s.Address && address-s.Address <= s.Size {
				return s.Address
			}
		}
		return 0
	}
	for i := range p.Frames {
		if frame := &p.Frames[i]; frame.HasStart {
			frame.Start -= base(frame.Start)
		}
	}
	p.Data.Start -= base(p.Data.Start)
}
