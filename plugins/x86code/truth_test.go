// SPDX-License-Identifier: Apache-2.0

package x86code

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// A knownRow is a row of CFI as readelf prints it.
type knownRow struct {
	pc    uint64
	cfa   string
	rules map[string]string
}

// A knownFunction is an FDE with its rows.
type knownFunction struct {
	start, end uint64
	rows       []knownRow
}

func (f *knownFunction) at(pc uint64) *knownRow {
	var found *knownRow
	for i := range f.rows {
		if f.rows[i].pc <= pc {
			found = &f.rows[i]
		}
	}
	return found
}

// readelfRows reads the rows of every FDE of a file.
func readelfRows(t *testing.T, path string) []knownFunction {
	t.Helper()
	cmd := exec.Command("readelf", "--debug-dump=no-follow-links,frames-interp", path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	functions := parseReadelf(out)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return functions
}

func parseReadelf(r io.Reader) []knownFunction {
	var functions []knownFunction
	var columns []string
	var row *knownRow // of the CIE that is being read
	cies := make(map[string]*knownRow)
	inFDE := false
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		fields := slices.DeleteFunc(strings.Fields(s.Text()), func(f string) bool {
			return strings.HasPrefix(f, "(") // the name of a register
		})
		switch {
		case len(fields) == 0:
			columns = nil
		case len(fields) > 3 && (fields[3] == "FDE" || fields[3] == "CIE"):
			inFDE = fields[3] == "FDE"
			columns = nil
			if !inFDE {
				row = &knownRow{}
				cies[fields[0]] = row
			} else {
				pcs := fields[len(fields)-1]
				from, to, _ := strings.Cut(strings.TrimPrefix(pcs, "pc="), "..")
				var f knownFunction
				f.start, _ = strconv.ParseUint(from, 16, 64)
				f.end, _ = strconv.ParseUint(to, 16, 64)
				// The rows of an FDE begin with that of its CIE; one without
				// rows of its own has only that.
				if cie := cies[strings.TrimPrefix(fields[len(fields)-2], "cie=")]; cie != nil {
					f.rows = []knownRow{{pc: f.start, cfa: cie.cfa, rules: cie.rules}}
				}
				functions = append(functions, f)
			}
		case fields[0] == "LOC":
			columns = fields[2:]
		case columns != nil && len(fields) == len(columns)+2:
			pc, err := strconv.ParseUint(fields[0], 16, 64)
			if err != nil {
				continue
			}
			known := knownRow{pc: pc, cfa: fields[1], rules: make(map[string]string)}
			for i, c := range columns {
				known.rules[c] = fields[2+i]
			}
			if !inFDE {
				*row = known
				continue
			}
			f := &functions[len(functions)-1]
			f.rows = append(f.rows, known)
		}
	}
	return functions
}

// testMode is a mode with what its tests need.
type testMode struct {
	*Mode
	name      string
	registers []string // by their encoding, as readelf names them
	flags     []string // of gcc
	least     least    // what tests demand
	folders   []string // of libraries
}

var testModes = []*testMode{
	{Mode: NewMode(Convention64()), name: "64", least: least{known: 0.9, libm: 0.99, ahead: 0.5, aheadLibm: 0.9, wrong: 0.0001, wrongAhead: 0.001}, folders: []string{"/lib/x86_64-linux-gnu", "/lib64", "/usr/lib"},
		registers: strings.Fields("rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15")},
	// The headers and libraries of i386 are not needed: what is compiled has no library, and
	// one header that lists what is missing in a library may be empty.
	{Mode: NewMode(Convention32()), name: "32", least: least{known: 0.7, libm: 0.7, ahead: 1.0 / 6, aheadLibm: 0.25}, flags: []string{"-m32", "-nostdlib", "-Wl,--unresolved-symbols=ignore-all,--defsym=__stack_chk_fail_local=0,-e,main", "-idirafter", "/usr/include/x86_64-linux-gnu"},
		folders:   []string{os.Getenv("UNWINDD_I386_LIBRARIES"), "/lib32", "/lib/i386-linux-gnu"},
		registers: strings.Fields("eax ecx edx ebx esp ebp esi edi")},
}

// least has what is demanded of a mode: parts of the instructions that were compared. Those of
// 32 bits are lower: what callees remove is not always certain.
type least struct {
	known      float64 // of compiled programs: instructions with a row
	libm       float64 // the same of libm
	ahead      float64 // of compiled programs, read without their bounds
	aheadLibm  float64 // the same of libm
	wrong      float64 // of libm: the most that may be wrong
	wrongAhead float64 // the same without its bounds
}

// eachMode executes a test in each mode.
func eachMode(t *testing.T, test func(t *testing.T, m *testMode)) {
	t.Helper()
	for _, m := range testModes {
		t.Run(m.name, func(t *testing.T) { test(t, m) })
	}
}

// ask makes a request of one function.
func (m *testMode) ask(r *sdk.CodeRange) sdk.FrameRules { return m.Rules(r) }

// A tally counts instructions by how the rows found by reading code stand to
// those of CFI.
type tally struct {
	m                           *testMode
	functions                   int
	instructions, right, wrong  int
	unknown, incomparable       int
	registersWrong, lost, stale int
	reports                     []string
}

// part is the part that n is of all.
func part(n, all int) float64 { return float64(n) / float64(max(all, 1)) }

func (c *tally) String() string {
	return fmt.Sprintf("functions %d, instructions %d: right %d, wrong %d, unknown %d, CFA by expression %d; saved registers: wrong %d, not found %d, stale in CFI %d",
		c.functions, c.instructions, c.right, c.wrong, c.unknown, c.incomparable, c.registersWrong, c.lost, c.stale)
}

func (c *tally) report(format string, args ...any) {
	if len(c.reports) < 4000 {
		c.reports = append(c.reports, fmt.Sprintf(format, args...))
	}
}

// parseCFA reads "rsp+16".
func (m *testMode) parseCFA(s string) (register int, offset int64, ok bool) {
	i := strings.IndexAny(s, "+-")
	if i < 0 {
		return 0, 0, false
	}
	register = slices.Index(m.registers, s[:i])
	offset, err := strconv.ParseInt(s[i:], 10, 64)
	return register, offset, register >= 0 && err == nil
}

// compareFunction compares the states of a function with its CFI, instruction
// by instruction.
func (c *tally) compareFunction(f *knownFunction, code []byte) {
	flow := c.m.newFlow(codeflow.OnePiece(0, code), c.m.entryState(), false)
	if err := flow.run(); err != nil {
		c.report("%#x: %v", f.start, err)
		return
	}
	contradicted := flow.Contradicted()
	c.functions++
	for at := uint64(0); at < uint64(len(code)); {
		pc := f.start + at
		e := flow.effect(at)
		if e == nil {
			at++
			continue
		}
		row := f.at(pc)
		p, isContradicted := flow.Point(at), contradicted[at]
		at += uint64(e.Length)
		if row == nil || p == nil && (e.IsFiller && !e.IsEndbr || e.Kind == Stop) {
			continue
		}
		c.instructions++
		register, offset, ok := c.m.parseCFA(row.cfa)
		if p == nil || isContradicted {
			c.unknown++
			c.report("%#x: unknown (function %#x)", pc, f.start)
			continue
		}
		s := &p.State
		v := s.view(c.m.Mode, c.m.Search, e.Kind == Call)
		if v.cfa.Kind == 0 {
			c.unknown++
			c.report("%#x: no CFA (function %#x), CFI %s", pc, f.start, row.cfa)
			continue
		}
		if !ok {
			c.incomparable++
			if v.cfa.Expr == nil {
				c.report("%#x: CFI has an expression, reading found a register", pc)
			}
		} else {
			have := s.gpr[register]
			switch {
			case have.kind != address || have.base != SP:
				c.unknown++
				c.report("%#x: CFI has %s, whose value is unknown (function %#x)", pc, row.cfa, f.start)
				continue
			case int64(have.off)+offset != int64(c.m.Word):
				c.wrong++
				c.report("%#x: CFA %s, found %s%+d (function %#x)", pc, row.cfa, c.m.registers[register], int64(c.m.Word)-int64(have.off), f.start)
				continue
			}
			c.right++
		}
		c.compareRegisters(pc, row, s, &v)
	}
}

func (c *tally) compareRegisters(pc uint64, row *knownRow, s *state, v *view) {
	for i, register := range c.m.Saved {
		name := c.m.registers[c.m.GPROf(register)]
		known := row.rules[name]
		if !strings.HasPrefix(known, "c") {
			known = "same"
		}
		found := "same"
		for _, r := range v.rules {
			if r.Column != uint64(register) {
				continue
			}
			switch {
			case !v.found[i]:
				found = "undefined"
			case r.Rule.Expr != nil:
				found = "expression"
			case r.Rule.Offset != 0:
				found = fmt.Sprintf("c%+d", r.Rule.Offset)
			default:
				found = "register"
			}
		}
		switch {
		case found == known:
		case found == "undefined" || row.rules[name] == "exp":
			c.lost++
		case found == "same":
			// The register has been restored; CFI still names the slot.
			c.stale++
		default:
			c.registersWrong++
			c.report("%#x: %s: CFI %q, found %q", pc, name, row.rules[name], found)
		}
	}
}

// unlikely returns where the unlikely parts of functions are: a jump enters
// them, in mid-frame.
func unlikely(file *elf.File) map[uint64]bool {
	parts := make(map[uint64]bool)
	symbols, _ := file.Symbols()
	for _, s := range symbols {
		if !codeflow.IsCalledAtStart(s.Name) {
			parts[s.Value] = true
		}
	}
	return parts
}

// functionsOf returns the functions of a file that have CFI and begin as called
// functions do, with their code.
func (m *testMode) functionsOf(t *testing.T, path string) (functions []knownFunction, code [][]byte) {
	t.Helper()
	oracle.Tools(t, "readelf")
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	parts := unlikely(file)
	for _, f := range readelfRows(t, path) {
		bytes := codeAt(file, f.start, f.end)
		if bytes == nil || len(f.rows) == 0 || parts[f.start] || len(bytes) > MaxCode {
			continue
		}
		if first := f.at(f.start); first.cfa == fmt.Sprintf("%s+%d", m.registers[SP], m.Word) && first.rules["ra"] == fmt.Sprintf("c-%d", m.Word) {
			functions, code = append(functions, f), append(code, bytes)
		}
	}
	return functions, code
}

// compareFile compares every function of a file that has CFI.
func compareFile(t *testing.T, m *testMode, path string) *tally {
	t.Helper()
	c := &tally{m: m}
	functions, code := m.functionsOf(t, path)
	for i := range functions {
		c.compareFunction(&functions[i], code[i])
	}
	return c
}

func codeAt(file *elf.File, start, end uint64) []byte {
	for _, s := range file.Sections {
		if s.Flags&elf.SHF_EXECINSTR != 0 && strings.HasPrefix(s.Name, ".text") && start >= s.Addr && end <= s.Addr+s.Size && start < end {
			code := make([]byte, end-start)
			if _, err := s.ReadAt(code, int64(start-s.Addr)); err == nil {
				return code
			}
		}
	}
	return nil
}

// compile compiles testdata/shapes.c.
func (m *testMode) compile(t *testing.T, options ...string) string {
	t.Helper()
	oracle.Tools(t, "gcc")
	dir := t.TempDir()
	path := filepath.Join(dir, "shapes")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "gnu"), 0o700), os.WriteFile(filepath.Join(dir, "gnu", "stubs-32.h"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	options = append(slices.Clone(m.flags), options...)
	args := append([]string{"-o", path, "-idirafter", dir, "-w", "-fasynchronous-unwind-tables", filepath.Join("testdata", "shapes.c")}, options...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc %s: %v\n%s", strings.Join(options, " "), err, out)
	}
	return path
}

var compileOptions = [][]string{
	{"-O0"}, {"-O1"}, {"-O2"}, {"-O3", "-mavx2"}, {"-Os"},
	{"-O2", "-fno-omit-frame-pointer"},
	{"-O2", "-fcf-protection=full"},
	{"-O2", "-fno-pic", "-no-pie"},
	{"-O2", "-fstack-protector-all"},
	{"-O2", "-mno-red-zone", "-maccumulate-outgoing-args"},
	{"-O2", "-mstackrealign"},
	{"-O2", "-fno-plt"},
}

// Rows found by reading code are the compiler's, at every instruction that the
// program can reach.
func TestRowsFoundByReadingAreThoseOfTheCompiler(t *testing.T) {
	eachMode(t, func(t *testing.T, m *testMode) {
		for _, options := range compileOptions {
			t.Run(strings.Join(options, " "), func(t *testing.T) {
				c := compareFile(t, m, m.compile(t, options...))
				t.Log(c)
				if c.wrong > 0 || c.registersWrong > 0 || part(c.instructions-c.unknown, c.instructions) < m.least.known || c.functions < 15 || c.instructions < 300 {
					t.Errorf("%s\n%s", c, strings.Join(c.reports, "\n"))
				}
			})
		}
	})
}

// The C library's mathematical functions are many, and hardly any of them is
// written in assembly language, with CFI by hand.
func TestRowsFoundByReadingAreThoseOfLibm(t *testing.T) {
	eachMode(t, func(t *testing.T, m *testMode) {
		path := m.findLibrary(t, "libm.so.6")
		c := compareFile(t, m, path)
		t.Log(path, c)
		if part(c.wrong, c.instructions) > m.least.wrong || part(c.registersWrong, c.instructions) > m.least.wrong || part(c.instructions-c.unknown, c.instructions) < m.least.libm || c.functions < 100 {
			t.Errorf("%s\n%s", c, strings.Join(c.reports[:min(40, len(c.reports))], "\n"))
		}
	})
}

// findLibrary is the file of a library of the mode.
func (m *testMode) findLibrary(t *testing.T, name string) string {
	t.Helper()
	for _, folder := range m.folders {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	oracle.Missing(t, "there is no %s of %s bits", name, m.name)
	return ""
}

// aheadTally counts what reading ahead, without bounds, says.
type aheadTally struct {
	m                                          *testMode
	asked, right, wrong, unknown, incomparable int
	more, wrongRegisters                       int // rows, and those with a register elsewhere
	reports                                    []string
}

// compareMore compares the rows that one question is answered by with those of the compiler, and
// where registers are with what the function is found to do when it is read from its start.
func (c *aheadTally) compareMore(f *knownFunction, whole *sdk.FrameRules, rows []cfi.Row) {
	for i := range rows {
		row := &rows[i]
		if row.Start < f.start || row.Start >= f.end {
			continue
		}
		c.more++
		known := f.at(row.Start)
		register, offset, ok := c.m.parseCFA(known.cfa)
		if i > 0 && ok && row.CFA.Kind == cfi.CFARegister && row.CFA.Register == uint64(c.m.Numbers[register]) && row.CFA.Offset != offset {
			c.wrong++
			c.reports = append(c.reports, fmt.Sprintf("%#x, of a row from %#x on: CFA %s, found %+d (function %#x)", row.Start, rows[0].Start, known.cfa, row.CFA.Offset, f.start))
		}
		n := slices.IndexFunc(whole.Rows, func(r cfi.Row) bool { return r.Start <= row.Start && row.Start < r.End })
		if n < 0 {
			continue
		}
		for _, register := range c.m.Saved {
			ours, isSaid := row.Rule(uint64(register))
			want, isSaved := whole.Rows[n].Rule(uint64(register))
			if isSaid && ours.Kind != cfi.Offset || isSaved && want.Kind != cfi.Offset || isSaid && !isSaved || isSaid == isSaved && ours.Offset == want.Offset {
				continue
			}
			c.wrongRegisters++
			c.reports = append(c.reports, fmt.Sprintf("%#x, of a row from %#x on: register %d: %+v, expected %+v (function %#x)", row.Start, rows[0].Start, register, ours, want, f.start))
			break
		}
	}
}

func (c *aheadTally) String() string {
	return fmt.Sprintf("asked %d: right %d, wrong %d, unknown %d, found by another register %d; %d rows, a register wrong in %d", c.asked, c.right, c.wrong, c.unknown, c.incomparable, c.more, c.wrongRegisters)
}

// compareAhead asks about every instruction (exact), or every call (not exact),
// of one function in every, without its bounds.
func compareAhead(t *testing.T, m *testMode, path string, exact bool, every int) *aheadTally {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	section := file.Section(".text")
	text, err := section.Data()
	if err != nil {
		t.Fatal(err)
	}
	c := &aheadTally{m: m}
	functions, code := m.functionsOf(t, path)
	for i := 0; i < len(functions); i += every {
		f := &functions[i]
		if f.start < section.Addr || f.end > section.Addr+section.Size {
			continue
		}
		whole := m.ask(&sdk.CodeRange{PC: f.start, Start: f.start, Code: code[i], Bounded: true, Exact: true})
		for at := 0; at < len(code[i]); {
			pc := f.start + uint64(at)
			e, ok := m.ReadEffect(code[i][at:])
			if !ok {
				at++
				continue
			}
			at += int(e.Length)
			row := f.at(pc)
			register, offset, ok := c.m.parseCFA(row.cfa)
			if !ok || e.IsFiller || !exact && e.Kind != Call || row.rules["ra"] != fmt.Sprintf("c-%d", m.Word) {
				continue
			}
			c.asked++
			if !exact {
				pc += uint64(e.Length) - 1
			}
			from := max(pc, section.Addr+4096) - 4096
			to := min(pc+16384, section.Addr+section.Size)
			got := m.ask(&sdk.CodeRange{PC: pc, Start: from, Code: text[from-section.Addr : to-section.Addr], Exact: exact})
			c.compareMore(f, &whole, got.Rows)
			switch {
			case len(got.Rows) == 0:
				c.unknown++
			case got.Rows[0].CFA.Kind != cfi.CFARegister || got.Rows[0].CFA.Register != uint64(c.m.Numbers[register]):
				c.incomparable++
			case got.Rows[0].CFA.Offset != offset:
				c.wrong++
				c.reports = append(c.reports, fmt.Sprintf("%#x: CFA %s, found %+d (function %#x)", pc, row.cfa, got.Rows[0].CFA.Offset, f.start))
			default:
				c.right++
			}
		}
	}
	return c
}

func TestRowsFoundAheadAreThoseOfTheCompiler(t *testing.T) {
	eachMode(t, func(t *testing.T, m *testMode) {
		for _, options := range compileOptions {
			t.Run(strings.Join(options, " "), func(t *testing.T) {
				path := m.compile(t, options...)
				for _, exact := range []bool{true, false} {
					c := compareAhead(t, m, path, exact, 1)
					t.Log(c)
					if c.wrong+c.wrongRegisters > 0 || part(c.right+c.incomparable, c.asked) < m.least.ahead {
						t.Errorf("exact %v: %s\n%s", exact, c, strings.Join(c.reports, "\n"))
					}
				}
			})
		}
		t.Run("libm", func(t *testing.T) {
			path := m.findLibrary(t, "libm.so.6")
			for _, exact := range []bool{true, false} {
				c := compareAhead(t, m, path, exact, 31)
				t.Log(path, c)
				if part(c.wrong, c.asked) > m.least.wrongAhead || c.wrongRegisters > 0 || part(c.right, c.asked) < m.least.aheadLibm {
					t.Errorf("exact %v: %s\n%s", exact, c, strings.Join(c.reports[:min(40, len(c.reports))], "\n"))
				}
			}
		})
	})
}

// The disassembler and the length tables agree on real code but for the
// instructions that the tables exist for.
func TestLengthsAgreeWithTheDisassembler(t *testing.T) {
	eachMode(t, func(t *testing.T, m *testMode) {
		for _, options := range compileOptions {
			path := m.compile(t, options...)
			functions, code := m.functionsOf(t, path)
			for i := range functions {
				for at := 0; at < len(code[i]); {
					e, ok := m.layout(code[i][at:])
					if !ok {
						t.Fatalf("%s %v: no instruction at %#x", filepath.Base(path), options, functions[i].start+uint64(at))
					}
					bytes := code[i][at : at+e.length]
					inst, err := m.Decode(bytes)
					if _, known := named[string(bytes)]; !known && (err != nil || inst.Len != e.length) {
						t.Errorf("%v: %x is %d bytes long, the disassembler says %d, %v", options, bytes, e.length, inst.Len, err)
					}
					at += e.length
				}
			}
		}
	})
}

// Every call that objdump finds in a program is found, with its target; and no
// instruction that is no call is taken for the end of one where objdump says
// that the bytes before are something else of the same length.
func TestClassifyReturnFindsEveryCallOfAProgram(t *testing.T) {
	eachMode(t, func(t *testing.T, m *testMode) {
		oracle.Tools(t, "objdump")
		path := m.compile(t, "-O2")
		file, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		section := file.Section(".text")
		text, err := section.Data()
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("objdump", "-d", "-w", "-j", ".text", "--no-show-raw-insn", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		var calls int
		var previous string
		for line := range strings.SplitSeq(string(out), "\n") {
			head, instruction, ok := strings.Cut(line, ":\t")
			if !ok {
				continue
			}
			pc, err := strconv.ParseUint(strings.TrimSpace(head), 16, 64)
			if err != nil {
				continue
			}
			last := previous
			previous = instruction
			if !strings.Contains(last, "call") {
				continue
			}
			calls++
			at := pc - section.Addr
			class, target := m.classify(t, pc, text[max(0, int(at)-16):at])
			fields := strings.Fields(last[strings.Index(last, "call"):])
			if strings.HasPrefix(fields[1], "*") {
				if class != sdk.AfterIndirectCall {
					t.Errorf("%#x after %q: class %d", pc, last, class)
				}
				continue
			}
			want, err := strconv.ParseUint(fields[1], 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			if class != sdk.AfterDirectCall || target != want {
				t.Errorf("%#x after %q: class %d, target %#x", pc, last, class, target)
			}
		}
		if calls < 10 {
			t.Errorf("%d calls, expected a program with more", calls)
		}
	})
}

// classify classifies one PC.
func (m *testMode) classify(t *testing.T, pc uint64, before []byte) (sdk.ReturnClass, uint64) {
	t.Helper()
	answer, err := m.ClassifyReturn(&sdk.ClassifyReturnRequest{PCs: []uint64{pc}, Offsets: []uint32{0, uint32(len(before))}, Code: before}) //nolint:gosec // small
	if err != nil {
		t.Fatal(err)
	}
	return answer.Classes[0], answer.Targets[0]
}
