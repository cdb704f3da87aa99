// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/oracle"
)

// manyUnits is a program of many units, and copies whose debug sections are packed.
func manyUnits(t testing.TB) (whole string, packed []string) {
	t.Helper()
	oracle.Tools(t, "gcc", "llvm-objcopy-22")
	script, err := filepath.Abs("testdata/units.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := oracle.Build{Sources: []string{script}, Commands: [][]string{{"sh", script}}}.Make(t)
	return filepath.Join(dir, "whole"), []string{filepath.Join(dir, "zlib"), filepath.Join(dir, "zstd")}
}

// What sections are packed by makes no difference to what is found, in whichever order
// the parts are needed, and by how many at once.
func TestPackedSectionsAreReadAsWholeOnes(t *testing.T) {
	whole, packed := manyUnits(t)
	addresses := textAddresses(t, whole, 3000)
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(addresses), func(i, j int) { addresses[i], addresses[j] = addresses[j], addresses[i] })
	plain := openMapped(t, whole)
	check := func(t *testing.T, r *Reader, address uint64) {
		t.Helper()
		want, err := plain.Frames(nil, address)
		if err != nil {
			t.Error(err)
		}
		got, err := r.Frames(nil, address)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%#x: error %v (-whole +packed):\n%s", address, err, diff)
		}
	}
	for _, path := range packed {
		t.Run(filepath.Base(path), func(t *testing.T) {
			for _, address := range addresses[:20] { // each alone
				check(t, openMapped(t, path), address)
			}
			r := openMapped(t, path)
			var workers sync.WaitGroup
			for w := range 4 {
				workers.Go(func() {
					for i := w; i < len(addresses); i += 4 {
						check(t, r, addresses[i])
					}
				})
			}
			workers.Wait()
			if list := r.Problems(); len(list) > 0 {
				t.Error(list)
			}
		})
	}
}

// A function of the first unit takes the beginning of the sections.
func TestAnAddressNeedsThePartsBeforeItsUnit(t *testing.T) {
	whole, packed := manyUnits(t)
	start := startOf(t, openMapped(t, whole), "outer_0_1")
	for _, path := range packed {
		t.Run(filepath.Base(path), func(t *testing.T) {
			o, err := object.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			r, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			frames, err := r.Frames(nil, start+1)
			if err != nil || len(frames) == 0 || frames[len(frames)-1].Function != "outer_0_1" || frames[0].Line == 0 {
				t.Fatalf("%+v, error %v", frames, err)
			}
			c, err := o.Section(".debug_info").Contents()
			if err != nil {
				t.Fatal(err)
			}
			// A stream of zstd gives whole blocks, of 128 KiB.
			if size := uint64(len(c.Bytes())); c.Ready() > 128<<10 || c.Ready() == size {
				t.Errorf("%d of %d bytes of .debug_info were unpacked for the first unit", c.Ready(), size)
			}
		})
	}
}

func startOf(t *testing.T, r *Reader, name string) uint64 {
	t.Helper()
	for _, u := range r.main.everyUnit() {
		b, err := u.open()
		if err != nil {
			t.Fatal(err)
		}
		x, err := b.findFunctions(true)
		if err != nil {
			t.Fatal(err)
		}
		for i := range x.list {
			if e, err := b.entryAt(b.offset + uint64(x.list[i].offset)); err == nil && e.Name() == name {
				return x.list[i].entry
			}
		}
	}
	t.Fatalf("no function %s", name)
	return 0
}

// Of the units that an address is not in, the addresses of the first entry are read, and nothing
// is kept.
func TestUnitsWithoutTheAddressAreNotOpened(t *testing.T) {
	unit := func(start uint64, name string) die {
		u := unitDie(sub(append(at64(start, 16), attr{atName, fString, name})...))
		u.attrs = append(u.attrs, at64(start, 16)...)
		return u
	}
	r := handmade(t, sections{}, unit(0x1000, "f"), unit(0x2000, "g"), unit(0x3000, "h"))
	frames, err := r.Frames(nil, 0x2008)
	if err != nil || len(frames) != 1 || frames[0].Function != "g" {
		t.Fatalf("%+v, error %v", frames, err)
	}
	for i, u := range r.main.everyUnit() {
		if got, want := u.body.done.Load(), i == 1; got != want {
			t.Errorf("unit %d: it was opened is %v, expected %v", i, got, want)
		}
	}
}

// A header that is damaged behind the unit of an address leaves that as it is, and is
// told once it is met.
func TestDamageBehindAUnitIsToldWhenItIsMet(t *testing.T) {
	oracle.Tools(t, "objcopy")
	whole, _ := manyUnits(t)
	start, last := startOf(t, openMapped(t, whole), "outer_0_1"), startOf(t, openMapped(t, whole), "outer_23_1")
	o := openObject(t, whole)
	s := o.Section(".debug_info")
	units := openMapped(t, whole).main.everyUnit()
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	data[s.Offset+units[20].offset+4] = 9 // the version
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "damaged"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	oracle.With{Dir: dir}.Run(t, "objcopy", "--compress-debug-sections=zlib", "damaged", "packed")
	r := openMapped(t, filepath.Join(dir, "packed"))
	if frames, err := r.Frames(nil, start+1); err != nil || len(frames) == 0 || len(r.Problems()) > 0 {
		t.Errorf("the first unit: %d frames, error %v, problems %q", len(frames), err, r.Problems())
	}
	frames, err := r.Frames(nil, last+1)
	if err != nil || len(frames) > 0 {
		t.Errorf("the last unit: %d frames, error %v", len(frames), err)
	}
	if list := r.Problems(); len(list) != 1 || !strings.Contains(list[0], "version 9") {
		t.Errorf("problems %q, expected one about the version", list)
	}
}

// What a Reader says that it keeps is what the heap grows by.
func TestMemorySizeIsWhatTheHeapGrowsBy(t *testing.T) {
	whole, _ := manyUnits(t)
	addresses := textAddresses(t, whole, 4000)
	o, err := object.Open(whole)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	before := liveHeap()
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if _, err := r.Frames(nil, address); err != nil {
			t.Fatal(err)
		}
	}
	grown := liveHeap() - before
	size := r.MemorySize()
	t.Logf("%d bytes counted, the heap grew by %d", size, grown)
	if size < grown*6/10 || size > grown*14/10 {
		t.Errorf("%d bytes are counted, the heap grew by %d", size, grown)
	}
	runtime.KeepAlive(r)
}

// liveHeap is how many bytes are in use.
func liveHeap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
