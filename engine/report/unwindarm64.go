// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/listing"
	"github.com/unwindd/unwindd/engine/internal/pe"
)

// jsonUnwindARM64 is the unwind information of an entry of .pdata of arm64, in `dump cfi`.
type jsonUnwindARM64 struct {
	Section      string            `json:"section"`
	Offset       uint64            `json:"offset"`
	Kind         string            `json:"kind"` // "XDATA", or "PDATA" of packed data
	Start        string            `json:"start"`
	End          string            `json:"end"`
	Fragment     bool              `json:"fragment,omitempty"` // it has no prologue of its own
	Packed       *jsonPackedARM64  `json:"packed,omitempty"`
	Handler      string            `json:"handler,omitempty"`
	Instructions []jsonUnwindCode  `json:"instructions"`
	Epilogs      []jsonEpilogARM64 `json:"epilogs,omitempty"`
}

// jsonPackedARM64 are the members of packed data, as the document calls them; frame_size is in bytes.
type jsonPackedARM64 struct {
	RegF      uint8  `json:"reg_f"`
	RegI      uint8  `json:"reg_i"`
	H         bool   `json:"h"`
	CR        uint8  `json:"cr"`
	FrameSize uint32 `json:"frame_size"`
}

type jsonEpilogARM64 struct {
	jsonRange
	Instructions []jsonUnwindCode `json:"instructions"`
}

// unwindARM64 is an entry in the format of the output.
func (c *CallFrames) unwindARM64(e *listing.UnwindEntry) jsonUnwindARM64 {
	u := e.ARM64
	r := rangeOf(e.Start, e.End)
	out := jsonUnwindARM64{
		Section: e.Section, Offset: e.Offset, Kind: "XDATA", Start: r.Start, End: r.End, Fragment: u.IsFragment,
		// The codes of the prologue begin with the last instruction.
		Instructions: c.codesARM64(u.Prolog, e.Start+4*uint64(pe.Instructions(u.Prolog)), -4), //nolint:gosec // a byte's codes
	}
	if p := u.Packed; p != nil {
		out.Kind, out.Packed = "PDATA", &jsonPackedARM64{p.RegF, p.RegI, p.H, p.CR, p.FrameSize}
	}
	if u.Handler != 0 {
		out.Handler = fmt.Sprintf("0x%x", u.Handler)
	}
	for i := range u.Epilogs {
		p := &u.Epilogs[i]
		out.Epilogs = append(out.Epilogs, jsonEpilogARM64{rangeOf(p.Start, p.End()), c.codesARM64(p.Codes, p.Start+4, 4)})
	}
	return out
}

// codesARM64 are codes with the addresses behind their instructions, as far as those are in the range.
func (c *CallFrames) codesARM64(codes []pe.ARM64Code, address uint64, step int64) []jsonUnwindCode {
	list := []jsonUnwindCode{}
	left := pe.Instructions(codes)
	for i := range codes {
		code := &codes[i]
		out := jsonUnwindCode{Op: code.Operation.String(), Operands: c.operandsARM64(code)}
		if left > 0 && code.IsInstruction() {
			out.Location = fmt.Sprintf("0x%x", address)
			address += uint64(step) //nolint:gosec // it goes down, too
			left--
		}
		list = append(list, out)
	}
	return list
}

// operandsARM64 are the operands of a code: registers, and bytes, or lengths of vectors (vl) and of
// predicates (pl). Where sp is lowered before they are negative.
func (c *CallFrames) operandsARM64(code *pe.ARM64Code) []string {
	operands := []string{}
	for _, r := range code.Registers[:code.Count] {
		operands = append(operands, c.Register(uint64(r)))
	}
	switch text := fmt.Sprint(code.Value); {
	case code.Scale == 8:
		return append(operands, text+" vl")
	case code.Scale == 1:
		return append(operands, text+" pl")
	case code.IsPre:
		return append(operands, "-"+text)
	case code.Count > 0 || code.Value > 0:
		return append(operands, text)
	}
	return operands
}

// textARM64 writes an entry for people.
func (c *CallFrames) textARM64(b *Printer, p paint, e *listing.UnwindEntry) {
	out := c.unwindARM64(e)
	b.printf("%s+%08x  %s  %s to %s  prologue of %d bytes\n", out.Section, out.Offset, p.function(out.Kind), out.Start, out.End, 4*pe.Instructions(e.ARM64.Prolog))
	var fields []string
	if out.Fragment {
		fields = append(fields, "fragment")
	}
	if k := out.Packed; k != nil {
		fields = append(fields, fmt.Sprintf("packed: RegF %d, RegI %d, H %v, CR %d, frame of %d bytes", k.RegF, k.RegI, k.H, k.CR, k.FrameSize))
	}
	if out.Handler != "" {
		fields = append(fields, "handler "+out.Handler)
	}
	if len(fields) > 0 {
		b.printf("          %s\n", strings.Join(fields, ", "))
	}
	printCodes(b, out.Instructions)
	for _, epilog := range out.Epilogs {
		b.printf("          epilogue %s to %s\n", epilog.Start, epilog.End)
		printCodes(b, epilog.Instructions)
	}
}

func printCodes(b *Printer, list []jsonUnwindCode) {
	for _, code := range list {
		b.printf("          %-*s  %-20s %s\n", len("0x140001000"), code.Location, code.Op, strings.Join(code.Operands, ", "))
	}
}
