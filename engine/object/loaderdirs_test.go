// SPDX-License-Identifier: Apache-2.0

package object

import (
	"debug/elf"
	"encoding/binary"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// TestLibrariesAreFoundWhereLoadersLook names libraries as Crashpad does, without a directory.
func TestLibrariesAreFoundWhereLoadersLook(t *testing.T) {
	id, other := []byte{0xaa, 0xbb, 0xcc}, []byte{0x11, 0x22, 0x33}
	right, wrong, without := withBuildID(id, "right"), withBuildID(other, "wrong"), withBuildID(nil, "without")
	tests := []struct {
		name  string
		files map[string][]byte
		path  string
		id    []byte
		want  string // beneath the test's directory
	}{
		{"a triplet's directory", map[string][]byte{"root/usr/lib/riscv64-linux-gnu/libx.so.1": right}, "libx.so.1", id, "root/usr/lib/riscv64-linux-gnu/libx.so.1"},
		{"the build ID decides", map[string][]byte{"root/lib64/libx.so.1": wrong, "root/usr/lib/libx.so.1": right}, "libx.so.1", id, "root/usr/lib/libx.so.1"},
		{"one without a build ID is none", map[string][]byte{"root/lib64/libx.so.1": without}, "libx.so.1", id, ""},
		{"nothing is taken unchecked", map[string][]byte{"root/lib64/libx.so.1": right}, "libx.so.1", nil, ""},
		{"ld.so.conf and what it includes", map[string][]byte{
			"root/etc/ld.so.conf": []byte("# of the machine\ninclude ld.so.conf.d/*.conf\nhwcap 1 nosegneg\n"), "root/etc/ld.so.conf.d/a.conf": []byte("/opt/a/lib:/opt/b/lib # two\ninclude /etc/ld.so.conf\n"),
			"root/opt/b/lib/libx.so.1": right}, "libx.so.1", id, "root/opt/b/lib/libx.so.1"},
		{"musl", map[string][]byte{"root/etc/ld-musl-x86_64.path": []byte("/opt/musl\n"), "root/opt/musl/libx.so.1": right}, "libx.so.1", id, "root/opt/musl/libx.so.1"},
		{"a newer machine's", map[string][]byte{"root/lib64/glibc-hwcaps/x86-64-v3/libx.so.1": right}, "libx.so.1", id, "root/lib64/glibc-hwcaps/x86-64-v3/libx.so.1"},
		{"Android", map[string][]byte{"root/apex/com.android.runtime/lib64/bionic/libc.so": right}, "libc.so", id, "root/apex/com.android.runtime/lib64/bionic/libc.so"},
		{"beside the executable", map[string][]byte{"root/opt/app/libx.so.1": right}, "libx.so.1", id, "root/opt/app/libx.so.1"},
		{"a path that is relative", map[string][]byte{"root/opt/app/libx.so.1": right}, "./lib/libx.so.1", id, "root/opt/app/libx.so.1"},
		{"a path where it is no more", map[string][]byte{"root/lib64/libx.so.1": right}, "/old/place/libx.so.1 (deleted)", id, "root/lib64/libx.so.1"},
		{"a debug directory by name", map[string][]byte{"debug/libx.so.1": right}, "libx.so.1", id, "debug/libx.so.1"},
		{"a debug directory by build ID", map[string][]byte{"debug/libx-1.2.so": right}, "libx.so.1", id, "debug/libx-1.2.so"},
		{"rpm's links", map[string][]byte{"root/usr/lib/.build-id/aa/bbcc": right}, "/bin/x", id, "root/usr/lib/.build-id/aa/bbcc"},
		{"rpm's links in a debug directory", map[string][]byte{"debug/.build-id/aa/bbcc": right}, "/bin/x", id, "debug/.build-id/aa/bbcc"},
		{"names that lead elsewhere", map[string][]byte{"root/lib64/libx.so.1": right}, "..", id, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, data := range test.files {
				write(t, filepath.Join(dir, name), data)
			}
			f := Finder{Sysroot: filepath.Join(dir, "root"), DebugDirs: []string{filepath.Join(dir, "debug")}}
			f = f.WithProgram("/opt/app/app", nil)
			found := f.Find(test.path, test.id, false)
			got := ""
			if found.Object != nil {
				defer found.Object.Close()
				got = strings.TrimPrefix(found.Path, dir+"/")
			}
			if got != test.want || got != "" && (!found.Checked || found.Problem != "") {
				t.Errorf("found %q, checked %v, %s; expected %q", got, found.Checked, found.Problem, test.want)
			}
		})
	}
}

func TestRunPaths(t *testing.T) {
	o := mustOpen(t, compile(t, "-Wl,--enable-new-dtags,-rpath,$ORIGIN/../lib:/opt/${LIB}:relative:"))
	if got, want := o.RunPaths(), []string{"$ORIGIN/../lib", "/opt/${LIB}", "relative"}; !slices.Equal(got, want) {
		t.Fatalf("%q, expected %q", got, want)
	}
	f := (&Finder{Sysroot: t.TempDir()}).WithProgram("/srv/app/bin/app", o)
	want := []loaderDir{{"/srv/app/bin/../lib", false}, {"/opt/lib/*-linux-*", false}, {"/opt/lib64", false}, {"/opt/lib", false}, {"/srv/app/bin", false}}
	if !slices.Equal(f.program[:min(len(f.program), len(want))], want) {
		t.Errorf("%v, expected %v first", f.program, want)
	}
	here := filepath.Dir(o.Path())
	if !slices.Contains(f.program, loaderDir{here, true}) || !slices.Contains(f.program, loaderDir{here + "/../lib", true}) {
		t.Errorf("%v: nothing of %s, where the executable is", f.program, here)
	}
}

// debugOnly is a debug file with an identity.
func debugOnly(id []byte) []byte {
	return testFile{sections: []testSection{
		{name: ".text", typ: elf.SHT_NOBITS, flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, size: 10},
		{name: ".debug_info", typ: elf.SHT_PROGBITS, data: []byte("information")},
		{name: ".note", typ: elf.SHT_NOTE, data: note(binary.LittleEndian, 4, "GNU", noteBuildID, id)},
	}}.bytes()
}

// TestADebugFileStandsInForTheCode has files in places where the code is not.
func TestADebugFileStandsInForTheCode(t *testing.T) {
	id := []byte{0xaa, 0xbb, 0xcc}
	tests := []struct {
		name  string
		files map[string][]byte
		want  string
		code  bool
	}{
		{"by build ID", map[string][]byte{"root/usr/lib/debug/.build-id/aa/bbcc.debug": debugOnly(id)}, "root/usr/lib/debug/.build-id/aa/bbcc.debug", false},
		{"in a debug directory", map[string][]byte{"debug/.build-id/aa/bbcc.debug": debugOnly(id)}, "debug/.build-id/aa/bbcc.debug", false},
		{"lying there", map[string][]byte{"debug/anything": debugOnly(id)}, "debug/anything", false},
		{"at the path", map[string][]byte{"root/bin/a": debugOnly(id)}, "root/bin/a", false},
		{"of another build", map[string][]byte{"debug/.build-id/aa/bbcc.debug": debugOnly([]byte{1, 2})}, "", false},
		{"code goes before it", map[string][]byte{"root/bin/a": debugOnly(id), "debug/a": withBuildID(id, "code")}, "debug/a", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, data := range test.files {
				write(t, filepath.Join(dir, name), data)
			}
			f := Finder{Sysroot: filepath.Join(dir, "root"), DebugDirs: []string{filepath.Join(dir, "debug")}, Store: NewStore()}
			found := f.Find("/bin/a", id, false)
			if found.Object == nil {
				if test.want != "" {
					t.Errorf("none: %s", found.Problem)
				}
				return
			}
			defer found.Object.Close()
			if got := strings.TrimPrefix(found.Path, dir+"/"); got != test.want || !found.Checked || (found.File() != "") != test.code || (found.Problem == "") != test.code {
				t.Errorf("found %q, file %q, checked %v: %s", got, found.File(), found.Checked, found.Problem)
			}
		})
	}
}

func TestADebugFileHasNoBytesOfSegments(t *testing.T) {
	code := compile(t)
	debug := filepath.Join(t.TempDir(), "debug")
	oracle.Run(t, "objcopy", "--only-keep-debug", code, debug)
	whole, d := mustOpen(t, code), mustOpen(t, debug)
	for i, s := range d.Segments() {
		if s.FileSize != 0 || s.Address != whole.Segments()[i].Address {
			t.Errorf("segment %d: %+v", i, s)
		}
	}
	for _, s := range whole.Segments() {
		if !s.Executable() {
			continue
		}
		size := (s.Address&0xfff + s.MemSize + 0xfff) &^ 0xfff
		want := s.Address - s.Address&0xfff
		if in, ok := d.SegmentForMapping(s.Offset&^0xfff, size, true); !ok || in.Address+s.Offset&^0xfff-in.Offset != want {
			t.Errorf("a mapping of the code is of %+v, expected one at %#x", in, want)
		}
		if _, ok := d.SegmentForMapping(s.Offset&^0xfff, size+0x1000, true); ok {
			t.Error("a mapping of more pages than the code has is taken for it")
		}
	}
}

func TestModulesThatAreGiven(t *testing.T) {
	id := []byte{0xaa, 0xbb, 0xcc}
	dir := t.TempDir()
	given, other, none := filepath.Join(dir, "given"), filepath.Join(dir, "other"), filepath.Join(dir, "none")
	write(t, given, withBuildID(id, "given"))
	write(t, other, withBuildID([]byte{1, 2}, "other"))
	write(t, none, withBuildID(nil, "none"))
	write(t, filepath.Join(dir, "root/lib/libx.so"), withBuildID(id, "at its path"))
	for _, test := range []struct{ name, file, path, want, problem string }{
		{"libx.so", given, "/lib/libx.so", given, ""},
		{"/lib/libx.so", given, "/lib/libx.so", given, ""},
		{"/other/libx.so", given, "/lib/libx.so", dir + "/root/lib/libx.so", ""},
		{"libx.so", given, "/gone/base.apk!libx.so", given, ""},
		{"libx.so", other, "/lib/libx.so", dir + "/root/lib/libx.so", "other was not used: build ID is 0102, expected aabbcc"},
		{"libx.so", none, "/lib/libx.so", none, "could not be checked"},
	} {
		f := Finder{Sysroot: filepath.Join(dir, "root"), Provided: map[string]string{test.name: test.file}}
		found := f.Find(test.path, id, false)
		if found.Object == nil {
			t.Errorf("%s: %s", test.name, found.Problem)
			continue
		}
		if found.Path != test.want || !strings.Contains(found.Problem, test.problem) {
			t.Errorf("%s is %s: %s, expected %s: %q", test.name, found.Path, found.Problem, test.want, test.problem)
		}
		found.Object.Close()
	}
	problems := UnusedModules(map[string]string{"libx.so": given, "liby.so": other}, func(is func(string) bool) bool { return is("/lib/libx.so (deleted)") })
	if want := []string{other + " was not used: no module is called liby.so"}; !slices.Equal(problems, want) {
		t.Errorf("%q, expected %q", problems, want)
	}
}
