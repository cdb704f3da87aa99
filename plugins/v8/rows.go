// SPDX-License-Identifier: Apache-2.0

package v8

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// This file finds the code that V8 made, and its own code in machine code that its builders
// embedded, and how frames of both are left: a call saves the frame pointer first.

// codeRange is code of an isolate.
type codeRange struct {
	start, size uint64
	isBuiltin   bool // V8's own
}

func (r codeRange) has(address uint64) bool { return address-r.start < r.size }

// The symbols of functions that read members of an isolate, and of V8's own code that has other
// frames.
const (
	symbolCodeRange = iota
	symbolBlob
	symbolBlobSize
	symbolAddresses
	symbolHandles
	symbolCurrentBlob // a variable: the address of V8's own code in its module
	symbolVersionText // a function of V8's interface, which every build for extensions exports
	symbolOwnFrame    // of V8's own code; others follow
)

var codeSymbols = []string{
	symbolCodeRange:   "_ZN2v87Isolate12GetCodeRangeEPPvPm",
	symbolBlob:        "_ZNK2v88internal7Isolate18embedded_blob_codeEv",
	symbolBlobSize:    "_ZNK2v88internal7Isolate23embedded_blob_code_sizeEv",
	symbolAddresses:   "_ZN2v88internal7Isolate19get_address_from_idENS0_16IsolateAddressIdE",
	symbolHandles:     "_ZN2v88internal11HandleScope20current_next_addressEPNS0_7IsolateE",
	symbolCurrentBlob: "_ZN2v88internal12_GLOBAL__N_127current_embedded_blob_code_E",
	symbolVersionText: "_ZN2v82V810GetVersionEv",
	// These save other registers, or have no frame pointer of their own.
	symbolOwnFrame:     "Builtins_JSEntry",
	symbolOwnFrame + 1: "Builtins_JSConstructEntry",
	symbolOwnFrame + 2: "Builtins_JSRunMicrotasksEntry",
	symbolOwnFrame + 3: "Builtins_DirectCEntry",
	symbolOwnFrame + 4: "Builtins_DeoptimizationEntry_Eager",
	symbolOwnFrame + 5: "Builtins_DeoptimizationEntry_Lazy",
}

// isolateLayout is where an isolate has its code.
type isolateLayout struct {
	codeRange, rangeBounds uint64 // a pointer to a range, and where that has its start and size
	blob, blobSize         uint64 // of V8's own code
	// addresses is where it has the addresses of members, and handles where the one of the place
	// behind the newest handle; 0: unknown.
	addresses, handles uint64
}

// isolateLayoutOf reads the layout from the instructions of V8's functions: each loads one member.
func isolateLayoutOf(r *sdk.MemoryReader, symbols []sdk.SymbolPlace) (l isolateLayout, ok bool) {
	const most = 64 // bytes of the functions
	var code [symbolCurrentBlob][]byte
	for i := range code {
		if !symbols[i].IsKnown {
			if i < symbolAddresses {
				return l, false
			}
			continue // exceptions alone need it
		}
		b, err := r.Bytes(symbols[i].Address, most)
		if err != nil {
			return l, false
		}
		code[i] = b
	}
	blob, isBlob := displacement(code[symbolBlob], []byte{0x48, 0x8b, 0x87}) // mov blob(%rdi),%rax
	size, isSize := displacement(code[symbolBlobSize], []byte{0x8b, 0x87})   // mov size(%rdi),%eax
	codes, isCode := displacement(code[symbolCodeRange], []byte{0x48, 0x8b, 0x87})
	at := bytes.Index(code[symbolCodeRange], []byte{0x48, 0x8b, 0x40}) // mov bounds(%rax),%rax
	if !isBlob || !isSize || !isCode || at < 0 || at+4 > most {
		return l, false
	}
	l = isolateLayout{codeRange: codes, rangeBounds: uint64(code[symbolCodeRange][at+3]), blob: blob, blobSize: size}
	l.addresses, _ = displacement(code[symbolAddresses], []byte{0x48, 0x8b, 0x84, 0xf7}) // mov addresses(%rdi,%rsi,8),%rax
	l.handles, _ = displacement(code[symbolHandles], []byte{0x48, 0x8d, 0x87})           // lea handles(%rdi),%rax
	return l, true
}

// displacement returns the displacement of 32 bits behind the first place of an instruction.
func displacement(code, instruction []byte) (uint64, bool) {
	at := bytes.Index(code, instruction)
	if at < 0 || at+len(instruction)+4 > len(code) {
		return 0, false
	}
	n := binary.LittleEndian.Uint32(code[at+len(instruction):])
	return uint64(n), n < 1<<20
}

const (
	// stackAhead is how many bytes of a thread's stack are searched for isolates.
	stackAhead = 64 << 10
	// maxCandidates bounds the words that may lead to isolates.
	maxCandidates = 1 << 16
	// maxRange bounds the bytes that an isolate reserves for code.
	maxRange = 4 << 30
	// maxIsolates bounds the isolates of a process: workers have one each.
	maxIsolates = 1 << 10
)

// finder finds the code of isolates.
type finder struct {
	ctx    context.Context
	engine sdk.RuntimeEngine
	req    *sdk.OpenRuntimeRequest
	r      *sdk.MemoryReader

	layout   isolateLayout
	isolates []uint64 // that were found
}

// ranges returns the code of the isolates that words on the stacks of threads lead to.
func (f *finder) ranges() (list []codeRange) {
	l, ok := isolateLayoutOf(f.r, f.req.Symbols[len(symbolNames)-len(codeSymbols):])
	if !ok {
		return nil
	}
	f.layout = l
	candidates := f.candidates()
	holders := f.words(candidates, l.codeRange)
	blobs := f.words(candidates, l.blob)
	for i, isolate := range candidates {
		holder, blob := holders[i], blobs[i]
		if holder == 0 || holder%8 != 0 || holder>>47 != 0 || blob == 0 || blob%codeAlignment != 0 || blob>>47 != 0 {
			continue
		}
		if len(list) >= 2*maxIsolates {
			break
		}
		if found := f.rangesOf(&l, isolate, holder, blob); len(found) > 0 {
			list, f.isolates = append(list, found...), append(f.isolates, isolate)
		}
	}
	slices.SortFunc(list, func(a, b codeRange) int {
		return slices.Compare([]uint64{a.start, a.size}, []uint64{b.start, b.size})
	})
	return slices.Compact(list)
}

// rangesOf returns the code of an isolate; none where a word leads to something else.
func (f *finder) rangesOf(l *isolateLayout, isolate, holder, blob uint64) []codeRange {
	start, err := f.r.Pointer(holder + l.rangeBounds)
	if err != nil {
		return nil
	}
	size, err := f.r.Pointer(holder + l.rangeBounds + 8)
	const page = 4096
	if err != nil || start == 0 || start%page != 0 || start>>47 != 0 || size < page || size%page != 0 || size > maxRange {
		return nil
	}
	blobSize, err := f.r.Uint(isolate+l.blobSize, 4)
	if err != nil || blobSize < page || blobSize > maxRange {
		return nil
	}
	code, builtins := codeRange{start: start, size: size}, codeRange{blob, blobSize, true}
	if !code.has(blob) && blob != f.blob() && !f.isInModule(blob) {
		return nil
	}
	list := []codeRange{code, builtins}
	if own := f.blob(); own != 0 && own != blob { // code may be executed in both places
		list = append(list, codeRange{own, blobSize, true})
	}
	return list
}

// isInModule reports whether an address is in the module.
func (f *finder) isInModule(address uint64) bool {
	return slices.ContainsFunc(f.req.Segments, func(s sdk.RuntimeSegment) bool { return address-s.Start < s.Size })
}

// blob returns the address of V8's own code in its module; 0: unknown.
func (f *finder) blob() uint64 {
	s := &f.req.Symbols[len(symbolNames)-len(codeSymbols)+symbolCurrentBlob]
	if !s.IsKnown {
		return 0
	}
	blob, _ := f.r.Pointer(s.Address)
	return blob
}

// candidates returns the words on the stacks of threads that may be addresses of isolates.
func (f *finder) candidates() (list []uint64) {
	buf := make([]byte, stackAhead)
	for _, th := range f.req.Threads {
		registers, err := f.engine.ReadRegisters(f.ctx, th.Thread, []uint32{f.req.SP})
		if err != nil {
			continue
		}
		sp, ok := registers.Uint64(f.req.SP, f.req.ByteOrder)
		if !ok || sp > ^uint64(0)-stackAhead {
			continue
		}
		for _, w := range f.stackWords(sp&^7, buf) {
			if w%16 == 0 && w>>16 != 0 && w>>47 == 0 {
				list = append(list, w)
			}
		}
		slices.Sort(list)
		if list = slices.Compact(list); len(list) > maxCandidates {
			return list[:maxCandidates]
		}
	}
	return list
}

// stackWords returns the words of a stack from an address on, as far as they are there.
func (f *finder) stackWords(sp uint64, buf []byte) (list []uint64) {
	for size := len(buf); size >= 1024; size /= 2 {
		n, _ := f.engine.ReadMemory(f.ctx, sdk.MemoryRange{Address: sp, Lane: -1}, buf[:size])
		if n == 0 && size > 1024 {
			continue
		}
		for at := 0; at+8 <= n; at += 8 {
			list = append(list, f.r.Number(buf[at:at+8]))
		}
		break
	}
	return list
}

// words reads the word at an offset from each address; 0 where it is not there.
func (f *finder) words(addresses []uint64, offset uint64) []uint64 {
	list := make([]uint64, len(addresses))
	places := make([]uint64, len(addresses))
	for i, a := range addresses {
		places[i] = a + offset
	}
	buf := make([]byte, 8*len(addresses))
	missing, err := sdk.ReadParts(f.ctx, f.engine, places, 8, buf)
	if err != nil && len(missing) == 0 {
		return list
	}
	for i := range list {
		list[i] = f.r.Number(buf[8*i : 8*i+8])
	}
	for _, i := range missing {
		list[i] = 0
	}
	return list
}

// CodeRules finds how frames of V8's code are left.
func (p *plugin) CodeRules(ctx context.Context, e sdk.RuntimeEngine, req *sdk.CodeRulesRequest) (*sdk.CodeRulesAnswer, error) {
	one, isKnown := p.known.Get(req.Runtime)
	if !isKnown {
		return nil, sdk.ErrObjectNotOpen
	}
	c := newCall(ctx, e, one)
	before := make([]uint64, len(req.PCs))
	for i, pc := range req.PCs {
		before[i] = pc - callMost
	}
	c.Prefetch(before, 2*callMost)
	answer := &sdk.CodeRulesAnswer{Code: make([]sdk.CodeRules, len(req.PCs))}
	for i, pc := range req.PCs {
		answer.Code[i] = c.rules(pc)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return answer, nil
}

// rules returns the rules of a place: of a call, where the PC is inside one, or else of the
// function, whose instructions the architecture reads.
func (c *call) rules(pc uint64) sdk.CodeRules {
	isBuiltin := slices.ContainsFunc(c.ranges, func(r codeRange) bool { return r.isBuiltin && r.has(pc+1) })
	switch {
	case isBuiltin && slices.ContainsFunc(c.ownFrames, func(r codeRange) bool { return r.has(pc) }):
		return sdk.CodeRules{Reason: "the architecture reads it"}
	case c.isBehindCall(pc + 1), isBuiltin && c.isPadding(pc):
		return c.framePointer(pc)
	case isBuiltin:
		return sdk.CodeRules{Reason: "the architecture reads V8's own code, where it is not behind a call"}
	}
	m, err := c.codeAt(pc)
	if err != nil || pc >= m.end {
		return sdk.CodeRules{Reason: errNoCode.Error()}
	}
	return sdk.CodeRules{Start: m.start, End: m.end}
}

// isPadding reports whether there is no code at an address, between pieces of V8's own. A return
// address behind it is where a frame goes on after V8 has given up its code.
func (c *call) isPadding(address uint64) bool {
	b, err := c.Bytes(address, 1)
	return err == nil && b[0] == 0xcc
}

// callMost is the most bytes that a call has.
const callMost = 8

// isBehindCall reports whether there is a call before a return address.
func (c *call) isBehindCall(pc uint64) bool {
	b, err := c.Bytes(pc-callMost, callMost)
	if err != nil {
		return false
	}
	if b[callMost-5] == 0xe8 { // call rel32
		return true
	}
	for size := 2; size < callMost; size++ { // call r/m64: ff /2, with the bytes that its mode has
		if code := b[callMost-size:]; code[0] == 0xff && code[1]>>3&7 == 2 && modeSize(code[1:]) == size-1 {
			return true
		}
	}
	return false
}

// modeSize returns how many bytes an operand has from its ModRM byte on.
func modeSize(b []byte) int {
	mode, register := b[0]>>6, b[0]&7
	if mode == 3 {
		return 1
	}
	size := 1
	if register == 4 { // a SIB byte
		if size++; len(b) > 1 && mode == 0 && b[1]&7 == 5 {
			return size + 4
		}
	}
	switch {
	case mode == 1:
		size++
	case mode == 2, mode == 0 && register == 5:
		size += 4
	}
	return size
}

// The DWARF numbers of x86-64 of the registers that V8's code uses as it likes.
var clobbered = []uint64{3, 12, 13, 14, 15}

// framePointer returns the row of one place: the frame pointer leads to the caller's, and above
// that is the return address.
func (c *call) framePointer(pc uint64) sdk.CodeRules {
	row := cfi.Row{
		Start: pc, End: pc + 1,
		CFA:           cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(c.request.FP), Offset: frameHead},
		ReturnAddress: uint64(c.request.ReturnAddress),
	}
	rules := map[uint64]cfi.Rule{
		uint64(c.request.FP):            {Kind: cfi.Offset, Offset: -frameHead},
		uint64(c.request.SP):            {Kind: cfi.ValOffset},
		uint64(c.request.ReturnAddress): {Kind: cfi.Offset, Offset: -8},
	}
	for _, r := range clobbered {
		rules[r] = cfi.Rule{Kind: cfi.Undefined}
	}
	for r := range uint64(32) {
		if rule, ok := rules[r]; ok {
			row.Rules = append(row.Rules, cfi.RegisterRule{Column: r, Rule: rule})
		}
	}
	return sdk.CodeRules{Start: pc, End: pc + 1, Rows: []cfi.Row{row}}
}
