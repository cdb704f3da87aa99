// SPDX-License-Identifier: Apache-2.0

package codeview

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/symbol/msf"
	"github.com/unwindd/unwindd/internal/oracle"
)

// program builds a program of testdata for Windows with its PDB, and returns the PDB's path.
func program(t *testing.T, target, source string, flags ...string) string {
	source, err := filepath.Abs(filepath.Join("testdata", source))
	if err != nil {
		t.Fatal(err)
	}
	dir := oracle.Build{Sources: []string{source}, Commands: [][]string{
		append(append([]string{"clang-cl-22", "--target=" + target}, flags...), "/c", "/Z7", "/GS-", "/GR-", "/Foa.obj", "--", source),
		{"lld-link-22", "/debug", "/entry:entry", "/nodefaultlib", "/subsystem:console", "/out:a.exe", "a.obj"},
	}}.Make(t)
	return filepath.Join(dir, "a.pdb")
}

// open opens the types and the identifiers of a file.
func open(t testing.TB, path string) (types, ids *Types) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := msf.New(path, data)
	if err != nil {
		t.Fatal(err)
	}
	if types, err = NewTypes(f.Stream(2), nil); err != nil {
		t.Fatal(err)
	}
	if ids, err = NewTypes(f.Stream(4), types); err != nil {
		t.Fatal(err)
	}
	return types, ids
}

// plain is a name without keywords and blanks, which writers put in different places.
func plain(name string) string {
	return strings.ReplaceAll(regexp.MustCompile(`\b(struct|class|union|enum) `).ReplaceAllString(strings.TrimSpace(name), ""), " ", "")
}

func TestFunctionsAreNamedByTheirTypesAsTheirDecoratedNamesSay(t *testing.T) {
	oracle.All(t)
	for _, target := range []string{"x86_64-pc-windows-msvc", "aarch64-pc-windows-msvc"} {
		path := program(t, target, "types.cc", "/Od")
		types, ids := open(t, path)
		known := map[string]bool{}
		first, end := ids.Bounds()
		for id := first; id < end; id++ {
			if name := ids.FunctionName(id); name != "" {
				known[plain(name+"("+types.Parameters(ids.FunctionType(id))+")")] = true
			}
		}
		var decorated []string
		for _, m := range regexp.MustCompile("`(\\?.*)`").FindAllStringSubmatch(oracle.Run(t, "llvm-pdbutil-22", "dump", "-publics", path), -1) {
			decorated = append(decorated, m[1])
		}
		count := 0
		for _, text := range strings.Split(oracle.With{Input: strings.Join(decorated, "\n")}.Run(t, "llvm-undname-22", "--no-access-specifier", "--no-calling-convention", "--no-member-type", "--no-return-type"), "\n") {
			if !strings.Contains(text, "(") || strings.HasPrefix(text, "?") || strings.Contains(text, "`") {
				continue
			}
			count++
			if name := strings.TrimSuffix(plain(text), "const"); !known[name] {
				t.Errorf("%s: %s is not among the functions by their types: %v", target, name, known)
			}
		}
		if count < 6 {
			t.Errorf("%s: %d functions were compared, expected at least 6", target, count)
		}
	}
}

func number(t *testing.T, text string, base int) uint64 {
	n, err := strconv.ParseUint(text, base, 32)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTypesAreTheRecordsThatTheReferencePrints(t *testing.T) {
	oracle.All(t)
	path := program(t, "x86_64-pc-windows-msvc", "types.cc", "/Od")
	types, ids := open(t, path)
	forwards := 0
	for option, records := range map[string]*Types{"-types": types, "-ids": ids} {
		count := 0
		out := oracle.Run(t, "llvm-pdbutil-22", "dump", option, path)
		for _, m := range regexp.MustCompile("(?m)^ *0x([0-9A-F]+) \\| (LF_[A-Z_]+) \\[size = (\\d+)\\](?: `(.*)`)?").FindAllStringSubmatch(out, -1) {
			index := TypeIndex(number(t, m[1], 16))
			kind, data, err := records.Record(index)
			if err != nil || kindNames[kind] != m[2] || len(data)+4 != int(number(t, m[3], 10)) {
				t.Errorf("%s %#x is a %s (%#x) of %d bytes (%v), expected %s of %s bytes", option, index, kindNames[kind], kind, len(data)+4, err, m[2], m[3])
			}
			if name := records.Name(index); IsUDT(kind) && name != m[4] {
				t.Errorf("%s %#x is %q, expected %q", option, index, name, m[4])
			}
			count++
		}
		for _, m := range regexp.MustCompile(`(?m)^ *0x([0-9A-F]+) .*\n(?:.*\n)?(?:.*\n)? *options: forward ref \(-> 0x([0-9A-F]+)\)`).FindAllStringSubmatch(out, -1) {
			index, want := TypeIndex(number(t, m[1], 16)), TypeIndex(number(t, m[2], 16))
			if got := records.Definition(index); got != want {
				t.Errorf("%s %#x is defined by %#x, expected %#x", option, index, got, want)
			}
			forwards++
		}
		if first, end := records.Bounds(); count != int(end-first) {
			t.Errorf("%s: %d records were compared of %d", option, count, end-first)
		}
	}
	if forwards < 4 {
		t.Errorf("%d declarations were compared, expected at least 4", forwards)
	}
}

var kindNames = map[uint16]string{
	LFModifier: "LF_MODIFIER", LFPointer: "LF_POINTER", LFProcedure: "LF_PROCEDURE", LFMemberFunc: "LF_MFUNCTION", LFArgList: "LF_ARGLIST",
	LFFieldList: "LF_FIELDLIST", LFBitField: "LF_BITFIELD", LFMethodList: "LF_METHODLIST", LFArray: "LF_ARRAY", LFClass: "LF_CLASS",
	LFStructure: "LF_STRUCTURE", LFUnion: "LF_UNION", LFEnum: "LF_ENUM", LFVTableShape: "LF_VTSHAPE", LFFuncID: "LF_FUNC_ID", LFMFuncID: "LF_MFUNC_ID",
	LFStringID: "LF_STRING_ID", LFSubstrList: "LF_SUBSTR_LIST", LFBuildInfo: "LF_BUILDINFO", LFUDTSrcLine: "LF_UDT_SRC_LINE", LFUDTModSrcLine: "LF_UDT_MOD_SRC_LINE",
	LFVFTable: "LF_VFTABLE", LFLabel: "LF_LABEL", LFInterface: "LF_INTERFACE",
}
