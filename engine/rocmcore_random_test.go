// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/examples/rocm-core/corefile"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// TestWavesOfCoresAreWhatWasPutIn opens cores of random states, of every processor, layout and
// version of the runtime, and finds every wave with its registers, lanes, memory and code
// objects. Some are read with the plugin as a process of its own.
func TestWavesOfCoresAreWhatWasPutIn(t *testing.T) {
	wanted, waves := 1_000, 0
	if proof.IsRequested() {
		wanted = 10_000
	}
	inProcess := rocmEngine(t, Options{})
	machines := corefile.Machines()
	for i := 0; waves < wanted || i < len(machines); i++ {
		e := inProcess
		if i%40 == 7 {
			e = rocmChildren(t)
		}
		m, layout, version := machines[i%len(machines)], rocmLayouts[i/2%3], uint32(8+i%5) //nolint:gosec // small
		c := corefile.Random(rand.New(rand.NewPCG(uint64(i), 4)), layout, version, m)      //nolint:gosec // positive
		path, im := writeROCm(t, withHost(t, c))
		of, err := e.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		j := &coreJudge{t: t, name: fmt.Sprintf("core %d, %s, layout %d, version %d", i, m.Name, layout, version), core: c, opened: of}
		waves += j.judge(im)
		if err := of.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Fatalf("after %d waves", waves)
		}
	}
	t.Logf("%d waves", waves)
}

// rocmChildren is an engine of which the architecture of waves is a process of its own.
func rocmChildren(t testing.TB) *Engine {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(Options{Plugins: plugin.Options{Self: self, Bundled: bundledAMDGPU, InProcess: []sdk.Architecture{x86_64.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// A coreJudge holds a core that was opened against what was put into it.
type coreJudge struct {
	t      *testing.T
	name   string
	core   *corefile.Core
	opened *Target
}

func (j *coreJudge) check(what string, got, want any) {
	if fmt.Sprint(got) != fmt.Sprint(want) {
		j.t.Errorf("%s: %s is %.300v, expected %.300v", j.name, what, got, want)
	}
}

func (j *coreJudge) judge(im *corefile.Image) (waves int) {
	info := j.opened.Info()
	j.check("kind", info.Kind, trace.ROCmCore)
	j.check("agents", len(info.Devices.Agents), len(j.core.Agents))
	j.check("queues", len(info.Devices.Queues), len(im.Queues()))
	threads := j.opened.Threads()
	j.check("the host's thread", threads[0].ID, j.core.PID)
	if err := im.Waves(func(want *corefile.WaveState) error {
		if waves++; waves < len(threads) {
			j.wave(threads[waves], want)
		}
		return nil
	}); err != nil {
		j.t.Fatal(err)
	}
	j.check("waves", len(threads)-1, waves)
	var names []string
	for _, m := range j.opened.Modules() {
		names = append(names, m.Path)
		if m.Problem == "" {
			j.t.Errorf("%s: %s is no file, and nothing is said", j.name, m.Path)
		}
	}
	var want []string
	for _, o := range im.CodeObjects() {
		want = append(want, o.URI)
	}
	slices.Sort(names)
	slices.Sort(want)
	j.check("code objects", names, want)
	return waves
}

func (j *coreJudge) wave(th *trace.Thread, want *corefile.WaveState) {
	j.check(th.ID+"'s processor", th.Processor, want.Machine)
	j.check(th.ID+"'s lanes", th.Lanes, want.Lanes)
	j.check(th.ID+" has not stopped", th.IsRunning, !want.IsStop)
	if w := th.Wave; want.Group != nil {
		j.check(th.ID+"'s group", w.Group, *want.Group)
		j.check(th.ID+"'s place", w.InGroup, *want.Position)
		i := slices.IndexFunc(j.opened.Info().Devices.Dispatches, func(d sdk.TargetDispatch) bool { return d.ID == w.Dispatch })
		if i < 0 {
			j.t.Errorf("%s: %s is of dispatch %q", j.name, th.ID, w.Dispatch)
			return
		}
		j.check(th.ID+"'s grid", j.opened.Info().Devices.Dispatches[i].Grid, want.Dispatch.Grid)
	}
	a, _ := j.opened.engine.Plugins().Find("amdgpu")
	d := a.Description()
	registers := target.AllRegisters(j.opened.process.State(), th, d)
	for i, number := range registers.Numbers {
		info, _ := d.Register(number)
		name := writtenName(info.Name)
		value, isThere := want.Registers[name]
		switch got := hex.EncodeToString(registers.Data[registers.Offsets[i]:registers.Offsets[i+1]]); {
		case name == "pc":
			j.pc(th, want, got)
		case name == "status": // the trap handler changes some of its bits
		case !isThere:
			j.t.Errorf("%s: %s has %s, which nothing was put into", j.name, th.ID, info.Name)
		case got != value && len(value) == len(got):
			j.check(th.ID+"'s "+info.Name, got, value)
		}
	}
	general := 0
	for name := range want.Registers {
		if name[0] == 's' && name != "status" && !strings.HasPrefix(name, "state") {
			general++
		}
	}
	found := 0
	for _, number := range registers.Numbers {
		if info, _ := d.Register(number); strings.HasPrefix(info.Name, "SGPR") {
			found++
		}
	}
	j.check(th.ID+"'s scalar registers", found, general)
	j.memory(th, 3, want.LDS)
	j.memory(th, 6, want.Scratch)
}

// pc is that of a wave: a trap instruction is where it was, or before what follows it.
func (j *coreJudge) pc(th *trace.Thread, want *corefile.WaveState, got string) {
	b, _ := hex.DecodeString(got)
	slices.Reverse(b)
	pc, _ := strconv.ParseUint(hex.EncodeToString(b), 16, 64)
	at, _ := strconv.ParseUint(want.PC, 0, 64)
	isTrap := slices.ContainsFunc(want.Reasons, func(s string) bool {
		return s == "breakpoint" || s == "assert_trap" || s == "debug_trap" || s == "trap"
	})
	if pc != at && (!isTrap || j.core.RuntimeVersion >= 12 || pc != at-4) {
		j.check(th.ID+"'s PC", fmt.Sprintf("%#x", pc), want.PC)
	}
}

// writtenName is the name that the writer has for a register.
func writtenName(name string) string {
	for _, p := range []struct{ ours, theirs string }{{"SGPR", "s"}, {"AGPR", "a"}, {"VGPR", "v"}} {
		if n, ok := strings.CutPrefix(name, p.ours); ok {
			return p.theirs + n
		}
	}
	return strings.ToLower(name)
}

// memory holds the instance of a space that a wave has against its bytes.
func (j *coreJudge) memory(th *trace.Thread, space locexpr.AddressSpace, want string) {
	b, _ := hex.DecodeString(want)
	scoped := j.opened.process.State().(target.ScopedMemory)
	got := make([]byte, len(b)+4)
	n, err := scoped.ReadScoped(space, th, 0, got)
	if space == 3 && len(b) > 0 && n == 0 && err != nil && th.Memory == nil {
		return // of a group whose first wave is absent
	}
	if n != len(b) || !bytes.Equal(got[:n], b) {
		j.t.Errorf("%s: %s: space %d has %d bytes, expected %d, or others", j.name, th.ID, space, n, len(b))
	}
}
