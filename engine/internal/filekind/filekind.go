// SPDX-License-Identifier: Apache-2.0

// Package filekind tells kinds of files by their first bytes: what they are, for messages, and which
// command reads them. All errors about a file of the wrong kind take their words from here.
package filekind

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/macho"
)

// HeadSize is the number of first bytes of a file that Of looks at.
const HeadSize = 512

// Kind is a kind of file.
type Kind struct {
	// What describes the kind, with an article: "a recording of perf".
	What string
	// Command is the command of unwindd whose argument such a file is: "stack"; "" where there is
	// none.
	Command string
	// IsProgram is true for executables and shared libraries.
	IsProgram bool
	// IsELF is true for ELF files.
	IsELF bool
	// next is the advice about such a file, and profile the advice where a recording was expected;
	// FILE stands for its path.
	next, profile string
}

// Next is the advice about a file of the kind; "" where nothing is known. command is the command
// that was to read it.
func (k *Kind) Next(command, path string) string {
	text := k.next
	if command == "profile" && k.profile != "" {
		text = k.profile
	}
	return strings.ReplaceAll(text, "FILE", path)
}

// Sentence describes a file and gives advice about it; "" for an unknown kind. command is the
// command that was to read it.
func (k *Kind) Sentence(command, path string) string {
	if k.What == "" {
		return ""
	}
	return path + " is " + k.with(k.Next(command, path))
}

// with joins a description and advice.
func (k *Kind) with(next string) string {
	if next == "" {
		return k.What + ", which no command reads"
	}
	return k.What + ": " + next
}

// Begins describes the first bytes of a file of no known kind.
func Begins(head []byte) string { return fmt.Sprintf("it begins with %q", head[:min(len(head), 4)]) }

const (
	forStack     = "use `unwindd stack FILE`"
	forSymbols   = "give it with the dump: unwindd stack DUMP --symbols FILE"
	forUnpacking = "unpack it first"
	isText       = "it has no state of a process: give the core or the dump that it was made from"
)

// OfFolder returns the kind of a folder, by its name.
func OfFolder(path string) Kind {
	if strings.HasSuffix(strings.TrimRight(path, "/"), ".dSYM") {
		return machOKinds[macho.TypeDSYM]
	}
	if strings.HasSuffix(strings.TrimRight(path, "/"), ".trace") {
		return Kind{What: "a recording of Instruments", next: "it is not read: the text that `sample` and `spindump` write on the Mac is"}
	}
	return Kind{}
}

// magics are the kinds by first bytes. Of two that match the first counts.
var magics = []struct {
	magic string
	Kind
}{
	{"PERFILE2", Kind{What: "a recording of perf", Command: "profile", next: "use `unwindd profile FILE`"}},
	{"2ELIFREP", Kind{What: "a recording of perf", Command: "profile", next: "use `unwindd profile FILE`"}},
	{"MDMP", Kind{What: "a minidump", Command: "stack", next: forStack}},
	{"PMDM", Kind{What: "a minidump", Command: "stack", next: forStack}},
	{"PK\x03\x04", Kind{What: "a ZIP file, perhaps a snapshot", Command: "stack", next: forStack}},
	{"PK\x05\x06", Kind{What: "a ZIP file without members"}},
	{"MODULE ", Kind{What: "a symbol file of Breakpad", next: forSymbols}},
	{"Microsoft C/C++ MSF 7.00\r\n", Kind{What: "a PDB file, debug information of Windows", Command: "symbolize --obj", next: "give the dump, and the folder that has it: unwindd stack DUMP --symbols DIR; for addresses in the image use `unwindd symbolize --obj FILE ADDRESS`"}},
	{"Microsoft C/C++ program database 2.00\r\n", Kind{What: "a PDB file of Visual C++ 6 or older", next: "its format is not read: expected 7.00, as linkers write since 2002"}},
	{"BSJB", Kind{What: "a portable PDB of .NET, which has no native code", next: "debuggers of .NET read it"}},
	{"PAGEDU", Kind{What: "a dump of the Windows kernel", next: "WinDbg reads it"}},
	{"KDUMP   ", Kind{What: "a dump of the Linux kernel", next: "crash and drgn read it"}},
	{"MZ", Kind{What: "a PE file, a program or a library of Windows", Command: "symbolize --obj", next: "give the dump, and then it: unwindd stack DUMP --exe FILE"}},
	{"\xce\xfa\xed\xfe", Kind{What: "a Mach-O file of 32 bits", next: "macOS has none since 2019: files of 64 bits are read"}},
	{"\xca\xfe\xba\xbe", Kind{What: "a class of Java", next: "give the core of its process, or its ID: unwindd stack PID"}},
	{"dyld_v", Kind{What: "a shared cache of macOS, which has the libraries of the system in one file", next: "take the library out of it (`ipsw dyld extract FILE NAME`, or `dyld_shared_cache_util -extract DIR FILE` on a Mac), and give that"}},
	{"\x28\xb5\x2f\xfd", Kind{What: "compressed by zstd", next: forUnpacking}},
	{"\x1f\x8b", Kind{What: "compressed by gzip", next: forUnpacking}},
	{"\xfd7zXZ\x00", Kind{What: "compressed by xz", next: forUnpacking}},
	{"\x04\x22\x4d\x18", Kind{What: "compressed by lz4", next: forUnpacking}},
	{"BZh", Kind{What: "compressed by bzip2", next: forUnpacking}},
	{"7z\xbc\xaf\x27\x1c", Kind{What: "a 7z archive", next: forUnpacking}},
	{"Rar!", Kind{What: "a RAR archive", next: forUnpacking}},
	{"!<arch>\n", Kind{What: "an archive of object files", next: "its members are read after `ar x FILE`"}},
	{"\x03\x02\x23\x07", Kind{What: "a SPIR-V module", Command: "symbolize --obj", next: "use `unwindd symbolize --obj FILE FUNCTION+N`, or `unwindd dump spirv FILE`"}},
	{"BC\xc0\xde", Kind{What: "LLVM bitcode", Command: "symbolize --obj", next: "use `unwindd symbolize --obj FILE FUNCTION+N`, or `unwindd dump llvmir FILE`"}},
	{"\x00asm", Kind{What: "a WebAssembly module"}},
	{"JiTD", Kind{What: "a jitdump of a runtime", next: "it is read with the recording that it belongs to, where that says so: unwindd profile perf.data"}},
	{"DTiJ", Kind{What: "a jitdump of a runtime", next: "it is read with the recording that it belongs to, where that says so: unwindd profile perf.data"}},
	{"JAVA PROFILE", Kind{What: "a heap dump of Java", next: "it has no stacks that are read here: take a core, or give the process's ID: unwindd stack PID"}},
	{"\xd4\xc3\xb2\xa1", Kind{What: "a capture of network packets"}},
	{"\xa1\xb2\xc3\xd4", Kind{What: "a capture of network packets"}},
	{"\x0a\x0d\x0d\x0a", Kind{What: "a capture of network packets"}},
	{"SQLite format 3\x00", Kind{What: "a database of SQLite", next: "exports of Nsight Systems are read by `unwindd profile FILE`", profile: "it has no tables of Nsight Systems, whose exports are read"}},
	{"#!", Kind{What: "a script", next: "give the core of its interpreter, or the ID of its process: unwindd stack PID", profile: "record it first: perf record --call-graph dwarf -- FILE"}},
	{"{\n \"version\"", Kind{What: "JSON, perhaps of `unwindd stack`", next: isText}},
	{"{", Kind{What: "JSON", next: "what `unwindd stack --format json` writes is read by programs, a trace by `unwindd profile FILE`, samples of accelerators by `unwindd profile --gpu FILE`"}},
	{"[", Kind{What: "JSON", next: "a trace is read by `unwindd profile FILE`"}},
}

// elfKinds are the kinds of ELF files by type.
var elfKinds = map[elf.Type]Kind{
	elf.ET_CORE: {What: "a core", Command: "stack", next: forStack},
	elf.ET_EXEC: executable("an executable"),
	elf.ET_DYN:  executable("an executable or a shared library"),
	elf.ET_REL:  {What: "an object file of a compiler", Command: "symbolize --obj", next: "use `unwindd symbolize --obj FILE ADDRESS`, or `unwindd dump rows FILE`", profile: "record the program first: perf record --call-graph dwarf -- PROGRAM"},
}

// machOKinds are the kinds of Mach-O files by type.
var machOKinds = map[uint32]Kind{
	macho.TypeObject:  {What: "an object file of a compiler for macOS", Command: "symbolize --obj", next: "use `unwindd symbolize --obj FILE ADDRESS`"},
	macho.TypeExecute: machOProgram("a program of macOS"),
	macho.TypeDylib:   machOProgram("a library of macOS"),
	macho.TypeBundle:  machOProgram("a bundle of macOS"),
	macho.TypeDSYM:    {What: "debug information of macOS", Command: "symbolize --obj", next: "give the report or the dump, and then its folder: unwindd stack REPORT --debug-dir FILE"},
	macho.TypeCore:    {What: "a core of macOS", Command: "stack", next: forStack},
	macho.TypeKext:    machOProgram("a part of the kernel of macOS"),
}

// machOProgram is the kind of programs and libraries of macOS.
func machOProgram(what string) Kind {
	return Kind{
		What: what, Command: "symbolize --obj", IsProgram: true,
		next: "give the report or the dump, and then it: unwindd stack REPORT FILE; for addresses in it use `unwindd symbolize --obj FILE ADDRESS`",
	}
}

// ofMachO is the kind of a Mach-O file.
func ofMachO(head []byte) Kind {
	if len(head) < machOTypeEnd {
		return Kind{What: "a Mach-O file that is cut", next: "it has no type"}
	}
	if kind, ok := machOKinds[binary.LittleEndian.Uint32(head[machOTypeEnd-4:])]; ok {
		return kind
	}
	return Kind{What: "a Mach-O file of macOS", Command: "symbolize --obj", next: "use `unwindd symbolize --obj FILE ADDRESS`"}
}

// machOTypeEnd is the end of the type of a Mach-O file.
const machOTypeEnd = 16

// executable is the kind of programs and libraries.
func executable(what string) Kind {
	return Kind{
		What: what, Command: "symbolize --obj", IsProgram: true,
		next:    "give the core, then the executable: unwindd stack CORE FILE; or the ID of a process of it: unwindd stack PID",
		profile: "record it first: perf record --call-graph dwarf -- FILE; or give the ID of a process of it: unwindd profile PID",
	}
}

// Of returns the kind of a file with these first bytes; the zero Kind where it is none that is known
// here.
func Of(head []byte) Kind {
	if bytes.HasPrefix(head, []byte(elf.ELFMAG)) {
		kind := elfKinds[elfType(head)]
		kind.IsELF = true
		return kind
	}
	switch {
	case macho.IsMachO(head):
		return ofMachO(head)
	case macho.IsUniversal(head):
		return machOProgram("a universal file of macOS")
	case IsAppleReport(string(head)):
		return Kind{What: "a report of macOS or iOS", Command: "stack", next: forStack}
	}
	for i := range magics {
		if bytes.HasPrefix(head, []byte(magics[i].magic)) {
			return magics[i].Kind
		}
	}
	if isPage(head) {
		return Kind{What: "a page of HTML", next: "open it in a browser; " + isText}
	}
	return Kind{}
}

// reportKeys are keys that begin lines of reports of macOS and iOS as text. A report has two in its first bytes.
var reportKeys = []string{
	"Incident Identifier:", "CrashReporter Key:", "Hardware Model:", "Process:", "Path:", "Identifier:", "Code Type:", "Load Address:",
	"Date/Time:", "End time:", "OS Version:", "Architecture:", "Report Version:", "Data Source:", "Command:", "Exception Type:",
	"Analysis of sampling ", "Sampling process ", "Translated Report (Full Report Below)", "Crashed Thread:", "Exception Codes:",
	"Triggered by Thread:", "Highlighted Thread:", "Thread 0:", "Thread 0 name:", "Thread 0 Crashed:", "Codesigning ID:", "Parent:",
}

// reportMembers are members of the first line of a report of macOS and iOS as JSON, or of its contents.
var reportMembers = []string{`"bug_type"`, `"incident_id"`, `"usedImages"`, `"procName"`, `"faultingThread"`, `"captureTime"`}

// IsAppleReport reports whether a file begins as a report of macOS or iOS.
func IsAppleReport(head string) bool {
	head = strings.TrimLeft(strings.TrimPrefix(head, "\ufeff"), " \t\r\n")
	head = head[FenceLen(head):]
	if strings.HasPrefix(head, "{") {
		for _, member := range reportMembers {
			if strings.Contains(head, member) {
				return true
			}
		}
		return false
	}
	found := 0
	for line := range strings.Lines(head[:min(len(head), HeadSize)]) {
		line = line[MarkLen(line):]
		if strings.HasPrefix(line, "0 ") && strings.Contains(line, " 0x") { // the first frame of a thread
			found++
		}
		if HasReportKey(line) {
			found++
		}
	}
	return found > 1
}

// HasReportKey reports whether a line begins with a key of reports of macOS and iOS as text.
func HasReportKey(line string) bool {
	return slices.ContainsFunc(reportKeys, func(key string) bool { return strings.HasPrefix(line, key) })
}

// MarkLen is the length of what stands before a line of text that was pasted: blanks, and marks of a quotation.
func MarkLen(line string) int { return len(line) - len(strings.TrimLeft(line, " \t>")) }

// FenceLen is the length of a line before text that was pasted into Markdown; 0 where there is none.
func FenceLen(text string) int {
	if !strings.HasPrefix(text, "```") && !strings.HasPrefix(text, "~~~") {
		return 0
	}
	return strings.IndexByte(text, '\n') + 1
}

// isPage reports whether a file begins as a page of HTML.
func isPage(head []byte) bool {
	text := strings.ToLower(string(bytes.TrimLeft(head[:min(len(head), HeadSize)], " \r\n\t\ufeff")))
	return strings.HasPrefix(text, "<!doctype html") || strings.HasPrefix(text, "<html")
}

// elfTypeEnd is the end of e_type in an ELF file.
const elfTypeEnd = 18

// elfType is the e_type of an ELF file with these first bytes; ET_NONE where it is cut.
func elfType(head []byte) elf.Type {
	if len(head) < elfTypeEnd {
		return elf.ET_NONE
	}
	if elf.Data(head[elf.EI_DATA]) == elf.ELFDATA2MSB {
		return elf.Type(binary.BigEndian.Uint16(head[16:]))
	}
	return elf.Type(binary.LittleEndian.Uint16(head[16:]))
}

// IsELF reports whether the first bytes of a file begin an ELF file of one of the types.
func IsELF(head []byte, types ...elf.Type) bool {
	if !bytes.HasPrefix(head, []byte(elf.ELFMAG)) || len(head) < elfTypeEnd {
		return false
	}
	t := elfType(head)
	for _, one := range types {
		if one == t {
			return true
		}
	}
	return false
}
