// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/examples/rocm-core/corefile"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
)

const (
	// damagedTime and damagedBytes bound what opening and walking a damaged core takes: a
	// machine on which much else runs is slow.
	damagedTime  = 20 * time.Second
	damagedBytes = 1 << 30
)

// A damagedCore is a core in files that are damaged in place: a process that a real core has, and
// waves.
type damagedCore struct {
	t     *testing.T
	e     *Engine
	path  string
	files []damagedFile
	host  string // its stacks
	waves int
	total int // of openings
}

type damagedFile struct {
	path     string
	contents []byte
	spots    []corefile.Spot
	isHost   bool // the process is in it
}

// newDamaged writes a core of random states with the process of another core.
func newDamaged(t *testing.T, layout corefile.Layout, m *corefile.Machine, seed uint64) *damagedCore {
	t.Helper()
	host, err := os.ReadFile("../examples/crash/server.core")
	if err != nil {
		t.Fatal(err)
	}
	c := corefile.Random(rand.New(rand.NewPCG(seed, 5)), layout, uint32(8+seed%5), m) //nolint:gosec // small
	c.Host = host
	d := &damagedCore{t: t, path: filepath.Join(t.TempDir(), "core")}
	im, err := c.Build()
	if err != nil {
		t.Fatal(err)
	}
	core, gpu, err := im.Files()
	if err != nil {
		t.Fatal(err)
	}
	options := Options{NoSymbols: true}
	for i, f := range []*corefile.File{core, gpu} {
		if f == nil {
			continue
		}
		b, err := f.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		path := d.path + []string{"", ".devices"}[i]
		if i == 1 {
			options.DeviceCore = path
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		d.files = append(d.files, damagedFile{path, b, f.Spots(b), i == 0})
	}
	d.e = rocmEngine(t, options)
	d.host, d.waves, _ = d.open("nothing")
	if d.waves == 0 || d.host == "" {
		t.Fatalf("%d waves, the process has the stacks %q", d.waves, d.host)
	}
	return d
}

// open opens the core, and walks it: the stacks of the process, how many waves there are, and
// the problems.
func (d *damagedCore) open(what string) (host string, waves int, problems []string) {
	d.t.Helper()
	d.total++
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	of, err := d.e.Open(d.path)
	if err != nil {
		return "", 0, []string{err.Error()}
	}
	defer of.Close()
	var text strings.Builder
	for s := range of.Stacks(context.Background()) {
		if s.Thread.Arch == "amdgpu" {
			waves++
			if len(s.Frames) == 0 && s.Stopped.Detail == "" {
				d.t.Errorf("%s: %s has no frame, and nothing is said", what, s.Thread.ID)
			}
			continue
		}
		fmt.Fprintln(&text, s.Thread.ID, s.Stopped)
		for i := range s.Frames {
			fmt.Fprintf(&text, "%#x %#x %s\n", s.Frames[i].PC, s.Frames[i].CFA, s.Frames[i].FoundBy)
		}
	}
	runtime.ReadMemStats(&after)
	if took := time.Since(start); took > damagedTime {
		d.t.Errorf("%s: it took %v", what, took)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > damagedBytes {
		d.t.Errorf("%s: it allocated %d MiB", what, n>>20)
	}
	return text.String(), waves, of.Problems()
}

// judge opens a core that was damaged: the stacks of the process are those that they were,
// and of waves that are missing something is said.
func (d *damagedCore) judge(what string, isProcess, isSilent bool) {
	d.t.Helper()
	host, waves, problems := d.open(what)
	if host != d.host && !isProcess {
		d.t.Errorf("%s: the process has the stacks\n%s, expected\n%s", what, host, d.host)
	}
	if waves < d.waves && len(problems) == 0 && !isSilent {
		d.t.Errorf("%s: %d waves of %d, and nothing is said", what, waves, d.waves)
	}
}

// lies are the values that a spot is set to: also those of the numbers beside it.
func lies(spots []corefile.Spot, i int) []uint64 {
	list := spots[i].Lies()
	for k := max(i-6, 0); k < min(i+7, len(spots)); k++ {
		if s := &spots[k]; s.Size == spots[i].Size && s.Value != spots[i].Value && !slices.Contains(list, s.Value) {
			list = append(list, s.Value)
		}
	}
	return list
}

// TestDamagedCoresOfDevices sets every number of cores that a reader has to check to values
// that are wrong. The process is read as ever, and nothing panics, hangs or takes all memory.
func TestDamagedCoresOfDevices(t *testing.T) {
	step := 37
	if proof.IsRequested() {
		step = 5
	}
	machines := corefile.Machines()
	for i, layout := range rocmLayouts {
		for k, m := range machines {
			if (k+i)%7 != 0 && !proof.IsRequested() {
				continue
			}
			t.Run(fmt.Sprint(m.Name, " ", layout), func(t *testing.T) {
				d := newDamaged(t, layout, m, uint64(k+i)) //nolint:gosec // small
				for _, f := range d.files {
					d.lie(&f, step)
				}
				t.Logf("%d damaged cores", d.total)
			})
		}
	}
}

// lie sets the spots of a file, every so manieth.
func (d *damagedCore) lie(file *damagedFile, step int) {
	f, err := os.OpenFile(file.path, os.O_RDWR, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for i := range file.spots {
		s := &file.spots[i]
		// What is said of the file is said of the process too, where it is in the file.
		isProcess := file.isHost && (strings.HasPrefix(s.Name, "ehdr.") || strings.HasPrefix(s.Name, "phdr["))
		for _, v := range lies(file.spots, i) {
			if n++; n%step != 0 {
				continue
			}
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], v)
			_, err := f.WriteAt(b[:s.Size], int64(s.Offset))
			d.judge(fmt.Sprintf("%s = %#x", s.Name, v), isProcess, isSilent(s.Name))
			_, again := f.WriteAt(file.contents[s.Offset:][:s.Size], int64(s.Offset))
			if err := errors.Join(err, again); err != nil {
				d.t.Fatal(err)
			}
		}
	}
}

// isSilent reports whether a core in which a number is another may be whole: a note of another
// owner, a queue that copies, fewer XCCs, a save area of zeros, which is that of a queue without
// waves.
func isSilent(name string) bool {
	return name == "note.name" || name == "note.namesz" || strings.HasPrefix(name, "phdr[") || strings.HasSuffix(name, ".queue_type") ||
		strings.Contains(name, ".ctx_save_restore_a") || strings.HasSuffix(name, ".num_xcc")
}

// TestCutCoresOfDevices cuts the files of cores.
func TestCutCoresOfDevices(t *testing.T) {
	cuts := 40
	if proof.IsRequested() {
		cuts = 1000
	}
	random := rand.New(rand.NewPCG(6, 6))
	for i, layout := range rocmLayouts {
		d := newDamaged(t, layout, corefile.Machines()[3*i+3], 8)
		f := d.files[len(d.files)-1]
		for range cuts {
			n := random.IntN(len(f.contents))
			if random.IntN(3) == 0 {
				n = random.IntN(4096)
			}
			if err := os.Truncate(f.path, int64(n)); err != nil {
				t.Fatal(err)
			}
			d.judge(fmt.Sprintf("cut at %d", n), f.isHost, false)
			if err := os.WriteFile(f.path, f.contents, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestOtherFilesAsCoresOfDevices gives files that are no cores of the devices of the process.
func TestOtherFilesAsCoresOfDevices(t *testing.T) {
	d := newDamaged(t, corefile.Split, corefile.MachineNamed("gfx1100"), 1)
	gpu := &d.files[1]
	other := newDamaged(t, corefile.Split, corefile.MachineNamed("gfx90a"), 2)
	for _, c := range []struct {
		what, path, want string
		isBeside         bool
	}{
		{"a file that is not there", filepath.Join(t.TempDir(), "none"), "no such file", false},
		{"a folder", t.TempDir(), "", false},
		{"no core", "testdata/lanes/probe.cl", "", false},
		{"the core of the process", d.path, "machine EM_X86_64", false},
		{"the core of another process, beside", other.files[1].path, "not mapped in the process of the core", true},
		{"its own core, beside", gpu.path, "not mapped in the process of the core", true}, // the real process has none of it
	} {
		options := Options{NoSymbols: true, DeviceCore: c.path}
		if c.isBeside {
			options.DeviceCore = ""
			b, err := os.ReadFile(c.path)
			if err == nil {
				err = os.WriteFile(d.path+".gpu", b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		d.e = rocmEngine(t, options)
		host, waves, problems := d.open(c.what)
		if host != d.host || waves > 0 || len(problems) == 0 || !strings.Contains(strings.Join(problems, "\n"), c.want) {
			t.Errorf("%s: %d waves, problems %q, the stacks of the process are as before: %v", c.what, waves, problems, host == d.host)
		}
	}
}

// TestCoresOfDevicesMayBePacked: the waves of a packed core are those of the core, and of one
// that is cut it is said where.
func TestCoresOfDevicesMayBePacked(t *testing.T) {
	d := newDamaged(t, corefile.Split, corefile.MachineNamed("gfx1100"), 1)
	packed := filepath.Join(t.TempDir(), "gpu.gz")
	b := oracle.Run(t, "gzip", "-c", d.files[1].path)
	for _, c := range []struct {
		bytes string
		isCut bool
	}{{b, false}, {b[:len(b)/2], true}} {
		if err := os.WriteFile(packed, []byte(c.bytes), 0o600); err != nil {
			t.Fatal(err)
		}
		d.e = rocmEngine(t, Options{NoSymbols: true, DeviceCore: packed})
		host, waves, problems := d.open("packed")
		isSaid := strings.Contains(strings.Join(problems, "\n"), "gzip: the stream is cut")
		if host != d.host || (waves == d.waves) == c.isCut || isSaid != c.isCut {
			t.Errorf("cut: %v: %d of %d waves, problems %q", c.isCut, waves, d.waves, problems)
		}
	}
}

// TestCoresOfDevicesThatNobodyReads says what is not read, and that nothing was walked
// where nothing was.
func TestCoresOfDevicesThatNobodyReads(t *testing.T) {
	c := corefile.Random(rand.New(rand.NewPCG(3, 5)), corefile.Split, 11, corefile.MachineNamed("gfx90a"))
	path, _ := writeROCm(t, withHost(t, c))
	none, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	unknown := *c
	unknown.Agents = slices.Clone(c.Agents)
	for i := range unknown.Agents {
		unknown.Agents[i].Target = 150000
	}
	unknownPath, _ := writeROCm(t, withHost(t, &unknown))
	e := rocmEngine(t, Options{})
	for _, x := range []struct {
		what string
		e    *Engine
		path string
		want string
		walk bool // something is walked
	}{
		{"no plugin, the devices alone", none, path + ".gpu", "", false},
		{"an unknown processor beside a process", e, unknownPath, "gfx1500", true},
		{"an unknown processor alone", e, alone(t, unknownPath+".gpu"), "gfx1500", false},
	} {
		of, err := x.e.Open(x.path)
		if err != nil {
			t.Errorf("%s: %v", x.what, err)
			continue
		}
		err = of.Walked(stacksOf(of))
		problems := strings.Join(of.Problems(), "\n")
		t.Logf("%s: %v\n%s", x.what, err, problems)
		if x.walk != (err == nil) || err != nil && !errors.Is(err, trace.ErrNotWalked) || !strings.Contains(problems, x.want) || problems == "" {
			t.Errorf("%s: %v, problems %s", x.what, err, problems)
		}
	}
}

// alone is a copy of a file in a folder of its own.
func alone(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	to := filepath.Join(t.TempDir(), "gpucore.1")
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// TestAMillionWaves opens a core whose control stack has words for a million waves.
func TestAMillionWaves(t *testing.T) {
	if !proof.IsRequested() {
		t.Skip("a quarter of a million waves take a while")
	}
	path := filepath.Join(t.TempDir(), "core")
	millionWaves(t, path, 1<<20)
	e := rocmEngine(t, Options{NoSymbols: true})
	start := time.Now()
	of, err := e.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for range of.Stacks(context.Background()) {
		n++
	}
	t.Logf("%d threads in %v: %q", n, time.Since(start), of.Problems())
	if n < 1<<18 || !strings.Contains(strings.Join(of.Problems(), "\n"), "more than") || of.Info().Kind != trace.ROCmCore {
		t.Errorf("%d threads, %q", n, of.Problems())
	}
}

// millionWaves writes a core with so many waves, whose states are all zeros.
func millionWaves(t testing.TB, path string, count int) {
	t.Helper()
	const saveAt = 0x7e40_0000_0000
	const record = 4*256 + 64 + 16*4 + 128 // four vector registers and 16 scalar ones
	control := 4 * (3 + count)
	at := 4096 + control
	size := uint64(at + record*count + 4096)
	area := make([]byte, at)
	le := binary.LittleEndian
	le.PutUint32(area, 4096)
	le.PutUint32(area[4:], uint32(control))         //nolint:gosec // small
	le.PutUint32(area[8:], uint32(at+record*count)) //nolint:gosec // below 4 GiB
	le.PutUint32(area[12:], uint32(record*count))   //nolint:gosec // below 4 GiB
	le.PutUint32(area[4096+8:], 1<<31|1<<6)         // the state
	m := corefile.MachineNamed("gfx900")
	c := &corefile.Core{PID: 1, RuntimeVersion: 11, Memory: []corefile.Memory{{Address: saveAt, Data: area, Size: size}}}
	c.Agents = []corefile.Agent{{Machine: m, GPUID: 7, Queues: []corefile.Queue{{
		Packets: 4, WriteID: 1, Dispatches: []corefile.Dispatch{{Entry: 0x1000}}, Groups: []corefile.Group{{Waves: []corefile.Wave{{}}}},
	}}}}
	writeROCmTo(t, path, withHost(t, c))
	im, err := c.Build()
	if err != nil {
		t.Fatal(err)
	}
	core, _, err := im.Files()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	head := make([]byte, 8<<10)
	if _, err := f.ReadAt(head, 0); err != nil {
		t.Fatal(err)
	}
	for _, s := range core.Spots(head) {
		var b [8]byte
		switch s.Name {
		case "note.queue[0].ctx_save_restore_address":
			le.PutUint64(b[:], saveAt)
		case "note.queue[0].ctx_save_restore_area_size":
			le.PutUint64(b[:], size)
		default:
			continue
		}
		if _, err := f.WriteAt(b[:s.Size], int64(s.Offset)); err != nil {
			t.Fatal(err)
		}
	}
}
