// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/download"
	"github.com/unwindd/unwindd/engine/internal/symbolstore"
	"github.com/unwindd/unwindd/engine/internal/target/minidump"
	"github.com/unwindd/unwindd/engine/internal/target/minidump/minidumptest"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// windowsProgram is a program of one function, outer, with an inlined call at its entry.
const windowsProgram = `static volatile int sink;
static __forceinline int inner(int x) { return sink + x; }
int outer(void) { return inner(3); }
`

// TestNamesOfAMinidumpComeFromPDBFiles walks a dump of a program whose image, PDB file, or both are
// here.
func TestNamesOfAMinidumpComeFromPDBFiles(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "p.c")
	if err := os.WriteFile(source, []byte(windowsProgram), 0o600); err != nil {
		t.Fatal(err)
	}
	oracle.With{Dir: dir}.Run(t, "clang-22", "--target=x86_64-pc-windows-msvc", "-g", "-gcodeview", "-O2", "-c", "-o", "p.obj", "p.c")
	oracle.With{Dir: dir}.Run(t, "lld-link-22", "/entry:outer", "/subsystem:console", "/debug", `/pdbaltpath:D:\build\p.pdb`, "/nodefaultlib", "/out:p.exe", "p.obj")
	o, err := object.Open(filepath.Join(dir, "p.exe"))
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	id, err := o.PE().Identity()
	if err != nil {
		t.Fatal(err)
	}
	const base = 0x7ff600000000
	b := minidumptest.New(binary.LittleEndian)
	b.System(9, 2)
	c := make([]byte, 1232)
	binary.LittleEndian.PutUint32(c[48:], 0x10000b)
	copy(c[248:], b.Pack(base+o.Entry()-o.PE().ImageBase()))
	b.Stream(uint32(minidump.StreamThreadList), uint32(1), uint32(7), make([]byte, 20), uint64(0x7000), uint64(0), b.Part(c))
	b.Stream(uint32(minidump.StreamModuleList), uint32(1), uint64(base), id.SizeOfImage, uint32(0), id.TimeDateStamp, b.Text(`C:\work\p.exe`), make([]byte, 52),
		b.Part("RSDS", id.GUID[:], id.Age, `D:\build\p.pdb`+"\x00"), make([]byte, 24))
	dump := filepath.Join(dir, "made.dmp")
	if err := os.WriteFile(dump, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		exe, pdb string // their places beneath the test's folder; "": they are not there
		status   trace.DebugInfo
	}{
		"beside the image":                {"root/work/p.exe", "root/work/p.pdb", trace.DebugInfoFound},
		"where it was built":              {"root/work/p.exe", "root/build/P.PDB", trace.DebugInfoFound},
		"in a store":                      {"root/work/p.exe", "store/p.pdb/" + id.DebugID() + "/p.pdb", trace.DebugInfoFound},
		"without the image":               {"", "root/work/p.pdb", trace.DebugInfoFound},
		"without the image, in a store":   {"", "store/p.pdb/" + id.DebugID() + "/p.pdb", trace.DebugInfoFound},
		"without the image, by its build": {"", "root/build/p.pdb", trace.DebugInfoFound},
		"nowhere":                         {"root/work/p.exe", "", trace.DebugInfoNone},
	} {
		t.Run(name, func(t *testing.T) {
			at := t.TempDir()
			for _, d := range []string{"root", "store"} {
				if err := os.MkdirAll(filepath.Join(at, d), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for from, to := range map[string]string{"p.exe": tt.exe, "p.pdb": tt.pdb} {
				if to != "" {
					copyTo(t, filepath.Join(dir, from), filepath.Join(at, to))
				}
			}
			options := Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}, Sysroot: filepath.Join(at, "root")}
			if options.Symbols, err = symbolstore.New([]string{filepath.Join(at, "store")}, download.Options{}); err != nil {
				t.Fatal(err)
			}
			// In a folder of its own: files beside a dump are found, too.
			copyTo(t, dump, filepath.Join(at, "dump/made.dmp"))
			e, err := New(options)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			target, err := e.Open(filepath.Join(at, "dump/made.dmp"))
			if err != nil {
				t.Fatal(err)
			}
			defer target.Close()
			s := target.Walk(context.Background(), target.Threads()[0])
			var names []string
			for _, f := range s.Frames {
				for _, symbol := range f.Symbols {
					names = append(names, symbol.Function)
				}
			}
			want := "inner outer"
			if tt.pdb == "" {
				want = ""
			}
			info := target.ModuleInfo(target.Modules()[0])
			if got := strings.Join(names, " "); got != want || info.DebugInfo != tt.status {
				t.Errorf("%q, %q, expected %q, %q; %+v", got, info.DebugInfo, want, tt.status, info)
			}
			if tt.pdb != "" && filepath.Base(info.DebugFile) != filepath.Base(tt.pdb) {
				t.Errorf("the debug file is %q", info.DebugFile)
			}
		})
	}
}

// copyTo copies a file.
func copyTo(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
