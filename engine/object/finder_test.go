// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func TestFilesAreFoundInTheirOrder(t *testing.T) {
	id, other := []byte{0xaa, 0xbb, 0xcc}, []byte{0x11, 0x22}
	right, wrong, without := withBuildID(id, "right"), withBuildID(other, "wrong"), withBuildID(nil, "without")
	debug := testFile{sections: []testSection{
		{name: ".text", typ: elf.SHT_NOBITS, flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, size: 10},
		{name: ".note", typ: elf.SHT_NOTE, data: note(binary.LittleEndian, 4, "GNU", noteBuildID, id)},
	}}.bytes()
	core := coreWith(elf.ELFCLASS64, binary.LittleEndian, 4, note(binary.LittleEndian, 4, "GNU", noteBuildID, id))
	tests := []struct {
		name    string
		files   map[string][]byte // "root/...", "folder/...", "exe"
		path    string
		id      []byte
		exe     bool // the executable, with Exe given
		want    string
		checked bool
		problem string // "": none
		tried   int
	}{
		{"by its path", map[string][]byte{"root/bin/a": right}, "/bin/a", id, false, "root/bin/a", true, "", 0},
		{"Exe before the path", map[string][]byte{"root/bin/a": right, "exe": right}, "/bin/a", id, true, "exe", true, "", 0},
		{"Exe for the executable only", map[string][]byte{"root/bin/a": right, "exe": wrong}, "/bin/a", id, false, "root/bin/a", true, "", 0},
		{"the path after an Exe that does not match", map[string][]byte{"root/bin/a": right, "exe": wrong}, "/bin/a", id, true, "root/bin/a", true,
			"exe was not used: build ID is 1122, expected aabbcc", 1},
		{"an Exe without build ID", map[string][]byte{"root/bin/a": right, "exe": without}, "/bin/a", id, true, "exe", false,
			"exe: its build ID could not be checked: the file has none, expected aabbcc", 0},
		{"an Exe that is missing", map[string][]byte{"root/bin/a": right}, "/bin/a", id, true, "root/bin/a", true, "exe was not used: no such file", 1},
		{"an Exe without a path in the target", map[string][]byte{"exe": right}, "", id, true, "exe", true, "", 0},
		{"the folder by its base name", map[string][]byte{"root/bin/a": wrong, "folder/a": right}, "/bin/a", id, false, "folder/a", true, "", 1},
		{"the folder by its build ID", map[string][]byte{"folder/b": wrong, "folder/c": right, "folder/d": []byte("text")}, "/bin/a", id, false, "folder/c", true, "", 2},
		{"the folder for a module without path", map[string][]byte{"folder/c": right}, "", id, false, "folder/c", true, "", 0},
		{"not a debug file", map[string][]byte{"folder/a": debug, "folder/b": debug, "folder/c": right}, "/bin/a", id, false, "folder/c", true, "", 3},
		{"not a core", map[string][]byte{"folder/a": core}, "/bin/a", id, false, "", false, "folder/a (is a core file)", 2},
		{"a match before one without build ID", map[string][]byte{"root/bin/a": without, "folder/c": right}, "/bin/a", id, false, "folder/c", true, "", 2},
		{"one without build ID", map[string][]byte{"root/bin/a": without}, "/bin/a", id, false, "root/bin/a", false,
			"root/bin/a: its build ID could not be checked: the file has none, expected aabbcc", 1},
		{"a target without build ID", map[string][]byte{"root/bin/a": right}, "/bin/a", nil, false, "root/bin/a", false,
			"its build ID could not be checked: the target does not tell it", 1},
		{"a mismatch", map[string][]byte{"root/bin/a": wrong}, "/bin/a", id, false, "", false,
			"/bin/a: no file with build ID aabbcc: tried ", 2},
		{"a mismatch names both", map[string][]byte{"root/bin/a": wrong}, "/bin/a", id, false, "", false,
			"root/bin/a (build ID is 1122, expected aabbcc)", 2},
		{"nothing", nil, "/bin/a", id, false, "", false, "root/bin/a (no such file or directory); ", 2},
		{"nothing, without build ID", nil, "/bin/a", nil, false, "", false, "/bin/a: no file: tried", 2},
		{"no ELF file", map[string][]byte{"root/bin/a": []byte("#!/bin/sh")}, "/bin/a", nil, false, "", false, "root/bin/a (not an ELF file)", 2},
		{"an empty file", map[string][]byte{"root/bin/a": nil}, "/bin/a", nil, false, "", false, "root/bin/a (file is empty)", 2},
		{"a directory", map[string][]byte{"root/bin/a/b": nil}, "/bin/a", nil, false, "", false, "root/bin/a (not a regular file)", 2},
		{"the root", nil, "/", id, false, "", false, "not a regular file", 1},
		{"no path at all", nil, "", nil, false, "", false, "no file", 0},
		{"/usr/lib for /lib", map[string][]byte{"root/usr/lib/x/a": right}, "/lib/x/a", id, false, "root/usr/lib/x/a", true, "", 1},
		{"/bin for /usr/bin", map[string][]byte{"root/bin/a": right}, "/usr/bin/a", id, false, "root/bin/a", true, "", 1},
		{"/sbin and /usr/sbin that are two", map[string][]byte{"root/sbin/a": wrong, "root/usr/sbin/a": right}, "/sbin/a", id, false, "root/usr/sbin/a", true, "", 1},
		{"a directory that only begins as /lib", map[string][]byte{"root/usr/library/a": right}, "/library/a", id, false, "", false, "/library/a: no file with build ID", 2},
		{"a deleted file", map[string][]byte{"root/bin/a": right}, "/bin/a (deleted)", id, false, "root/bin/a", true, "", 0},
		{"a deleted file that cannot be checked", map[string][]byte{"root/bin/a": right}, "/bin/a (deleted)", nil, false, "", false, "does not tell it", 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, d := range []string{"root", "folder"} {
				if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for name, b := range test.files {
				write(t, filepath.Join(dir, name), b)
			}
			f := &Finder{Sysroot: filepath.Join(dir, "root"), Folders: []string{filepath.Join(dir, "folder")}}
			if test.exe || test.name == "Exe for the executable only" {
				f.Exe = filepath.Join(dir, "exe")
			}
			found := f.Find(test.path, test.id, test.exe)
			if found.Object != nil {
				defer found.Object.Close()
			}
			rel, _ := strings.CutPrefix(found.Path, dir+"/")
			if rel != test.want || (found.Object != nil) != (test.want != "") || found.Checked != test.checked {
				t.Errorf("found %q, checked %v, expected %q, %v", rel, found.Checked, test.want, test.checked)
			}
			if (found.Problem == "") != (test.problem == "") || !strings.Contains(strings.ReplaceAll(found.Problem, dir+"/", ""), test.problem) {
				t.Errorf("problem %q, expected %q", found.Problem, test.problem)
			}
			want := test.tried
			if !found.Checked && found.Object != nil && want > 0 {
				want-- // what was taken is not among what was not
			}
			if test.want != "" && !found.Checked {
				for _, a := range found.Tried {
					if a.Path == found.Path {
						t.Errorf("the file taken is among those not taken: %v", found.Tried)
					}
				}
				return
			}
			if len(found.Tried) != want {
				t.Errorf("tried %v, expected %d", found.Tried, want)
			}
		})
	}
}

func TestFinderClosesWhatItDoesNotGive(t *testing.T) {
	dir := t.TempDir()
	id := []byte{1, 2, 3}
	write(t, filepath.Join(dir, "root/a"), withBuildID(nil, "a"))
	write(t, filepath.Join(dir, "folder/a"), withBuildID([]byte{9}, "b"))
	write(t, filepath.Join(dir, "folder/b"), withBuildID(id, "c"))
	live.RLock()
	before := len(live.mappings)
	live.RUnlock()
	f := &Finder{Sysroot: filepath.Join(dir, "root"), Folders: []string{filepath.Join(dir, "folder")}}
	found := f.Find("/a", id, false)
	if found.Object == nil || !found.Checked {
		t.Fatalf("not found: %s", found.Problem)
	}
	found.Object.Close()
	f.FindDebug(found.Object)
	live.RLock()
	defer live.RUnlock()
	if len(live.mappings) != before {
		t.Errorf("%d mappings are left", len(live.mappings)-before)
	}
}

func TestFolderIsLookedThroughWithinBounds(t *testing.T) {
	dir := t.TempDir()
	id := []byte{1, 2, 3}
	for i := range maxFolderEntries + 50 {
		write(t, filepath.Join(dir, fmt.Sprintf("f%04d", i)), []byte("x"))
	}
	link(t, "/dev/zero", filepath.Join(dir, "zero"))
	if err := oracle.Mkfifo(filepath.Join(dir, "fifo")); err != nil {
		t.Fatal(err)
	}
	f := &Finder{Sysroot: dir, Folders: []string{dir, filepath.Join(dir, "fifo"), filepath.Join(dir, "none")}}
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if found := f.Find("/none/at/all", id, false); found.Object != nil {
				t.Error("found")
			}
		}()
	}
	wg.Wait()
}

// debugFixture is a program with a separate debug file, which has the build ID
// and is what .gnu_debuglink names.
func debugFixture(t *testing.T, buildID bool) (program, debug []byte) {
	args := []string{"-Wl,--build-id=sha1"}
	if !buildID {
		args = []string{"-Wl,--build-id=none"}
	}
	path := compile(t, args...)
	dir := filepath.Dir(path)
	oracle.Run(t, "objcopy", "--only-keep-debug", path, filepath.Join(dir, "prog.debug"))
	oracle.Run(t, "objcopy", "--strip-all", "--add-gnu-debuglink="+filepath.Join(dir, "prog.debug"), path, filepath.Join(dir, "prog"))
	return read(t, filepath.Join(dir, "prog")), read(t, filepath.Join(dir, "prog.debug"))
}

func TestDebugLinkIsReadAsTheLinkerWroteIt(t *testing.T) {
	program, debug := debugFixture(t, true)
	name, crc, ok := mustNew(t, program).DebugLink()
	if !ok || name != "prog.debug" || crc != crc32.ChecksumIEEE(debug) {
		t.Errorf("%q, %08x, %v, expected prog.debug, %08x", name, crc, ok, crc32.ChecksumIEEE(debug))
	}
	tests := []struct {
		data string
		name string
	}{
		{"a.debug\x00\x04\x03\x02\x01", "a.debug"},
		{"ab.debug\x00\x00\x00\x00\x04\x03\x02\x01", "ab.debug"},
		{"ab.debug\x00\x00\x00\x00\x04\x03\x02", ""},
		{"ab.debug", ""},
		{"\x00\x00\x00\x00\x04\x03\x02\x01", ""},
		{"../a.deb\x00\x00\x00\x00\x04\x03\x02\x01", ""},
		{"..\x00\x00\x04\x03\x02\x01", ""},
		{"", ""},
	}
	for _, test := range tests {
		o := mustNew(t, testFile{sections: []testSection{{name: ".gnu_debuglink", typ: elf.SHT_PROGBITS, data: []byte(test.data)}}}.bytes())
		name, crc, ok := o.DebugLink()
		if name != test.name || ok != (test.name != "") || (ok && crc != 0x01020304) {
			t.Errorf("%q: %q, %08x, %v", test.data, name, crc, ok)
		}
	}
}

func TestSeparateDebugFilesAreFound(t *testing.T) {
	program, debug := debugFixture(t, true)
	plainProgram, plainDebug := debugFixture(t, false)
	id := mustNew(t, program).BuildID()
	byID := fmt.Sprintf(".build-id/%x/%x.debug", id[:1], id[1:])
	otherID := bytes.ReplaceAll(debug, id, bytes.Repeat([]byte{7}, len(id)))
	tests := []struct {
		name    string
		program []byte
		files   map[string][]byte
		want    string
		problem string
	}{
		{"by build ID", program, map[string][]byte{"root/usr/lib/debug/" + byID: debug}, "root/usr/lib/debug/" + byID, ""},
		{"by build ID in a debug directory", program, map[string][]byte{"debug/" + byID: debug}, "debug/" + byID, ""},
		{"beside", program, map[string][]byte{"root/bin/prog.debug": debug}, "root/bin/prog.debug", ""},
		{"in .debug", program, map[string][]byte{"root/bin/.debug/prog.debug": debug}, "root/bin/.debug/prog.debug", ""},
		{"by path under the global directory", program, map[string][]byte{"root/usr/lib/debug/bin/prog.debug": debug}, "root/usr/lib/debug/bin/prog.debug", ""},
		{"by path in a debug directory", program, map[string][]byte{"debug/bin/prog.debug": debug}, "debug/bin/prog.debug", ""},
		{"in the folder by name", program, map[string][]byte{"folder/prog.debug": debug}, "folder/prog.debug", ""},
		{"in the folder by build ID", program, map[string][]byte{"folder/x": debug}, "folder/x", ""},
		{"flat in a debug directory by name", program, map[string][]byte{"debug/prog.debug": debug}, "debug/prog.debug", ""},
		{"flat in a debug directory by build ID", program, map[string][]byte{"debug/x": debug}, "debug/x", ""},
		{"flat in a debug directory by CRC", plainProgram, map[string][]byte{"debug/prog.debug": plainDebug}, "debug/prog.debug", ""},
		{"by path, without the /usr of the program's", program, map[string][]byte{"root/usr/lib/debug/bin/usr/prog.debug": debug, "debug/usr/bin/prog.debug": debug}, "debug/usr/bin/prog.debug", ""},
		{"beside, in the other directory", program, map[string][]byte{"root/usr/bin/.debug/prog.debug": debug}, "root/usr/bin/.debug/prog.debug", ""},
		{"by CRC", plainProgram, map[string][]byte{"root/bin/prog.debug": plainDebug}, "root/bin/prog.debug", ""},
		{"a CRC that does not match", plainProgram, map[string][]byte{"root/bin/prog.debug": append(bytes.Clone(plainDebug), 0)}, "",
			fmt.Sprintf("root/bin/prog.debug (CRC-32 is %08x, expected %08x)", crc32.ChecksumIEEE(append(bytes.Clone(plainDebug), 0)), crc32.ChecksumIEEE(plainDebug))},
		{"a build ID that does not match", program, map[string][]byte{"root/bin/prog.debug": otherID}, "",
			fmt.Sprintf("root/bin/prog.debug (build ID is %x, expected %x)", bytes.Repeat([]byte{7}, len(id)), id)},
		{"a second one where the first does not match", program, map[string][]byte{"root/bin/prog.debug": otherID, "folder/prog.debug": debug}, "folder/prog.debug", ""},
		{"the program itself is none", program, map[string][]byte{"folder/prog": program}, "", "folder/prog (has neither symbols nor debug information)"},
		{"nothing", program, nil, "", "root/bin/prog: no separate debug file: tried "},
		{"no link and no build ID", testFile{}.bytes(), nil, "", "neither a build ID nor .gnu_debuglink"},
		{"for another machine", program, map[string][]byte{"root/bin/prog.debug": otherMachine(debug)}, "", "is for another machine"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, b := range test.files {
				write(t, filepath.Join(dir, name), b)
			}
			write(t, filepath.Join(dir, "root/bin/prog"), test.program)
			f := &Finder{Sysroot: filepath.Join(dir, "root"), DebugDirs: []string{filepath.Join(dir, "debug")}, Folders: []string{filepath.Join(dir, "folder")}}
			found := f.FindDebug(mustOpen(t, filepath.Join(dir, "root/bin/prog")))
			if found.Object != nil {
				defer found.Object.Close()
			}
			rel, _ := strings.CutPrefix(found.Path, dir+"/")
			if rel != test.want || (found.Object != nil) != (test.want != "") || found.Checked != (test.want != "") {
				t.Errorf("found %q, checked %v, expected %q", rel, found.Checked, test.want)
			}
			if (found.Problem == "") != (test.problem == "") || !strings.Contains(strings.ReplaceAll(found.Problem, dir+"/", ""), test.problem) {
				t.Errorf("problem %q, expected %q", found.Problem, test.problem)
			}
		})
	}
}

// TestDebugFilesThatAreThereAndUnusable: what was met and is of no use is told
// from what is not there, or is no debug file by any account.
func TestDebugFilesThatAreThereAndUnusable(t *testing.T) {
	program, debug := debugFixture(t, true)
	unlinked := bytes.ReplaceAll(program, []byte(".gnu_debuglink"), []byte(".gnu_debugnone"))
	id := mustNew(t, program).BuildID()
	byID := fmt.Sprintf("debug/.build-id/%x/%x.debug", id[:1], id[1:])
	otherID := bytes.ReplaceAll(debug, id, bytes.Repeat([]byte{7}, len(id)))
	cut := debug[:len(debug)-1]
	for _, test := range []struct {
		name    string
		program []byte
		at      string
		data    []byte
		kind    AttemptKind
	}{
		{"cut", program, byID, cut, Unreadable},
		{"cut, by its link", program, "root/bin/prog.debug", cut, Unreadable},
		{"cut, by a name that is usual", unlinked, "root/bin/prog.debug", cut, Unreadable},
		{"of another build ID", program, byID, otherID, Mismatched},
		{"of another build ID, by a name that is usual", unlinked, "root/bin/prog.debug", otherID, Mismatched},
		{"for another machine", program, byID, otherMachine(debug), Mismatched},
		{"without debug information", program, byID, program, Unreadable},
		{"not ELF", program, byID, []byte("a text of some length"), Unreadable},
		{"not ELF, by a name that is usual", unlinked, "root/bin/prog.debug", []byte("a text of some length"), Absent},
		{"a copy of the program", program, "folder/prog", program, Absent},
		{"a copy of the program in a debug directory", program, "debug/prog", program, Absent},
		{"nothing", program, "root/other", nil, Absent},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, test.at), test.data)
			write(t, filepath.Join(dir, "root/bin/prog"), test.program)
			f := &Finder{Sysroot: filepath.Join(dir, "root"), DebugDirs: []string{filepath.Join(dir, "debug")}, Folders: []string{filepath.Join(dir, "folder")}}
			found := f.FindDebug(mustOpen(t, filepath.Join(dir, "root/bin/prog")))
			if found.Object != nil {
				t.Fatalf("%s was taken", found.Path)
			}
			unused := found.Unused()
			if test.kind == Absent {
				if len(unused) != 0 {
					t.Errorf("%+v", unused)
				}
				return
			}
			if len(unused) != 1 || unused[0].Path != filepath.Join(dir, test.at) || unused[0].Kind != test.kind || unused[0].Reason == "" {
				t.Errorf("%+v, expected kind %d", unused, test.kind)
			}
		})
	}
}

func otherMachine(b []byte) []byte {
	b = bytes.Clone(b)
	b[18] ^= 1
	return b
}

func TestDebugFilesLieBesideTheFileItself(t *testing.T) {
	program, debug := debugFixture(t, true)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "root/usr/bin/prog"), program)
	write(t, filepath.Join(dir, "root/usr/bin/prog.debug"), debug)
	link(t, "../usr/bin/prog", filepath.Join(dir, "root/bin/name"))
	// The debug file of the target must not be one of the host.
	write(t, filepath.Join(dir, "host.debug"), debug)
	write(t, filepath.Join(dir, "root/sbin/prog"), program)
	link(t, filepath.Join(dir, "host.debug"), filepath.Join(dir, "root/sbin/prog.debug"))
	link(t, "root", filepath.Join(dir, "linked"))
	for _, root := range []string{"root", "linked"} {
		f := &Finder{Sysroot: filepath.Join(dir, root)}
		for path, want := range map[string]bool{"/bin/name": true, "/sbin/prog": false} {
			o := f.Find(path, mustNew(t, program).BuildID(), false)
			if o.Object == nil {
				t.Fatal(o.Problem)
			}
			found := f.FindDebug(o.Object)
			if (found.Object != nil) != want {
				t.Errorf("%s under %s: %q, %s", path, root, found.Path, found.Problem)
			}
			if found.Object != nil {
				found.Object.Close()
			}
			o.Object.Close()
		}
	}
}

func TestAnObjectIsNotItsOwnDebugFile(t *testing.T) {
	dir := t.TempDir()
	path := compile(t, "-Wl,--build-id=sha1")
	write(t, filepath.Join(dir, "prog"), read(t, path))
	if err := os.Link(filepath.Join(dir, "prog"), filepath.Join(dir, "prog.debug")); err != nil {
		t.Fatal(err)
	}
	found := (&Finder{Folders: []string{dir}}).FindDebug(mustOpen(t, filepath.Join(dir, "prog")))
	if found.Object != nil || !strings.Contains(found.Problem, "is the file itself") {
		t.Errorf("found %q, problem %q", found.Path, found.Problem)
	}
}

// Debug information counts where its bytes are in the file.
func TestHasDebugInfo(t *testing.T) {
	path := compile(t)
	oracle.Run(t, "strip", "-g", "-o", path+".stripped", path)
	oracle.Run(t, "objcopy", "--compress-debug-sections=zlib-gnu", path, path+".old")
	empty := read(t, path)
	f, err := elf.NewFile(bytes.NewReader(empty))
	if err != nil {
		t.Fatal(err)
	}
	info := slices.IndexFunc(f.Sections, func(s *elf.Section) bool { return s.Name == ".debug_info" })
	header := binary.LittleEndian.Uint64(empty[0x28:]) + uint64(info)*64 // of the section, by e_shoff
	binary.LittleEndian.PutUint32(empty[header+4:], uint32(elf.SHT_NOBITS))
	write(t, path+".empty", empty)
	for suffix, want := range map[string]bool{"": true, ".old": true, ".stripped": false, ".empty": false} {
		o := mustOpen(t, path+suffix)
		if got := o.HasDebugInfo(); got != want {
			t.Errorf("%s has debug information: %v, want %v", filepath.Base(o.Path()), got, want)
		}
	}
}

// A remote answers with files of this machine.
type remote map[string]string // paths by kind and build ID, in hex

func (r remote) Fetch(f RemoteFile) (string, []Attempt) {
	key := fmt.Sprintf("%s %x", f.Kind, f.BuildID)
	if path, ok := r[key]; ok {
		r[key+" asked"] = path
		return path, nil
	}
	r[key+" asked"] = ""
	return "", []Attempt{{Path: "http://remote/" + key, Reason: "not there", Kind: Absent}}
}

// TestRemoteIsAskedLast: only for what has a build ID and was found nowhere.
func TestRemoteIsAskedLast(t *testing.T) {
	dir := t.TempDir()
	id, other := []byte{0xaa, 0xbb, 0xcc}, []byte{0x11, 0x22}
	write(t, filepath.Join(dir, "root/bin/here"), withBuildID(id, "here"))
	write(t, filepath.Join(dir, "root/bin/without"), withBuildID(nil, "without"))
	write(t, filepath.Join(dir, "cache/right"), withBuildID(id, "remote"))
	write(t, filepath.Join(dir, "cache/wrong"), withBuildID(other, "wrong"))
	right, wrong := filepath.Join(dir, "cache/right"), filepath.Join(dir, "cache/wrong")
	for _, c := range []struct {
		name, path string
		id         []byte
		remote     remote
		want       string // text of what is found; "": nothing
		isAsked    bool
		problem    string
	}{
		{"here", "/bin/here", id, remote{"executable aabbcc": right}, "here", false, ""},
		{"there", "/bin/gone", id, remote{"executable aabbcc": right}, "remote", true, ""},
		{"there, for one that cannot be checked here", "/bin/without", id, remote{"executable aabbcc": right}, "remote", true, ""},
		{"nowhere, and one that cannot be checked here", "/bin/without", id, remote{}, "without", true, "could not be checked"},
		{"wrong", "/bin/gone", id, remote{"executable aabbcc": wrong}, "", true, "build ID is 1122, expected aabbcc"},
		{"without a build ID", "/bin/gone", id, remote{"executable aabbcc": filepath.Join(dir, "root/bin/without")}, "", true, "the file has none, expected aabbcc"},
		{"nowhere", "/bin/gone", id, remote{}, "", true, "http://remote/executable aabbcc (not there)"},
		{"no build ID", "/bin/gone", nil, remote{}, "", false, "no file"},
	} {
		f := Finder{Sysroot: filepath.Join(dir, "root"), Remote: c.remote}
		found := f.Find(c.path, c.id, false)
		text := ""
		if found.Object != nil {
			text = textOf(t, found.Object)
			found.Object.Close()
		}
		_, isAsked := c.remote["executable aabbcc asked"]
		if text != c.want || isAsked != c.isAsked || !strings.Contains(found.Problem, c.problem) || found.Checked != (text == "here" || text == "remote") {
			t.Errorf("%s: found %q, checked %v, asked %v, problem %q", c.name, text, found.Checked, isAsked, found.Problem)
		}
	}
}

func TestRemoteIsAskedForDebugFiles(t *testing.T) {
	program, debug := debugFixture(t, true)
	id := mustNew(t, program).BuildID()
	key := fmt.Sprintf("debuginfo %x", id)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "root/bin/prog"), program)
	write(t, filepath.Join(dir, "cache/debug"), debug)
	write(t, filepath.Join(dir, "cache/other"), bytes.ReplaceAll(debug, id, bytes.Repeat([]byte{7}, len(id))))
	o := mustOpen(t, filepath.Join(dir, "root/bin/prog"))
	f := Finder{Sysroot: filepath.Join(dir, "root"), Remote: remote{key: filepath.Join(dir, "cache/debug")}}
	found := f.FindDebug(o)
	if found.Object == nil || !found.Checked {
		t.Fatal(found.Problem)
	}
	found.Object.Close()
	if o, tried := f.FetchDebug(id); o == nil {
		t.Errorf("by its ID: %v", tried)
	} else {
		o.Close()
	}
	f.Remote = remote{key: filepath.Join(dir, "cache/other")}
	if found := f.FindDebug(o); found.Object != nil || len(found.Unused()) != 1 || found.Unused()[0].Kind != Mismatched {
		t.Errorf("another's: %+v", found)
	}
	if o, tried := f.FetchDebug(id); o != nil || len(tried) != 1 || tried[0].Kind != Mismatched {
		t.Errorf("another's, by its ID: %v", tried)
	}
	asked := remote{key: filepath.Join(dir, "cache/debug")}
	f.Remote = asked
	whole := mustOpen(t, compile(t))
	if found := f.FindDebug(whole); found.Object != nil || len(asked) != 1 {
		t.Errorf("asked for what has debug information itself: %+v", found)
	}
}

// An image has no path, but its link has a name.
func TestDebugFilesOfImagesAreFoundByTheirLink(t *testing.T) {
	program, debug := debugFixture(t, false)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "prog.debug"), debug)
	f := Finder{Sysroot: t.TempDir(), DebugDirs: []string{dir}}
	found := f.FindDebug(mustNew(t, program))
	if found.Object == nil {
		t.Fatal(found.Problem)
	}
	found.Object.Close()
}

// TestTextAboutPlacesIsBounded: what is said of places that were tried is left out where a target has named
// too many of them.
func TestTextAboutPlacesIsBounded(t *testing.T) {
	f := Finder{Sysroot: t.TempDir(), Told: &Told{}}
	name := "/" + strings.Repeat("directory/", 400)
	bytes := 0
	for i := range 5_000 {
		found := f.Find(name, nil, false)
		bytes += len(found.Problem)
		for _, a := range found.Tried {
			bytes += len(a.Path)
		}
		switch isListed := len(found.Tried) > 0; {
		case i == 0 && (!isListed || !strings.Contains(found.Problem, "tried "+f.Sysroot)):
			t.Fatalf("%.200s: %v", found.Problem, found.Tried)
		case i == 4_999 && (isListed || !strings.Contains(found.Problem, "places, which are not listed")):
			t.Fatalf("%.200s: %d tried", found.Problem, len(found.Tried))
		}
	}
	if bytes > 3*maxTold {
		t.Errorf("%d bytes of text", bytes)
	}
}
