// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
)

const (
	mingw        = "x86_64-w64-mingw32-gcc"
	mingwObjdump = "x86_64-w64-mingw32-objdump"
	mingwNM      = "x86_64-w64-mingw32-nm"
	mingwObjcopy = "x86_64-w64-mingw32-objcopy"
)

const peSource = `__attribute__((dllexport)) int offered(int n) { return n * 3; }
static __attribute__((noinline)) int kept(int n) { volatile int a[9]; a[n] = offered(n); return a[n] + 1; }
int main(int argc, char **argv) { return kept(argc) + offered(argc); }
`

// compilePE makes a program with a CodeView record.
func compilePE(t *testing.T) string {
	t.Helper()
	oracle.Tools(t, mingw)
	dir := t.TempDir()
	source, out := filepath.Join(dir, "test.c"), filepath.Join(dir, "test.exe")
	write(t, source, []byte(peSource))
	oracle.Run(t, mingw, "-g", "-O1", "-Wl,--build-id", "-o", out, source)
	return out
}

func TestSectionsOfAPEFileAreThoseOfObjdump(t *testing.T) {
	oracle.Tools(t, mingwObjdump)
	path := compilePE(t)
	o := mustOpen(t, path)
	if o.IsELF() || !o.IsPE() || o.IsForeign() || elf.Machine(o.Machine()) != elf.EM_X86_64 || o.Class() != elf.ELFCLASS64 || o.Type() != elf.ET_EXEC || len(o.Problems()) > 0 {
		t.Errorf("ELF %v, PE %v, foreign %v, machine %d, class %v, type %v, problems %q", o.IsELF(), o.IsPE(), o.IsForeign(), o.Machine(), o.Class(), o.Type(), o.Problems())
	}
	line := regexp.MustCompile(`(?m)^ *\d+ (\S+) +([0-9a-f]{8}) +([0-9a-f]{16}) +[0-9a-f]{16} +([0-9a-f]{8}) .*\n +(.*)$`)
	var got, want []string
	for _, m := range line.FindAllStringSubmatch(oracle.Run(t, mingwObjdump, "-h", path), -1) {
		want = append(want, fmt.Sprintf("%s %s %s %s code %v bytes %v", m[1], m[2], m[3], m[4], strings.Contains(m[5], "CODE"), strings.Contains(m[5], "CONTENTS")))
	}
	for _, s := range o.Sections()[1:] {
		got = append(got, fmt.Sprintf("%s %08x %016x %08x code %v bytes %v", s.Name, s.Size, s.Address, s.Offset, s.Flags&elf.SHF_EXECINSTR != 0, s.Type != elf.SHT_NOBITS))
	}
	if d := cmp.Diff(want, got); d != "" || len(want) < 10 {
		t.Errorf("-objdump +got\n%s", d)
	}
	text := o.Section(".text")
	code, err := text.Data()
	if err != nil {
		t.Fatal(err)
	}
	memory := make([]byte, len(code))
	if _, err := o.ReadAddress(memory, text.Address); err != nil || !bytes.Equal(memory, code) {
		t.Errorf("code at its address: %v", err)
	}
}

func TestSymbolsOfAPEFileAreThoseOfNM(t *testing.T) {
	oracle.Tools(t, mingwNM)
	path := compilePE(t)
	symbols, err := mustOpen(t, path).Symbols()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	sizes := map[string]uint64{}
	exported := false
	for _, s := range symbols {
		got[fmt.Sprintf("%016x %s", s.Address, s.Name)] = true
		if s.Type == elf.STT_FUNC {
			sizes[s.Name] = s.Size
		}
		exported = exported || s.Name == "offered" && s.Dynamic
	}
	count := 0
	for _, line := range strings.Split(oracle.Run(t, mingwNM, path), "\n") {
		f := strings.Fields(line)
		// Sections are no symbols of code, and numbers lie nowhere.
		if len(f) != 3 || !strings.Contains("tTdDbBrR", f[1]) || strings.HasPrefix(f[2], ".") {
			continue
		}
		if count++; !got[f[0]+" "+f[2]] {
			t.Errorf("nm has %s", line)
		}
	}
	if count < 100 || !exported {
		t.Errorf("nm has %d symbols; offered is exported: %v", count, exported)
	}
	// By the disassembly: up to what returns.
	if sizes["offered"] == 0 || sizes["offered"] > 16 || sizes["kept"] == 0 || sizes["kept"] > 96 {
		t.Errorf("sizes of offered %d, of kept %d", sizes["offered"], sizes["kept"])
	}
}

// The debug identifier, and time and size, are both the file's.
func TestAPEFileHasTwoIdentities(t *testing.T) {
	oracle.Tools(t, mingwObjdump)
	path := compilePE(t)
	out := oracle.Run(t, mingwObjdump, "-p", path)
	guid := regexp.MustCompile(`format RSDS signature ([0-9a-f]{32}) age (\d+)`).FindStringSubmatch(out)
	size := regexp.MustCompile(`SizeOfImage\s+([0-9a-f]{8})`).FindStringSubmatch(out)
	if guid == nil || size == nil {
		t.Fatal(out)
	}
	want, _ := hex.DecodeString(guid[1] + "00000001")
	file := read(t, path)
	time := binary.LittleEndian.Uint32(file[binary.LittleEndian.Uint32(file[0x3c:])+8:])
	n, _ := strconv.ParseUint(size[1], 16, 32)
	other := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, time), uint32(n))
	o := mustOpen(t, path)
	if !bytes.Equal(o.BuildID(), want) || !o.HasID(want) || !o.HasID(other) || o.HasID(other[1:]) || o.HasID(append(other, 0)) {
		t.Errorf("build ID %x, want %x; has %x: %v", o.BuildID(), want, other, o.HasID(other))
	}
	f := Finder{Folders: []string{filepath.Dir(path)}}
	for _, id := range [][]byte{want, other} {
		found := f.Find(`C:\gone\program.exe`, id, false)
		if found.Object == nil || !found.Checked {
			t.Errorf("%x: %s", id, found.Problem)
			continue
		}
		found.Object.Close()
	}
}

func TestPathsOfWindows(t *testing.T) {
	path := compilePE(t)
	root, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(root, "Windows/System32/App.EXE"), read(t, path))
	write(t, filepath.Join(outside, "app.exe"), read(t, path))
	if err := os.Symlink(outside, filepath.Join(root, "out")); err != nil {
		t.Fatal(err)
	}
	id := mustOpen(t, path).BuildID()
	for name, want := range map[string]string{
		`C:\windows\system32\app.exe`:           "Windows/System32/App.EXE",
		`\??\c:\WINDOWS\System32\App.exe`:       "Windows/System32/App.EXE",
		`D:/windows/system32/app.exe`:           "Windows/System32/App.EXE",
		`\windows\x\..\system32\app.exe`:        "Windows/System32/App.EXE",
		`C:\out\app.exe`:                        "",
		`C:\..\..\` + outside + `\app.exe`:      "",
		`/windows/system32/app.exe`:             "", // of another system
		`C:\windows\system32\other.exe`:         "",
		`windows\system32\app.exe`:              "Windows/System32/App.EXE",
		`C:\windows\system32`:                   "",
		`C:` + strings.Repeat(`\windows`, 3000): "",
	} {
		f := Finder{Sysroot: root}
		found := f.Find(name, id, false)
		got := ""
		if found.Object != nil {
			got, _ = filepath.Rel(root, found.Path)
			found.Object.Close()
		}
		if got != want {
			t.Errorf("%.60s: found %q, want %q: %.300s", name, got, want, found.Problem)
		}
	}
	// A path of a hostile dump costs no more than a deep one.
	if err := os.Symlink(".", filepath.Join(root, "again")); err != nil {
		t.Fatal(err)
	}
	deep := Finder{Sysroot: root}
	if found := deep.Find("C:"+strings.Repeat(`\AGAIN`, 30000), id, false); found.Object != nil || len(deep.rightCase) > maxWindowsDepth {
		t.Errorf("%d directories were listed", len(deep.rightCase))
	}
	// Beside the target only the name counts.
	f := Finder{Sysroot: t.TempDir(), Folders: []string{filepath.Join(root, "Windows/System32")}}
	found := f.Find(`C:\Program Files\app.exe`, nil, false)
	if found.Object == nil {
		t.Fatal(found.Problem)
	}
	found.Object.Close()
}

// TestDrivesOfWine: a link stands for each drive, in the directory that is known, and in that of Wine as Sysroot.
func TestDrivesOfWine(t *testing.T) {
	path := compilePE(t)
	root := t.TempDir()
	write(t, filepath.Join(root, "wine/drive_c/windows/App.exe"), read(t, path))
	if err := os.Mkdir(filepath.Join(root, "wine/dosdevices"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../drive_c", filepath.Join(root, "wine/dosdevices/c:")); err != nil {
		t.Fatal(err)
	}
	id := mustOpen(t, path).BuildID()
	for _, c := range []struct {
		finder Finder
		name   string
		want   bool
	}{
		{Finder{Sysroot: root, Drives: "/wine/dosdevices"}, `C:\Windows\app.exe`, true},
		{Finder{Sysroot: root, Drives: "/wine/dosdevices"}, `D:\windows\app.exe`, false},
		{Finder{Sysroot: root, Drives: "/wine/dosdevices"}, `\windows\app.exe`, false},
		{Finder{Sysroot: root}, `C:\windows\app.exe`, false},
		{Finder{Sysroot: filepath.Join(root, "wine")}, `\??\c:\windows\app.exe`, true},
		{Finder{Drives: filepath.Join(root, "wine/dosdevices")}, `C:\windows\app.exe`, true},
	} {
		found := c.finder.Find(c.name, id, false)
		if (found.Object != nil) != c.want {
			t.Errorf("%+v: %s: %s", c.finder, c.name, found.Problem)
		}
		if found.Object != nil {
			found.Object.Close()
		}
	}
}

// A stripped program is found its debug file, by the CodeView record and by the CRC of one
// without, since stripping changes time and size.
func TestSeparateDebugFilesOfPEFiles(t *testing.T) {
	oracle.Tools(t, mingwObjcopy)
	for _, option := range []string{"-Wl,--build-id", "-Wl,--build-id=none"} {
		dir := filepath.Dir(compilePE(t))
		run := func(args ...string) { oracle.With{Dir: dir}.Run(t, args[0], args[1:]...) }
		run(mingw, "-g", "-O1", option, "-o", "test.exe", "test.c")
		run(mingwObjcopy, "--only-keep-debug", "test.exe", "test.debug")
		run(mingwObjcopy, "--strip-all", "--add-gnu-debuglink=test.debug", "test.exe", "stripped.exe")
		o := mustOpen(t, filepath.Join(dir, "stripped.exe"))
		debug := mustOpen(t, filepath.Join(dir, "test.debug"))
		if !debug.DebugOnly() || !debug.HasDebugInfo() || o.HasDebugInfo() {
			t.Errorf("%s: debug only %v, has debug information %v, %v", option, debug.DebugOnly(), debug.HasDebugInfo(), o.HasDebugInfo())
		}
		f := Finder{}
		found := f.FindDebug(o)
		if found.Object == nil || !found.Checked {
			t.Errorf("%s: %s", option, found.Problem)
			continue
		}
		found.Object.Close()
		write(t, filepath.Join(dir, "test.debug"), slices.Concat(read(t, filepath.Join(dir, "test.debug")), []byte{0}))
		found = f.FindDebug(o)
		if isTaken := found.Object != nil; isTaken != (option == "-Wl,--build-id") {
			t.Errorf("%s: a debug file with another CRC-32 is taken: %v", option, isTaken)
		}
		if found.Object != nil {
			found.Object.Close()
		}
	}
}
