// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/visa/stream"
	"github.com/unwindd/unwindd/sdk"
)

// files is an engine of files: of an object's own number the sections of an ELF
// file, of others whole files.
type files struct {
	sdk.Engine
	elf   *elf.File
	whole map[uint64][]byte
}

// The handles of the object and of what is beside it.
const (
	objectHandle    = 1
	companionHandle = 2
)

func (f *files) ReadSection(_ context.Context, object uint64, name string) ([]byte, error) {
	if b, ok := f.whole[object]; ok && name == "" {
		return b, nil
	}
	s := f.elf.Section(name)
	if s == nil {
		return nil, errors.New("no such section")
	}
	b, err := s.Data()
	if rela := f.elf.Section(".rela" + name); err == nil && rela != nil && f.elf.Type == elf.ET_REL {
		return f.relocated(b, rela)
	}
	return b, err
}

// relocated applies the relocations of a zebin, whose symbols are all at 0.
func (f *files) relocated(b []byte, rela *elf.Section) ([]byte, error) {
	b = slices.Clone(b)
	list, err := rela.Data()
	for ; len(list) >= relocationSize; list = list[relocationSize:] {
		at, addend := binary.LittleEndian.Uint64(list), binary.LittleEndian.Uint64(list[16:])
		switch binary.LittleEndian.Uint32(list[8:]) {
		case 1:
			binary.LittleEndian.PutUint64(b[at:], addend)
		case 2:
			binary.LittleEndian.PutUint32(b[at:], uint32(addend))
		}
	}
	return b, err
}

// opened is what the plugin answers of an ELF file, or of none, with a stream
// beside it, or none.
func opened(t testing.TB, elfFile, dbg []byte) *sdk.OpenObjectAnswer {
	t.Helper()
	return openedFor(t, "", elfFile, dbg)
}

// openedFor is the same where the target says which processor they are for.
func openedFor(t testing.TB, processor string, elfFile, dbg []byte) *sdk.OpenObjectAnswer {
	t.Helper()
	f := &files{whole: map[uint64][]byte{}}
	req := &sdk.OpenObjectRequest{Object: objectHandle, Processor: processor}
	switch {
	case elfFile == nil:
		f.whole[objectHandle] = dbg
	default:
		var err error
		if f.elf, err = elf.NewFile(bytes.NewReader(elfFile)); err != nil {
			t.Skip(err)
		}
		req.Machine = uint16(f.elf.Machine)
		for _, s := range f.elf.Sections {
			req.Sections = append(req.Sections, sdk.SectionInfo{Name: s.Name, Type: uint32(s.Type), Flags: uint64(s.Flags), Address: s.Addr, Size: s.Size})
		}
		if dbg != nil {
			f.whole[companionHandle] = dbg
			req.Companions = []sdk.Companion{{Suffix: ".dbg", Object: companionHandle}}
		}
	}
	a, err := New().OpenObject(context.Background(), f, req)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Validate(Description(), req); err != nil {
		t.Fatal(err)
	}
	return a
}

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	folder := "testdata"
	if strings.HasSuffix(name, ".dbg") {
		folder = filepath.Join("stream", "testdata")
	}
	b, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// of is what the plugin answers of the files of a name.
func of(t testing.TB, elfName, dbgName string) *sdk.OpenObjectAnswer {
	t.Helper()
	var e, d []byte
	if elfName != "" {
		e = fixture(t, elfName)
	}
	if dbgName != "" {
		d = fixture(t, dbgName)
	}
	return opened(t, e, d)
}

// rowAt is the row at an address, as text; "" where there is none.
func rowAt(t testing.TB, a *sdk.OpenObjectAnswer, pc uint64) string {
	t.Helper()
	for i := range a.Tables {
		for j := range a.Tables[i].Rows {
			if r := &a.Tables[i].Rows[j]; pc >= r.Start && pc < r.End {
				return rowText(t, r)
			}
		}
	}
	return ""
}

func rowText(t testing.TB, r *cfi.Row) string {
	t.Helper()
	text := expressionText(t, r.CFA.Expr)
	list := func(rules []cfi.RegisterRule) string {
		var s []string
		for _, rule := range rules {
			info, _ := Description().Register(uint32(rule.Column))
			how := ""
			switch rule.Rule.Kind {
			case cfi.Undefined:
				how = "undefined"
			case cfi.Offset:
				how = fmt.Sprintf("cfa+%d", rule.Rule.Offset)
			case cfi.Expression:
				how = expressionText(t, rule.Rule.Expr)
			default:
				t.Fatalf("rule of kind %d", rule.Rule.Kind)
			}
			s = append(s, info.Name+": "+how)
		}
		return strings.Join(s, ", ")
	}
	text += " | " + list(r.Rules)
	if len(r.CallSite) > 0 {
		text += " | calls: " + list(r.CallSite)
	}
	return text
}

func expressionText(t testing.TB, expr []byte) string {
	t.Helper()
	var ops []string
	for in, err := range locexpr.Decode(expr, locexpr.Canonical, 8, locexpr.LittleEndian) {
		if err != nil {
			t.Fatal(err)
		}
		op := strings.TrimPrefix(in.Op.Name, "DW_OP_")
		for i, kind := range in.Op.Operands {
			if kind != locexpr.NoOperand {
				op += fmt.Sprint(" ", in.Operands[i])
			}
		}
		ops = append(ops, op)
	}
	return strings.Join(ops, "; ")
}

// What a frame pointer leads to, by where in r125 it is and what it counts.
const (
	owordsAtFP = "constu 141; constu 96; INTEL_regval_bits 32; lit16; mul; lit9; LLVM_form_aspace_address"
	owordsAtSP = "constu 141; constu 64; INTEL_regval_bits 32; lit16; mul; lit9; LLVM_form_aspace_address"
	bytesAtFP  = "constu 141; constu 96; INTEL_regval_bits 32; lit9; LLVM_form_aspace_address"
	bytesAtSP  = "constu 141; constu 64; INTEL_regval_bits 32; lit9; LLVM_form_aspace_address"
	inR125     = "IP: drop; regx 141"
)

// The function fact of three processors: the offsets are those of the assembly.
func TestRowsFollowTheFrame(t *testing.T) {
	for _, c := range []struct {
		name, elf, dbg string
		rows           map[uint64]string
	}{
		{"OWORDs, a frame taken down by a compacted copy", "skl-rec-O2-1.elf", "skl-rec-O2-1.dbg", map[uint64]string{
			0x530: owordsAtSP + " | " + inR125,
			0x577: owordsAtSP + " | " + inR125,
			0x578: owordsAtFP + " | IP: cfa+0, r125: cfa+0",
			0x5a7: owordsAtFP + " | IP: cfa+0, r125: cfa+0",
			0x5a8: owordsAtFP + " | IP: cfa+0, r60: cfa+64, r61: cfa+96, r125: cfa+0",
			0x64f: owordsAtFP + " | IP: cfa+0, r60: cfa+64, r61: cfa+96, r125: cfa+0",
			0x650: owordsAtFP + " | IP: cfa+0, r60: cfa+64, r61: cfa+96, r125: cfa+0 | calls: r59: cfa+128",
			0x697: owordsAtFP + " | IP: cfa+0, r60: cfa+64, r61: cfa+96, r125: cfa+0 | calls: r59: cfa+128",
			0x698: owordsAtFP + " | IP: cfa+0, r60: cfa+64, r61: cfa+96, r125: cfa+0",
			0x6ff: owordsAtFP + " | IP: cfa+0, r60: cfa+64, r61: cfa+96, r125: cfa+0",
			0x700: owordsAtSP + " | " + inR125 + ", r60: cfa+64, r61: cfa+96",
			0x718: owordsAtSP + " | " + inR125,
			0x727: owordsAtSP + " | " + inR125,
		}},
		{"OWORDs, a frame taken down by a load", "tgllp-rec-O2-1.elf", "tgllp-rec-O2-1.dbg", map[uint64]string{
			1744: owordsAtSP + " | " + inR125,
			1791: owordsAtSP + " | " + inR125,
			1792: owordsAtFP + " | IP: cfa+0, r125: cfa+0",
			1840: owordsAtFP + " | IP: cfa+0, r60: cfa+64, r61: cfa+96, r62: cfa+128, r63: cfa+160, r125: cfa+0",
			2392: owordsAtFP + " | IP: cfa+0, r125: cfa+0",
			2423: owordsAtFP + " | IP: cfa+0, r125: cfa+0", // call frame information has it taken down here
			2424: owordsAtSP + " | " + inR125,
			2447: owordsAtSP + " | " + inR125,
		}},
		{"bytes, offsets of saves that were too large", "dg2-g10-rec-O2-1.elf", "dg2-g10-rec-O2-1.dbg", map[uint64]string{
			2192:       bytesAtSP + " | " + inR125,
			2192 + 64:  bytesAtFP + " | IP: cfa+0, r125: cfa+0",
			2192 + 112: bytesAtFP + " | IP: cfa+0, r60: cfa+64, r61: cfa+96, r62: cfa+128, r63: cfa+160, r125: cfa+0",
			2192 + 480: bytesAtFP + " | IP: cfa+0, r125: cfa+0",
			2719:       bytesAtFP + " | IP: cfa+0, r125: cfa+0",
			2720:       bytesAtSP + " | " + inR125,
		}},
		{"bytes, registers of 64 bytes", "pvc-rec-O0-1.elf", "pvc-rec-O0-1.dbg", map[uint64]string{
			4592:       bytesAtSP + " | " + inR125,
			4592 + 80:  bytesAtFP + " | IP: cfa+0, r125: piece 32",
			4592 + 192: bytesAtFP + " | IP: cfa+0, r60: cfa+64, r61: cfa+128, r62: cfa+192, r63: cfa+256, r64: cfa+320, r125: piece 32",
			4592 + 768: bytesAtFP + " | IP: cfa+0, r60: cfa+64, r61: cfa+128, r62: cfa+192, r63: cfa+256, r64: cfa+320, r125: piece 32 | calls: r59: cfa+384",
			5999:       bytesAtFP + " | IP: cfa+0, r125: piece 32",
			6000:       bytesAtSP + " | " + inR125,
		}},
		{"subroutines", "tgllp-k-O2-1.elf", "tgllp-k-O2-1.dbg", map[uint64]string{
			0:     "",
			0x1d7: "",
			0x1d8: "lit0; lit9; LLVM_form_aspace_address | IP: drop; regx 21; LLVM_offset_uconst 8",
			0x26f: "lit0; lit9; LLVM_form_aspace_address | IP: drop; regx 21; LLVM_offset_uconst 8",
			0x270: "lit0; lit9; LLVM_form_aspace_address | IP: drop; regx 21, r5: drop; piece 8; regx 21; LLVM_offset_uconst 8; piece 4",
			0x2e7: "lit0; lit9; LLVM_form_aspace_address | IP: drop; regx 21, r5: drop; piece 8; regx 21; LLVM_offset_uconst 8; piece 4",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := of(t, c.elf, c.dbg)
			for pc, want := range c.rows {
				if got := rowAt(t, a, pc); got != want {
					t.Errorf("at %#x:\n%s, want\n%s", pc, got, want)
				}
			}
		})
	}
}

// edges are the first and the last addresses of rows, and those beside them.
func edges(answers ...*sdk.OpenObjectAnswer) (list []uint64) {
	for _, a := range answers {
		for i := range a.Tables {
			for _, r := range a.Tables[i].Rows {
				list = append(list, r.Start-min(r.Start, 1), r.Start, r.End-1, r.End)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Call frame information, put right, says what the stream says but for what
// callers save, and what a kernel's frame is.
func TestRowsOfCallFrameInformationAreThoseOfTheStream(t *testing.T) {
	for _, c := range []struct{ elf, dbg string }{
		{"skl-rec-O2-1.elf", "skl-rec-O2-1.dbg"},
		{"tgllp-rec-O2-1.elf", "tgllp-rec-O2-1.dbg"},
		{"dg2-g10-rec-O2-1.elf", "dg2-g10-rec-O2-1.dbg"},
		{"dg2-g10-rec-O2-1.based.elf", "dg2-g10-rec-O2-1.dbg"},
		{"pvc-rec-O0-1.elf", "pvc-rec-O0-1.dbg"},
	} {
		byStream, byCFI := of(t, c.elf, c.dbg), of(t, c.elf, "")
		rows := 0
		for _, pc := range edges(byStream, byCFI) {
			if pc < byStream.Functions[0].End {
				continue
			}
			want, _, _ := strings.Cut(rowAt(t, byStream, pc), " | calls")
			if got := rowAt(t, byCFI, pc); got != want {
				t.Fatalf("%s at %#x:\n%s by call frame information,\n%s by the stream", c.elf, pc, got, want)
			} else if got != "" {
				rows++
			}
		}
		if rows == 0 {
			t.Errorf("%s: no rows", c.elf)
		}
		for _, a := range []*sdk.OpenObjectAnswer{byStream, byCFI} {
			if f := a.Functions[0]; f.Kind != sdk.KernelFunction || f.Start != 0 {
				t.Errorf("%s: %+v is no kernel", c.elf, f)
			}
			for _, f := range a.Functions[1:] {
				if f.Kind != sdk.OrdinaryFunction {
					t.Errorf("%s: %s is of kind %d", c.elf, f.Name, f.Kind)
				}
			}
			if len(a.Tables) != 1 || a.Tables[0].Priority != sdk.OverridesCFI {
				t.Errorf("%s: rows do not override call frame information", c.elf)
			}
		}
	}
}

func TestWhatIsWrongIsReported(t *testing.T) {
	for _, c := range []struct{ elf, dbg, problem, reason string }{
		{"dg2-g10-rec-O2-1.elf", "dg2-g10-rec-O2-1.dbg", "the compiler multiplied offsets at which registers are saved", "rows of the vISA stream: it has the return address in r128, which there is not, and in the addresses the number of their space; it knows no registers that callers save"},
		{"dg2-g10-rec-O2-1.elf", "", "call frame information: object 1 (\"function at 0x578\"): frame: the compiler multiplied offsets at which registers are saved", "rows made of it: it has the return address in r128"},
		{"dg2-g10-rec-O2-1.based.elf", "", "the compiler multiplied offsets at which registers are saved", "rows made of it: it has the return address in r128, which there is not"},
		{"pvc-rec-O0-1.elf", "", "the compiler multiplied offsets at which registers are saved", "rows made of it"},
		{"tgllp-rec-O2-1.elf", "tgllp-rec-O2-1.dbg", "function fact: call frame information has the frame taken down at 0x968, its code takes it down before 0x978", ""},
	} {
		a := of(t, c.elf, c.dbg)
		if !slices.ContainsFunc(a.Problems, func(p string) bool { return strings.Contains(p, c.problem) }) {
			t.Errorf("%s %s: %q, expected %q", c.elf, c.dbg, a.Problems, c.problem)
		}
		if len(a.Tables) == 0 || !strings.Contains(a.Tables[0].Reason, c.reason) {
			t.Errorf("%s %s: %+v, expected the reason %q", c.elf, c.dbg, a.Tables, c.reason)
		} else if tagged := strings.Contains(a.Tables[0].Reason, "number of their space"); tagged == strings.Contains(c.elf, "based") {
			t.Errorf("%s: %q", c.elf, a.Tables[0].Reason)
		}
	}
	for _, c := range []struct{ elf, dbg string }{{"skl-rec-O2-1.elf", "skl-rec-O2-1.dbg"}, {"tgllp-k-O2-1.elf", "tgllp-k-O2-1.dbg"}} {
		if a := of(t, c.elf, c.dbg); len(a.Problems) > 0 {
			t.Errorf("%s: %q", c.elf, a.Problems)
		}
	}
}

func TestFunctionsHaveTheirNamesAndLanes(t *testing.T) {
	type function struct {
		name  string
		start uint64
		end   uint64
		lanes uint32
		kind  sdk.FunctionKind
	}
	for _, c := range []struct {
		elf, dbg string
		want     []function
	}{
		{"tgllp-k-O2-1.elf", "tgllp-k-O2-1.dbg", []function{
			{"kern", 0, 0x1d8, 8, sdk.KernelFunction},
			{"mid", 0x1d8, 0x270, 8, sdk.OrdinaryFunction},
			{"leaf", 0x270, 0x2e8, 8, sdk.OrdinaryFunction},
		}},
		{"pvc-rec-O0-1.elf", "pvc-rec-O0-1.dbg", []function{
			{"reck", 0, 2576, 16, sdk.KernelFunction},
			{"even", 2576, 4592, 16, sdk.OrdinaryFunction},
			{"fact", 4592, 6048, 16, sdk.OrdinaryFunction},
			{"odd", 6048, 7920, 16, sdk.OrdinaryFunction},
		}},
		{"", "skl-rec-O2-1.dbg", []function{ // a stream alone does not say how many lanes
			{"reck", 0, 0x2a0, 0, sdk.KernelFunction},
			{"even", 0x2a0, 0x530, 0, sdk.OrdinaryFunction},
			{"fact", 0x530, 0x728, 0, sdk.OrdinaryFunction},
			{"odd", 0x728, 0x980, 0, sdk.OrdinaryFunction},
		}},
	} {
		var got []function
		for _, f := range of(t, c.elf, c.dbg).Functions {
			got = append(got, function{f.Name, f.Start, f.End, f.Lanes, f.Kind})
		}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(function{})); diff != "" {
			t.Errorf("%s %s: %s", c.elf, c.dbg, diff)
		}
	}
}

// A zebin's code is in a section of its own for each kernel, from address 0 on.
func TestRowsOfAZebinAreOfItsSections(t *testing.T) {
	a := of(t, "skl-rec-O0.zebin", "")
	if len(a.Problems) > 0 || len(a.Tables) != 1 || a.Tables[0].Section != 1 {
		t.Fatalf("%q, %d tables", a.Problems, len(a.Tables))
	}
	for i, want := range []sdk.Function{
		{Name: "reck", End: 0x650, Kind: sdk.KernelFunction},
		{Name: "even", Start: 0x650, End: 0xb80},
		{Name: "fact", Start: 0xb80, End: 0xf60},
		{Name: "odd", Start: 0xf60, End: 0x1440},
	} {
		want.Section, want.Lanes = 1, 8
		got := a.Functions[i]
		got.DefaultRules = nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	// Zebin has the second version of the calling convention.
	if got, want := rowAt(t, a, 0xb80+100), strings.Replace(owordsAtFP, "141", "143", 1)+" | IP: cfa+0, r127: cfa+0"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// The kernel's stream, but of another compilation: by the first version.
	a = of(t, "skl-rec-O0.zebin", "skl-rec-O0-1.dbg")
	if len(a.Functions) != 4 || len(a.Variables) > 0 || !slices.ContainsFunc(a.Problems, func(p string) bool { return strings.Contains(p, "it is of other code: what it says of 0x650") }) {
		t.Errorf("%q", a.Problems)
	}
	// Another kernel's.
	a = of(t, "skl-rec-O0.zebin", "tgllp-k-O2-1.dbg")
	if len(a.Functions) != 4 || !slices.ContainsFunc(a.Problems, func(p string) bool { return strings.Contains(p, "of kernel kern, whose code is not in the file") }) {
		t.Errorf("%q", a.Problems)
	}
}

// Which registers a function keeps: those from r60 on but for r126, in which
// messages are made up. Of those of a subroutine only the descriptor is known.
func TestFunctionsKeepTheirRegisters(t *testing.T) {
	kept := func(f *sdk.Function) (list []string) {
		for _, r := range f.DefaultRules {
			if info, _ := Description().Register(uint32(r.Column)); r.Rule.Kind == cfi.SameValue && info.Class == sdk.Vector {
				list = append(list, info.Name)
			}
		}
		return list
	}
	a := of(t, "skl-rec-O2-1.elf", "skl-rec-O2-1.dbg")
	var want []string
	for n := 60; n < 128; n++ {
		if n != 126 {
			want = append(want, fmt.Sprint("r", n))
		}
	}
	for i := 1; i < len(a.Functions); i++ {
		if diff := cmp.Diff(want, kept(&a.Functions[i])); diff != "" {
			t.Errorf("%s: %s", a.Functions[i].Name, diff)
		}
	}
	a = of(t, "tgllp-k-O2-1.elf", "tgllp-k-O2-1.dbg")
	for i := range a.Functions {
		if got := kept(&a.Functions[i]); got != nil {
			t.Errorf("%s: %v", a.Functions[i].Name, got)
		}
	}
}

// Without code and call frame information it is not known when a frame has been
// taken down, what a frame pointer counts where nothing tells, and where the code of a
// subroutine is that is not in one piece. Then there are no rows.
func TestAStreamAloneLeavesOutWhatNobodySays(t *testing.T) {
	t.Run("when the frame is taken down", func(t *testing.T) {
		a := of(t, "", "dg2-g10-rec-O2-1.dbg") // offsets that are too large are of a processor that counts bytes
		for pc, want := range map[uint64]string{
			2192:           bytesAtSP + " | " + inR125,
			2192 + 479:     bytesAtFP + " | IP: cfa+0, r60: cfa+64, r61: cfa+96, r62: cfa+128, r63: cfa+160, r125: cfa+0",
			2192 + 480:     bytesAtFP + " | IP: cfa+0, r125: cfa+0",
			2192 + 480 + 1: "",
			2192 + 559:     "",
		} {
			if got := rowAt(t, a, pc); got != want {
				t.Errorf("at %#x: %s, want %s", pc, got, want)
			}
		}
		if a.Tables[0].Priority != sdk.BelowCFI {
			t.Error("it overrides what is not there")
		}
	})
	t.Run("what frame pointers count", func(t *testing.T) {
		a := of(t, "", "skl-rec-O2-1.dbg")
		if len(a.Tables) != 0 || !slices.ContainsFunc(a.Problems, func(p string) bool { return strings.Contains(p, "bytes or OWORDs") }) {
			t.Errorf("%v, %q", a.Tables, a.Problems)
		}
	})
	t.Run("what frame pointers count, but the target says the processor", func(t *testing.T) {
		b := fixture(t, "skl-rec-O2-1.dbg")
		whole := of(t, "skl-rec-O2-1.elf", "skl-rec-O2-1.dbg")
		for _, processor := range []string{"skl", "TGLLP"} {
			a, rows := openedFor(t, processor, nil, b), 0
			for _, table := range a.Tables {
				for i := range table.Rows {
					rows++
					if got, want := rowText(t, &table.Rows[i]), rowAt(t, whole, table.Rows[i].Start); got != want {
						t.Errorf("%s: at %#x: %s, want %s", processor, table.Rows[i].Start, got, want)
					}
				}
			}
			if rows < 10 {
				t.Errorf("%s: %d rows, %q", processor, rows, a.Problems)
			}
		}
		// What the file tells is believed before it.
		a := openedFor(t, "tgllp", nil, fixture(t, "dg2-g10-rec-O2-1.dbg"))
		if diff := cmp.Diff(of(t, "", "dg2-g10-rec-O2-1.dbg").Tables, a.Tables); diff != "" {
			t.Error(diff)
		}
		if !slices.ContainsFunc(a.Problems, func(p string) bool {
			return strings.Contains(p, "count 1 bytes, where those of tgllp, the processor by the target, count 16")
		}) {
			t.Errorf("%q", a.Problems)
		}
	})
	t.Run("subroutines", func(t *testing.T) {
		a := of(t, "", "tgllp-k-O2-1.dbg")
		if !slices.ContainsFunc(a.Problems, func(p string) bool {
			return strings.Contains(p, "subroutine leaf: the code of vISA instructions 135 to 152 is in several pieces")
		}) {
			t.Errorf("%q", a.Problems)
		}
		for _, f := range a.Functions { // leaf may be anywhere in what is left
			if f.Kind == sdk.KernelFunction {
				t.Errorf("%s at %#x is a kernel", f.Name, f.Start)
			}
		}
		if rowAt(t, a, 0x1d8) == "" {
			t.Error("no row of mid")
		}
	})
}

// Call frame information says nothing of subroutines: a kernel with some may be
// in one.
func TestAKernelWithSubroutinesAndNoStreamIsNotTheOutermost(t *testing.T) {
	if a := of(t, "tgllp-k-O2-1.elf", ""); len(a.Functions) != 0 {
		t.Errorf("%+v", a.Functions)
	}
}

func TestIndexesOfInstructions(t *testing.T) {
	a := of(t, "skl-rec-O2-1.elf", "skl-rec-O2-1.dbg")
	s, err := stream.Decode(fixture(t, "skl-rec-O2-1.dbg"))
	if err != nil {
		t.Fatal(err)
	}
	if len(a.PositionMaps) != len(s.Objects) {
		t.Fatalf("%d maps", len(a.PositionMaps))
	}
	found := 0
	for _, o := range s.Objects {
		for _, m := range a.PositionMaps {
			if m.Kind != "visa" || m.PCs[0] != uint64(o.RelocOffset) {
				continue
			}
			found++
			for i, e := range o.IndexMap {
				if m.PCs[i] != uint64(o.RelocOffset+e.Gen) || m.Positions[i] != uint64(e.VISA) {
					t.Fatalf("%s: %d is at %#x, want %+v", o.Name, m.Positions[i], m.PCs[i], e)
				}
			}
		}
	}
	if found != len(s.Objects) {
		t.Errorf("%d of %d", found, len(s.Objects))
	}
}

func TestAContainersKernelsAreNested(t *testing.T) {
	b := testContainer(containerKernel{"alpha\x00\x00\x00", "first", ""})
	a := opened(t, nil, b)
	if len(a.Nested) != 1 || a.Nested[0].Name != "alpha" || len(a.Problems) > 0 {
		t.Errorf("%+v", a)
	}
	a = opened(t, nil, b[:len(b)-1])
	if len(a.Nested) != 0 || len(a.Problems) != 1 {
		t.Errorf("%+v", a)
	}
}
