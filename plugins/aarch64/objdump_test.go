// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"bufio"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/sdk"
)

// listedLine is an instruction as objdump lists it: its address, word and text.
var listedLine = regexp.MustCompile(`^\s*([0-9a-f]+):\t([0-9a-f]{8}) \t(.*)$`)

// A textCount is how texts compare with objdump's.
type textCount struct {
	all, equal, unknown, undefined int
	classes                        map[string]int
	unnamed                        map[string]int // by mnemonic: what is shown as .inst
	different                      map[string][]string
	accesses, withoutAccess        int
}

// rewritings are the ways in which texts differ that say the same.
var rewritings = []struct {
	class string
	old   *regexp.Regexp
	with  string
}{
	{"targets with 0x", regexp.MustCompile(`^((?:b|bl|bc?\.[a-z]+|adrp?|cbn?z|tbn?z|ldr|ldrsw|prfm)\b.*?)\b(?:0x)?([0-9a-f]+)$`), "$1$2"},
	{"system registers by number", regexp.MustCompile(`^(mrs \w+, )\w+$`), "${1}register"},
	{"system registers by number", regexp.MustCompile(`^(msr )\w+(, x\w+)$`), "${1}register$2"},
}

// numberedRegister is a system register without a name.
var numberedRegister = regexp.MustCompile(`\bs[0-3]_[0-7]_c\d+_c\d+_[0-7]\b`)

func (c *textCount) compare(t *testing.T, w uint32, pc uint64, theirs string) {
	c.all++
	theirs, _, _ = strings.Cut(theirs, "//") // a comment
	theirs, _, _ = strings.Cut(theirs, ";")
	theirs, _, _ = strings.Cut(theirs, "<") // the name of a target
	theirs = strings.Join(strings.Fields(theirs), " ")
	in := disassemble(w, pc)
	ours := in.Text
	isNamed := !strings.HasPrefix(ours, ".inst")
	mnemonic, _, _ := strings.Cut(theirs, " ")
	switch {
	case theirs == ours && !isNamed:
		c.undefined++
		return
	case !isNamed:
		c.unknown++
		c.unnamed[mnemonic]++
		c.compareAccess(t, &in, w, theirs)
		return
	case theirs == ours:
		c.equal++
		c.compareAccess(t, &in, w, theirs)
		return
	}
	for i := range rewritings {
		r := &rewritings[i]
		a, b := r.old.ReplaceAllString(theirs, r.with), r.old.ReplaceAllString(ours, r.with)
		if a == b && (i == 0 || numberedRegister.MatchString(ours)) {
			c.classes[r.class]++
			c.compareAccess(t, &in, w, theirs)
			return
		}
	}
	other, _, _ := strings.Cut(ours, " ")
	key := mnemonic + " as " + other
	c.different[key] = append(c.different[key], strconv.FormatUint(uint64(w), 16)+": "+theirs+" | "+ours)
}

// An address as objdump writes it.
var (
	addressText = regexp.MustCompile(`\[(x\d+|sp)(?:, (?:(x\w+|w\w+)(?:, (lsl|uxtw|sxtw|sxtx)(?: #(\d+))?)?|#(-?\d+)(, mul vl)?))?\](!?)`)
	literalText = regexp.MustCompile(`^(?:ldr|ldrsw) \w+, (?:0x)?([0-9a-f]+)$`)
	accessNames = regexp.MustCompile(`^(?:ld|st|swp|cas|cpy|set)`)
)

// compareAccess holds the first place that an instruction accesses against the address
// that objdump writes.
func (c *textCount) compareAccess(t *testing.T, in *sdk.Instruction, w uint32, text string) {
	t.Helper()
	want := sdk.Access{Base: sdk.NoRegister, Index: sdk.NoRegister, Segment: sdk.NoRegister, AddressBits: 64}
	m := addressText.FindStringSubmatch(text)
	literal := literalText.FindStringSubmatch(text)
	switch {
	case !accessNames.MatchString(text) || m == nil && literal == nil:
		if len(in.Accesses) > 0 && !strings.HasPrefix(text, "dc ") && !strings.HasPrefix(text, "ic ") && !strings.HasPrefix(text, "sys ") {
			t.Errorf("%08x: %s: accesses %+v, expected none", w, text, in.Accesses)
		}
		return
	case len(in.Accesses) == 0:
		c.withoutAccess++
		if strings.HasPrefix(in.Text, ".inst") || m != nil && m[6] != "" {
			return // of an extension that is not read, or that counts vectors
		}
		t.Errorf("%08x: %s: accesses nothing", w, text)
		return
	case m == nil:
		address, _ := strconv.ParseUint(literal[1], 16, 64)
		want.Displacement = int64(address)
	default:
		want.Base = registerNumber(m[1])
		if m[2] != "" && m[2] != "xzr" && m[2] != "wzr" {
			want.Index, want.Scale = registerNumber(m[2]), 1
			if shift, err := strconv.Atoi(m[4]); err == nil {
				want.Scale <<= shift
			}
			if m[3] == "uxtw" || m[3] == "sxtw" {
				want.IndexBits, want.IsIndexSigned = 32, m[3] == "sxtw"
			}
		}
		if m[5] != "" {
			want.Displacement, _ = strconv.ParseInt(m[5], 10, 64)
		}
	}
	c.accesses++
	got := in.Accesses[0]
	isStore := strings.HasPrefix(text, "st") || strings.HasPrefix(text, "set") || strings.HasPrefix(text, "cpy")
	isBoth := strings.HasPrefix(text, "swp") || strings.HasPrefix(text, "cas") || atomicNames.MatchString(text)
	if got.IsRead != (isBoth || !isStore) || got.IsWrite != (isBoth || isStore) {
		t.Errorf("%08x: %s: read %v, write %v", w, text, got.IsRead, got.IsWrite)
	}
	if size := sizeOf(text); size != 0 && size != got.Size {
		t.Errorf("%08x: %s: %d bytes, expected %d", w, text, got.Size, size)
	}
	if got.IsRead, got.IsWrite, got.Size = false, false, 0; got != want {
		t.Errorf("%08x: %s: accesses %+v, expected %+v", w, text, got, want)
	}
}

var atomicNames = regexp.MustCompile(`^(ld|st)(add|clr|eor|set|smax|smin|umax|umin)`)

// Mnemonics of accesses that are as large as the first register, and of one or two bytes.
var (
	ofFirst = regexp.MustCompile(`^(ldr|str|ldur|stur|ldtr|sttr|ldar|stlr|ldraa|ldrab|ldapr|ldapur|stlur|ldxr|ldaxr|cas[al]*|swp[al]*|(ld|st)(add|clr|eor|set|[su]max|[su]min)[al]*)$`)
	ofPart  = regexp.MustCompile(`^(ldr|str|ldur|stur|ldtr|sttr|ldar|stlr|ldapr|ldapur|stlur|ldxr|ldaxr|stxr|stlxr|swp[al]*|cas[al]*|(ld|st)(add|clr|eor|set|[su]max|[su]min)[al]*)s?[bh]$`)
)

// sizeOf is how many bytes an instruction accesses, by its mnemonic and the first register;
// 0 where that does not tell.
func sizeOf(text string) uint32 {
	mnemonic, operands, _ := strings.Cut(text, " ")
	first, rest, _ := strings.Cut(operands, ", ")
	size := map[byte]uint32{'b': 1, 'h': 2, 's': 4, 'd': 8, 'q': 16, 'w': 4, 'x': 8}[first[0]]
	switch {
	case mnemonic == "ldpsw":
		return 8
	case mnemonic == "stgp", first == "sp" || first[0] == '[' || first[0] == '{':
		return 0
	case strings.Contains(mnemonic, "xp"): // exclusive pairs
		if strings.HasPrefix(mnemonic, "st") {
			size = map[byte]uint32{'w': 4, 'x': 8}[rest[0]]
		}
		return 2 * size
	case mnemonic == "ldp" || mnemonic == "stp" || mnemonic == "ldnp" || mnemonic == "stnp" || strings.HasPrefix(mnemonic, "casp"):
		return 2 * size
	case ofFirst.MatchString(mnemonic):
		return size
	case ofPart.MatchString(mnemonic):
		return map[byte]uint32{'b': 1, 'h': 2}[mnemonic[len(mnemonic)-1]]
	case strings.HasSuffix(mnemonic, "sw"):
		return 4
	}
	return 0
}

func registerNumber(name string) uint32 {
	if name == "sp" {
		return sp
	}
	n, err := strconv.ParseUint(name[1:], 10, 32)
	if err != nil {
		return sdk.NoRegister
	}
	return uint32(n)
}

// compareListing holds what objdump lists.
func compareListing(t *testing.T, listing string) *textCount {
	t.Helper()
	c := &textCount{classes: map[string]int{}, unnamed: map[string]int{}, different: map[string][]string{}}
	for lines := bufio.NewScanner(strings.NewReader(listing)); lines.Scan(); {
		m := listedLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		pc, err := strconv.ParseUint(m[1], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		w, err := strconv.ParseUint(m[2], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		c.compare(t, uint32(w), pc, m[3])
	}
	return c
}

func (c *textCount) report(t *testing.T, name string) {
	t.Logf("%s: %d words, %d texts equal, %d no instruction in both, %d shown as .inst", name, c.all, c.equal, c.undefined, c.unknown)
	for class, n := range c.classes {
		t.Logf("%7d %s", n, class)
	}
	t.Logf("%d addresses are objdump's, of %d nothing is said", c.accesses, c.withoutAccess)
	for key, list := range c.different {
		t.Errorf("%d times %s: %s", len(list), key, list[0])
	}
}

// TestTextsEqualObjdump holds every instruction of the C library against objdump. Texts
// may differ in the ways that are listed, and in no other.
func TestTextsEqualObjdump(t *testing.T) {
	if testing.Short() {
		t.Skip("disassembles all of libc")
	}
	oracle.Tools(t, "aarch64-linux-gnu-objdump", "aarch64-linux-gnu-gcc")
	paths := []string{"/usr/aarch64-linux-gnu/lib/libc.so.6"}
	paths = append(paths, filepath.SplitList(os.Getenv("UNWINDD_AARCH64_FILES"))...)
	for _, path := range paths {
		c := compareListing(t, oracle.Run(t, "aarch64-linux-gnu-objdump", "-d", "-w", path))
		c.report(t, path)
		for mnemonic, n := range c.unnamed {
			t.Logf("%7d %s are .inst", n, mnemonic)
		}
		if c.all < 1000 || c.unknown > c.all/1000 {
			t.Errorf("%s: %d instructions, of which %d are .inst, expected one of a thousand", path, c.all, c.unknown)
		}
	}
}

// TestTextsOfAnyWordsEqualObjdump has words of every upper half, those of system
// instructions and branches more often: what is written is what objdump writes, or .inst.
func TestTextsOfAnyWordsEqualObjdump(t *testing.T) {
	if testing.Short() {
		t.Skip("disassembles a million words")
	}
	oracle.Tools(t, "aarch64-linux-gnu-objdump", "aarch64-linux-gnu-gcc")
	random := rand.New(rand.NewPCG(3, 5))
	var code []byte
	for half := range uint32(1 << 16) {
		n := 6
		if half>>6 == 0xd500>>6 || half>>8 == 0xd6 || half>>8 == 0xd7 {
			n = 256
		}
		for range n {
			code = binary.LittleEndian.AppendUint32(code, half<<16|random.Uint32N(1<<16))
		}
	}
	for _, f := range syntaxes { // and those that the table says
		for range 64 {
			code = binary.LittleEndian.AppendUint32(code, f.value|random.Uint32()&^f.mask)
		}
	}
	path := filepath.Join(t.TempDir(), "words")
	if err := os.WriteFile(path, code, 0o600); err != nil {
		t.Fatal(err)
	}
	c := compareListing(t, oracle.Run(t, "aarch64-linux-gnu-objdump", "-D", "-z", "-w", "-b", "binary", "-m", "aarch64", path))
	c.report(t, "words")
	if c.all != len(code)/instructionSize {
		t.Errorf("%d words of %d are listed", c.all, len(code)/instructionSize)
	}
}
