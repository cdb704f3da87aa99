// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/internal/dw"
)

// The encodings of base types (DWARF 5, 7.8, Table 7.11).
const (
	EncodingAddress        uint8 = dw.ATEAddress        // DW_ATE_address
	EncodingBoolean        uint8 = dw.ATEBoolean        // DW_ATE_boolean
	EncodingComplexFloat   uint8 = dw.ATEComplexFloat   // DW_ATE_complex_float
	EncodingFloat          uint8 = dw.ATEFloat          // DW_ATE_float
	EncodingSigned         uint8 = dw.ATESigned         // DW_ATE_signed
	EncodingSignedChar     uint8 = dw.ATESignedChar     // DW_ATE_signed_char
	EncodingUnsigned       uint8 = dw.ATEUnsigned       // DW_ATE_unsigned
	EncodingUnsignedChar   uint8 = dw.ATEUnsignedChar   // DW_ATE_unsigned_char
	EncodingImaginaryFloat uint8 = dw.ATEImaginaryFloat // DW_ATE_imaginary_float
	EncodingPackedDecimal  uint8 = dw.ATEPackedDecimal  // DW_ATE_packed_decimal
	EncodingDecimalFloat   uint8 = dw.ATEDecimalFloat   // DW_ATE_decimal_float
	EncodingUTF            uint8 = dw.ATEUTF            // DW_ATE_UTF
	EncodingUCS            uint8 = dw.ATEUCS            // DW_ATE_UCS
	EncodingASCII          uint8 = dw.ATEASCII          // DW_ATE_ASCII
)

// Endianity is the byte order of a base type (DW_AT_endianity; DWARF 5, 7.8,
// Table 7.12).
type Endianity uint8

// The byte orders of base types.
const (
	EndDefault Endianity = iota // the machine's
	EndBig
	EndLittle
)

// maxTypeBits bounds the size of a value.
const maxTypeBits = 1 << 16

// BaseType is the type of a value (A.2.5.2). The generic type, an integer of
// the size of an address and of unspecified signedness, is the nil *BaseType.
//
// Two types are the same when all but their names are equal. A BaseType must
// not change once values have it.
type BaseType struct {
	Name      string
	Encoding  uint8  // DW_ATE_*
	Bits      uint32 // size; that of one element in a vector type
	Elements  uint32 // DW_AT_LLVM_vector_size, the number of elements; 0: no vector type
	Endianity Endianity
	Format    FloatFormat // of floating point numbers whose size does not determine it
}

// Size returns the size of a value in bits. A vector has its elements next to
// each other (A.5.1).
func (t *BaseType) Size() uint64 { return uint64(t.Bits) * uint64(max(t.Elements, 1)) }

// unit returns the size in bits of the parts that have the byte order of the type: an element
// of a vector, half a complex number, each of the two numbers of double-double.
func (t *BaseType) unit() uint64 {
	size := uint64(t.Bits)
	if t.Encoding == EncodingComplexFloat {
		size /= 2
	}
	if t.Format == FloatDoubleDouble && (t.Encoding == EncodingFloat || t.Encoding == EncodingComplexFloat) {
		size /= 2
	}
	return max(size, 1)
}

// String returns the name, or else the encoding and size: "unsigned 32",
// "float 32 x 4".
func (t *BaseType) String() string {
	if t == nil {
		return "generic"
	}
	if t.Name != "" {
		return t.Name
	}
	name := strings.TrimPrefix(dw.ATEName(t.Encoding), "DW_ATE_")
	if name == "" {
		name = fmt.Sprintf("encoding 0x%x", t.Encoding)
	}
	name = fmt.Sprintf("%s %d", name, t.Bits)
	if t.Elements != 0 {
		name = fmt.Sprintf("%s x %d", name, t.Elements)
	}
	return name
}

// Same reports whether t and o are the same type; nil is the generic one.
func (t *BaseType) Same(o *BaseType) bool {
	if t == o || t == nil || o == nil {
		return t == o
	}
	return t.Encoding == o.Encoding && t.Bits == o.Bits && t.Elements == o.Elements && t.Endianity == o.Endianity
}

// order returns the byte order of values of the type in storage.
func (t *BaseType) order(machine ByteOrder) ByteOrder {
	if t != nil {
		switch t.Endianity {
		case EndBig:
			return BigEndian
		case EndLittle:
			return LittleEndian
		}
	}
	return machine
}

// check returns an error for a type that the evaluator does not support.
func (t *BaseType) check() error {
	switch {
	case t.Bits == 0:
		return fmt.Errorf("%w: type %v has no size", ErrType, t)
	case t.Size() > maxTypeBits:
		return fmt.Errorf("%w: type %v of %d bits, at most %d expected", ErrLimit, t, t.Size(), maxTypeBits)
	case t.Endianity > EndLittle:
		return fmt.Errorf("%w: type %v has endianity 0x%x", ErrType, t, t.Endianity)
	case t.Endianity != EndDefault && t.Bits%8 != 0:
		return fmt.Errorf("%w: type %v of %d bits has a byte order of its own", ErrType, t, t.Bits)
	}
	return nil
}

// FloatFormat is the encoding of floating point numbers, where their size does not determine
// it.
type FloatFormat uint8

// The formats.
const (
	FloatBySize       FloatFormat = iota // by the size, and by names that mean one format everywhere
	FloatBinary128                       // IEEE 754 binary128
	FloatExtended                        // x87's 80 bits, in the first bytes
	FloatDoubleDouble                    // two binary64 that are added, the larger first
)

// FloatContext knows the formats of floating point numbers. Without it their sizes determine
// them.
type FloatContext interface {
	// FloatFormat returns the format of the numbers of a floating point or complex type.
	FloatFormat(t *BaseType) FloatFormat
}

// class is the arithmetic of a type.
type class uint8

const (
	opaqueClass   class = iota // no arithmetic
	signedClass                // a signed integer
	unsignedClass              // an unsigned integer
	booleanClass               // an unsigned integer that conversion makes 0 or 1
	numberClass                // computed with as an unsigned integer, but not integral (A.2.5.2)
	floatClass                 // floating point
)

func (t *BaseType) class() class {
	if t == nil {
		return unsignedClass
	}
	switch t.Encoding {
	case EncodingSigned, EncodingSignedChar:
		return signedClass
	case EncodingUnsigned, EncodingUnsignedChar:
		return unsignedClass
	case EncodingBoolean:
		return booleanClass
	case EncodingAddress, EncodingUTF, EncodingUCS, EncodingASCII:
		return numberClass
	case EncodingFloat:
		return floatClass
	}
	return opaqueClass
}

// isIntegral reports whether a type is integral (A.2.5.2). The encodings that are left to
// vendors do not define arithmetic.
func (t *BaseType) isIntegral() bool {
	if t == nil {
		return true
	}
	if t.Elements != 0 {
		return false
	}
	switch t.class() {
	case signedClass, unsignedClass, booleanClass:
		return true
	}
	return false
}

// element returns the type of the elements of a vector type.
func (t *BaseType) element() BaseType {
	e := *t
	e.Elements = 0
	return e
}
