// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"debug/elf"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"
)

// cut maps a file of b and then cuts it to size bytes.
func cut(t *testing.T, b []byte, size int64) *Mapping {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, b)
	m, err := Map(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	return m
}

// Behind the end of a file the rest of its last page reads as zeros, without a fault.
func TestShrunkTellsOfZeros(t *testing.T) {
	b := bytes.Repeat([]byte("x"), 8192)
	m := cut(t, b, 4100)
	err := Guard(func() error { sink = m.Data()[4200]; return nil })
	if err != nil || sink != 0 {
		t.Fatalf("byte 4200 is %d, %v; expected 0", sink, err)
	}
	wantError(t, Shrunk(), ErrFileShrank, m.Path()+": file shrank while it was mapped: it has 4100 bytes of 8192")
	write(t, m.Path(), b)
	if err := Shrunk(); err != nil {
		t.Errorf("it is as long as it was, and Shrunk says %v", err)
	}
	if err := os.Remove(m.Path()); err != nil {
		t.Fatal(err)
	}
	write(t, m.Path(), []byte("another"))
	if err := Shrunk(); err != nil {
		t.Errorf("the path is another file's, and Shrunk says %v", err)
	}
}

func TestGuardTurnsAShrunkFileIntoAnError(t *testing.T) {
	m := cut(t, bytes.Repeat([]byte("x"), 1<<20), 4096)
	tests := []struct {
		name string
		read func(b []byte)
	}{
		{"byte", func(b []byte) { _ = b[8192] + 1; sink = b[8192] }},
		{"copy", func(b []byte) { copy(make([]byte, 1<<19), b) }},
		{"compare", func(b []byte) { bytes.Equal(b[:1<<19], b[1<<19:]) }},
		{"CRC-32", func(b []byte) { crc32.ChecksumIEEE(b) }},
		{"search", func(b []byte) { bytes.IndexByte(b, 'y') }},
		{"string", func(b []byte) { sinkString = string(b) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := Guard(func() error { test.read(m.Data()); return nil })
			wantError(t, err, ErrFileShrank, m.Path())
		})
	}
	if err := Guard(func() error { sink = m.Data()[100]; return nil }); err != nil {
		t.Errorf("what is left of the file cannot be read: %v", err)
	}
}

var (
	sink       byte
	sinkString string
)

func TestGuardNestsAndRestoresTheSetting(t *testing.T) {
	m := cut(t, bytes.Repeat([]byte("x"), 1<<20), 4096)
	fault := func() error { sink = m.Data()[1<<19]; return nil }
	var inner error
	outer := Guard(func() error {
		inner = Guard(fault)
		return fault() // still guarded
	})
	wantError(t, inner, ErrFileShrank, "")
	wantError(t, outer, ErrFileShrank, "offset 0x80000")
	if debug.SetPanicOnFault(false) {
		t.Error("panics on faults are still on")
	}
	want := errors.New("its own")
	if err := Guard(func() error { return want }); !errors.Is(err, want) {
		t.Errorf("error %v, expected that of the function", err)
	}
}

func TestGuardDoesNotTakeFaultsOfClosedMappings(t *testing.T) {
	m := cut(t, bytes.Repeat([]byte("x"), 1<<20), 4096)
	address := m.start() + 1<<19
	if path, offset, ok := liveAt(address); !ok || path != m.Path() || offset != 1<<19 {
		t.Errorf("a live mapping is not known: %q, %#x, %v", path, offset, ok)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := liveAt(address); ok {
		t.Error("a closed mapping is still known")
	}
	if err := m.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

func TestGuardIsPerGoroutine(t *testing.T) {
	m := cut(t, bytes.Repeat([]byte("x"), 1<<20), 4096)
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 200 {
				if err := Guard(func() error { sink = m.Data()[1<<18]; return nil }); !errors.Is(err, ErrFileShrank) {
					t.Errorf("error %v", err)
				}
			}
		}()
	}
	wg.Wait()
}

// TestMethodsOfAShrunkObjectAreErrors cuts a file at every page and asks for everything.
func TestMethodsOfAShrunkObjectAreErrors(t *testing.T) {
	for _, args := range [][]string{nil, {"-gz=zlib"}, {"-c"}} {
		path := compile(t, args...)
		whole := read(t, path)
		for size := 0; size < len(whole); size += 4096 {
			write(t, path, whole)
			o, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			o.SetRelocations(x86Relocations)
			if err := os.Truncate(path, int64(size)); err != nil {
				t.Fatal(err)
			}
			if shrunk := exercise(o); size == 0 && shrunk == 0 {
				t.Error("an empty file gave no error")
			}
			o.Close()
		}
	}
}

// exercise calls every method of an object, and returns how many gave ErrFileShrank.
func exercise(o *Object) (shrunk int) {
	count := func(err error) {
		if errors.Is(err, ErrFileShrank) {
			shrunk++
		}
	}
	for _, s := range o.Sections() {
		b, err := s.Data()
		count(err)
		count(Guard(func() error { crc32.ChecksumIEEE(b); return nil }))
	}
	_, err := o.Symbols()
	count(err)
	for n, err := range o.Notes() {
		count(err)
		count(Guard(func() error { crc32.ChecksumIEEE(n.Data); return nil }))
	}
	o.BuildID()
	o.DebugLink()
	b, _, _ := o.EHFrameHeader()
	count(Guard(func() error { crc32.ChecksumIEEE(b); return nil }))
	for _, f := range o.EHFrames() {
		count(f.Err)
		count(Guard(func() error { crc32.ChecksumIEEE(f.Data); return nil }))
	}
	for _, s := range o.Segments() {
		buf := make([]byte, min(s.MemSize, 1<<16))
		_, err := o.ReadAddress(buf, s.Address)
		count(err)
		o.SegmentForMapping(s.Offset, s.FileSize, s.Executable())
	}
	mini, err := o.MiniDebug()
	count(err)
	if mini != nil {
		mini.Symbols()
	}
	_, err = o.crc()
	count(err)
	return shrunk
}

func TestOpenOfOtherFilesIsErrNotELF(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script")
	write(t, path, []byte("#!/bin/sh\n"))
	_, err := Open(path)
	wantError(t, err, ErrNotELF, path)
	write(t, path, testFile{typ: elf.ET_DYN}.bytes())
	if _, err := Open(path); err != nil {
		t.Errorf("an ELF file without segments and sections: %v", err)
	}
}
