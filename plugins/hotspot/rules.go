// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"context"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// DWARF numbers of x86_64's registers.
const (
	regRBX = 3
	regRBP = 6
	regRSP = 7
	regR12 = 12
	regR13 = 13
	regR14 = 14
	regR15 = 15
	regRIP = 16
)

// calleeSaved are the registers that C code keeps, and Java's code does not.
var calleeSaved = [...]uint64{regRBX, regR12, regR13, regR14, regR15}

// CodeRules finds the blobs at PCs, their rows and methods.
func (p *plugin) CodeRules(ctx context.Context, e sdk.RuntimeEngine, req *sdk.CodeRulesRequest) (*sdk.CodeRulesAnswer, error) {
	m, isOpen := p.known.Get(req.Runtime)
	if !isOpen {
		return nil, sdk.ErrObjectNotOpen
	}
	r := m.newReader(ctx, e)
	answer := &sdk.CodeRulesAnswer{Code: make([]sdk.CodeRules, len(req.PCs))}
	r.prefetchCode(req.PCs)
	for i, pc := range req.PCs {
		if err := r.rules(pc, &answer.Code[i]); err != nil {
			answer.Code[i] = sdk.CodeRules{Reason: err.Error()}
		}
		if r.Err() != nil {
			return nil, r.Err()
		}
	}
	return answer, nil
}

// reader reads the memory of a process while a call is under way.
type reader struct {
	*machine
	*sdk.MemoryReader
	methods     map[uint64]*method                // by address
	blobs       map[uint64]*blob                  // by address
	classFields map[uint64]map[string]objectField // by class
	heapShape   heapShape
}

func (m *machine) newReader(ctx context.Context, e sdk.RuntimeEngine) *reader {
	r := &reader{
		machine: m, MemoryReader: sdk.NewMemoryReader(ctx, e, m.request.ByteOrder, m.request.AddressBits),
		methods: map[uint64]*method{}, blobs: map[uint64]*blob{}, classFields: map[uint64]map[string]objectField{},
	}
	r.readShape()
	return r
}

// prefetchCode reads ahead what many PCs need, so that there are few requests.
func (r *reader) prefetchCode(pcs []uint64) {
	var maps []uint64
	for _, pc := range pcs {
		if h := r.heapOf(pc); h != nil {
			maps = append(maps, h.segmap+(pc-h.low)>>h.segmentShift)
		}
	}
	r.Prefetch(maps, 1)
	r.Prefetch(pcs, 1)
}

// rules finds the rows and names at a PC.
func (r *reader) rules(pc uint64, out *sdk.CodeRules) error {
	if r.queue.has(pc) {
		if c := r.queue.find(pc); c != nil {
			out.Start, out.End, out.Rows = c.start, c.end, c.rows()
			out.Frames = []sdk.ManagedFrame{{Function: "interpreter: " + c.description, Kind: sdk.Builtin}}
		}
		return nil
	}
	if r.entry.has(pc) {
		out.Start, out.End, out.Rows = r.entry.start, r.entry.end, []cfi.Row{entryRow(r.entry)}
		out.Frames = []sdk.ManagedFrame{{Function: "call_stub", Kind: sdk.Entry}}
		return nil
	}
	b, err := r.blobAt(r.MemoryReader, pc)
	if err != nil {
		return err
	}
	if !b.code.has(pc) {
		return nil
	}
	r.blobs[b.address] = b
	if b.code.has(r.entry.start) { // code beside the call stub has other frames
		out.Start, out.End = otherPart(b.code, r.entry, pc)
	} else {
		out.Start, out.End = b.code.start, b.code.end
	}
	if out.Rows, err = r.blobRows(b); err != nil {
		return err
	}
	if !b.isNmethod {
		out.Frames = []sdk.ManagedFrame{{Function: b.name, Kind: sdk.Builtin}}
		return nil
	}
	out.Frames, _ = r.framesAt(b, pc) // ManagedFrames reports the error
	if len(out.Frames) == 0 {
		out.Frames = []sdk.ManagedFrame{{Function: b.name, Kind: sdk.Compiled}}
	}
	return nil
}

// otherPart returns the part of code, before or behind another part of it, that has a PC.
func otherPart(whole, part codeRange, pc uint64) (start, end uint64) {
	if pc < part.start {
		return whole.start, part.start
	}
	return part.end, whole.end
}

// javaRow is a row of code whose caller has nothing in registers but rbp.
func javaRow(part codeRange, cfa cfi.CFARule, rules ...cfi.RegisterRule) cfi.Row {
	row := cfi.Row{Start: part.start, End: part.end, CFA: cfa, ReturnAddress: regRIP}
	for _, register := range calleeSaved {
		rules = append(rules, cfi.RegisterRule{Column: register, Rule: cfi.Rule{Kind: cfi.Undefined}})
	}
	row.Rules = append(rules, saved(regRIP, -8))
	sortRules(row.Rules)
	return row
}

// saved is the rule of a register that is saved at an offset from the CFA.
func saved(register uint64, offset int64) cfi.RegisterRule {
	return cfi.RegisterRule{Column: register, Rule: cfi.Rule{Kind: cfi.Offset, Offset: offset}}
}

// sortRules sorts rules by column.
func sortRules(rules []cfi.RegisterRule) {
	for i := 1; i < len(rules); i++ {
		for k := i; k > 0 && rules[k].Column < rules[k-1].Column; k-- {
			rules[k], rules[k-1] = rules[k-1], rules[k]
		}
	}
}

// byRegister is the CFA that is a register with an offset.
func byRegister(register uint64, offset int64) cfi.CFARule {
	return cfi.CFARule{Kind: cfi.CFARegister, Register: register, Offset: offset}
}

// senderSP is the expression, on the stack with the CFA, for the stack pointer of an interpreted
// method's caller: the frame has it in the word below the frame record, and it is at the CFA, or above
// it by the arguments for which a compiled caller has made no room.
var senderSP = []byte{
	0x76, 0x78, 0x06, // DW_OP_breg6 -8; DW_OP_deref
	0x14, 0x1c, // DW_OP_over; DW_OP_minus: how far it is above the CFA
	0x12, 0x0c, 0x00, 0x00, 0x01, 0x00, 0x2d, // DW_OP_dup; DW_OP_const4u 65536; DW_OP_lt
	0x14, 0x30, 0x2a, 0x1a, // DW_OP_over; DW_OP_lit0; DW_OP_ge; DW_OP_and
	0x28, 0x02, 0x00, 0x13, 0x30, // DW_OP_bra 2; DW_OP_drop; DW_OP_lit0
	0x22, // DW_OP_plus
}

// rows are the rows of a part of the interpreter.
func (c *codelet) rows() (list []cfi.Row) {
	for _, part := range c.frame {
		list = append(list, javaRow(part, byRegister(regRBP, 16), saved(regRBP, -16),
			cfi.RegisterRule{Column: regRSP, Rule: cfi.Rule{Kind: cfi.ValExpression, Expr: senderSP}}))
	}
	return list
}

// entryRow is the row of the call stub, which keeps all registers of its caller.
func entryRow(part codeRange) cfi.Row {
	row := cfi.Row{Start: part.start, End: part.end, CFA: byRegister(regRBP, 16), ReturnAddress: regRIP}
	row.Rules = []cfi.RegisterRule{saved(regRBP, -16), saved(regRIP, -8)}
	// entryWords are the words below the frame record in which they are kept.
	for register, words := range map[uint64]int64{regRBX: 7, regR12: 8, regR13: 9, regR14: 10, regR15: 11} {
		row.Rules = append(row.Rules, saved(register, -16-8*words))
	}
	sortRules(row.Rules)
	return row
}

// frameless are the names of blobs whose code changes no stack pointer.
var frameless = map[string]bool{"vtable chunks": true}

// blobRows are the rows of a blob: none where the frame is not known.
func (r *reader) blobRows(b *blob) ([]cfi.Row, error) {
	switch {
	case frameless[b.name]:
		return []cfi.Row{callerRow(b.code)}, nil
	case b.frameSize < 16:
		return nil, nil
	}
	code, err := r.Bytes(b.code.start, b.code.end-b.code.start)
	if err != nil {
		return nil, err
	}
	return frameRows(b, code), nil
}

// callerRow is a row of code before its frame is made.
func callerRow(part codeRange) cfi.Row {
	return javaRow(part, byRegister(regRSP, 8))
}

// pushedRow is a row of code that has pushed rbp.
func pushedRow(part codeRange) cfi.Row {
	return javaRow(part, byRegister(regRSP, 16), saved(regRBP, -16))
}

// framedRow is a row of code whose frame is there.
func framedRow(part codeRange, frameSize uint64) cfi.Row {
	return javaRow(part, byRegister(regRSP, int64(frameSize)), saved(regRBP, -16)) //nolint:gosec // at most maxBlobSize
}

// frameRows are the rows of code with a frame of one size, by the instructions that make it and take it
// down.
func frameRows(b *blob, code []byte) (list []cfi.Row) {
	at := func(i int) uint64 { return b.code.start + uint64(i) } //nolint:gosec // an index
	start := 0
	if b.isNmethod && b.complete > b.code.start && b.complete <= b.code.end {
		made := int(b.complete - b.code.start) //nolint:gosec // in the code
		pushed, done := findPrologue(code[:made], b.frameSize)
		switch {
		case done < 0: // how the frame is made is not known
		case pushed < 0:
			list = append(list, callerRow(codeRange{b.code.start, at(done)}))
			made = done
		default:
			list = append(list, callerRow(codeRange{b.code.start, at(pushed)}), pushedRow(codeRange{at(pushed), at(done)}))
			made = done
		}
		start = made
	}
	for _, exit := range findEpilogues(code, start, b.frameSize) {
		if exit.added < start {
			continue
		}
		list = append(list, framedRow(codeRange{at(start), at(exit.added)}, b.frameSize), pushedRow(codeRange{at(exit.added), at(exit.popped)}))
		if !exit.isOpen {
			list = append(list, callerRow(codeRange{at(exit.popped), at(exit.end)}))
		}
		start = exit.end
	}
	if start < len(code) {
		list = append(list, framedRow(codeRange{at(start), b.code.end}, b.frameSize))
	}
	return slices.DeleteFunc(list, func(row cfi.Row) bool { return row.Start >= row.End })
}
