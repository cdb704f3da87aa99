// SPDX-License-Identifier: Apache-2.0

package dw

// The encodings of base types DW_ATE_* (DWARF 5, 7.8, table 7.11).
const (
	ATEAddress        = 0x01
	ATEBoolean        = 0x02
	ATEComplexFloat   = 0x03
	ATEFloat          = 0x04
	ATESigned         = 0x05
	ATESignedChar     = 0x06
	ATEUnsigned       = 0x07
	ATEUnsignedChar   = 0x08
	ATEImaginaryFloat = 0x09
	ATEPackedDecimal  = 0x0a
	ATENumericString  = 0x0b
	ATEEdited         = 0x0c
	ATESignedFixed    = 0x0d
	ATEUnsignedFixed  = 0x0e
	ATEDecimalFloat   = 0x0f
	ATEUTF            = 0x10
	ATEUCS            = 0x11
	ATEASCII          = 0x12
)

// ATEName returns the name of an encoding; "" where it has none.
func ATEName(encoding uint8) string {
	if int(encoding) < len(ateNames) {
		return ateNames[encoding]
	}
	return ""
}

// ATEByName returns the encoding of a name; 0 where there is none.
func ATEByName(name string) uint8 {
	for encoding, n := range ateNames {
		if n == name && n != "" {
			return uint8(encoding)
		}
	}
	return 0
}

var ateNames = [...]string{
	ATEAddress:        "DW_ATE_address",
	ATEBoolean:        "DW_ATE_boolean",
	ATEComplexFloat:   "DW_ATE_complex_float",
	ATEFloat:          "DW_ATE_float",
	ATESigned:         "DW_ATE_signed",
	ATESignedChar:     "DW_ATE_signed_char",
	ATEUnsigned:       "DW_ATE_unsigned",
	ATEUnsignedChar:   "DW_ATE_unsigned_char",
	ATEImaginaryFloat: "DW_ATE_imaginary_float",
	ATEPackedDecimal:  "DW_ATE_packed_decimal",
	ATENumericString:  "DW_ATE_numeric_string",
	ATEEdited:         "DW_ATE_edited",
	ATESignedFixed:    "DW_ATE_signed_fixed",
	ATEUnsignedFixed:  "DW_ATE_unsigned_fixed",
	ATEDecimalFloat:   "DW_ATE_decimal_float",
	ATEUTF:            "DW_ATE_UTF",
	ATEUCS:            "DW_ATE_UCS",
	ATEASCII:          "DW_ATE_ASCII",
}
