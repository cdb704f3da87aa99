// SPDX-License-Identifier: Apache-2.0

package filekind

import (
	"debug/elf"
	"strings"
	"testing"
)

// TestEveryKindIsFound: none is hidden behind another one whose first bytes it begins with, and each
// has its own description.
func TestEveryKindIsFound(t *testing.T) {
	for i := range magics {
		m := &magics[i]
		if got := Of([]byte(m.magic + "rest")); got != m.Kind {
			t.Errorf("%q is %+v, expected %+v", m.magic, got, m.Kind)
		}
		if m.What == "" {
			t.Errorf("%q has no description", m.magic)
		}
	}
	for _, head := range []string{"", "x", "hello", "\x7fEL", "<html", "<"} {
		if got := Of([]byte(head)); (got.What != "") != (head == "<html") {
			t.Errorf("%q is %+v", head, got)
		}
	}
}

// TestELFFilesAreToldByType: of both byte orders, and cut anywhere.
func TestELFFilesAreToldByType(t *testing.T) {
	for order, at := range map[elf.Data]int{elf.ELFDATA2LSB: 16, elf.ELFDATA2MSB: 17} {
		for kind, command := range map[elf.Type]string{elf.ET_CORE: "stack", elf.ET_EXEC: "symbolize --obj", elf.ET_DYN: "symbolize --obj", elf.ET_REL: "symbolize --obj", 9: ""} {
			head := make([]byte, 64)
			copy(head, elf.ELFMAG)
			head[elf.EI_DATA], head[at] = byte(order), byte(kind)
			got := Of(head)
			if got.Command != command || !got.IsELF || got.IsProgram != (kind == elf.ET_EXEC || kind == elf.ET_DYN) || IsELF(head, kind) == IsELF(head, kind+100) {
				t.Errorf("%v %v: %+v", order, kind, got)
			}
			for n := range elfTypeEnd {
				if got := Of(head[:n]); got.What != "" || IsELF(head[:n], kind) {
					t.Errorf("%v %v cut to %d bytes: %+v", order, kind, n, got)
				}
			}
		}
	}
}

// TestAdviceNamesTheFileAndACommandThatFits holds some sentences.
func TestAdviceNamesTheFileAndACommandThatFits(t *testing.T) {
	exe := elfKinds[elf.ET_EXEC]
	for command, want := range map[string]string{
		"stack":   "a.out is an executable: give the core, then the executable: unwindd stack CORE a.out; or the ID of a process of it: unwindd stack PID",
		"profile": "a.out is an executable: record it first: perf record --call-graph dwarf -- a.out; or give the ID of a process of it: unwindd profile PID",
	} {
		if got := exe.Sentence(command, "a.out"); got != want {
			t.Errorf("%s: %q, expected %q", command, got, want)
		}
	}
	none := Kind{}
	folder := OfFolder("x/a.dSYM/")
	if got := none.Sentence("stack", "f"); got != "" || folder.What == "" || OfFolder("x") != none || !strings.Contains(Begins([]byte("%PDF-1.4")), `"%PDF"`) || Begins(nil) == "" {
		t.Errorf("%q, %+v", got, folder)
	}
}

// TestFilesOfMacOS tells the kinds of Mach-O files by their types, also where they are cut.
func TestFilesOfMacOS(t *testing.T) {
	head := func(kind byte) []byte {
		return append([]byte("\xcf\xfa\xed\xfe\x0c\x00\x00\x01\x00\x00\x00\x00"), kind, 0, 0, 0)
	}
	for want, data := range map[string][]byte{
		"a program of macOS": head(2), "a core of macOS": head(4), "a library of macOS": head(6), "debug information of macOS": head(10),
		"a Mach-O file of macOS": head(77), "a Mach-O file that is cut": head(2)[:14], "a universal file of macOS": []byte("\xca\xfe\xba\xbe\x00\x00\x00\x02"),
		"a class of Java": []byte("\xca\xfe\xba\xbe\x00\x00\x00\x41"), "a Mach-O file of 32 bits": []byte("\xce\xfa\xed\xfe"),
		"a shared cache of macOS, which has the libraries of the system in one file": []byte("dyld_v1  arm64e"),
	} {
		if got := Of(data); got.What != want {
			t.Errorf("%q: %q, expected %q", data, got.What, want)
		}
	}
	if core, program := Of(head(4)), Of(head(2)); core.Command != "stack" || !program.IsProgram || program.IsELF {
		t.Errorf("%+v, %+v", core, program)
	}
}

func TestReportsOfMacOSAreTold(t *testing.T) {
	for _, head := range []string{
		`{"app_name":"a","timestamp":"2022-03-16 11:45:14.00 +0800","bug_type":"309"}`,
		"\ufeff{\n  \"usedImages\" : [",
		"Incident Identifier: 1\nCrashReporter Key:   2\n",
		"Process:         a [1]\nPath:            /a\n",
		"Analysis of sampling a (pid 1) every 1 millisecond\nProcess:         a [1]\n",
		"-------------------------------------\nTranslated Report (Full Report Below)\n-------------------------------------\n\nProcess:  a [1]\n",
		"Thread 0:\n0   App Namespace                       0x0000000102268e70 0x10211c000 + 1363568\n",
		"Date/Time:        2020-05-02 12:01:02 +0300\nEnd time:         2020-05-02 12:01:07 +0300\n",
	} {
		if kind := Of([]byte(head)); !IsAppleReport(head) || kind.Command != "stack" {
			t.Errorf("%q: %+v", head, kind)
		}
	}
	for _, head := range []string{"", "{", `{"version":1,"target":{"kind":"apple-report"}}`, "Process: a\n", "main;f 3\n", "0 0x1 f\n", "{\n \"version\": 1,\n"} {
		if IsAppleReport(head) {
			t.Errorf("%q is no report", head)
		}
	}
	if kind := OfFolder("a.trace/"); kind.What != "a recording of Instruments" {
		t.Errorf("%+v", kind)
	}
}
