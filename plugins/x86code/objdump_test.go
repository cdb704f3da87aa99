// SPDX-License-Identifier: Apache-2.0

package x86code

import (
	"bufio"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/sdk"
)

// listedLine is an instruction as objdump lists it: its address, bytes and text.
var listedLine = regexp.MustCompile(`^\s*([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*(?:\t(.*))?$`)

// A rewriting makes texts equal that say the same in two ways.
type rewriting struct {
	class string
	old   *regexp.Regexp
	new   func(m []string) string // of the whole match and its groups
}

// to writes the groups of a match where text has $1 and so on.
func to(text string) func([]string) string {
	return func(m []string) string {
		text := text
		for i := len(m) - 1; i > 0; i-- {
			text = strings.ReplaceAll(text, "$"+strconv.Itoa(i), m[i])
		}
		return text
	}
}

func rewrite(class, from, text string) rewriting {
	return rewriting{class, regexp.MustCompile(from), to(text)}
}

// rewritings are the ways in which the texts differ: of objdump and of ours, in turn.
var rewritings = []rewriting{
	rewrite("blanks before masks", ` (\{)`, "$1"),
	rewrite("targets with 0x", `^((?:(?:bnd|notrack|cs|ds|addr32|data16) )*(?:j[a-z]+|call|loop[a-z]*|xbegin)q?(?:,p[nt])?) 0x([0-9a-f]+)$`, "$1 $2"),
	rewrite("suffix of size that registers or the mode say", `\b((?:call|ret|leave|jmp|push|pop|xbegin|sysret|sar|shl|shr|bls(?:msk|[ri])|bzhi|bextr|pdep|pext|mulx|rorx|andn|lret|enter)x?)[ql]\b`, "$1"),
	rewrite("names of sign extensions", `^movsxd\b`, "movslq"),
	rewrite("names of sign extensions", `^cdqe$`, "cltq"),
	rewrite("names of sign extensions", `^cqo$`, "cqto"),
	rewrite("names of sign extensions", `^cdq$`, "cltd"),
	rewrite("names of sign extensions", `^cwde$`, "cwtl"),
	rewrite("names of sign extensions", `^cwd$`, "cwtd"),
	rewrite("mov of 64 bits", `^movabs\b`, "mov"),
	rewrite("prefixes of no-operations", `^(?:(?:data16|data32|cs|ds) )*nop([wl]) %[cd]s:`, "nop$1 "),
	rewrite("prefixes of no-operations", `^(?:(?:data16|data32|cs|ds) )+nop([wl])`, "nop$1"),
	rewrite("prefixes of no-operations", `^(data16 data16) rex\.W `, "$1 "), // before a call of __tls_get_addr
	rewrite("prefixes of no-operations", `^data16 nop$`, "xchg %ax,%ax"),
	rewrite("prefixes of no-operations", `^(ds|notrack) (jmp|call)`, "notrack $2"),
	rewrite("prefixes of no-operations", `^repz? ret$`, "ret"),
	rewrite("st(0)", `%st\(0\)`, "%st"),
	rewrite("index register that is none", `,%[re]iz,1\)`, ")"),
	{"predicates of comparisons", regexp.MustCompile(`^v(p?)cmp(eq|lt|le|unord|neq|nlt|nle|ord|true|false)?([a-z]+?) (?:\$0x([0-9a-f]+),)?`), predicate},
	{"constants with their sign", regexp.MustCompile(`^((?:lock )?[a-z]+w |.* ?)\$-0x([0-9a-f]+)((?:,.*)?)$`), wordConstant},
	{"constants with their sign", regexp.MustCompile(`\$(-?)0x([0-9a-f]+)`), signedConstant},
}

// predicate writes the predicate of a comparison as its number.
func predicate(m []string) string {
	numbers := map[string]string{"eq": "0", "lt": "1", "le": "2", "unord": "3", "false": "3", "neq": "4", "nlt": "5", "nle": "6", "ord": "7", "true": "7"}
	n := m[4]
	if m[2] != "" {
		n = numbers[m[2]]
	}
	if n == "" {
		return m[0]
	}
	return fmt.Sprintf("v%scmp%s $%s,", m[1], m[3], n)
}

// signedConstant writes the lower 32 bits of a constant whose upper ones are its sign's.
func signedConstant(m []string) string {
	v, err := strconv.ParseUint(m[2], 16, 64)
	if err != nil {
		return m[0]
	}
	if m[1] != "" {
		v = -v
	}
	if int64(v) == int64(int32(v)) { //nolint:gosec // the bits are compared
		v = uint64(uint32(v)) //nolint:gosec // likewise
	}
	return fmt.Sprintf("$%d", v)
}

// ofWord are operands of 16 bits.
var ofWord = regexp.MustCompile(`%(?:[abcd]x|[sd]i|[sb]p|r[0-9]+w)$`)

// wordConstant writes a negative constant of 16 bits without its sign.
func wordConstant(m []string) string {
	v, err := strconv.ParseUint(m[2], 16, 64)
	isWord := strings.HasSuffix(m[1], "w ") || ofWord.MatchString(m[3])
	if err != nil || !isWord {
		return m[0]
	}
	return fmt.Sprintf("%s$0x%x%s", m[1], uint16(-v), m[3]) //nolint:gosec // the lower bits
}

// A textCount is how the texts of a file compare with objdump's.
type textCount struct {
	all, equal, bytes, unknown int
	accesses, withoutAccess    int
	classes                    map[string]int
	different                  map[string][]string // by both mnemonics
}

// compare compares two texts.
func (c *textCount) compare(theirs, ours string) {
	c.all++
	theirs, _, _ = strings.Cut(theirs, "#") // a comment
	theirs, _, _ = strings.Cut(theirs, "<") // the name of a target
	theirs, ours = strings.Join(strings.Fields(theirs), " "), strings.Join(strings.Fields(ours), " ")
	var met []string
	for _, r := range rewritings {
		a, b := r.apply(theirs), r.apply(ours)
		if (a != theirs || b != ours) && theirs != ours && (len(met) == 0 || met[len(met)-1] != r.class) {
			met = append(met, r.class)
		}
		theirs, ours = a, b
	}
	switch {
	case len(met) == 0 && theirs == ours:
		c.equal++
	case strings.HasPrefix(ours, ".byte"):
		c.bytes++
	case theirs == ours:
		for _, class := range met {
			c.classes[class]++
		}
	default:
		a, _, _ := strings.Cut(theirs, " ")
		b, _, _ := strings.Cut(ours, " ")
		c.different[a+" "+b] = append(c.different[a+" "+b], theirs+" | "+ours)
	}
}

func (r *rewriting) apply(text string) string {
	return r.old.ReplaceAllStringFunc(text, func(found string) string { return r.new(r.old.FindStringSubmatch(found)) })
}

// compareTexts holds all code of a section against objdump.
func compareTexts(t *testing.T, mode *testMode, path string) *textCount {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	section := file.Section(".text")
	code, err := section.Data()
	if err != nil {
		t.Fatal(err)
	}
	out := oracle.Run(t, "objdump", "-d", "-w", "-j", ".text", path)
	c := &textCount{classes: map[string]int{}, different: map[string][]string{}}
	for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
		m := listedLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		address, err := strconv.ParseUint(m[1], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		want, err := hex.DecodeString(strings.ReplaceAll(m[2], " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(m[3], "(bad)") { // data between functions
			c.unknown++
			continue
		}
		at := code[address-section.Addr:]
		in := mode.disassemble(at[:min(len(at), MaxInstruction)], address)
		if int(in.Size) != len(want) {
			t.Errorf("%s: %#x: % x: %d bytes, objdump has %d: %s", path, address, want, in.Size, len(want), m[3])
		}
		c.compare(m[3], in.Text)
		c.compareAccess(t, mode, &in, want, m[3])
	}
	return c
}

var operandText = regexp.MustCompile(`(?:%([fg])s:)?(-?0x[0-9a-f]+)?\((%\w+)?(?:,(%\w+),(\d))?\)`)

// compareAccess holds the places that an instruction accesses against the first operand
// that objdump writes.
func (c *textCount) compareAccess(t *testing.T, mode *testMode, instruction *sdk.Instruction, code []byte, text string) {
	m := operandText.FindStringSubmatch(text)
	if m == nil || len(instruction.Accesses) == 0 {
		if m != nil && !withoutAccess.MatchString(text) {
			c.withoutAccess++
		}
		return
	}
	number := func(name string) uint32 {
		for r, forms := range registerNames {
			if slices.ContainsFunc(forms, func(form string) bool { return "%"+form == name }) {
				return mode.Numbers[r]
			}
		}
		return sdk.NoRegister
	}
	want := sdk.Access{Base: number(m[3]), Index: number(m[4]), Segment: sdk.NoRegister}
	if m[5] != "" && want.Index != sdk.NoRegister {
		scale, _ := strconv.Atoi(m[5])
		want.Scale = uint32(scale)
	}
	if d, isNegative := strings.CutPrefix(m[2], "-"); m[2] != "" {
		n, err := strconv.ParseUint(d, 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		if want.Displacement = int64(n); isNegative {
			want.Displacement = -want.Displacement
		}
	}
	switch m[1] {
	case "f":
		want.Segment = mode.FSBase
	case "g":
		want.Segment = mode.GSBase
	}
	if m[3] == "%rip" {
		want.Displacement += int64(instruction.Address) + int64(instruction.Size)
	}
	c.accesses++
	for _, got := range instruction.Accesses { // those of movs come in the other order
		got.IsRead, got.IsWrite, got.Size, got.AddressBits = false, false, 0, 0
		if got == want {
			return
		}
	}
	t.Errorf("% x: %s: accesses %+v, expected %+v", code, text, instruction.Accesses, want)
}

// withoutAccess are instructions that only use an address, and those with a vector of
// addresses.
var withoutAccess = regexp.MustCompile(`^(bnd )?(lea|nop|(cs |data16 )*nop|prefetch|v?p?gather|v?p?scatter)|,%[xyz]mm\d+,\d`)

// registerNames are the names of the registers that address memory, by their encoding.
var registerNames = [GPRCount][]string{
	{"rax", "eax"}, {"rcx", "ecx"}, {"rdx", "edx"}, {"rbx", "ebx"}, {"rsp", "esp"}, {"rbp", "ebp"}, {"rsi", "esi"}, {"rdi", "edi"},
	{"r8", "r8d"}, {"r9", "r9d"}, {"r10", "r10d"}, {"r11", "r11d"}, {"r12", "r12d"}, {"r13", "r13d"}, {"r14", "r14d"}, {"r15", "r15d"},
}

// TestTextsEqualObjdump holds the length and the text of every instruction of libc against
// objdump. Texts may differ in the ways that are listed, and in no other.
func TestTextsEqualObjdump(t *testing.T) {
	if testing.Short() {
		t.Skip("disassembles all of libc")
	}
	eachMode(t, func(t *testing.T, m *testMode) { testTexts(t, m, m.findLibrary(t, "libc.so.6")) })
}

func testTexts(t *testing.T, m *testMode, path string) {
	t.Helper()
	c := compareTexts(t, m, path)
	t.Logf("%d operands in memory are those of objdump, %d are not known", c.accesses, c.withoutAccess)
	t.Logf("%s: %d instructions, %d texts equal, %d shown as bytes, %d bytes of data that objdump does not know", path, c.all, c.equal, c.bytes, c.unknown)
	for _, r := range rewritings {
		if n := c.classes[r.class]; n > 0 {
			t.Logf("%7d %s", n, r.class)
			delete(c.classes, r.class)
		}
	}
	if c.all < 100_000 {
		t.Errorf("%d instructions, expected 100,000 or more", c.all)
	}
	for _, list := range c.different {
		t.Errorf("%d times: objdump %s", len(list), list[0])
	}
}
