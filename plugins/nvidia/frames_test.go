// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// fixture reads a cubin of testdata.
func fixture(t testing.TB, name string) *cubin {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	c, err := readCubin(data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// rowText writes a row: its CFA, the registers that it has rules for, and the caller's PC.
func rowText(t *testing.T, r *cfi.Row) string {
	t.Helper()
	names := Description().Names(warpLanes)
	name := func(register uint64) string {
		name, _ := names.RegisterName(register)
		return name
	}
	if r.CFA.Kind != cfi.CFARegister || r.CFA.Space != local {
		t.Errorf("%#x: CFA %+v", r.Start, r.CFA)
	}
	list := []string{fmt.Sprintf("%s%+d", name(r.CFA.Register), r.CFA.Offset)}
	for _, rule := range r.Rules {
		var value string
		switch rule.Rule.Kind {
		case cfi.SameValue:
			value = "same"
		case cfi.Undefined:
			value = "none"
		case cfi.Offset:
			value = fmt.Sprintf("cfa%+d", rule.Rule.Offset)
		case cfi.Register:
			value = name(rule.Rule.Register)
		default:
			value = strings.ReplaceAll(text(t, rule.Rule.Expr), "DW_OP_", "")
		}
		list = append(list, name(rule.Column)+"="+value)
	}
	return strings.Join(list, " ")
}

// TestRowsOfCompilers has rows by what nvdisasm shows of the code: where registers are stored
// and loaded, where R1 changes, and what returns take.
func TestRowsOfCompilers(t *testing.T) {
	const (
		byR20  = "PC=regx R20; deref_size 4; addr 0x0; plus"
		byPair = "PC=regx R20; deref_size 4; regx R21; deref_size 4; const1u 32; shl; or"
		saved  = "R2=cfa-48 R16=cfa-44 R17=cfa-40 R18=cfa-36 R19=cfa-32 R20=cfa-28 R21=cfa-24 R22=cfa-20 R23=cfa-16 R24=cfa-12"
		loaded = "regx R1; deref_size 4; consts 52; plus; lit6; LLVM_form_aspace_address; deref_size 4; addr 0x0; plus"
	)
	for _, c := range []struct {
		file, section string
		pc            uint64
		want          string
	}{
		{"calls90.cubin", ".text.kern", 0x200, "R1+0 PC=none"},
		{"calls90.cubin", ".text.kern", 0x350, "R1+0 " + byR20},
		{"calls90.cubin", ".text.kern", 0x370, "R1+8 " + byR20},
		{"calls90.cubin", ".text.kern", 0x380, "R1+8 R2=cfa-8 " + byR20},
		{"calls90.cubin", ".text.kern", 0x3e0, "R1+8 " + byR20},
		{"calls90.cubin", ".text.kern", 0x3f0, "R1+0 " + byR20},
		{"calls90.cubin", ".text.kern", 0x440, "R1+80 R24=cfa-12 " + byR20},
		{"calls90.cubin", ".text.kern", 0x460, "R1+80 R20=cfa-28 R21=cfa-24 R24=cfa-12 PC=" + loaded},
		{"calls90.cubin", ".text.kern", 0x600, "R1+80 " + saved + " PC=" + loaded},
		{"calls90.cubin", ".text.kern", 0x9f0, "R1+0 " + byR20},
		{"calls90.cubin", ".text.kern", 0xb00, "R1+0 R4=same PC=regx R4; deref_size 4; addr 0x0; plus"},
		{"calls75.cubin", ".text.kern", 0x600, "R1+80 " + saved + " PC=" + loaded},
		{"calls70.cubin", ".text.kern", 0x600, "R1+80 " + saved + " PC=" + loaded},
		{"calls120.cubin", ".text.kern", 0x600, "R1+80 " + saved + " PC=" + loaded},
		{"calls61.cubin", ".text.kern", 0x100, "R1+0 PC=none"},
		{"calls61.cubin", ".text._Z4leafiPi", 0x40, ""},
		{"linked90.cubin", ".text._Z5otheriPi", 0, "R1+0 " + byPair},
		{"linked90.cubin", ".text._Z5otheriPi", 0x200, "R1+64 R2=cfa-48 R16=cfa-44 R17=cfa-40 R18=cfa-36 R19=cfa-32 R20=cfa-28 R21=cfa-24 R24=cfa-20 R25=cfa-16 R26=cfa-12 R27=cfa-8 " +
			"PC=regx R1; deref_size 4; consts 36; plus; lit6; LLVM_form_aspace_address; deref_size 4; regx R1; deref_size 4; consts 40; plus; lit6; LLVM_form_aspace_address; deref_size 4; const1u 32; shl; or"},
		{"debug90.cubin", ".text.kern", 0x800, "R1+16 PC=none"},
	} {
		f := fixture(t, c.file)
		a := f.open(t)
		if !a.ReadsCFI {
			t.Errorf("%s: call frame information is left to the engine", c.file)
		}
		got := ""
		for _, table := range a.Tables {
			for i := range table.Rows {
				if r := &table.Rows[i]; f.file.Sections[table.Section].Name == c.section && r.Start <= c.pc && c.pc < r.End {
					got = rowText(t, r)
				}
			}
		}
		if got != c.want {
			t.Errorf("%s: %s+%#x:\n%s, expected\n%s", c.file, c.section, c.pc, got, c.want)
		}
	}
}

func TestFunctionsOfCubins(t *testing.T) {
	for _, c := range []struct {
		file, processor string
		functions       []string
		problems        []string
	}{
		{"calls90.cubin", "sm_90", []string{"kernel kern 0x0-0x350", "$kern$_Z4leafiPi 0x350-0x400", "$kern$_Z7recurseiPii 0x400-0xa00",
			"$__internal_0_$__cuda_sm3x_div_rn_noftz_f32_slowpath 0xa00-0x1180"}, nil},
		{"calls61.cubin", "sm_61", []string{"kernel kern 0x0-0x540", "_Z4leafiPi 0x0-0xc0", "_Z7recurseiPii 0x0-0x680",
			"__cuda_sm3x_div_rn_noftz_f32_slowpath 0x0-0x880"}, nil},
		{"linked90.cubin", "sm_90", []string{"_Z4mineiPi$1 0x0-0x380", "kernel kern 0x0-0x280", "_Z4mineiPi 0x0-0x380", "_Z5otheriPi 0x0-0x480"},
			[]string{".debug_frame: 1 FDEs lead to no CIE, as nvlink writes them: each is read with the CIE before it, which is a guess"}},
	} {
		a := fixture(t, c.file).open(t)
		var functions []string
		for _, f := range a.Functions {
			text := fmt.Sprintf("%s %#x-%#x", f.Name, f.Start, f.End)
			if f.Kind == sdk.KernelFunction {
				text = "kernel " + text
			}
			functions = append(functions, text)
		}
		if diff := cmp.Diff(c.functions, functions); diff != "" {
			t.Errorf("%s: %s", c.file, diff)
		}
		if a.Processor != c.processor || !slices.Equal(a.Problems, c.problems) {
			t.Errorf("%s: %s, %q", c.file, a.Processor, a.Problems)
		}
	}
}

func TestParametersOfKernels(t *testing.T) {
	a := fixture(t, "calls90.cubin").open(t)
	var got []string
	for _, v := range a.Variables {
		got = append(got, fmt.Sprintf("%s %#x-%#x %s", v.Name, v.Start[0], v.End[0], text(t, v.Locations[0])))
	}
	want := []string{
		"parameter 0 0x0-0x350 DW_OP_constu 528; DW_OP_lit7; DW_OP_LLVM_form_aspace_address; DW_OP_piece 8",
		"parameter 1 0x0-0x350 DW_OP_constu 536; DW_OP_lit7; DW_OP_LLVM_form_aspace_address; DW_OP_piece 4",
		"parameter 2 0x0-0x350 DW_OP_constu 544; DW_OP_lit7; DW_OP_LLVM_form_aspace_address; DW_OP_piece 8",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, v := range fixture(t, "debug90.cubin").open(t).Variables {
		if v.Register == 0 {
			t.Errorf("%s beside debug information", v.Name)
		}
	}
}

// TestRecordsOfParameters has records as ptxas writes them for large parameters, and lies.
func TestRecordsOfParameters(t *testing.T) {
	large := "0417 0c00 000000000100080000f01100 0445 0c00 000000000200284e02000000 040a 0800 0900000010022a4e 0301 0000"
	for _, c := range []struct {
		hex  string
		base uint16
		list []parameter
		err  string
	}{
		{large, 0x210, []parameter{{1, 8, 4}, {2, 0x4e28, 2}}, ""},
		{"0417 0c00 0000", 0, nil, "offset 0x0: attribute 0x17 has 12 bytes, expected at most 2"},
		{"0417 08", 0, nil, "offset 0x0: 3 bytes of a record, expected 4"},
		{"0417 0400 00000000 040a 0200 0000", 0, nil, ""},
	} {
		data, err := hex.DecodeString(strings.ReplaceAll(c.hex, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		base, list, err := kernelParameters(data)
		if base != c.base || !slices.Equal(list, c.list) || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %#x, %v, %v", c.hex, base, list, err)
		}
	}
}
