// SPDX-License-Identifier: Apache-2.0

package codeview

import "github.com/unwindd/unwindd/internal/dw"

// Simple is a type without a record, or a pointer to one.
type Simple struct {
	Name     string // in C++; a pointer's has no star
	Size     uint64 // in bytes
	Encoding uint8  // DW_ATE_*; 0 of types without values
	// PointerSize is the size of a pointer to the type in bytes; 0: it is no pointer.
	PointerSize uint64
}

const (
	// NoType is the type of what has none.
	NoType TypeIndex = 0
	// Void is the type void.
	Void TypeIndex = 3
	// Nullptr is the type of nullptr.
	Nullptr TypeIndex = 0x103
	// Result is Windows's HRESULT.
	Result TypeIndex = 8
)

// simpleKinds are the simple types by the lower byte of their index. Of names that C++ has twice
// one is Microsoft's own.
var simpleKinds = map[uint8]Simple{
	0x00: {Name: "<no type>"},
	0x03: {Name: "void"},
	0x07: {Name: "<not translated>"},
	0x08: {Name: "HRESULT", Size: 4, Encoding: dw.ATESigned},
	0x10: {Name: "signed char", Size: 1, Encoding: dw.ATESignedChar},
	0x11: {Name: "short", Size: 2, Encoding: dw.ATESigned},
	0x12: {Name: "long", Size: 4, Encoding: dw.ATESigned},
	0x13: {Name: "__int64", Size: 8, Encoding: dw.ATESigned},
	0x14: {Name: "__int128", Size: 16, Encoding: dw.ATESigned},
	0x20: {Name: "unsigned char", Size: 1, Encoding: dw.ATEUnsignedChar},
	0x21: {Name: "unsigned short", Size: 2, Encoding: dw.ATEUnsigned},
	0x22: {Name: "unsigned long", Size: 4, Encoding: dw.ATEUnsigned},
	0x23: {Name: "unsigned __int64", Size: 8, Encoding: dw.ATEUnsigned},
	0x24: {Name: "unsigned __int128", Size: 16, Encoding: dw.ATEUnsigned},
	0x30: {Name: "bool", Size: 1, Encoding: dw.ATEBoolean},
	0x31: {Name: "__bool16", Size: 2, Encoding: dw.ATEBoolean},
	0x32: {Name: "__bool32", Size: 4, Encoding: dw.ATEBoolean},
	0x33: {Name: "__bool64", Size: 8, Encoding: dw.ATEBoolean},
	0x34: {Name: "__bool128", Size: 16, Encoding: dw.ATEBoolean},
	0x40: {Name: "float", Size: 4, Encoding: dw.ATEFloat},
	0x41: {Name: "double", Size: 8, Encoding: dw.ATEFloat},
	0x42: {Name: "long double", Size: 10, Encoding: dw.ATEFloat},
	0x43: {Name: "__float128", Size: 16, Encoding: dw.ATEFloat},
	0x45: {Name: "float", Size: 4, Encoding: dw.ATEFloat},
	0x46: {Name: "__half", Size: 2, Encoding: dw.ATEFloat},
	0x50: {Name: "_Complex float", Size: 8, Encoding: dw.ATEComplexFloat},
	0x51: {Name: "_Complex double", Size: 16, Encoding: dw.ATEComplexFloat},
	0x52: {Name: "_Complex long double", Size: 20, Encoding: dw.ATEComplexFloat},
	0x53: {Name: "_Complex __float128", Size: 32, Encoding: dw.ATEComplexFloat},
	0x68: {Name: "__int8", Size: 1, Encoding: dw.ATESigned},
	0x69: {Name: "unsigned __int8", Size: 1, Encoding: dw.ATEUnsigned},
	0x70: {Name: "char", Size: 1, Encoding: dw.ATESignedChar},
	0x71: {Name: "wchar_t", Size: 2, Encoding: dw.ATEUTF},
	0x72: {Name: "__int16", Size: 2, Encoding: dw.ATESigned},
	0x73: {Name: "unsigned __int16", Size: 2, Encoding: dw.ATEUnsigned},
	0x74: {Name: "int", Size: 4, Encoding: dw.ATESigned},
	0x75: {Name: "unsigned int", Size: 4, Encoding: dw.ATEUnsigned},
	0x76: {Name: "__int64", Size: 8, Encoding: dw.ATESigned},
	0x77: {Name: "unsigned __int64", Size: 8, Encoding: dw.ATEUnsigned},
	0x78: {Name: "__int128", Size: 16, Encoding: dw.ATESigned},
	0x79: {Name: "unsigned __int128", Size: 16, Encoding: dw.ATEUnsigned},
	0x7a: {Name: "char16_t", Size: 2, Encoding: dw.ATEUTF},
	0x7b: {Name: "char32_t", Size: 4, Encoding: dw.ATEUTF},
	0x7c: {Name: "char8_t", Size: 1, Encoding: dw.ATEUTF},
}

// pointerSizes are the sizes of pointers by the mode of a simple type.
var pointerSizes = [8]uint64{1: 2, 2: 4, 3: 4, 4: 4, 5: 6, 6: 8, 7: 16}

// SimpleType returns a type without a record; false where the index is none that is known.
func SimpleType(index TypeIndex) (Simple, bool) {
	s, ok := simpleKinds[uint8(index)] //nolint:gosec // the lower byte
	if index >= firstIndex || index>>8 > 7 {
		return s, false
	}
	s.PointerSize = pointerSizes[index>>8]
	return s, ok
}

// otherNames are names of simple types that compilers write into the names of templates.
var otherNames = map[string]TypeIndex{
	"unsigned": 0x75, "long long": 0x76, "unsigned long long": 0x77, "std::nullptr_t": Nullptr, "nullptr_t": Nullptr, "decltype(nullptr)": Nullptr,
	"signed": 0x74, "_Bool": 0x30,
}

// simpleNames are the simple types by name. Of several with one name it is the one that compilers
// write.
var simpleNames = func() map[string]TypeIndex {
	all := map[string]TypeIndex{}
	for kind, s := range simpleKinds {
		if known, ok := all[s.Name]; !ok || TypeIndex(kind) > known {
			all[s.Name] = TypeIndex(kind)
		}
	}
	all["float"] = 0x40
	for name, index := range otherNames {
		all[name] = index
	}
	return all
}()

// SimpleNamed returns the simple type of a name.
func SimpleNamed(name string) (TypeIndex, bool) {
	index, ok := simpleNames[name]
	return index, ok
}
