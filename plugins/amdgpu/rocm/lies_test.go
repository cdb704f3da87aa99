// SPDX-License-Identifier: Apache-2.0

package rocm_test

import (
	"bytes"
	"debug/elf"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/examples/rocm-core/corefile"
	"github.com/unwindd/unwindd/internal/proof"
)

// TestLies changes each number of small cores to values that cannot be believed.
// Whatever is then read is valid and costs little, and what is missing has a reason.
func TestLies(t *testing.T) {
	cases, silent := 0, 0
	processors, step := []string{"gfx942", "gfx1100"}, 5
	if proof.IsRequested() {
		processors, step = []string{"gfx906", "gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1200", "gfx1250"}, 1
	}
	for _, name := range processors {
		core := corefile.Random(rand.New(rand.NewPCG(3, 7)), corefile.Unified, 11, corefile.MachineNamed(name))
		im, err := core.Build()
		if err != nil {
			t.Fatal(err)
		}
		f, _, err := im.Files()
		if err != nil {
			t.Fatal(err)
		}
		file, err := f.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		m, note := memoryOf(t, file)
		whole := readCore(t, m, note)
		for _, s := range f.Spots(file) {
			// Those of the file itself are not the plugin's.
			if strings.HasPrefix(s.Name, "ehdr") || strings.HasPrefix(s.Name, "phdr") || strings.HasSuffix(s.Name, "sz") {
				continue
			}
			for _, lie := range s.Lies() {
				if cases++; cases%step != 0 {
					continue
				}
				s.Put(file, lie)
				before := m.reads.Load()
				a := readCore(t, m, note)
				s.Put(file, s.Value)
				if n := m.reads.Load() - before; n > 20_000 {
					t.Errorf("%s: %s is %#x for %#x: %d reads", name, s.Name, lie, s.Value, n)
				}
				if len(a.Threads) > 100*len(whole.Threads) {
					t.Errorf("%s: %s is %#x for %#x: %d waves of %d", name, s.Name, lie, s.Value, len(a.Threads), len(whole.Threads))
				}
				switch _, field, _ := strings.Cut(s.Name, "]."); {
				case field == "queue_type" && lie < 5, field == "num_xcc", field == "ctx_save_restore_area_size":
					continue // nothing else says how many areas there are, and where those after the first
				}
				if len(a.Threads) < len(whole.Threads) && len(a.Problems) == 0 {
					t.Errorf("%s: %s is %#x for %#x: %d waves of %d, and no reason", name, s.Name, lie, s.Value, len(a.Threads), len(whole.Threads))
				}
				if len(a.Threads) == len(whole.Threads) && len(a.Problems) == 0 {
					silent++
				}
			}
		}
	}
	t.Logf("%d cases, of which %d give all waves and no problem", cases/step, silent)
}

// memoryOf is the memory and the note of a core file, both parts of its bytes.
func memoryOf(t testing.TB, file []byte) (*testMemory, []byte) {
	t.Helper()
	e, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	m := &testMemory{}
	var note []byte
	for _, p := range e.Progs {
		part := file[p.Off : p.Off+p.Filesz]
		switch p.Type {
		case elf.PT_LOAD:
			m.put(p.Vaddr, part)
		case elf.PT_NOTE:
			if i := bytes.Index(part, []byte("AMDGPU\x00\x00")); i >= 12 {
				note = part[i+8:][:le.Uint32(part[i-8:])]
			}
		}
	}
	return m, note
}
