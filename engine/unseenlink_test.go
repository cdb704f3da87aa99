// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/target/minidump/minidumptest"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/plugins/aarch64"
	"github.com/unwindd/unwindd/sdk"
)

// TestLinkRegisterOfCodeThatIsNotHere: the link register of a thread in code of a library whose file is not here, as in a
// system call of macOS, is the caller where it leads out of the function: to another module, or further than functions
// are long. Else the frame record has the caller.
func TestLinkRegisterOfCodeThatIsNotHere(t *testing.T) {
	const kernel, app, stack, record = 0x180000000, 0x100000000, 0x16f000000, 0x16f000100
	const pc, outer = kernel + 0xc34, app + 0x900
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{aarch64.New()}}, Sysroot: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for name, x := range map[string]struct {
		link uint64
		want []uint64
	}{
		"another module":           {app + 0x500, []uint64{pc, app + 0x500, outer}},
		"far away in the same one": {kernel + 0x13338, []uint64{pc, kernel + 0x13338, outer}},
		"far away, before the PC":  {kernel + 0x20000, []uint64{kernel + 0x40000, kernel + 0x20000, outer}},
		"the same function":        {kernel + 0xc80, []uint64{pc, outer}},
		"the caller of the record": {outer, []uint64{pc, outer}},
		"no code":                  {0x10, []uint64{pc, outer}},
	} {
		b := minidumptest.New(binary.LittleEndian)
		words := make([]uint64, 0x40)
		words[(record-stack)/8+1] = outer
		c := make([]byte, 912)
		binary.LittleEndian.PutUint32(c, 0x400007)
		for i, v := range []uint64{record, x.link, stack, x.want[0]} {
			binary.LittleEndian.PutUint64(c[240+8*i:], v)
		}
		b.Stream(3, uint32(1), uint32(7), uint32(0), uint32(0), uint32(0), uint64(0), uint64(stack), b.Part(words), b.Part(c))
		b.System(12, 0x8101)
		module := func(base uint64, size uint32, name string) []byte {
			return b.Pack(base, size, uint32(0), uint32(0), b.Text(name), make([]byte, 52), uint64(0), uint64(0), uint64(0), uint64(0))
		}
		b.Stream(4, uint32(2), module(app, 0x10000, "/app"), module(kernel, 0x100000, "/usr/lib/system/libsystem_kernel.dylib"))
		path := filepath.Join(t.TempDir(), "dump")
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		target, err := e.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		s := target.Walk(context.Background(), target.Threads()[0])
		if got := pcsOf(s); !slices.Equal(got, x.want) {
			t.Errorf("%s: %#x, expected %#x; stopped: %v", name, got, x.want, s.Stopped)
		}
		for i := range s.Frames {
			if i > 0 && !s.Frames[i].FoundBy.IsGuess() {
				t.Errorf("%s: frame %d is found by %s, expected a guess", name, i, s.Frames[i].FoundBy)
			}
		}
		_ = target.Close()
	}
}
