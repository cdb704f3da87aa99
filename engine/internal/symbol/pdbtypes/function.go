// SPDX-License-Identifier: Apache-2.0

package pdbtypes

import (
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/codeview"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/internal/symbol/pdb"
	"github.com/unwindd/unwindd/internal/dw"
)

// functionWriter writes the unit of a function.
type functionWriter struct {
	*unit
	records *pdb.FunctionRecords
	sites   map[uint32][]symbol.CodeRange
	code    []symbol.CodeRange // of the function
	body    []symbol.CodeRange // between its prologue and its epilogue
	locals  base
	params  base
	scopes  int // open blocks and inlined calls
	hidden  int // scopes without code that are open, of which nothing is written
	left    int // parameters of which the records do not tell that they are such

	variable *variable // whose places follow; nil: none
	placed   map[variableName]bool
}

// variableName is a variable whose place was read.
type variableName struct {
	name string
	typ  codeview.TypeIndex
}

// maxDepth bounds the scopes in one another.
const maxDepth = 100

// languages are DWARF's languages by CV_CFL_LANG.
var languages = map[uint8]uint64{0: dw.LangC11, 1: dw.LangCPP14, 2: dw.LangFortran95, 0x15: dw.LangRust}

// Function implements dwarf.Maker.
func (m *maker) Function(address uint64) (dwarf.GeneratedUnit, error) {
	r, ok := m.file.FunctionRecords(address)
	if !ok {
		return dwarf.GeneratedUnit{}, fmt.Errorf("%s: no function at %#x", m.file.Name(), address)
	}
	language, _, _ := r.Compiler()
	dwLanguage, isKnown := languages[language]
	if !isKnown {
		dwLanguage = dw.LangCPP14
	}
	w := &functionWriter{unit: m.newUnit(false, 0), records: r, sites: r.Sites(), code: r.Code(), placed: map[variableName]bool{}}
	w.entry(dw.TagCompileUnit, true, number(dw.AttrLanguage, dwLanguage))
	isFirst := true
	var failed error
	r.Each(func(s pdb.Record) bool {
		if isFirst {
			isFirst = false
			w.begin(s)
			return true
		}
		failed = w.record(s)
		return failed == nil && len(w.out.Info) < maxUnit
	})
	w.flush()
	if failed != nil {
		return dwarf.GeneratedUnit{}, failed
	}
	for w.open > 1 {
		w.end()
	}
	return w.finish()
}

// begin writes the function.
func (w *functionWriter) begin(s pdb.Record) {
	f := fieldsOf(s.Data)
	f.Take(16) // parent, end, next, size
	start, end := uint64(f.U32()), uint64(f.U32())
	typ := f.typ()
	f.Take(7) // address and flags
	name := f.Text()
	w.body = w.code
	if len(w.code) > 0 && start > 0 && start <= end && w.code[0].Start+end < w.code[0].End {
		// The body ends where the epilogue begins. Separated code is all body.
		w.body = append([]symbol.CodeRange{{Start: w.code[0].Start + start, End: w.code[0].Start + end + 1}}, w.code[1:]...)
	}
	if s.Kind == symLocalProcID || s.Kind == symGlobalProcID || s.Kind == symLocalDPCID {
		typ = w.ids.FunctionType(typ)
	}
	if kind, data, err := w.types.Record(typ); err == nil {
		if p, err := codeview.DecodeProcedure(kind, data); err == nil && (kind == codeview.LFProcedure || kind == codeview.LFMemberFunc) {
			w.left = len(w.arguments(p.Arguments))
			if p.This != 0 {
				w.left++
			}
		}
	}
	name = w.enter(name)
	attrs := []attr{named(name), w.ranges(w.code)}
	w.readFrame()
	if w.locals.isKnown && w.locals.register.size > 0 {
		attrs = append(attrs, expression(dw.AttrFrameBase, registerExpr(nil, w.locals.register.number)))
	}
	w.entry(dw.TagSubprogram, true, attrs...)
}

// readFrame reads the record of the frame. Clang writes it first, Microsoft's compiler after the
// variables that it is needed for.
func (w *functionWriter) readFrame() {
	w.records.Each(func(s pdb.Record) bool {
		if s.Kind != symFrameProc {
			return true
		}
		f := fieldsOf(s.Data)
		f.Take(22)
		flags := f.U32()
		w.locals, w.params = w.base(flags>>14&3), w.base(flags>>16&3)
		return false
	})
}

// recordReaders read the records in a function by their kinds.
var recordReaders map[uint16]func(w *functionWriter, s pdb.Record) error

func init() {
	recordReaders = map[uint16]func(w *functionWriter, s pdb.Record) error{
		symBlock: readBlock, symInlineSite: readSite, symInlineSite2: readSite,
		symEnd: readEnd, symInlineSiteEnd: readEnd, symProcIDEnd: readEnd,
		symLocal: readLocal, symFileStatic: readFileStatic,
		symDefRegister: readDefRegister, symDefFrameRel: readDefFrameRel, symDefSubfield: readDefSubfield,
		symDefFrameRelFull: readDefFrameRelFull, symDefRegRel: readDefRegRel, symDefRegRelInd: readDefRegRelIndirect,
		symRegister: readRegister, symRegRelative: readRegRelative, symRegRelIndirect: readRegRelIndirect, symBPRelative: readBPRelative,
		symLocalData: readStatic, symGlobalData: readStatic, symLocalThread: readStatic, symGlobalThread: readStatic, symConstant: readStatic,
	}
}

// record writes what a record describes.
func (w *functionWriter) record(s pdb.Record) error {
	read := recordReaders[s.Kind]
	if read == nil {
		return nil
	}
	if !isPlace(s.Kind) {
		w.flush()
	}
	if w.hidden > 0 && !isScope(s.Kind) {
		return nil
	}
	return read(w, s)
}

// isPlace reports whether a record is a place of the variable before it.
func isPlace(kind uint16) bool {
	return kind >= symDefRegister && kind <= symDefRegRel || kind == symDefRegRelInd
}

func isScope(kind uint16) bool {
	switch kind {
	case symBlock, symInlineSite, symInlineSite2, symEnd, symInlineSiteEnd, symProcIDEnd:
		return true
	}
	return false
}

// enterScope begins a block or an inlined call. One without code is left out.
func (w *functionWriter) enterScope(tag dw.Tag, code []symbol.CodeRange, attrs ...attr) error {
	if w.hidden > 0 || len(code) == 0 {
		w.hidden++
		return nil
	}
	if w.scopes++; w.scopes > maxDepth {
		return fmt.Errorf("%s: function at %#x: blocks nested deeper than %d", w.file.Name(), w.code[0].Start, maxDepth)
	}
	w.entry(tag, true, append(attrs, w.ranges(code))...)
	return nil
}

func readBlock(w *functionWriter, s pdb.Record) error {
	f := fieldsOf(s.Data)
	f.Take(8)
	size, offset := f.U32(), f.U32()
	return w.enterScope(dw.TagLexicalBlock, w.file.Ranges(f.U16(), offset, size))
}

func readSite(w *functionWriter, s pdb.Record) error {
	f := fieldsOf(s.Data)
	f.Take(8)
	return w.enterScope(dw.TagInlinedSubroutine, w.sites[s.At], named(w.records.InlineeName(f.U32())))
}

func readEnd(w *functionWriter, _ pdb.Record) error {
	switch {
	case w.hidden > 0:
		w.hidden--
	case w.scopes > 0:
		w.scopes--
		w.end()
	}
	return nil
}

func readStatic(w *functionWriter, s pdb.Record) error {
	if v, ok := decodeStatic(s); ok {
		w.writeStatic(&v, true)
	}
	return nil
}
