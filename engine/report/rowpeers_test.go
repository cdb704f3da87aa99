// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bufio"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/internal/subject"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/visa"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// llvm returns a tool of LLVM 22: older ones do not read the heterogeneous
// extension.
func llvm(t *testing.T, tool string) string {
	t.Helper()
	return oracle.Tool(t, "llvm-"+tool+"-22")
}

// long leaves a comparison of every entry of large files out of -short, which is how
// the race detector runs: there it takes many times as long, and the race detector sees
// nothing in it that it does not see elsewhere.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long: run without -short")
	}
}

// wavesOf is the wave size of the processor that a code object is for, by the
// flags of its header.
func wavesOf(t *testing.T, path string) uint32 {
	t.Helper()
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	p, ok := amdgpu.Description().ObjectProcessor(o.Flags())
	if !ok {
		t.Fatalf("%s: the flags %#x tell no processor", path, o.Flags())
	}
	return p.Lanes[0]
}

// A listedFDE is an FDE with its rows, as text that can be compared. A row is
// "ADDRESS CFA NUMBER=RULE ...", with registers as numbers and in their order.
type listedFDE struct {
	section    string
	offset     uint64
	start, end uint64
	rows       []string
}

func (f listedFDE) String() string {
	return fmt.Sprintf("%s+%#x %#x to %#x\n  %s", f.section, f.offset, f.start, f.end, strings.Join(f.rows, "\n  "))
}

// A lister lists the FDEs of a file one after the other.
type lister func(yield func(listedFDE) bool)

// pipe starts a command and gives what it writes to read, line by line.
func pipe(t *testing.T, cmd *exec.Cmd, read func(io.Reader)) {
	t.Helper()
	cmd.Env = append(cmd.Environ(), "LC_ALL=C", "DEBUGINFOD_URLS=")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read(out)
	io.Copy(io.Discard, out)
	// readelf looks for the interpreter in files that have none of its bytes.
	if err := cmd.Wait(); err != nil && !strings.Contains(stderr.String(), "Unable to find program interpreter name") {
		t.Fatalf("%v: %v\n%.2000s", cmd.Args, err, stderr.String())
	}
}

// A rowText turns a row of a lister into the text that is compared.
type rowText struct {
	names sdk.Names
	// expr is the text of an expression; kind is expr or valexpr.
	expr func(kind string, b []byte) string
	// undefined says that the peer tells undefined from unmentioned.
	undefined bool
	// rules counts the compared rules.
	rules int
}

func (x *rowText) register(t *testing.T, name string) uint64 {
	t.Helper()
	if n, ok := x.names.Register(name); ok {
		return n
	}
	n, err := strconv.ParseUint(name, 10, 64)
	if err != nil {
		t.Fatalf("no register is called %q", name)
	}
	return n
}

var (
	cfaText    = regexp.MustCompile(`^([^+-]+)([+-][0-9]+)(@.*)?$`)
	offsetText = regexp.MustCompile(`^(cfa|valcfa)[+-][0-9]+$`)
)

// rule is a register rule of the JSON.
func (x *rowText) rule(t *testing.T, s string) string {
	t.Helper()
	kind, b, isExpr := strings.Cut(s, ":")
	switch {
	case isExpr:
		expr, err := hex.DecodeString(b)
		if err != nil {
			t.Fatalf("rule %q: %v", s, err)
		}
		return x.expr(kind, expr)
	case s == "same", s == "undefined", offsetText.MatchString(s):
		return s
	}
	return fmt.Sprintf("reg%d", x.register(t, s))
}

func (x *rowText) cfa(t *testing.T, s string) string {
	t.Helper()
	if s == "" {
		return "none"
	}
	if m := cfaText.FindStringSubmatch(s); m != nil && !strings.Contains(s, ":") {
		space := ""
		if m[3] != "" {
			n, ok := x.names.Space(m[3][1:])
			if !ok {
				t.Fatalf("CFA %q: unknown space", s)
			}
			space = fmt.Sprintf("@%d", n)
		}
		return fmt.Sprintf("reg%d%s%s", x.register(t, m[1]), m[2], space)
	}
	return x.rule(t, s)
}

// row puts a row together.
func (x *rowText) row(pc uint64, cfa string, rules map[uint64]string) string {
	columns := make([]uint64, 0, len(rules))
	for n, rule := range rules {
		if rule != "undefined" || x.undefined {
			columns = append(columns, n)
		}
	}
	slices.Sort(columns)
	var b strings.Builder
	fmt.Fprintf(&b, "%x %s", pc, cfa)
	for _, n := range columns {
		fmt.Fprintf(&b, " %d=%s", n, rules[n])
	}
	x.rules += len(columns)
	return b.String()
}

// dumpRows lists the rows that are written as JSON.
func dumpRows(t *testing.T, path string, x *rowText) lister {
	return func(yield func(listedFDE) bool) {
		r, w := io.Pipe()
		defer r.Close()
		c := callFrames(t, path)
		go func() { w.CloseWithError(c.WriteRowsJSON(w)) }()
		d := json.NewDecoder(r)
		token := func(want json.Token) {
			if got, err := d.Token(); err != nil || got != want {
				t.Fatalf("rows: %v %v, want %v", got, err, want)
			}
		}
		token(json.Delim('{'))
		token("fdes")
		token(json.Delim('['))
		for d.More() {
			var f dumpedFDE
			if err := d.Decode(&f); err != nil {
				t.Fatalf("rows: %v", err)
			}
			out := listedFDE{section: f.Section, offset: f.Offset, start: number(t, f.Start), end: number(t, f.End)}
			for _, r := range f.Rows {
				rules := map[uint64]string{}
				for name, rule := range r.Rules {
					rules[x.register(t, name)] = x.rule(t, rule)
				}
				out.rows = append(out.rows, x.row(number(t, r.PC), x.cfa(t, r.CFA), rules))
			}
			if !yield(out) {
				return
			}
		}
		token(json.Delim(']'))
		token("problems")
		var problems []string
		if err := d.Decode(&problems); err != nil || len(problems) > 0 {
			t.Errorf("rows: problems %q %v", problems, err)
		}
		token(json.Delim('}'))
	}
}

// number reads a number in any base.
func number(t *testing.T, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// compareRows goes through two lists side by side. differ says which class a
// difference is of, "" being none that is known.
func compareRows(t *testing.T, want, got lister, differ func(want, got listedFDE) string) (fdes, rows int, classes map[string]int) {
	t.Helper()
	classes = map[string]int{}
	wanted := make(chan listedFDE, 64)
	go func() {
		defer close(wanted)
		want(func(f listedFDE) bool { wanted <- f; return true })
	}()
	bad := 0
	got(func(g listedFDE) bool {
		w, ok := <-wanted
		if !ok {
			t.Errorf("the peer does not list %v", g)
			return true
		}
		fdes++
		rows += len(g.rows)
		if w.String() == g.String() {
			return true
		}
		class := differ(w, g)
		classes[class]++
		if bad++; class == "" && bad <= 3 {
			t.Errorf("the peer says\n%.3000s\nwhere unwindd says\n%.3000s", w, g)
		}
		return true
	})
	for w := range wanted {
		t.Errorf("only the peer lists %v", w)
	}
	if classes[""] > 0 {
		t.Errorf("%d FDEs differ", classes[""])
	}
	return fdes, rows, classes
}

func noClass(_, _ listedFDE) string { return "" }

// readelfHead is the first line of an entry of readelf.
var readelfHead = regexp.MustCompile(`^([0-9a-f]{8,}) [0-9a-f]+ [0-9a-f]+ (CIE|FDE) (?:cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+)$)?`)

// A register rule of readelf is "r13 (r13)".
var readelfRegister = regexp.MustCompile(`\br([0-9]+) \([^ ()]+\)`)

// readelfRows lists what readelf makes of a file. It writes u for a rule that
// says undefined and for no rule, and exp for every expression.
func readelfRows(t *testing.T, path string, x *rowText) lister {
	return func(yield func(listedFDE) bool) {
		cmd := exec.Command("readelf", "--debug-dump=frames-interp", "--debug-dump=no-follow-links", "--wide", path)
		pipe(t, cmd, func(r io.Reader) {
			section := ""
			var columns []uint64
			var current *listedFDE
			var initial map[uint64]string // the row of a CIE, without its address
			var cie uint64
			flush := func() bool {
				f := current
				current = nil
				if f == nil {
					return true
				}
				// Where an FDE has nothing but nops it writes no row, and the one
				// of the CIE holds.
				if row := initial[cie]; len(f.rows) == 0 && row != "" {
					f.rows = []string{fmt.Sprintf("%x %s", f.start, row)}
				}
				return yield(*f)
			}
			s := bufio.NewScanner(r)
			s.Buffer(nil, 1<<24)
			inCIE := uint64(0)
			for s.Scan() {
				line := strings.TrimRight(s.Text(), " ")
				if strings.HasPrefix(line, "Contents of the ") {
					if !flush() {
						return
					}
					section = strings.Fields(line)[3]
					initial = map[uint64]string{}
					continue
				}
				if line == "" || strings.HasSuffix(line, "ZERO terminator") || strings.Contains(line, "has the NOBITS type") {
					continue
				}
				if m := readelfHead.FindStringSubmatch(line); m != nil {
					if !flush() {
						return
					}
					offset, _ := strconv.ParseUint(m[1], 16, 64)
					if m[2] == "CIE" {
						inCIE = offset
						continue
					}
					cie, _ = strconv.ParseUint(m[3], 16, 64)
					current = &listedFDE{section: section, offset: offset}
					current.start, _ = strconv.ParseUint(m[4], 16, 64)
					current.end, _ = strconv.ParseUint(m[5], 16, 64)
					continue
				}
				fields := strings.Fields(readelfRegister.ReplaceAllString(line, "reg$1"))
				if fields[0] == "LOC" {
					columns = columns[:0]
					for _, name := range fields[2:] {
						if name == "ra" {
							name = "rip"
						}
						columns = append(columns, x.register(t, name))
					}
					continue
				}
				if len(fields) != len(columns)+2 {
					t.Fatalf("readelf: %q has %d columns, want %d", line, len(fields), len(columns)+2)
				}
				address, err := strconv.ParseUint(fields[0], 16, 64)
				if err != nil {
					t.Fatalf("readelf: %q: %v", line, err)
				}
				rules := map[uint64]string{}
				for i, rule := range fields[2:] {
					switch {
					case rule == "u":
						continue
					case rule == "s":
						rule = "same"
					case rule == "exp", rule == "vexp":
					case rule[0] == 'c':
						rule = "cfa" + rule[1:]
					case rule[0] == 'v':
						rule = "valcfa" + rule[1:]
					case rule[0] == 'r' && !strings.HasPrefix(rule, "reg"):
						rule = "reg" + rule[1:]
					}
					rules[columns[i]] = rule
				}
				cfa := fields[1]
				if m := cfaText.FindStringSubmatch(cfa); m != nil {
					cfa = fmt.Sprintf("reg%d%s", x.register(t, m[1]), m[2])
				}
				row := x.row(address, cfa, rules)
				if current != nil {
					current.rows = append(current.rows, row)
				} else {
					_, initial[inCIE], _ = strings.Cut(row, " ")
				}
			}
			flush()
		})
	}
}

// library finds a library of the system.
func library(t *testing.T, patterns ...string) string {
	t.Helper()
	for _, pattern := range patterns {
		for _, dir := range []string{"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib"} {
			if list, _ := filepath.Glob(filepath.Join(dir, pattern)); len(list) > 0 {
				return list[0]
			}
		}
	}
	oracle.Missing(t, "no %v is installed", patterns)
	return ""
}

// rustLibrary is a library of the Rust toolchain.
func rustLibrary(t *testing.T, pattern string) string {
	t.Helper()
	root := oracle.Run(t, "rustc", "--print", "sysroot")
	for _, dir := range []string{"lib/rustlib/x86_64-unknown-linux-gnu/lib", "lib", "lib/x86_64-linux-gnu"} {
		if list, _ := filepath.Glob(filepath.Join(strings.TrimSpace(root), dir, pattern)); len(list) > 0 {
			return list[0]
		}
	}
	t.Fatalf("the Rust toolchain has no %s", pattern)
	return ""
}

// rowFiles are the x86-64 files whose rows are compared.
var rowFiles = []struct {
	name  string
	path  func(t *testing.T) string
	fdes  int // at least
	proof bool
}{
	{"libc", func(t *testing.T) string { return library(t, "libc.so.6") }, 2000, false},
	{"ld", func(t *testing.T) string { return library(t, "ld-linux-x86-64.so.2") }, 100, false},
	{"libstdc++", func(t *testing.T) string { return library(t, "libstdc++.so.6") }, 4000, false},
	{"go", func(t *testing.T) string { return subject.Build(t, "gosubject") }, 1000, false},
	{"libstd of rust", func(t *testing.T) string { return rustLibrary(t, "libstd-*.so") }, 2000, false},
	{"avx and dropped code", droppedCode, 3, false},
	{"static", func(t *testing.T) string { return compileFrames(t, "-O0", "-static") }, 500, false},
	{"separate debug file", separateDebug, 3, false},
	{"every instruction", func(t *testing.T) string { return assemble(t, "forms.s", "x86_64-linux-gnu") }, 2, false},
	{"libLLVM", func(t *testing.T) string { return library(t, "libLLVM-15.so.1", "libLLVM*.so*") }, 98000, true},
	{"rustc", func(t *testing.T) string { return rustLibrary(t, "librustc_driver-*.so") }, 98000, true},
}

// assemble builds testdata/cfi/name for a target of LLVM's.
func assemble(t *testing.T, name, target string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), target+".o")
	args := append([]string{"-triple", target, "-filetype=obj", "-o", out, filepath.Join("testdata", "cfi", name)}, flags...)
	oracle.Run(t, llvm(t, "mc"), args...)
	return out
}

// compileFrames builds a program with functions of many kinds.
func compileFrames(t *testing.T, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "a.out")
	args := append([]string{"-o", out, filepath.Join("..", "..", "cfi", "testdata", "frames.c")}, flags...)
	oracle.Run(t, "gcc", args...)
	return out
}

// droppedCode has a .debug_frame with an FDE of code that the linker dropped.
func droppedCode(t *testing.T) string {
	return compileFrames(t, "-O2", "-g", "-mavx", "-fno-exceptions", "-fno-asynchronous-unwind-tables", "-ffunction-sections", "-Wl,--gc-sections")
}

// separateDebug is a file that holds what describes code, and no code.
func separateDebug(t *testing.T) string {
	path := droppedCode(t)
	oracle.Run(t, "objcopy", "--only-keep-debug", path, path+".debug")
	return path + ".debug"
}

// TestRowsEqualReadelf compares every row of every FDE.
func TestRowsEqualReadelf(t *testing.T) {
	long(t)
	oracle.Tools(t, "readelf")
	for _, file := range rowFiles {
		t.Run(file.name, func(t *testing.T) {
			if file.proof {
				proof.Only(t)
			}
			path := file.path(t)
			kind := func(kind string, _ []byte) string { return map[string]string{"expr": "exp", "valexpr": "vexp"}[kind] }
			ours := &rowText{names: x86_64.Description().Names(0), expr: kind}
			theirs := &rowText{names: ours.names}
			fdes, rows, classes := compareRows(t, readelfRows(t, path, theirs), dumpRows(t, path, ours), noClass)
			t.Logf("%s: %d FDEs, %d rows, %d rules; differences: %v", path, fdes, rows, ours.rules, classes)
			if fdes < file.fdes {
				t.Errorf("%d FDEs, expected %d or more", fdes, file.fdes)
			}
		})
	}
}

var (
	llvmHead = regexp.MustCompile(`^([0-9a-f]{8,}) [0-9a-f]+ [0-9a-f]+ FDE cie=[0-9a-f]+ pc=([0-9a-f]+)\.\.\.([0-9a-f]+)$`)
	llvmRow  = regexp.MustCompile(`^  0x([0-9a-f]+): CFA=(.*)$`)
	llvmRule = regexp.MustCompile(`(?:^|, )([A-Za-z][A-Za-z0-9_]*)=`)
	llvmCFA  = regexp.MustCompile(`^([A-Za-z0-9_]+?)([+-][0-9]+)?(?: in addrspace([0-9]+))?$`)
	llvmAt   = regexp.MustCompile(`^\[CFA([+-][0-9]+)?\]$`)
	llvmVal  = regexp.MustCompile(`^CFA([+-][0-9]+)?$`)
)

// llvmRegister is the number of a register by LLVM's name.
func (x *rowText) llvmRegister(t *testing.T, name string) uint64 {
	t.Helper()
	if digits, ok := strings.CutPrefix(name, "reg"); ok {
		if n, err := strconv.ParseUint(digits, 10, 64); err == nil {
			return n
		}
	}
	switch name {
	case "PC_REG":
		name = "PC"
	case "EXEC_LO": // of waves of 32 lanes
		name = "EXEC"
	}
	return x.register(t, name)
}

// operations is LLVM's text of an expression as words that FormatText has too.
func (x *rowText) operations(t *testing.T, s string) string {
	t.Helper()
	var out []string
	for s != "" {
		if rest, ok := strings.CutPrefix(s, "<decoding error> "); ok {
			out = append(out, "<"+strings.ReplaceAll(rest, " ", "")+">")
			break
		}
		var op string
		op, s, _ = strings.Cut(s, ", ")
		words := strings.Fields(strings.TrimPrefix(op, "DW_OP_LLVM_user "))
		name := words[0]
		for i, w := range words[1:] {
			if m := llvmCFA.FindStringSubmatch(w); m != nil && w[0] >= 'A' {
				register := fmt.Sprint(x.llvmRegister(t, m[1]))
				switch {
				case strings.HasPrefix(name, "DW_OP_breg") && name != "DW_OP_bregx":
					w = m[2]
				case m[2] != "":
					w = register + " " + m[2]
				default:
					w = register
				}
				words[i+1] = w
			}
		}
		out = append(out, canonical(t, strings.Join(words, " ")))
	}
	return strings.Join(out, "; ")
}

// canonical writes the operands of an operation as unsigned decimal numbers.
func canonical(t *testing.T, op string) string {
	t.Helper()
	words := strings.Fields(op)
	for i, w := range words[1:] {
		n, err := strconv.ParseInt(strings.TrimPrefix(w, "+"), 0, 64)
		u := uint64(n)
		if err != nil {
			if u, err = strconv.ParseUint(w, 0, 64); err != nil {
				t.Fatalf("operation %q: %v", op, err)
			}
		}
		words[i+1] = fmt.Sprint(u)
	}
	return strings.Join(words, " ")
}

var undecoded = regexp.MustCompile(`; <[^;]*: ([0-9a-f]+)>$`)

// ownOperations is the text of an expression by FormatText, in the same words.
func ownOperations(t *testing.T, b []byte, dialect *locexpr.Dialect) string {
	t.Helper()
	text := "; " + locexpr.FormatText(b, locexpr.TextOptions{Dialect: dialect})
	rest := ""
	if m := undecoded.FindStringSubmatch(text); m != nil {
		text, rest = strings.TrimSuffix(text, m[0]), "<"+m[1]+">"
	}
	var out []string
	for _, op := range strings.Split(text, "; ")[1:] {
		out = append(out, canonical(t, op))
	}
	if rest != "" {
		out = append(out, rest)
	}
	return strings.Join(out, "; ")
}

// llvmRows lists what llvm-dwarfdump makes of a file, of .debug_frame first as
// it does.
func llvmRows(t *testing.T, path string, x *rowText) lister {
	return func(yield func(listedFDE) bool) {
		cmd := exec.Command(llvm(t, "dwarfdump"), "--debug-frame", "--eh-frame", path)
		pipe(t, cmd, func(r io.Reader) {
			section := ""
			var current *listedFDE
			flush := func() bool {
				f := current
				current = nil
				return f == nil || yield(*f)
			}
			s := bufio.NewScanner(r)
			s.Buffer(nil, 1<<26)
			for s.Scan() {
				line := s.Text()
				if name, ok := strings.CutSuffix(line, " contents:"); ok {
					if !flush() {
						return
					}
					section = name
					continue
				}
				if strings.Contains(line, "decoding the FDE opcodes into rows failed") {
					t.Fatalf("llvm-dwarfdump: %s", line)
				}
				if m := llvmHead.FindStringSubmatch(line); m != nil {
					if !flush() {
						return
					}
					current = &listedFDE{section: section}
					current.offset, _ = strconv.ParseUint(m[1], 16, 64)
					current.start, _ = strconv.ParseUint(m[2], 16, 64)
					current.end, _ = strconv.ParseUint(m[3], 16, 64)
					continue
				}
				if m := llvmRow.FindStringSubmatch(line); m != nil && current != nil {
					pc, _ := strconv.ParseUint(m[1], 16, 64)
					cfa, rest, _ := strings.Cut(m[2], ": ")
					rules := map[uint64]string{}
					marks := llvmRule.FindAllStringSubmatchIndex(rest, -1)
					for i, at := range marks {
						end := len(rest)
						if i+1 < len(marks) {
							end = marks[i+1][0]
						}
						rules[x.llvmRegister(t, rest[at[2]:at[3]])] = x.llvmRule(t, rest[at[1]:end])
					}
					current.rows = append(current.rows, x.row(pc, x.llvmCFA(t, cfa), rules))
				}
			}
			flush()
		})
	}
}

func (x *rowText) llvmCFA(t *testing.T, s string) string {
	t.Helper()
	switch {
	case s == "unspecified":
		return "none"
	case strings.HasPrefix(s, "DW_OP_"), strings.HasPrefix(s, "<"):
		return "expr:" + x.operations(t, s)
	}
	m := llvmCFA.FindStringSubmatch(s)
	if m == nil {
		t.Fatalf("llvm-dwarfdump: CFA %q", s)
	}
	offset, space := m[2], ""
	if offset == "" {
		offset = "+0"
	}
	if m[3] != "" && m[3] != "0" {
		space = "@" + m[3]
	}
	return fmt.Sprintf("reg%d%s%s", x.llvmRegister(t, m[1]), offset, space)
}

func (x *rowText) llvmRule(t *testing.T, s string) string {
	t.Helper()
	plus := func(offset string) string {
		if offset == "" {
			return "+0"
		}
		return offset
	}
	if s == "same" || s == "undefined" {
		return s
	}
	if m := llvmAt.FindStringSubmatch(s); m != nil {
		return "cfa" + plus(m[1])
	}
	if m := llvmVal.FindStringSubmatch(s); m != nil {
		return "valcfa" + plus(m[1])
	}
	if inner, ok := strings.CutPrefix(s, "["); ok {
		return "expr:" + x.operations(t, strings.TrimSuffix(inner, "]"))
	}
	if strings.HasPrefix(s, "DW_OP_") {
		return "valexpr:" + x.operations(t, s)
	}
	return fmt.Sprintf("reg%d", x.llvmRegister(t, s))
}

// inSections lists the sections in the order of llvm-dwarfdump.
func inSections(list lister) lister {
	return func(yield func(listedFDE) bool) {
		var rest []listedFDE
		list(func(f listedFDE) bool {
			if f.section != ".debug_frame" {
				rest = append(rest, f)
				return true
			}
			return yield(f)
		})
		for _, f := range rest {
			if !yield(f) {
				return
			}
		}
	}
}

// decodable is the expression text of a lister in a dialect.
func decodable(t *testing.T, dialect *locexpr.Dialect) func(string, []byte) string {
	return func(kind string, b []byte) string { return kind + ":" + ownOperations(t, b, dialect) }
}

// TestRowsEqualLLVMDwarfdump compares every row of every FDE, with all
// operations of expressions. llvm-dwarfdump tells rules that say undefined from
// rules that are not there.
func TestRowsEqualLLVMDwarfdump(t *testing.T) {
	long(t)
	llvm(t, "dwarfdump")
	for _, file := range rowFiles {
		t.Run(file.name, func(t *testing.T) {
			if file.proof {
				proof.Only(t)
			}
			path := file.path(t)
			ours := &rowText{names: x86_64.Description().Names(0), undefined: true, expr: decodable(t, locexpr.DWARF5)}
			theirs := &rowText{names: ours.names, undefined: true}
			got := dumpRows(t, path, ours)
			if !file.proof {
				got = inSections(got)
			}
			fdes, rows, classes := compareRows(t, llvmRows(t, path, theirs), got, noClass)
			t.Logf("%s: %d FDEs, %d rows, %d rules; differences: %v", path, fdes, rows, ours.rules, classes)
			if fdes < file.fdes {
				t.Errorf("%d FDEs, expected %d or more", fdes, file.fdes)
			}
		})
	}
}

// frameAddends are the addends of the relocations of .debug_frame, by offset.
// Their symbols, which are sections, have the value 0.
func frameAddends(t *testing.T, path string) map[uint64]uint64 {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	b, err := f.Section(".rela.debug_frame").Data()
	if err != nil {
		t.Fatal(err)
	}
	addends := map[uint64]uint64{}
	for ; len(b) >= 24; b = b[24:] {
		symbol := binary.LittleEndian.Uint32(b[12:])
		addends[binary.LittleEndian.Uint64(b)] = symbols[symbol-1].Value + binary.LittleEndian.Uint64(b[16:])
	}
	return addends
}

// notRelocated is the class of FDEs of an ET_REL of EM_INTELGT, whose relocation
// types llvm-dwarfdump does not know (it says so): it has them all start at 0.
// The start must be what the file's own relocation says, and all else equal.
func notRelocated(addends map[uint64]uint64, want, got listedFDE) string {
	start, ok := addends[got.offset+20] // behind the length and the CIE pointer of DWARF64
	if !ok || start != got.start || want.start != 0 {
		return ""
	}
	want.start, want.end = want.start+start, want.end+start
	for i, row := range want.rows {
		pc, rest, _ := strings.Cut(row, " ")
		n, err := strconv.ParseUint(pc, 16, 64)
		if err != nil {
			return ""
		}
		want.rows[i] = fmt.Sprintf("%x %s", n+start, rest)
	}
	if want.String() != got.String() {
		return ""
	}
	return "llvm-dwarfdump does not relocate EM_INTELGT"
}

// TestRowsOfAcceleratorsEqualLLVMDwarfdump does the same for every object of the
// corpus with call frame information, and for those that are compiled here.
func TestRowsOfAcceleratorsEqualLLVMDwarfdump(t *testing.T) {
	long(t)
	llvm(t, "dwarfdump")
	files := append(oracle.Beside(t, "corpus/visa/*/*.elf", "corpus/visa/zebin/*.zebin"), subject.CodeObjects(t)...)
	files = append(files, assemble(t, "vendor.s", "amdgcn-amd-amdhsa", "-mcpu=gfx90a"))
	total, classes := [3]int{}, map[string]int{}
	for _, path := range files {
		o, err := object.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		machine := o.Machine()
		o.Close()
		d, dialect := visa.Description(), locexpr.DWARF5 // of Intel's operations LLVM knows none
		lanes := uint32(0)
		if machine == 224 {
			d, dialect, lanes = amdgpu.Description(), locexpr.LLVMUser, wavesOf(t, path)
		}
		ours := &rowText{names: d.Names(lanes), undefined: true, expr: decodable(t, dialect)}
		theirs := &rowText{names: ours.names, undefined: true}
		differ := noClass
		if strings.HasSuffix(path, ".zebin") {
			addends := frameAddends(t, path)
			differ = func(want, got listedFDE) string { return notRelocated(addends, want, got) }
		}
		fdes, rows, differences := compareRows(t, llvmRows(t, path, theirs), dumpRows(t, path, ours), differ)
		t.Logf("%s: %d FDEs, %d rows, %d rules; differences: %v", path, fdes, rows, ours.rules, differences)
		total[0], total[1], total[2] = total[0]+fdes, total[1]+rows, total[2]+ours.rules
		for class, n := range differences {
			classes[class] += n
		}
	}
	keys := make([]string, 0, len(classes))
	for class := range classes {
		keys = append(keys, class)
	}
	sort.Strings(keys)
	t.Logf("%d files: %d FDEs, %d rows, %d rules; FDEs that differ: %v", len(files), total[0], total[1], total[2], classes)
	if len(files) < 65 || total[0] < 300 {
		t.Errorf("%d files with %d FDEs, expected 65 with 300", len(files), total[0])
	}
}
