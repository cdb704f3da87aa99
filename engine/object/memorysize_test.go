// SPDX-License-Identifier: Apache-2.0

package object

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// heapOf is how much of the heap several objects of a kind keep, each.
func heapOf(t *testing.T, open func() *Object) (bytes uint64, size uint64) {
	t.Helper()
	const n = 16
	var list [n]*Object
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range list {
		list[i] = open()
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	for _, o := range list {
		size += o.MemorySize()
		o.Close()
	}
	if after.HeapAlloc < before.HeapAlloc {
		return 0, size / n
	}
	return (after.HeapAlloc - before.HeapAlloc) / n, size / n
}

func TestMemorySizeIsWhatTheHeapSays(t *testing.T) {
	dir := t.TempDir()
	compressed, relocatable := compile(t, "-gz=zlib"), compile(t, "-c", "-ffunction-sections")
	oracle.Run(t, "objcopy", "--only-keep-debug", compressed, filepath.Join(dir, "debug"))
	open := func(path string) func() *Object {
		return func() *Object {
			o, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			return o
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	image := withBuildID([]byte{1}, string(make([]byte, 8000)))
	for name, open := range map[string]func() *Object{
		"libc":            open(libraryOf(t, "libc.so.6")),
		"libstdc++":       open(libraryOf(t, "libstdc++.so.6")),
		"a Go program":    open(self),
		"compressed":      open(filepath.Join(dir, "debug")),
		"relocatable":     open(relocatable),
		"one of no names": func() *Object { return mustNew(t, testFile{}.bytes()) },
		"an image": func() *Object {
			o, err := NewStore().Image("image", image, nil)
			if err != nil {
				t.Fatal(err)
			}
			return o
		},
	} {
		for _, state := range []struct {
			name string
			use  func(o *Object)
		}{
			{"opened", func(*Object) {}},
			{"read", func(o *Object) { readAll(o) }},
			{"laid out and read", func(o *Object) {
				if laid, err := o.LaidOut(); err == nil {
					readAll(laid)
				}
			}},
		} {
			heap, size := heapOf(t, func() *Object { o := open(); state.use(o); return o })
			t.Logf("%s, %s: %d bytes, the heap has %d", name, state.name, size, heap)
			if size > 2*heap || heap > 2*size {
				t.Errorf("%s, %s: %d bytes, the heap has %d", name, state.name, size, heap)
			}
		}
	}
}

// readAll makes what an object makes lazily.
func readAll(o *Object) {
	o.SetRelocations(x86Relocations)
	for _, s := range o.Sections() {
		_, _ = s.Data()
	}
	o.BuildID()
	_, _ = o.MiniDebug()
	_, _ = o.Symbols()
}

// libraryOf is the path of a library as the compiler finds it.
func libraryOf(t *testing.T, name string) string {
	t.Helper()
	path := oracle.Run(t, "g++", "-print-file-name="+name)
	resolved, err := filepath.EvalSymlinks(path[:len(path)-1])
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}
