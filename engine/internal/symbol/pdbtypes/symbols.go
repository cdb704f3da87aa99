// SPDX-License-Identifier: Apache-2.0

package pdbtypes

import (
	"github.com/unwindd/unwindd/engine/internal/symbol/codeview"
	"github.com/unwindd/unwindd/engine/internal/symbol/msf"
	"github.com/unwindd/unwindd/engine/internal/symbol/pdb"
)

// Kinds of symbol records (cvinfo.h).
const (
	symEnd             = 0x0006
	symFrameProc       = 0x1012
	symBlock           = 0x1103
	symRegister        = 0x1106
	symConstant        = 0x1107
	symBPRelative      = 0x110b
	symLocalData       = 0x110c
	symGlobalData      = 0x110d
	symRegRelative     = 0x1111
	symLocalThread     = 0x1112
	symGlobalThread    = 0x1113
	symLocal           = 0x113e
	symDefRegister     = 0x1141
	symDefFrameRel     = 0x1142
	symDefSubfield     = 0x1143
	symDefFrameRelFull = 0x1144
	symDefRegRel       = 0x1145
	symLocalProcID     = 0x1146
	symGlobalProcID    = 0x1147
	symInlineSite      = 0x114d
	symInlineSiteEnd   = 0x114e
	symProcIDEnd       = 0x114f
	symFileStatic      = 0x1153
	symLocalDPCID      = 0x1156
	symInlineSite2     = 0x115d
	symRegRelIndirect  = 0x1171
	symDefRegRelInd    = 0x1177
)

// fields are the parts of a record.
type fields struct{ msf.Fields }

func fieldsOf(b []byte) fields { return fields{msf.Fields{Rest: b}} }

func (r *fields) i32() int64              { return int64(int32(r.U32())) } //nolint:gosec // signed
func (r *fields) typ() codeview.TypeIndex { return codeview.TypeIndex(r.U32()) }

// static is a variable that has one place, or a constant.
type static struct {
	name                 string
	typ                  codeview.TypeIndex
	section              uint16
	offset               uint32
	isThread, isConstant bool
	value                codeview.Number
}

// decodeStatic reads a record of a variable at an address, of thread-local storage, or of a
// constant; false for others.
func decodeStatic(r pdb.Record) (v static, ok bool) {
	f := fieldsOf(r.Data)
	v.typ = f.typ()
	switch r.Kind {
	case symLocalData, symGlobalData, symLocalThread, symGlobalThread:
		v.offset, v.section = f.U32(), f.U16()
		v.isThread = r.Kind == symLocalThread || r.Kind == symGlobalThread
	case symConstant:
		v.isConstant = true
		if v.value, f.Rest, ok = codeview.ReadNumber(f.Rest); !ok {
			return v, false
		}
	default:
		return v, false
	}
	v.name = f.Text()
	return v, !f.IsCut
}
