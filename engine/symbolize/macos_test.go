// SPDX-License-Identifier: Apache-2.0

package symbolize_test

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/symbolize"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

// macos is a folder with a universal program of macOS, its dSYM, and the object files that it was linked of; see
// make.sh there.
const macos = "testdata/macos"

var macosMachines = []string{"arm64", "x86_64"}

// macosFolder is a folder with some files of macos.
func macosFolder(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(macos, name))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const dsymFile = "app.dSYM/Contents/Resources/DWARF/app"

// macosObjects are the object files of the program.
func macosObjects() (list []string) {
	for _, m := range macosMachines {
		list = append(list, "main-"+m+".o", "libcalls-"+m+".a")
	}
	return list
}

// machoFrames are the frames of all addresses of a program's code.
func machoFrames(t *testing.T, path string, options symbolize.Options) (list [][]trace.Symbol) {
	t.Helper()
	s := symbolize.New(options)
	t.Cleanup(func() { _ = s.Close() })
	f, err := s.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	text := f.Object.Section(".text")
	for a := range text.Size {
		list = append(list, f.FramesLLVM(nil, text.Address+a, true))
	}
	if problems := f.Problems(); len(problems) > 0 {
		t.Errorf("%s: %q", path, problems)
	}
	return list
}

// TestObjectFilesGiveWhatDSYMsGive compares the debug map with what dsymutil made of it, at every address.
func TestObjectFilesGiveWhatDSYMsGive(t *testing.T) {
	withDSYM := macosFolder(t, "app", dsymFile)
	withObjects := macosFolder(t, append(macosObjects(), "app")...)
	for _, machine := range macosMachines {
		want := machoFrames(t, filepath.Join(withDSYM, "app:"+machine), symbolize.Options{})
		got := machoFrames(t, filepath.Join(withObjects, "app:"+machine), symbolize.Options{})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-dSYM +objects)\n%.3000s", machine, diff)
		}
		inlined, methods := 0, 0
		for _, frames := range got {
			if len(frames) > 1 {
				inlined++
			}
			if strings.HasPrefix(frames[len(frames)-1].LinkageName, "+[Account open:with:]") {
				methods++
			}
			if frames[0].Line == 0 && len(frames[0].LinkageName) == 0 {
				t.Errorf("%s: %+v: an address without a name", machine, frames)
			}
		}
		if inlined < 8 || methods < 8 {
			t.Errorf("%s: %d addresses of inlined calls, %d of a method", machine, inlined, methods)
		}
	}
}

// machoData are the variables at all addresses of a program's data, and the variables of its functions.
func machoData(t *testing.T, path string) (list []string) {
	t.Helper()
	s := symbolize.New(symbolize.Options{})
	t.Cleanup(func() { _ = s.Close() })
	f, err := s.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range f.Object.Sections() {
		isCode := section.Name == ".text"
		if section.Flags&elf.SHF_ALLOC == 0 || section.Flags&elf.SHF_EXECINSTR != 0 && !isCode {
			continue
		}
		for a := section.Address; a < section.Address+section.Size; a++ {
			if isCode {
				list = append(list, fmt.Sprintf("%#x %+v", a, f.Locals(a)))
			}
			list = append(list, fmt.Sprintf("%#x %+v", a, f.Data(a)))
		}
	}
	if problems := f.Problems(); len(problems) > 0 {
		t.Errorf("%s: %q", path, problems)
	}
	return list
}

// TestObjectFilesHaveTheVariablesOfDSYMs compares the variables of a program with a dSYM, and with its object files.
func TestObjectFilesHaveTheVariablesOfDSYMs(t *testing.T) {
	withDSYM := macosFolder(t, "app", dsymFile)
	withObjects := macosFolder(t, append(macosObjects(), "app")...)
	for _, machine := range macosMachines {
		want, got := machoData(t, filepath.Join(withDSYM, "app:"+machine)), machoData(t, filepath.Join(withObjects, "app:"+machine))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-dSYM +objects)\n%.3000s", machine, diff)
		}
		text := strings.Join(got, "\n")
		for _, want := range []string{"Line:", "Name:self", "main.m Line:"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %s", machine, want)
			}
		}
	}
}

// TestObjectFilesOfAnotherTimeAreNotUsed changes an object file behind the linker's back.
func TestObjectFilesOfAnotherTimeAreNotUsed(t *testing.T) {
	dir := macosFolder(t, append(macosObjects(), "app")...)
	path := filepath.Join(dir, "main-arm64.o")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.ReplaceAll(b, []byte("[Account open:with:]"), []byte("[Account shut:with:]"))
	if err := os.WriteFile(path, other, 0o600); err != nil {
		t.Fatal(err)
	}
	s := symbolize.New(symbolize.Options{})
	defer s.Close()
	f, err := s.Open(filepath.Join(dir, "app:arm64"))
	if err != nil {
		t.Fatal(err)
	}
	for _, named := range f.Lookup("+[Account open:with:]") {
		if frames := f.FramesLLVM(nil, named.Start, true); len(frames) != 1 || frames[0].Line != 0 {
			t.Errorf("%+v, expected the symbol alone", frames)
		}
	}
	if problems := strings.Join(f.Problems(), "\n"); !strings.Contains(problems, "the object file has none of that name and size") {
		t.Errorf("problems %q", problems)
	}
}

// TestUniversalFiles opens the files in a universal one.
func TestUniversalFiles(t *testing.T) {
	path := filepath.Join(macos, "app")
	for _, machine := range macosMachines {
		for name, options := range map[string]symbolize.Options{path + ":" + machine: {}, path + "#" + machine: {}, path: {DefaultMachine: machine}} {
			s := symbolize.New(options)
			f, err := s.Open(name)
			if err != nil || f.Object.MachO().MachineName() != machine || f.Debug == nil {
				t.Errorf("%s: %v, %v", name, f, err)
			}
			_ = s.Close()
		}
	}
	s := symbolize.New(symbolize.Options{})
	defer s.Close()
	var universal *object.UniversalError
	if _, err := s.Open(path); !errors.As(err, &universal) || !slices.Equal(universal.Machines, []string{"x86_64", "arm64"}) {
		t.Errorf("without a machine: %v", err)
	}
	if _, err := s.Open(path + ":arm64e"); err == nil || !strings.Contains(err.Error(), "x86_64, arm64: there is none for arm64e") {
		t.Errorf("a machine that is not there: %v", err)
	}
}

// TestFinderTakesTheFileOfAUUID finds code and dSYMs in folders, whatever their names.
func TestFinderTakesTheFileOfAUUID(t *testing.T) {
	dir := macosFolder(t, "app")
	archive := filepath.Join(t.TempDir(), "x.xcarchive")
	if err := os.MkdirAll(filepath.Join(archive, "dSYMs"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(archive, "dSYMs", "other.dSYM"), os.DirFS(filepath.Join(macos, "app.dSYM"))); err != nil {
		t.Fatal(err)
	}
	for _, machine := range macosMachines {
		o, err := object.OpenMachine(filepath.Join(dir, "app"), machine, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		for _, f := range []object.Finder{
			{Folders: []string{dir}}, {DebugDirs: []string{dir}}, {Sysroot: dir}, {Exe: filepath.Join(dir, "app")}, {Folders: []string{dir}, Store: object.NewStore()},
		} {
			found := f.Find("/app", o.BuildID(), true)
			if found.Object == nil || !bytes.Equal(found.Object.BuildID(), o.BuildID()) || found.Object.DebugOnly() || !found.Checked {
				t.Errorf("%s: %+v", machine, found)
			} else {
				_ = found.Object.Close()
			}
		}
		for _, debug := range []string{archive, filepath.Dir(archive), filepath.Join(archive, "dSYMs"), filepath.Join(archive, "dSYMs", "other.dSYM")} {
			f := object.Finder{DebugDirs: []string{debug}}
			found := f.FindDebug(o)
			if found.Object == nil || !bytes.Equal(found.Object.BuildID(), o.BuildID()) || !found.Object.DebugOnly() {
				t.Errorf("%s, %s: %+v", machine, debug, found)
			} else {
				_ = found.Object.Close()
			}
			found = f.Find("/elsewhere/app", o.BuildID(), false) // names without the code
			if found.Object == nil || !found.Object.DebugOnly() {
				t.Errorf("%s, %s: %+v", machine, debug, found)
			} else {
				_ = found.Object.Close()
			}
		}
	}
}

// TestSymbolFilesOfMacOS reads what is written of a program with a dSYM.
func TestSymbolFilesOfMacOS(t *testing.T) {
	for _, machine := range macosMachines {
		s := symbolize.New(symbolize.Options{})
		defer s.Close()
		f, err := s.Open(filepath.Join(macos, "app:"+machine))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if _, err := f.WriteSymbolFile(&out); err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(out.String(), "\n")
		if want := fmt.Sprintf("MODULE mac %s %X0 app", machine, f.Object.BuildID()); first != want {
			t.Errorf("%q, expected %q", first, want)
		}
		for _, want := range []string{" +[Account open:with:]\n", " ___Z", "\nINLINE_ORIGIN 0 "} {
			if want == " ___Z" {
				want = " __main_block_invoke\n"
			}
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in\n%s", machine, want, out.String())
			}
		}
	}
}

// TestSymbolFilesOfDebugMaps has the same symbol file of a program with a dSYM and with its object files.
func TestSymbolFilesOfDebugMaps(t *testing.T) {
	dirs := []string{macosFolder(t, "app", dsymFile), macosFolder(t, append(macosObjects(), "app")...)}
	for _, machine := range macosMachines {
		var texts []string
		for _, dir := range dirs {
			s := symbolize.New(symbolize.Options{})
			defer s.Close()
			f, err := s.Open(filepath.Join(dir, "app:"+machine))
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			written, err := f.WriteSymbolFile(&out)
			if err != nil || !written.HasDebugInfo || len(f.Problems()) > 0 {
				t.Fatal(err, written, f.Problems())
			}
			texts = append(texts, out.String())
		}
		if diff := cmp.Diff(texts[0], texts[1]); diff != "" {
			t.Errorf("%s: (-dSYM +objects)\n%.3000s", machine, diff)
		}
	}
}

// TestMacOSSymbolizesAsLLVM compares all addresses of the program with llvm-symbolizer's answers.
func TestMacOSSymbolizesAsLLVM(t *testing.T) {
	tool := oracle.Tool(t, "llvm-symbolizer-22")
	for _, machine := range macosMachines {
		path := filepath.Join(macos, "app:"+machine)
		s := symbolize.New(symbolize.Options{})
		defer s.Close()
		f, err := s.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		text := f.Object.Section(".text")
		var questions []string
		for a := range text.Size {
			questions = append(questions, fmt.Sprintf("%#x", text.Address+a))
		}
		cmd := exec.Command(tool, "--obj", path)
		cmd.Stdin = strings.NewReader(strings.Join(questions, "\n"))
		want, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		session := symbolize.Session{Symbolizer: s, Object: path, Inlines: true, Output: symbolize.WriterOptions{Demangle: true}}
		if err := session.Run(&got, questions, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s: (-llvm-symbolizer +ours)\n%.3000s", machine, diff)
		}
	}
}
