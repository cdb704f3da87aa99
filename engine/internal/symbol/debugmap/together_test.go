// SPDX-License-Identifier: Apache-2.0

package debugmap

import (
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// TestObjectFilesAreReadTogether reads object files from several goroutines, which get the same.
func TestObjectFilesAreReadTogether(t *testing.T) {
	o, err := object.OpenMachine(filepath.Join(macos, "app"), "arm64", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	m := newMap(o, &object.Finder{}, func(err error) { t.Error(err) })
	d := dwarf.NewOfParts(o, dwarf.Options{}, m)
	defer d.Close()
	var workers sync.WaitGroup
	results := make([][][]trace.Symbol, 8)
	for n := range results {
		workers.Go(func() {
			for i := range m.parts {
				frames, err := d.Frames(nil, m.parts[i].start)
				if err != nil {
					t.Error(err)
				}
				results[n] = append(results[n], frames)
			}
			useAll(d, m)
		})
	}
	workers.Wait()
	known := 0
	for i, frames := range results[0] {
		if len(frames) > 0 && frames[0].Line > 0 {
			known++
		}
		for n := range results {
			if !reflect.DeepEqual(results[n][i], frames) {
				t.Errorf("%s: %+v, %+v", m.parts[i].name, results[n][i], frames)
			}
		}
	}
	if known < 5 || len(d.Problems()) > 0 {
		t.Errorf("%d functions with lines, problems %q", known, d.Problems())
	}
	size := d.MemorySize()
	d.ReleasePages()
	if _, err := d.Frames(nil, m.parts[0].start); err != nil || size == 0 {
		t.Errorf("%v, %d bytes", err, size)
	}
}
