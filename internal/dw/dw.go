// SPDX-License-Identifier: Apache-2.0

// Package dw names the numbers of DWARF: tags, attributes, forms, languages, encodings of base
// types, operations of expressions and call frame instructions, each in one table. Its
// constants are named after the documents: DW_AT_low_pc is AttrLowPC.
package dw

import "fmt"

// name is the documents' spelling of a number.
type name[N ~uint16] struct {
	number N
	text   string
}

// nameOf returns the name of a number; the prefix and the number where it has none.
func nameOf[N ~uint16](names []name[N], number N, prefix string) string {
	for i := range names {
		if names[i].number == number {
			return names[i].text
		}
	}
	return fmt.Sprintf("%s%#x", prefix, uint16(number))
}
