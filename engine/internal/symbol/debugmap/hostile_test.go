// SPDX-License-Identifier: Apache-2.0

package debugmap

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/internal/macho"
	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/oracle"
)

// programOf makes a program of some code and a debug map: entries of a function each, of an object file each.
func programOf(count int, name func(i int) string) []byte {
	le := binary.LittleEndian
	const header, segment, symtab = 32, 72 + 80, 24
	names := []byte("\x00_function\x00")
	var symbols []byte
	add := func(at uint32, kind, section uint8, value uint64) {
		symbols = le.AppendUint32(symbols, at)
		symbols = append(symbols, kind, section, 0, 0)
		symbols = le.AppendUint64(symbols, value)
	}
	for i := range count {
		add(uint32(len(names)), macho.StabObject, 0, 0)
		names = append(append(names, name(i)...), 0)
		add(1, macho.StabFunction, 1, 0x1000+uint64(i)*4)
		add(0, macho.StabFunction, 0, 4)
	}
	b := make([]byte, header+segment+symtab)
	for i, v := range []uint32{0xfeedfacf, macho.MachineARM64, 0, macho.TypeExecute, 2, segment + symtab} {
		le.PutUint32(b[4*i:], v)
	}
	s := b[header:]
	le.PutUint32(s, 0x19)
	le.PutUint32(s[4:], segment)
	copy(s[8:], "__TEXT")
	le.PutUint64(s[24:], 0x1000)
	le.PutUint64(s[32:], uint64(4*count))
	le.PutUint32(s[60:], 5)
	le.PutUint32(s[64:], 1)
	copy(s[72:], "__text")
	copy(s[88:], "__TEXT")
	le.PutUint64(s[104:], 0x1000)
	le.PutUint64(s[112:], uint64(4*count))
	le.PutUint32(s[136:], 0x80000000)
	t := s[segment:]
	le.PutUint32(t, 2)
	le.PutUint32(t[4:], symtab)
	le.PutUint32(t[8:], uint32(len(b)))
	le.PutUint32(t[12:], uint32(3*count))
	le.PutUint32(t[16:], uint32(len(b)+len(symbols)))
	le.PutUint32(t[20:], uint32(len(names)))
	return append(append(b, symbols...), names...)
}

// TestManyObjectFiles has a million object files, of which none is there, under different names.
func TestManyObjectFiles(t *testing.T) {
	oracle.All(t)
	const count = 1 << 20
	for name, files := range map[string]func(i int) string{
		"in archives":         func(i int) string { return fmt.Sprintf("/nowhere/%x.a(x.o)", i) },
		"one by several ways": func(i int) string { return fmt.Sprintf("/nowhere/%x/../x.o", i) },
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			o, err := object.New("app", programOf(count, files))
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			var problems []error
			finder := &object.Finder{Sysroot: t.TempDir(), DebugDirs: []string{t.TempDir(), t.TempDir()}}
			d := New(o, dwarf.Options{Finder: finder}, func(err error) { problems = append(problems, err) })
			if d == nil {
				t.Fatal("no debug map")
			}
			defer d.Close()
			for i := range uint64(100) {
				if frames, err := d.Frames(nil, 0x1000+i*4*(count/100)); err != nil || len(frames) > 0 {
					t.Errorf("%v, %v", frames, err)
				}
			}
			if err := d.EachLine(func(*symbol.LineRow) bool { return false }); err != nil {
				t.Error(err)
			}
			if list, err := d.Globals("x"); err != nil || len(list) > 0 {
				t.Errorf("%v, %v", list, err)
			}
			if n := len(d.Problems()); n == 0 || n > 32 {
				t.Errorf("%d problems", n)
			}
			if d := time.Since(start); d > 30*time.Second {
				t.Errorf("it took %v", d)
			}
		})
	}
}
