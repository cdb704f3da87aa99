// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/listing"
	"github.com/unwindd/unwindd/internal/ehpe"
	"github.com/unwindd/unwindd/locexpr"
)

// jsonEntry is a CIE, an FDE or a terminator of `dump cfi`. Offsets and lengths
// are bytes.
type jsonEntry struct {
	Section string `json:"section"`
	Offset  uint64 `json:"offset"`
	Kind    string `json:"kind"` // "CIE", "FDE", "terminator"
	Length  uint64 `json:"length"`
	Format  string `json:"format"` // "DWARF32", "DWARF64"

	*jsonCIE
	*jsonFDE
}

type jsonCIE struct {
	Version       uint8  `json:"version"`
	Augmentation  string `json:"augmentation"`
	AddressSize   int    `json:"address_size"`
	SegmentSize   int    `json:"segment_selector_size"`
	CodeAlignment uint64 `json:"code_alignment"`
	DataAlignment int64  `json:"data_alignment"`
	ReturnAddress string `json:"return_address"`
	FDEEncoding   string `json:"fde_encoding"`
	LSDAEncoding  string `json:"lsda_encoding,omitempty"`
	Personality   string `json:"personality,omitempty"`
	SignalFrame   bool   `json:"signal_frame,omitempty"`
	BKey          bool   `json:"b_key,omitempty"`
}

type jsonFDE struct {
	CIE     uint64 `json:"cie"` // offset
	Start   string `json:"start"`
	End     string `json:"end"`
	Code    string `json:"code,omitempty"` // section of a relocatable object
	Segment uint64 `json:"segment,omitempty"`
	LSDA    string `json:"lsda,omitempty"`
}

// jsonInstruction is an instruction of `dump cfi`.
type jsonInstruction struct {
	Offset     uint64   `json:"offset"` // in the section
	Op         string   `json:"op"`
	Operands   []string `json:"operands"`
	Expression string   `json:"expression,omitempty"` // text of an expr: operand
	Location   string   `json:"location,omitempty"`   // after an instruction that changes it
}

// Pointer encodings (LSB 5.0, 10.5.1).
var (
	pointerFormats = map[uint8]string{
		ehpe.AbsPtr: "absptr", ehpe.ULEB128: "uleb128", ehpe.UData2: "udata2", ehpe.UData4: "udata4", ehpe.UData8: "udata8",
		ehpe.Signed: "signed", ehpe.SLEB128: "sleb128", ehpe.SData2: "sdata2", ehpe.SData4: "sdata4", ehpe.SData8: "sdata8",
	}
	pointerBases = map[uint8]string{
		ehpe.PCRel: "pcrel", ehpe.TextRel: "textrel", ehpe.DataRel: "datarel", ehpe.FuncRel: "funcrel", ehpe.Aligned: "aligned",
	}
)

// pointerEncoding is an encoding in the names of the LSB.
func pointerEncoding(e uint8) string {
	if e == ehpe.Omit {
		return "DW_EH_PE_omit"
	}
	format, ok := pointerFormats[e&ehpe.FormatMask]
	base, based := pointerBases[e&ehpe.ApplicationMask]
	if !ok || !based && e&ehpe.ApplicationMask != ehpe.Absolute {
		return fmt.Sprintf("0x%02x", e)
	}
	s := "DW_EH_PE_" + format
	if based {
		s = "DW_EH_PE_" + base + "|" + s
	}
	if e&ehpe.Indirect != 0 {
		s = "DW_EH_PE_indirect|" + s
	}
	return s
}

// pointer is an encoded pointer's value; "" where there is none.
func pointer(p cfi.Pointer) string {
	switch {
	case !p.Present:
		return ""
	case p.Indirect:
		return fmt.Sprintf("*0x%x", p.Address)
	}
	return fmt.Sprintf("0x%x", p.Address)
}

func (c *CallFrames) entry(e listing.CallFrameEntry) jsonEntry {
	out := jsonEntry{Section: e.Section, Offset: e.Offset, Kind: "terminator", Length: e.Length, Format: "DWARF32"}
	if e.DWARF64 {
		out.Format = "DWARF64"
	}
	if i := e.CIE; i != nil {
		out.Kind = "CIE"
		out.jsonCIE = &jsonCIE{
			Version: i.Version, Augmentation: i.Augmentation, AddressSize: i.AddressSize, SegmentSize: i.SegmentSize,
			CodeAlignment: i.CodeAlignment, DataAlignment: i.DataAlignment, ReturnAddress: c.Register(i.ReturnAddress),
			FDEEncoding: pointerEncoding(i.FDEEncoding), Personality: pointer(i.Personality),
			SignalFrame: i.SignalFrame, BKey: i.BKey,
		}
		if i.LSDAEncoding != ehpe.Omit {
			out.LSDAEncoding = pointerEncoding(i.LSDAEncoding)
		}
	}
	if f := e.FDE; f != nil {
		out.Kind = "FDE"
		out.jsonFDE = &jsonFDE{
			CIE: f.CIE.Offset, Start: fmt.Sprintf("0x%x", f.Start), End: fmt.Sprintf("0x%x", f.End),
			Code: e.Code, Segment: f.Segment, LSDA: pointer(f.LSDA),
		}
	}
	return out
}

// instructions calls f with the instructions of an entry. Ill-formed instructions that can be
// read go to problem too.
func (c *CallFrames) instructions(e listing.CallFrameEntry, problem func(error), f func(*cfi.Instruction) error) (stop error) {
	list := func(yield func(cfi.Instruction, error) bool) {}
	switch {
	case e.CIE != nil:
		list = e.CIE.Instructions()
	case e.FDE != nil:
		list = e.FDE.Instructions()
	}
	for instruction, err := range list {
		if err != nil {
			problem(fmt.Errorf("%s: %w", c.File, err))
			return nil
		}
		if err := c.wrongInstruction(&instruction); err != nil {
			problem(fmt.Errorf("%s: %s: offset %#x: %w", c.File, e.Section, instruction.Offset, err))
		}
		if err := f(&instruction); err != nil {
			return err
		}
	}
	return nil
}

// operand is an operand as text, with the base that it counts from.
func (c *CallFrames) operand(instruction *cfi.Instruction, o *cfi.Operand) string {
	switch o.Kind {
	case cfi.RegisterOperand:
		return c.Register(o.Value)
	case cfi.AddressOperand:
		return fmt.Sprintf("0x%x", o.Value)
	case cfi.SpaceOperand:
		return c.Space(locexpr.AddressSpace(o.Value))
	case cfi.ExpressionOperand:
		return "expr:" + hex.EncodeToString(o.Expr)
	case cfi.OffsetOperand:
		n := int64(o.Value)
		switch {
		case strings.HasPrefix(instruction.Name, "DW_CFA_val_"):
			return "valcfa" + signed(n)
		case instruction.Name == "DW_CFA_GNU_negative_offset_extended":
			return "cfa" + signed(-n)
		case strings.HasPrefix(instruction.Name, "DW_CFA_offset"):
			return "cfa" + signed(n)
		}
		return fmt.Sprint(n)
	}
	return fmt.Sprint(o.Value)
}

// changesLocation reports whether an instruction sets or advances the location.
func changesLocation(instruction *cfi.Instruction) bool {
	return len(instruction.Operands) == 1 && (instruction.Operands[0].Kind == cfi.AdvanceOperand || instruction.Operands[0].Kind == cfi.AddressOperand)
}

// WriteCFIJSON writes every entry with its instructions, and the problems.
func (c *CallFrames) WriteCFIJSON(w io.Writer) error {
	l := newJSONList(w, "entries")
	for e, err := range c.Entries {
		if err != nil {
			l.problems.add(err)
			continue
		}
		header, err := marshal(c.entry(e))
		if err != nil {
			return err
		}
		l.next()
		l.put(strings.TrimSuffix(header, "}"), `,"instructions":[`)
		comma := ""
		stop := c.instructions(e, l.problems.add, func(instruction *cfi.Instruction) error {
			out := jsonInstruction{Offset: instruction.Offset, Op: instruction.Name, Operands: []string{}}
			for i := range instruction.Operands {
				o := &instruction.Operands[i]
				out.Operands = append(out.Operands, c.operand(instruction, o))
				if o.Kind == cfi.ExpressionOperand {
					out.Expression = c.Expression(o.Expr)
				}
			}
			if changesLocation(instruction) && e.FDE != nil {
				out.Location = fmt.Sprintf("0x%x", instruction.Location)
			}
			text, err := marshal(out)
			if err != nil {
				return err
			}
			l.put(comma, "\n  ", text)
			comma = ","
			return l.check()
		})
		if stop != nil {
			return stop
		}
		l.put("]}")
		if err := l.check(); err != nil {
			return err
		}
	}
	if err := c.unwindJSON(l); err != nil {
		return err
	}
	if err := c.compactJSON(l); err != nil {
		return err
	}
	return l.finish()
}

// WriteCFIText writes every entry with its instructions for people.
func (c *CallFrames) WriteCFIText(w io.Writer) error {
	b := NewPrinter(w)
	p := newPaint(c.Color)
	section := ""
	var blank layout
	for e, err := range c.Entries {
		if err != nil {
			c.Problem(err)
			continue
		}
		if e.Section != section {
			section = e.Section
			b.printf(blank+"%s\n\n", p.header(fmt.Sprintf("%s, %d bytes", section, e.Size)))
			blank = ""
		}
		b.printf(blank)
		blank = "\n"
		c.entryText(b, p, e)
		if err := c.instructionsText(b, e); err != nil {
			return err
		}
	}
	if err := c.unwindText(b, p, blank); err != nil {
		return err
	}
	if err := c.compactText(b, p, blank); err != nil {
		return err
	}
	return b.Flush()
}

// entryText writes the header fields of an entry.
func (c *CallFrames) entryText(b *Printer, p paint, e listing.CallFrameEntry) {
	out := c.entry(e)
	b.printf("%08x  %s  ", e.Offset, p.function(out.Kind))
	var fields []string
	field := func(format string, args ...any) { fields = append(fields, fmt.Sprintf(format, args...)) }
	switch {
	case e.FDE != nil:
		f := out.jsonFDE
		b.printf("%s to %s", f.Start, f.End)
		if f.Code != "" {
			b.printf(" of %s", f.Code)
		}
		b.printf("  CIE %08x", f.CIE)
		if f.Segment != 0 {
			field("segment %#x", f.Segment)
		}
		if f.LSDA != "" {
			field("LSDA %s", f.LSDA)
		}
	case e.CIE != nil:
		i := out.jsonCIE
		b.printf("version %d  augmentation %q", i.Version, i.Augmentation)
		field("code alignment %d", i.CodeAlignment)
		field("data alignment %d", i.DataAlignment)
		field("return address %s", i.ReturnAddress)
		field("address size %d", i.AddressSize)
		if i.SegmentSize != 0 {
			field("segment selector size %d", i.SegmentSize)
		}
		if i.Augmentation != "" {
			field("FDE pointers %s", i.FDEEncoding)
		}
		if i.LSDAEncoding != "" {
			field("LSDA pointers %s", i.LSDAEncoding)
		}
		if i.Personality != "" {
			field("personality %s", i.Personality)
		}
		if i.SignalFrame {
			field("signal frame")
		}
		if i.BKey {
			field("signed with the B key")
		}
	}
	b.printf("  length %d", e.Length)
	if e.DWARF64 {
		b.printf("  DWARF64")
	}
	b.printf("\n")
	if len(fields) > 0 {
		b.printf("          %s\n", strings.Join(fields, ", "))
	}
}

// instructionsText writes instructions; consecutive equal ones, which are padding, are one
// line.
func (c *CallFrames) instructionsText(b *Printer, e listing.CallFrameEntry) error {
	nops := 0
	padding := func() {
		switch {
		case nops == 1:
			b.printf("          DW_CFA_nop\n")
		case nops > 1:
			b.printf("          %-26s %d times\n", "DW_CFA_nop", nops)
		}
		nops = 0
	}
	stop := c.instructions(e, c.Problem, func(instruction *cfi.Instruction) error {
		if instruction.Name == "DW_CFA_nop" {
			nops++
			return nil
		}
		padding()
		var operands []string
		for i := range instruction.Operands {
			o := &instruction.Operands[i]
			if o.Kind == cfi.ExpressionOperand {
				operands = append(operands, c.Expression(o.Expr))
				continue
			}
			operands = append(operands, c.operand(instruction, o))
		}
		line := strings.Join(operands, ", ")
		if changesLocation(instruction) && instruction.Operands[0].Kind == cfi.AdvanceOperand && e.FDE != nil {
			line += fmt.Sprintf(" to 0x%x", instruction.Location)
		}
		if line == "" {
			b.printf("          %s\n", instruction.Name)
		} else {
			b.printf("          %-26s %s\n", instruction.Name, line)
		}
		return b.check()
	})
	padding()
	return stop
}
