// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

var (
	coresDir   = flag.String("cores", "", "write made cores and what is in them into this folder")
	coresCount = flag.Int("cores-count", 300, "how many cores -cores writes")
	coresWaves = flag.Int("cores-waves", 16, "how many waves one more core of -cores has")
)

var layouts = []Layout{Unified, Split, Merged}

// memoryOf reads a file as debug/elf does: its segments at their addresses.
type memoryOf struct{ files []*elf.File }

func (m memoryOf) at(t *testing.T, address, n uint64) []byte {
	t.Helper()
	for _, f := range m.files {
		for _, p := range f.Progs {
			if p.Type == elf.PT_LOAD && address >= p.Vaddr && address-p.Vaddr < p.Filesz {
				b := make([]byte, n)
				if _, err := p.ReadAt(b, int64(address-p.Vaddr)); err != nil && !errors.Is(err, io.EOF) {
					t.Fatalf("%d bytes at %#x: %v", n, address, err)
				}
				return b
			}
		}
	}
	t.Fatalf("no memory at %#x", address)
	return nil
}

func (m memoryOf) u32(t *testing.T, address uint64) uint32 {
	return binary.LittleEndian.Uint32(m.at(t, address, 4))
}

func (m memoryOf) u64(t *testing.T, address uint64) uint64 {
	return binary.LittleEndian.Uint64(m.at(t, address, 8))
}

// write returns the bytes of the files of an image.
func write(t *testing.T, im *Image) (files [][]byte, memory memoryOf) {
	t.Helper()
	core, gpu, err := im.Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*File{core, gpu} {
		if f == nil {
			continue
		}
		b, err := f.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(b)) != f.Size() {
			t.Fatalf("the file has %d bytes, Size says %d", len(b), f.Size())
		}
		parsed, err := elf.NewFile(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, b)
		memory.files = append(memory.files, parsed)
	}
	return files, memory
}

func build(t *testing.T, c *Core) *Image {
	t.Helper()
	im, err := c.Build()
	if err != nil {
		t.Fatal(err)
	}
	return im
}

func seeded(i int) *rand.Rand { return rand.New(rand.NewPCG(uint64(i), 21)) }

// TestSumsOfRecords holds the save areas of random cores against what the
// header and the control stack say: records fill the area to its last byte.
func TestSumsOfRecords(t *testing.T) {
	for i, m := range Machines() {
		for j, layout := range layouts {
			im := build(t, Random(seeded(10*i+j), layout, 8+uint32(j+i)%5, m))
			_, memory := write(t, im)
			for _, q := range im.Queues() {
				for x := range q.xccs {
					checkArea(t, memory, q, x)
				}
			}
		}
	}
}

// checkArea reads the control stack's words bit by bit, with numbers written out
// here for the two families that differ most.
func checkArea(t *testing.T, memory memoryOf, q *QueuePlan, x int) {
	t.Helper()
	base := q.Save + uint64(x)*q.AreaSize
	control, size := uint64(memory.u32(t, base)), uint64(memory.u32(t, base+4))
	end, records := uint64(memory.u32(t, base+8)), uint64(memory.u32(t, base+12))
	if control+size != end-records {
		t.Fatalf("the control stack ends at %#x, the records begin at %#x", control+size, end-records)
	}
	if size == 0 {
		if records != 0 || len(q.xccs[x].waves) != 0 {
			t.Fatal("waves without a control stack")
		}
		return
	}
	words := make([]uint32, size/4)
	for i := range words {
		words[i] = memory.u32(t, base+control+4*uint64(i))
	}
	sum, waves := walk(q.machine, words[2:])
	if sum != records || waves != len(q.xccs[x].waves) {
		t.Errorf("%s: %d waves of %d bytes, want %d of %d", q.machine.Name, waves, sum, len(q.xccs[x].waves), records)
	}
}

// walk adds up the records of a control stack, as
// gfx9_architecture_t::control_stack_iterate does.
func walk(m *Machine, words []uint32) (sum uint64, waves int) {
	var state uint32
	get := func(w uint32, high, low int) int { return int(w>>low) & (1<<(high-low+1) - 1) }
	generation := int(m.Target / 10000)
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w>>30&1 != 0:
			continue
		case w>>31 != 0:
			state = w
			if generation > 9 {
				i++
			}
			continue
		}
		waves++
		if generation == 9 {
			sum += gfx9Record(m.Name, state, get(w, 17, 17) != 0, get) + 64
			continue
		}
		lanes, vgprs := 64, 4*(get(state, 5, 0)+1)
		if get(state, 24, 24) != 0 {
			lanes, vgprs = 32, 2*vgprs
		}
		lds := 512 * get(state, 17, 10)
		bytes := 128 + 512 + vgprs*lanes*4 + 8*128*get(state, 29, 26)
		if m.Name >= "gfx1250" && len(m.Name) == 7 {
			lds = 1024 * get(state, 18, 10)
			bytes = 512 + 512 + 16*(get(state, 5, 0)+1)*128
		}
		if get(w, 12, 12) != 0 {
			bytes += lds
		}
		sum += uint64(bytes)
	}
	return sum, waves
}

func gfx9Record(name string, state uint32, isFirst bool, get func(uint32, int, int) int) uint64 {
	vgprs, lds := 4*(get(state, 5, 0)+1), 512*get(state, 17, 9)
	switch name {
	case "gfx908":
		vgprs *= 2
	case "gfx90a", "gfx940", "gfx942", "gfx950":
		vgprs, lds = 2*vgprs, 512*get(state, 16, 9)
	}
	if name == "gfx950" {
		lds = 1280 * get(state, 16, 9)
	}
	n := 128 + 64*get(state, 8, 6) + 256*vgprs
	if isFirst {
		n += lds
	}
	return uint64(n)
}

// TestWriteCores writes random cores and what is in them: for readers that are
// not part of this package. Without -cores it writes a few into a folder of its own.
func TestWriteCores(t *testing.T) {
	dir, count := *coresDir, *coresCount
	if dir == "" {
		dir, count = t.TempDir(), 3
	}
	for i := range count {
		all := Machines()
		m := all[i%len(all)]
		version := 8 + uint32(i/len(all))%5
		layout := layouts[i%len(layouts)]
		name := filepath.Join(dir, fmt.Sprintf("%04d-%s-v%d-%s", i, m.Name, version, [...]string{"unified", "split", "merged"}[layout]))
		writeCore(t, name, build(t, Random(seeded(i), layout, version, m)))
	}
	writeCore(t, filepath.Join(dir, "rare-many-gfx942-v12-unified"), build(t, manyWaves("gfx942", *coresWaves)))
	for name, c := range rareCores() {
		writeCore(t, filepath.Join(dir, name), build(t, c))
	}
}

// rareCores are states that random cores do not have.
func rareCores() map[string]*Core {
	taken := Random(seeded(1), Unified, 12, MachineNamed("gfx1200"))
	for i := range taken.Agents {
		for j := range taken.Agents[i].Queues {
			for k := range taken.Agents[i].Queues[j].Groups {
				taken.Agents[i].Queues[j].Groups[k].WholeLDS = k%2 == 0
			}
		}
	}
	// Every packet of the ring is in use, so that the two ids are equal modulo
	// its length and some indices belong to the next round.
	full := Random(seeded(2), Split, 12, MachineNamed("gfx1030"))
	for i := range full.Agents {
		for j := range full.Agents[i].Queues {
			q := &full.Agents[i].Queues[j]
			q.ReadID |= 3
			q.WriteID = q.ReadID + uint64(q.Packets)
			for k := range q.Dispatches {
				q.Dispatches[k].ID = q.ReadID + uint64(k)
			}
		}
	}
	clusters := Random(seeded(3), Unified, 12, MachineNamed("gfx1250"))
	for i := range clusters.Agents[0].Queues[0].Groups {
		clusters.Agents[0].Queues[0].Groups[i].Cluster = [3]uint32{4, 2, 1}
	}
	return map[string]*Core{"rare-whole-lds-gfx1200-v12-unified": taken, "rare-full-ring-gfx1030-v12-split": full,
		"rare-clusters-gfx1250-v12-unified": clusters}
}

func writeCore(t *testing.T, name string, im *Image) {
	t.Helper()
	if _, err := im.WriteFiles(name + ".core"); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(name + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	e := json.NewEncoder(out)
	for _, o := range im.CodeObjects() {
		if err := e.Encode(o); err != nil {
			t.Fatal(err)
		}
	}
	if err := im.Waves(func(w *WaveState) error { return e.Encode(w) }); err != nil {
		t.Fatal(err)
	}
}
