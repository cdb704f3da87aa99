// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"bytes"

	"github.com/unwindd/unwindd/internal/dw"
)

// skipOf returns the skip over a value of a form; false where the form is unknown.
func (f format) skipOf(form dw.Form) (kind skipKind, size uint8, ok bool) {
	switch form {
	case dw.FormAddr:
		return skipFixed, f.addrSize, true
	case dw.FormFlagPresent, dw.FormImplicitConst:
		return skipFixed, 0, true
	case dw.FormData1, dw.FormRef1, dw.FormFlag, dw.FormStrx1, dw.FormAddrx1:
		return skipFixed, 1, true
	case dw.FormData2, dw.FormRef2, dw.FormStrx2, dw.FormAddrx2:
		return skipFixed, 2, true
	case dw.FormStrx3, dw.FormAddrx3:
		return skipFixed, 3, true
	case dw.FormData4, dw.FormRef4, dw.FormStrx4, dw.FormAddrx4, dw.FormRefSup4:
		return skipFixed, 4, true
	case dw.FormData8, dw.FormRef8, dw.FormRefSig8, dw.FormRefSup8:
		return skipFixed, 8, true
	case dw.FormData16:
		return skipFixed, 16, true
	case dw.FormStrp, dw.FormSecOffset, dw.FormLineStrp, dw.FormStrpSup, dw.FormGNURefAlt, dw.FormGNUStrpAlt:
		return skipFixed, f.offsetSize, true
	case dw.FormRefAddr:
		if f.version <= 2 {
			return skipFixed, f.addrSize, true
		}
		return skipFixed, f.offsetSize, true
	case dw.FormSdata, dw.FormUdata, dw.FormRefUdata, dw.FormStrx, dw.FormAddrx, dw.FormLoclistx, dw.FormRnglistx, dw.FormGNUAddrIndex, dw.FormGNUStrIndex:
		return skipLEB, 0, true
	case dw.FormString:
		return skipString, 0, true
	case dw.FormBlock1:
		return skipBlock1, 0, true
	case dw.FormBlock2:
		return skipBlock2, 0, true
	case dw.FormBlock4:
		return skipBlock4, 0, true
	case dw.FormBlock, dw.FormExprloc:
		return skipBlock, 0, true
	case dw.FormLLVMAddrxOffset:
		return skipAddrxOff, 0, true
	case dw.FormIndirect:
		return skipIndirect, 0, true
	}
	return 0, 0, false
}

// skipValues skips the values of an entry that begin at off; it returns 0 where they do not
// end in info.
func (f format) skipValues(info []byte, off uint64, skips []skip) uint64 {
	size := uint64(len(info))
	for _, s := range skips {
		if off > size {
			return 0
		}
		switch s.kind {
		case skipFixed:
			off += uint64(s.size)
		case skipLEB:
			for off < size && info[off]&0x80 != 0 {
				off++
			}
			off++
		default:
			if off = f.skipVariable(info, off, s.kind); off == 0 {
				return 0
			}
		}
	}
	if off > size {
		return 0
	}
	return off
}

// skipVariable skips a value that is not a plain number.
func (f format) skipVariable(info []byte, off uint64, kind skipKind) uint64 {
	if kind == skipString {
		n := bytes.IndexByte(info[off:], 0)
		if n < 0 {
			return 0
		}
		return off + uint64(n) + 1
	}
	c := cursor{data: info, off: off, end: uint64(len(info)), isBigEndian: f.isBigEndian}
	switch kind {
	case skipBlock1:
		c.skip(c.uint(1))
	case skipBlock2:
		c.skip(c.uint(2))
	case skipBlock4:
		c.skip(c.uint(4))
	case skipBlock:
		c.skip(c.uleb())
	case skipAddrxOff:
		c.uleb()
		c.skip(4)
	case skipIndirect:
		f.read(&c, dw.FormIndirect)
	}
	if c.failed {
		return 0
	}
	return c.off
}

// value is the value of an attribute, not yet interpreted.
type value struct {
	form dw.Form
	n    uint64 // a number, an offset, an index or an address; sign-extended for DW_FORM_sdata and implicit constants
	b    []byte // a block, expression, 16-byte number or inline string: part of the section
}

// read reads a value of a form other than DW_FORM_implicit_const.
func (f format) read(c *cursor, encoding dw.Form) value {
	v := value{form: encoding}
	switch encoding {
	case dw.FormString:
		v.b = c.text()
	case dw.FormSdata:
		v.n = uint64(c.sleb())
	case dw.FormFlagPresent:
		v.n = 1
	case dw.FormData16:
		v.b = c.bytes(16)
	case dw.FormLLVMAddrxOffset:
		v.n = c.uleb()
		v.b = c.bytes(4)
	case dw.FormIndirect:
		actual := c.uleb()
		if actual > 0xffff || actual == uint64(dw.FormIndirect) || actual == uint64(dw.FormImplicitConst) {
			c.fail()
			return v
		}
		return f.read(c, dw.Form(actual))
	default:
		kind, size, ok := f.skipOf(encoding)
		switch {
		case !ok:
			c.fail()
		case kind == skipFixed:
			v.n = c.uint(int(size))
		case kind == skipLEB:
			v.n = c.uleb()
		case kind == skipBlock1:
			v.b = c.bytes(c.uint(1))
		case kind == skipBlock2:
			v.b = c.bytes(c.uint(2))
		case kind == skipBlock4:
			v.b = c.bytes(c.uint(4))
		case kind == skipBlock:
			v.b = c.bytes(c.uleb())
		}
	}
	return v
}

// value reads the value of an attribute.
func (f format) value(c *cursor, s *spec) value {
	switch {
	case s.kind == skipFixed && s.size-1 < 8: // 1 to 8 bytes, always a number
		return value{form: s.form, n: c.uint(int(s.size))}
	case s.form == dw.FormImplicitConst:
		return value{form: dw.FormImplicitConst, n: uint64(s.implicit)}
	}
	return f.read(c, s.form)
}

// constant returns a value of class constant (DWARF 5, 7.5.5). Only the caller knows
// whether one of a fixed size is signed: a line is not.
func (v *value) constant() (uint64, bool) {
	switch v.form {
	case dw.FormData1, dw.FormData2, dw.FormData4, dw.FormData8, dw.FormSdata, dw.FormUdata, dw.FormImplicitConst:
		return v.n, true
	}
	return 0, false
}

// small returns a constant that is a line, a column or a file number; 0 where it cannot be
// one.
func (v *value) small() uint32 {
	if n, ok := v.constant(); ok && n < 1<<31 {
		return uint32(n)
	}
	return 0
}

// offset returns a value of class lineptr, rnglist, loclist and the like, which DWARF 2 and
// 3 write as a constant of 4 or 8 bytes.
func (v *value) offset() (uint64, bool) {
	switch v.form {
	case dw.FormSecOffset, dw.FormData4, dw.FormData8:
		return v.n, true
	}
	return 0, false
}
