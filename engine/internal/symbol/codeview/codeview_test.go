// SPDX-License-Identifier: Apache-2.0

package codeview

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/symbol/msf"
)

// stream makes a container with one stream.
func stream(t testing.TB, data []byte) *msf.Stream {
	t.Helper()
	const page = 4096
	le := binary.LittleEndian
	pages := uint32(len(data)+page-1) / page
	file := append([]byte("Microsoft C/C++ MSF 7.00\r\n\x1aDS\x00\x00\x00"), make([]byte, 24)...)
	directory := le.AppendUint32(le.AppendUint32(nil, 1), uint32(len(data)))
	for i := range pages {
		directory = le.AppendUint32(directory, 1+i)
	}
	for i, v := range []uint32{page, 1, 2 + pages + uint32(len(directory)+page-1)/page, uint32(len(directory)), 0, 1 + pages} {
		le.PutUint32(file[32+4*i:], v)
	}
	pad := func() { file = append(file, make([]byte, (page-len(file)%page)%page)...) }
	pad()
	file = append(file, data...)
	pad()
	for i := range uint32(len(directory)+page-1) / page {
		file = le.AppendUint32(file, 2+pages+i)
	}
	pad()
	file = append(file, directory...)
	f, err := msf.New("a.pdb", file)
	if err != nil {
		t.Fatal(err)
	}
	return f.Stream(0)
}

// record is a record of a kind with its parts: numbers of their size, and texts that a zero ends.
func record(kind uint16, parts ...any) []byte {
	body := binary.LittleEndian.AppendUint16(nil, kind)
	for _, p := range parts {
		switch v := p.(type) {
		case string:
			body = append(append(body, v...), 0)
		case []byte:
			body = append(body, v...)
		case uint16:
			body = binary.LittleEndian.AppendUint16(body, v)
		case uint32:
			body = binary.LittleEndian.AppendUint32(body, v)
		case TypeIndex:
			body = binary.LittleEndian.AppendUint32(body, uint32(v))
		}
	}
	return append(binary.LittleEndian.AppendUint16(nil, uint16(len(body))), body...)
}

// header is the header of a stream of records without a hash part.
func header(count, size int) []byte {
	h := make([]byte, headerSize)
	for at, v := range map[int]uint32{0: version80, 4: headerSize, 8: firstIndex, 12: firstIndex + uint32(count), 16: uint32(size), 20: 0xffff} {
		binary.LittleEndian.PutUint32(h[at:], v)
	}
	return h
}

func typesOf(t testing.TB, records ...[]byte) *Types {
	t.Helper()
	var all []byte
	for _, r := range records {
		all = append(all, r...)
	}
	types, err := NewTypes(stream(t, append(header(len(records), len(all)), all...)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return types
}

func TestTypesAreSpelledAsCPlusPlusDoes(t *testing.T) {
	types := typesOf(t,
		record(LFStructure, uint16(0), uint16(PropertyForward), uint32(0), uint32(0), uint32(0), uint16(0), "N::S"),                     // 0x1000
		record(LFModifier, TypeIndex(0x1000), uint16(1)),                                                                                // 0x1001 const S
		record(LFPointer, TypeIndex(0x1001), uint32(8<<13|0x0c)),                                                                        // 0x1002 const S *
		record(LFPointer, TypeIndex(0x1002), uint32(8<<13|1<<5|0x0c)),                                                                   // 0x1003 &
		record(LFArray, TypeIndex(0x74), TypeIndex(0x23), uint16(16), ""),                                                               // 0x1004 int[4]
		record(LFArray, TypeIndex(0x1004), TypeIndex(0x23), uint16(48), ""),                                                             // 0x1005 int[3][4]
		record(LFPointer, TypeIndex(0x1005), uint32(8<<13|1<<10|0x0c)),                                                                  // 0x1006 (*const)[3][4]
		record(LFArgList, uint32(3), TypeIndex(0x74), TypeIndex(0x670), TypeIndex(0)),                                                   // 0x1007
		record(LFProcedure, TypeIndex(3), uint16(0), uint16(3), TypeIndex(0x1007)),                                                      // 0x1008
		record(LFPointer, TypeIndex(0x1008), uint32(8<<13|0x0c)),                                                                        // 0x1009
		record(LFArgList, uint32(0)),                                                                                                    // 0x100a
		record(LFMemberFunc, TypeIndex(0x41), TypeIndex(0x1000), TypeIndex(0x1002), uint16(0), uint16(0), TypeIndex(0x100a), uint32(0)), // 0x100b
		record(LFPointer, TypeIndex(0x100b), uint32(8<<13|3<<5|0x0c), TypeIndex(0x1000), uint16(0)),                                     // 0x100c
		record(LFPointer, TypeIndex(0x74), uint32(4<<13|2<<5|0x0c), TypeIndex(0x1000), uint16(0)),                                       // 0x100d
		record(LFBitField, TypeIndex(0x75), uint16(3)),                                                                                  // 0x100e
		record(LFPointer, TypeIndex(0x100f), uint32(8<<13|0x0c)),                                                                        // 0x100f points to itself
		record(LFStructure2, uint32(0), uint32(0), uint32(0), uint32(0), uint16(2), uint16(24), "W"),                                    // 0x1010
	)
	for index, want := range map[TypeIndex]string{
		0x74: "int", 0x675: "unsigned int *", 0x103: "std::nullptr_t", 0x7ff: "<simple type 0x7ff>",
		0x1000: "N::S", 0x1001: "N::S const", 0x1002: "N::S const *", 0x1003: "N::S const *&", 0x1005: "int[3][4]", 0x1006: "int (*const)[3][4]",
		0x1008: "void (int, char *, ...)", 0x1009: "void (*)(int, char *, ...)", 0x100c: "double (N::S::*)(void) const", 0x100d: "int N::S::*",
		0x100e: "unsigned int : 3", 0x1010: "W", 0x2000: unreadable,
	} {
		if got := types.Name(index); got != want {
			t.Errorf("the type %#x is %q, expected %q", index, got, want)
		}
	}
	if name := types.Name(0x100f); !strings.HasPrefix(name, "...") || len(name) > 100 {
		t.Errorf("a pointer to itself is %q", name)
	}
	if got := types.Parameters(0x1008); got != "int, char *, ..." {
		t.Errorf("the parameters are %q", got)
	}
	for index, want := range map[TypeIndex]uint64{0x1005: 48, 0x1002: 8, 0x675: 8, 0x1010: 24, 0x100e: 4} {
		if got, ok := types.Size(index); got != want || !ok {
			t.Errorf("the type %#x has %d bytes (%t), expected %d", index, got, ok, want)
		}
	}
}

func TestDeclarationsAreDefinedByRecordsOfTheirName(t *testing.T) {
	declared := record(LFStructure, uint16(0), uint16(PropertyForward|PropertyHasUnique), uint32(0), uint32(0), uint32(0), uint16(0), "S", ".?AUS@@")
	types := typesOf(t, declared,
		record(LFUnion, uint16(0), uint16(PropertyHasUnique), uint32(0), uint16(4), "S", ".?ATS@@"),
		record(LFStructure, uint16(0), uint16(PropertyHasUnique), uint32(0), uint32(0), uint32(0), uint16(12), "S", ".?AUS@@"))
	if got := types.Definition(0x1000); got != 0x1002 {
		t.Errorf("S is defined by %#x, expected 0x1002", got)
	}
	if got := typesOf(t, declared).Definition(0x1000); got != 0 {
		t.Errorf("S, which is declared alone, is defined by %#x", got)
	}
}

func TestListsOfFieldsGoOnInOthersUpToABound(t *testing.T) {
	member := func(name string, offset uint16) []byte {
		return record(LFMember, uint16(3), TypeIndex(0x74), offset, name)[2:]
	}
	types := typesOf(t,
		record(LFFieldList, member("c", 8), []byte{0xf1}),
		record(LFFieldList, member("a", 0), []byte{0xf2, 0xf1}, member("b", 4), []byte{0xf3, 0xf2, 0xf1}, record(LFIndex, uint16(0), TypeIndex(0x1000))[2:]),
		record(LFFieldList, record(LFIndex, uint16(0), TypeIndex(0x1002))[2:]),
		record(LFFieldList, record(0x1555, uint16(0))[2:]))
	names := ""
	if err := types.EachField(0x1001, func(f *Field) bool { names += f.Name; return true }); err != nil || names != "abc" {
		t.Errorf("the fields are %q (%v), expected abc", names, err)
	}
	for list, want := range map[TypeIndex]string{0x1002: "goes on in more than", 0x1003: "a field of the kind 0x1555", 0x1004: "expected one of 0x1000 to 0x1004"} {
		if err := types.EachField(list, func(*Field) bool { return true }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error of the list %#x is %v, expected %q", list, err, want)
		}
	}
}

func TestStreamsThatMakeNoSenseAreErrors(t *testing.T) {
	one := record(LFModifier, TypeIndex(0x74), uint16(1))
	for want, data := range map[string][]byte{
		"a header of 8 bytes":             make([]byte, 8),
		"version 0 of type records":       make([]byte, headerSize),
		"expected them in the stream":     header(1, 1000),
		"at least 4 bytes for each among": append(header(4, len(one)), one...),
	} {
		if _, err := NewTypes(stream(t, data), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, expected %q", err, want)
		}
	}
	types, err := NewTypes(stream(t, append(header(2, len(one)), one...)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err = types.Record(0x1001); err == nil || !strings.Contains(err.Error(), "1 records, expected the 2 of the header") {
		t.Errorf("the error of a record that is missing is %v", err)
	}
	if _, _, err := (&Types{}).Record(0x1000); err == nil {
		t.Error("a record of no stream has no error")
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(record(LFPointer, TypeIndex(0x1000), uint32(8<<13|3<<5|0x0c), TypeIndex(0x1000), uint16(0)), uint8(1))
	f.Add(append(record(LFFieldList, record(LFIndex, uint16(0), TypeIndex(0x1001))[2:]), record(LFStructure, uint16(1), uint16(0x280), uint32(0x1000), uint32(0), uint32(0), uint16(8), "S", "?S")...), uint8(2))
	f.Add(append(record(LFArgList, uint32(2), TypeIndex(0x1001), TypeIndex(0x1001)), record(LFProcedure, TypeIndex(0x1001), uint32(0), TypeIndex(0x1000))...), uint8(2))
	f.Fuzz(func(t *testing.T, records []byte, count uint8) {
		if len(records) > 1<<16 {
			return
		}
		types, err := NewTypes(stream(t, append(header(int(count), len(records)), records...)), nil)
		if err != nil {
			return
		}
		for index := TypeIndex(firstIndex); index < types.end; index++ {
			if name := types.Name(index); len(name) > maxName+3 {
				t.Errorf("a name of %d bytes", len(name))
			}
			types.FunctionName(index)
			types.Parameters(index)
			types.Size(index)
			types.Definition(index)
			if u, ok := types.UDT(index); ok {
				types.Named(u.Name)
				_ = types.EachField(u.Fields, func(*Field) bool { return true })
			}
		}
	})
}
