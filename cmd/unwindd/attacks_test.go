// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/internal/oracle"
)

// This file has the command read files that were made to take its time and its memory: DWARF
// that goes in circles, nests and multiplies, counts and lengths beyond the file, names that
// expand, sections over one another, rows without end, JSON that nests, metadata that refers
// to itself.

const (
	attackTime   = 15 * time.Second // of processors
	attackMemory = 1536 << 20       // bytes
)

// goTrace is what Go prints of a panic, one that was caught included.
var goTrace = regexp.MustCompile(`(?m)^goroutine \d+ .*\[running\]:|^panic: |^fatal error: |runtime error: |panicked: `)

// attackBase is where the code of attackELF is, which has attackLength bytes.
const (
	attackBase   = 0x401000
	attackLength = 0x1000
)

var little = binary.LittleEndian

func uleb(v uint64) []byte { return binary.AppendUvarint(nil, v) }

// attackELF is an executable with code and some sections; the last is there so many times.
func attackELF(times int, sections ...zipMember) []byte {
	all := append([]zipMember{{".text", bytes.Repeat([]byte{0xc3}, attackLength)}}, sections...)
	names := []byte{0}
	b := make([]byte, 0x1000)
	var headers []byte
	header := func(name, kind uint32, flags, address, offset, size uint64) {
		headers = little.AppendUint32(little.AppendUint32(headers, name), kind)
		for _, v := range []uint64{flags, address, offset, size, 0, 1, 0} {
			headers = little.AppendUint64(headers, v)
		}
	}
	header(0, 0, 0, 0, 0, 0)
	count := 1
	for i, s := range all {
		n := 1
		if i == len(all)-1 {
			n = times
		}
		for range n {
			if i == 0 {
				header(uint32(len(names)), 1, 6, attackBase, uint64(len(b)), uint64(len(s.content)))
			} else {
				header(uint32(len(names)), 1, 0, 0, uint64(len(b)), uint64(len(s.content)))
			}
			count++
		}
		names = append(append(names, s.name...), 0)
		b = append(b, s.content...)
		b = append(b, make([]byte, -len(b)&15)...)
	}
	header(uint32(len(names)), 3, 0, 0, uint64(len(b)), uint64(len(names)+10))
	b = append(append(b, names...), ".shstrtab\x00"...)
	copy(b, "\x7fELF\x02\x01\x01")
	head := little.AppendUint32(little.AppendUint16(little.AppendUint16(nil, 2), 62), 1)
	for _, v := range []uint64{attackBase, 64, uint64(len(b))} {
		head = little.AppendUint64(head, v)
	}
	head = little.AppendUint32(head, 0)
	for _, v := range []int{64, 56, 1, 64, count + 1, count} {
		head = little.AppendUint16(head, uint16(v))
	}
	head = little.AppendUint32(little.AppendUint32(head, 1), 5) // PT_LOAD
	for _, v := range []uint64{0x1000, attackBase, attackBase, attackLength, attackLength, 0x1000} {
		head = little.AppendUint64(head, v)
	}
	copy(b[16:], head)
	return append(b, headers...)
}

// place is an address and a length in the code, as DW_AT_low_pc and DW_AT_high_pc have them.
func place() []byte {
	return little.AppendUint64(little.AppendUint64(nil, attackBase), attackLength)
}

// abbreviation declares a code: tag, whether there are children, attributes with their forms.
func abbreviation(code, tag uint64, children byte, attributes ...uint64) []byte {
	b := append(append(uleb(code), uleb(tag)...), children)
	for _, a := range attributes {
		b = append(b, uleb(a)...)
	}
	return append(b, 0, 0)
}

// attackAbbreviations are those of the units below.
func attackAbbreviations() []byte {
	return bytes.Join([][]byte{
		abbreviation(1, 0x11, 1, 0x11, 1, 0x12, 7),             // a unit with a place
		abbreviation(2, 0x2e, 1, 0x31, 0x13, 0x11, 1, 0x12, 7), // a function of an origin
		abbreviation(4, 0x2e, 0, 0x47, 0x13),                   // a function with a specification
		abbreviation(5, 0x34, 0, 0x49, 0x13, 2, 0x18),          // a variable of a type
		abbreviation(6, 0x0f, 0, 0x49, 0x13),                   // a pointer to a type
		abbreviation(7, 0x2e, 1, 3, 8, 0x11, 1, 0x12, 7, 0x40, 0x18),
		abbreviation(8, 0x1d, 1, 3, 8, 0x11, 1, 0x12, 7), // an inlined call
		abbreviation(9, 0x0b, 1, 0x11, 1, 0x12, 7),       // a block
		abbreviation(10, 0x11, 0, 0x11, 1, 0x12, 7, 0x10, 0x17),
		abbreviation(11, 0x2e, 0, 0x6e, 8, 0x11, 1, 0x12, 7), // a function with a linkage name
		abbreviation(12, 0x11, 1, 0x11, 1, 0x55, 0x17),       // a unit with ranges
		abbreviation(13, 0x2e, 0, 3, 8, 0x55, 0x17),          // a function with ranges
		{0},
	}, nil)
}

// unit is a unit of DWARF 5 whose entries begin at 12.
func unit(body []byte) []byte {
	b := little.AppendUint32(nil, uint32(len(body)+8))
	b = append(little.AppendUint16(b, 5), 1, 8, 0, 0, 0, 0)
	return append(b, body...)
}

func attackDWARF(body []byte, more ...zipMember) []byte {
	return attackELF(1, append([]zipMember{{".debug_info", unit(body)}, {".debug_abbrev", attackAbbreviations()}}, more...)...)
}

// ringOf is n entries of a code, each of which refers to the next, and the last to the first.
func ringOf(code uint64, n int) []byte {
	b := append(uleb(1), place()...)
	first := 12 + len(b)
	for i := range n {
		b = little.AppendUint32(append(b, byte(code)), uint32(first+(i+1)%n*5))
	}
	return b
}

// lineProgram is a table of DWARF 4 with a program.
func lineProgram(program []byte) []byte {
	head := append([]byte{1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0}, "f.c\x00\x00\x00\x00\x00"...)
	b := little.AppendUint32(nil, uint32(6+len(head)+len(program)))
	b = little.AppendUint32(little.AppendUint16(b, 4), uint32(len(head)))
	return append(append(b, head...), program...)
}

// lineProgram5 is a table of DWARF 5 with directories, files and a program.
func lineProgram5(tables, program []byte) []byte {
	head := append([]byte{1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1}, tables...)
	b := little.AppendUint32(nil, uint32(8+len(head)+len(program)))
	b = little.AppendUint32(append(little.AppendUint16(b, 5), 8, 0), uint32(len(head)))
	return append(append(b, head...), program...)
}

// rangeLists is a list of n ranges of a byte each, from the end of the code to its start and
// so on, at offset 12 of .debug_rnglists.
func rangeLists(n int) []byte {
	var list []byte
	for i := range n {
		at := uint64(attackLength - 1 - i%attackLength)
		list = append(append(append(list, 4), uleb(at)...), uleb(at+1)...)
	}
	list = append(list, 0)
	b := little.AppendUint32(nil, uint32(8+len(list)))
	b = append(little.AppendUint16(b, 5), 8, 0, 0, 0, 0, 0)
	return append(b, list...)
}

// rangedUnit is a unit with ranges, of so many functions with the same.
func rangedUnit(functions int) []byte {
	b := little.AppendUint32(little.AppendUint64([]byte{12}, attackBase), 12)
	return append(append(b, bytes.Repeat([]byte("\x0df\x00\x0c\x00\x00\x00"), functions)...), 0)
}

// mangled are names that expand, nest, and refer to what they are part of.
func mangled() (names []string) {
	doubling := "_Z1fSt4pairIiiE"
	for _, i := range "_0123456789ABCDEFGHIJKLMNOPQRSTUV" {
		s := strings.TrimSuffix("S"+string(i), "_") + "_"
		doubling += "S_I" + s + s + "E"
	}
	rust := "_RINvC1a1f"
	for range 30 {
		rust += "TB8_B8_E"
	}
	substitutions := "_Z1f"
	for i := range 30_000 {
		substitutions += fmt.Sprintf("IS%d_E", i)
	}
	return append(names, doubling, rust, substitutions, "_Z1f"+strings.Repeat("P", 100_000)+"i", "_ZN"+strings.Repeat("S_", 50_000),
		"_Z1fI"+strings.Repeat("N1aI", 20_000), "_R"+strings.Repeat("NvC1", 50_000), "?f@@YAX"+strings.Repeat("PEAV?$a@", 20_000))
}

// frameSection is a CIE of .debug_frame, and an FDE of the code with instructions, n times.
func frameSection(instructions []byte, n int) []byte {
	b := little.AppendUint32(nil, 20)
	b = append(b, 0xff, 0xff, 0xff, 0xff, 4, 0, 8, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0, 0, 0)
	fde := little.AppendUint32(nil, uint32(20+len(instructions)))
	fde = append(append(little.AppendUint32(fde, 0), place()...), instructions...)
	return append(b, bytes.Repeat(fde, n)...)
}

// An attack is a file, and the commands that read it, in which FILE stands for it.
type attack struct {
	name     string
	content  []byte
	commands []string
}

func symbolizing(more ...string) []string {
	return append([]string{"symbolize --obj FILE 0x401000 0x401010", "dump expr FILE"}, more...)
}

func dwarfAttacks() (list []attack) {
	add := func(name string, body []byte, more ...zipMember) {
		list = append(list, attack{name, attackDWARF(body, more...), symbolizing()})
	}
	head := append(uleb(1), place()...)
	one := uint32(12 + len(head))
	other := one + 1 + 4 + 16
	origin := func(of uint32) []byte {
		return append(little.AppendUint32([]byte{2}, of), place()...)
	}
	add("two functions, each the origin of the other", bytes.Join([][]byte{head, origin(other), origin(one), {0, 0, 0}}, nil))
	add("a ring of specifications", append(ringOf(4, 100_000), 0))
	function := append(append([]byte("\x07fn\x00"), place()...), 1, 0x56)
	types := append(ringOf(6, 100_000), function...)
	add("a ring of types", append(little.AppendUint32(append(types, 5), uint32(12+len(head))), 2, 0x91, 0, 0, 0))
	const deep = 300_000
	nested := func(entry []byte) []byte {
		return bytes.Join([][]byte{head, function, bytes.Repeat(append(entry, place()...), deep), make([]byte, deep+2)}, nil)
	}
	add("inlined calls within one another", nested([]byte("\x08i\x00")))
	add("blocks within one another", nested([]byte{9}))
	body := little.AppendUint32(append([]byte{10}, place()...), 0)
	address := little.AppendUint64([]byte{0, 9, 2}, attackBase)
	add("a line program of rows at one address", body, zipMember{".debug_line", lineProgram(append(address, bytes.Repeat([]byte{1}, 8<<20)...))})
	add("a line program that goes round the address space", body, zipMember{".debug_line",
		lineProgram(append(address, bytes.Repeat(append(append([]byte{2}, uleb(1<<64-1)...), 1), 500_000)...))})
	path := append([]byte{1, 1, 8}, uleb(1<<40)...) // DW_LNCT_path with DW_FORM_string, and how many there are
	add("a line table of 2^40 directories", body, zipMember{".debug_line", lineProgram5(append(path, bytes.Repeat([]byte("a\x00"), 10)...), nil)})
	empty := append(append([]byte{0}, uleb(1<<40)...), append([]byte{0}, uleb(1<<60)...)...)
	add("a line table of 2^40 empty directories", body, zipMember{".debug_line", lineProgram5(empty, nil)})
	named := append([]byte(nil), head...)
	for _, name := range mangled() {
		named = append(append(append(append(named, 11), name...), 0), place()...)
	}
	add("names that expand", append(named, 0))
	const many = 10_000
	add("functions of one list of ranges", rangedUnit(many), zipMember{".debug_rnglists", rangeLists(2_000_000)})
	list = append(list, attack{"units of one list of ranges", attackELF(1, zipMember{".debug_info", bytes.Repeat(unit(rangedUnit(1)), many)},
		zipMember{".debug_abbrev", attackAbbreviations()}, zipMember{".debug_rnglists", rangeLists(500_000)}), symbolizing()})
	units := bytes.Repeat(unit(body), 20_000)
	list = append(list, attack{"units of one line program", attackELF(1, zipMember{".debug_info", units}, zipMember{".debug_abbrev", attackAbbreviations()},
		zipMember{".debug_line", lineProgram(append(address, bytes.Repeat([]byte{0x20}, 1<<20)...))}), symbolizing()})
	var declared []byte
	for i := range uint64(300_000) {
		declared = append(declared, abbreviation(i+1, 0x34, 0, 3, 8)...)
	}
	list = append(list, attack{"units with many abbreviations", attackELF(1, zipMember{".debug_abbrev", append(declared, 0)},
		zipMember{".debug_info", bytes.Repeat(unit([]byte("\x05x\x00")), 20_000)}), symbolizing()})
	wide := append(append([]byte{1, 0x11, 0}, bytes.Repeat([]byte{3, 0x19}, 500_000)...), 0, 0, 0)
	list = append(list, attack{"an abbreviation with many attributes", attackELF(1, zipMember{".debug_abbrev", wide},
		zipMember{".debug_info", bytes.Repeat(unit([]byte{1}), 20_000)}), symbolizing()})
	return append(list, attack{"sections over one range", attackELF(60_000, zipMember{".debug_frame", make([]byte, 1<<20)}),
		symbolizing("dump cfi FILE", "dump rows FILE", "dump notes FILE")})
}

func frameAttacks() (list []attack) {
	expression := func(e []byte) []byte { return append(append([]byte{0x0f}, uleb(uint64(len(e)))...), e...) }
	for name, instructions := range map[string][]byte{
		"DW_CFA_remember_state without end": bytes.Repeat([]byte{0x0a}, 1_000_000),
		"states remembered at every byte":   bytes.Repeat([]byte{0x0a, 0x41}, 500_000),
		"rows beyond the address space":     bytes.Repeat([]byte{4, 0xff, 0xff, 0xff, 0xff}, 500_000),
		"a CFA that loops":                  expression([]byte{0x30, 0x2f, 0xfc, 0xff}),
		"a CFA of pieces":                   expression(bytes.Repeat([]byte{0x93, 1}, 300_000)),
		"a CFA of a deep stack":             expression(append([]byte{0x77, 8}, bytes.Repeat([]byte{0x12}, 300_000)...)),
		"an implicit value of 2^40 bytes":   expression(append([]byte{0x31, 0x9e}, uleb(1<<40)...)),
	} {
		list = append(list, attack{name, attackELF(1, zipMember{".debug_frame", frameSection(instructions, 1)}), []string{"dump rows FILE", "dump cfi FILE", "symbols FILE", "SNAPSHOT"}})
	}
	var registers []byte
	for i := range uint64(20_000) {
		registers = append(append(append(registers, 5), uleb(i)...), 1)
	}
	registers = append(registers, bytes.Repeat([]byte{0x41}, 20_000)...)
	own := uint32(len(frameSection(nil, 0))) // where the FDE is
	for name, entry := range map[string][]byte{
		"an FDE of 2^64-1 bytes":                  append(little.AppendUint64(little.AppendUint64(bytes.Repeat([]byte{0xff}, 12), 0), attackBase), 0, 16),
		"an FDE of 2^64-9 bytes":                  append(little.AppendUint64([]byte{0xff, 0xff, 0xff, 0xff}, 1<<64-9), make([]byte, 32)...),
		"an FDE that names itself as its CIE":     append(little.AppendUint32([]byte{20, 0, 0, 0}, own), place()...),
		"an FDE of a CIE beyond its section":      append(little.AppendUint32([]byte{20, 0, 0, 0}, 0xfffffff0), place()...),
		"an FDE that reaches to the highest byte": append(little.AppendUint64([]byte{20, 0, 0, 0, 0, 0, 0, 0}, 0), bytes.Repeat([]byte{0xff}, 8)...),
	} {
		list = append(list, attack{name, attackELF(1, zipMember{".debug_frame", append(frameSection(nil, 0), bytes.Repeat(entry, 1000)...)}),
			[]string{"dump rows FILE", "dump cfi FILE", "SNAPSHOT"}})
	}
	return append(list,
		attack{"many registers in many rows", attackELF(1, zipMember{".debug_frame", frameSection(registers, 1)}), []string{"dump rows FILE -o /dev/null", "SNAPSHOT"}},
		attack{"many FDEs of one function", attackELF(1, zipMember{".debug_frame", frameSection(nil, 200_000)}), []string{"dump rows FILE -o /dev/null", "symbols FILE", "SNAPSHOT"}})
}

func textAttacks(t *testing.T) (list []attack) {
	add := func(name, text string, commands ...string) {
		list = append(list, attack{name, []byte(text), commands})
	}
	snapshot := func(name, text string) {
		list = append(list, attack{name, zipped(t, []zipMember{{"snapshot.json", []byte(`{"format_version":1,` + text + `}`)}}), []string{"stack FILE"}})
	}
	const n = 300_000
	snapshot("JSON that nests", `"threads":`+strings.Repeat("[", n)+strings.Repeat("]", n))
	snapshot("JSON that nests where nothing is known", `"zz":`+strings.Repeat(`{"a":`, n)+"1"+strings.Repeat("}", n))
	var registers, memory []string
	for i := range n {
		registers = append(registers, fmt.Sprintf(`"r%d":"0x1"`, i))
		memory = append(memory, fmt.Sprintf(`{"address":"0x%x","file":"snapshot.json"}`, i*7))
	}
	snapshot("a thread of many registers", `"threads":[{"id":"1","arch":"x86_64","registers":{`+strings.Join(registers, ",")+`}}]`)
	snapshot("memory that is one member", `"threads":[{"id":"1","arch":"x86_64","registers":{"rip":"0x1000"}}],"memory":[`+strings.Join(memory, ",")+`]`)
	snapshot("numbers beyond all sizes", `"threads":[{"id":"1","arch":"x86_64","registers":{"rip":"0x`+strings.Repeat("f", 60_000)+`","rsp":1e400,"rbp":-5}}],"memory":[{"address":"0xffffffffffffffff","file":"snapshot.json"}]`)
	var threads []string
	for i := range 100_000 {
		threads = append(threads, fmt.Sprintf(`{"id":"%d","arch":"x86_64","registers":{"rip":"0x1000","rsp":"0x2000"}}`, i))
	}
	snapshot("many threads", `"threads":[`+strings.Join(threads, ",")+`]`)
	first, _, _ := strings.Cut(string(readAll(t, "../../examples/gpu-profile/gpu.jsonl")), "\n")
	add("samples that nest", first+"\n"+`{"record":"module","x":`+strings.Repeat("[", n)+strings.Repeat("]", n)+"}\n", "profile --gpu FILE")
	add("a sample of a long line", first+"\n"+`{"record":"module","path":"`+strings.Repeat("A", 64<<20)+"\"}\n", "profile --gpu FILE")
	add("metadata that nests", "!0 = !{"+strings.Repeat("!{", n)+strings.Repeat("}", n)+"}\n", "dump llvmir FILE")
	const function = "define void @f() !dbg !1 {\n%s ret void, !dbg !2\n}\n!1 = distinct !DISubprogram(name: \"f\", scope: !1, file: !1, unit: !1)\n"
	add("calls inlined in themselves", fmt.Sprintf(function, "")+"!2 = !DILocation(line: 1, scope: !3, inlinedAt: !2)\n!3 = !DILexicalBlock(scope: !3)\n!llvm.dbg.cu = !{!1}\n", "dump llvmir FILE", "symbolize --obj FILE f+0")
	inlined := fmt.Sprintf(function, strings.Repeat(" call void @g(), !dbg !2\n", 1000))
	var calls strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&calls, "!%d = !DILocation(line: 1, scope: !1, inlinedAt: !%d)\n", i+2, i+3)
	}
	add("calls inlined without end", inlined+calls.String(), "dump llvmir FILE -o /dev/null")
	add("a constant that nests", "@g = global i32 "+strings.Repeat("add (i32 ", n)+"1"+strings.Repeat(", i32 1)", n)+"\n", "dump llvmir FILE")
	return list
}

// inSnapshot is a snapshot of a thread that executes a file's code.
func inSnapshot(t *testing.T, content []byte) []byte {
	t.Helper()
	b, err := json.Marshal(map[string]any{
		"format_version": 1,
		"modules": []any{map[string]any{"path": "/x", "arch": "x86_64", "file": "m",
			"segments": []any{map[string]any{"address": "0x401000", "size": "0x1000", "start": "0x401000"}}}},
		"threads": []any{map[string]any{"id": "1", "arch": "x86_64", "registers": map[string]string{"rip": "0x401010", "rsp": "0x7ff000", "rbp": "0x7ff100"}}},
		"memory":  []any{map[string]any{"address": "0x7ff000", "file": "s"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return zipped(t, []zipMember{{"snapshot.json", b}, {"m", content}, {"s", bytes.Repeat(little.AppendUint64(nil, 0x401010), 1<<13)}})
}

// TestWhatAttacksAreMadeOfIsRead has the command read files that are made as those of the
// attacks are, and harm nobody: what is refused at once proves nothing.
func TestWhatAttacksAreMadeOfIsRead(t *testing.T) {
	function := append(append([]byte("\x07fn\x00"), place()...), 1, 0x56)
	entries := attackDWARF(bytes.Join([][]byte{uleb(1), place(), function, {0, 0}}, nil))
	lines := attackDWARF(little.AppendUint32(append([]byte{10}, place()...), 0), zipMember{".debug_line",
		lineProgram(append(little.AppendUint64([]byte{0, 9, 2}, attackBase), 0x20, 2, 0x80, 0x20, 0, 1, 1))})
	lines5 := attackDWARF(little.AppendUint32(append([]byte{10}, place()...), 0), zipMember{".debug_line", lineProgram5(
		[]byte("\x01\x01\x08\x01/d\x00\x01\x01\x08\x02g.c\x00g.c\x00"),
		append(little.AppendUint64([]byte{0, 9, 2}, attackBase), 0x20, 2, 0x80, 0x20, 0, 1, 1))})
	ranged := attackDWARF(rangedUnit(2), zipMember{".debug_rnglists", rangeLists(5000)})
	named := attackDWARF(bytes.Join([][]byte{uleb(1), place(), []byte("\x0b_Z1fPPi\x00"), place(), {0}}, nil))
	frames := attackELF(1, zipMember{".debug_frame", frameSection([]byte{0x41, 0x0e, 16}, 1)})
	for _, c := range []struct {
		content []byte
		command string
		want    string
	}{
		{entries, "symbolize --obj FILE 0x401010", "fn\n"},
		{lines, "symbolize --obj FILE 0x401010", "f.c:"},
		{lines5, "symbolize --obj FILE 0x401010", "/d/g.c:"},
		{ranged, "symbolize --obj FILE 0x401010", "f\n"},
		{named, "symbolize --obj FILE 0x401010", "f(int**)\n"},
		{frames, "dump rows FILE", "0x401001"},
		{inSnapshot(t, frames), "stack FILE", "the frame of ?? repeats 4,095 times"},
	} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		out, stderr, status := unwindd(t, append(strings.Fields(strings.Replace(c.command, "FILE", path, 1)), "--in-process")...)
		if status != 0 || !strings.Contains(out, c.want) {
			t.Errorf("%s: status %d, %q, %q, expected %q", c.command, status, out, stderr, c.want)
		}
	}
}

// TestAttacks has the command read what was made to harm it: it ends with a status of its own,
// in bounded time and memory.
func TestAttacks(t *testing.T) {
	oracle.All(t)
	long(t)
	t.Parallel()
	list := append(append(dwarfAttacks(), frameAttacks()...), textAttacks(t)...)
	list = append(list, attack{"an expression that loops", nil, []string{"eval --arch x86_64 --expr skip_-3", "dump expr --arch x86_64 --hex 2ffdff"}})
	for _, a := range list {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			a.run(t)
		})
	}
}

// run runs the commands of an attack.
func (a *attack) run(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, a.content, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range a.commands {
		if text == "SNAPSHOT" {
			if err := os.WriteFile(path, inSnapshot(t, a.content), 0o600); err != nil {
				t.Fatal(err)
			}
			text = "stack FILE"
		}
		// The test binary takes what begins with a flag for its own.
		args := append(strings.Fields(text), "--in-process")
		for i := range args {
			args[i] = strings.ReplaceAll(strings.Replace(args[i], "skip_", "skip ", 1), "FILE", path)
		}
		outlives(t, a.name, text, args)
	}
}

// outlives runs the command.
func outlives(t *testing.T, name, text string, args []string) {
	t.Helper()
	cmd := command(args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	timer.Stop()
	took := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	memory := oracle.PeakMemory(cmd.ProcessState) << 10
	status := cmd.ProcessState.ExitCode()
	t.Logf("%s, %s: status %d, %v, %d MB, %d bytes", name, text, status, took, memory>>20, out.Len())
	if status < 0 || status > exitUnwalked || status == exitUsage || took > attackTime || memory > attackMemory || goTrace.Match(out.Bytes()) {
		t.Errorf("%s, %s: status %d, %v, %d MB\n%.1000s", name, text, status, took, memory>>20, out.String())
	}
}

// A zipMember is a member of a snapshot.
type zipMember struct {
	name    string
	content []byte
}

// zipped is a snapshot of members.
func zipped(t *testing.T, members []zipMember) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, m := range members {
		w, err := z.Create(m.name)
		if err == nil {
			_, err = w.Write(m.content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func readAll(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
