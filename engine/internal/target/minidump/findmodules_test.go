// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/target/minidump/minidumptest"
	"github.com/unwindd/unwindd/engine/object"
)

// TestModulesAreFoundWithoutTheirFolders has modules as Crashpad and Breakpad name them: by
// DT_SONAME alone, and in an APK. All are copies of one file, or its debug file.
func TestModulesAreFoundWithoutTheirFolders(t *testing.T) {
	file, err := os.ReadFile("../../../../examples/crash/server")
	if err != nil {
		t.Fatal(err)
	}
	o, err := object.New("server", file)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for name, data := range map[string][]byte{
		"/opt/app/libapp.so": file, "/usr/lib/aarch64-linux-gnu/libx.so.1": file, "/data/base.apk": append(make([]byte, 0x3000), file...),
		"/lib/other.so": []byte("no code"),
	} {
		if err := os.MkdirAll(filepath.Dir(root+name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(root+name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := minidumptest.New(binary.LittleEndian)
	b.System(9, 0x8201)
	names := []string{"/opt/app/app", "libapp.so", "libx.so.1", "/data/base.apk/libe.so", "other.so"}
	modules := b.Pack(uint32(len(names)))
	for i, name := range names {
		modules = append(modules, b.Pack(uint64(0x100000*(i+1)), uint32(0x20000), uint32(0), uint32(0), b.Text(name), make([]byte, 52),
			b.Part(b.Pack("LEpB", o.BuildID())), uint64(0), uint64(0), uint64(0))...)
	}
	b.Stream(uint32(StreamModuleList), modules)
	b.Stream(uint32(StreamLinuxMaps), "00400000-00403000 r--p 00003000 08:01 1 /data/base.apk\n")
	path := filepath.Join(t.TempDir(), "made.dmp")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	state, err := OpenTarget(path, Options{Finder: object.Finder{Sysroot: root}, Describe: describe})
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	want := map[string]string{"libapp.so": "/opt/app/libapp.so", "libx.so.1": "/usr/lib/aarch64-linux-gnu/libx.so.1", "/data/base.apk+0x3000": "/data/base.apk"}
	for _, m := range state.Modules() {
		if got := strings.TrimPrefix(m.File, filepath.ToSlash(root)); got != want[m.Path] {
			t.Errorf("%s is %q, expected %q: %s", m.Path, got, want[m.Path], m.Problem)
		}
		delete(want, m.Path)
	}
	if len(want) > 0 {
		t.Errorf("no modules %v", want)
	}
}
