// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/plugins/nvidia"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

const cubinKernels = "testdata/cubin/kernels.fatbin"

// cubinPlace is an instruction in a kernel of a cubin.
type cubinPlace struct {
	kernel string
	offset uint64
}

// nvdisasmLines are the lines of each instruction as nvdisasm -gi has them, innermost first.
func nvdisasmLines(t *testing.T) (places []cubinPlace, lines map[cubinPlace]string) {
	t.Helper()
	data, err := os.ReadFile("testdata/cubin/kernels.lines")
	if err != nil {
		t.Fatal(err)
	}
	lines = map[cubinPlace]string{}
	line := regexp.MustCompile(`//## File "([^"]*)", line ([0-9]+)( inlined at)?`)
	kernel, chain, isDone := "", "", true
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		text := s.Text()
		var offset uint64
		switch m := line.FindStringSubmatch(text); {
		case strings.HasPrefix(text, ".text."):
			kernel = strings.TrimSuffix(strings.TrimPrefix(text, ".text."), ":")
		case m != nil:
			if isDone {
				chain, isDone = "", false
			}
			chain += fmt.Sprintf("%s:%s ", m[1], m[2])
		default:
			if _, err := fmt.Sscanf(strings.TrimSpace(text), "/*%x*/", &offset); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			isDone = true
			p := cubinPlace{kernel, offset}
			places, lines[p] = append(places, p), chain
		}
	}
	return places, lines
}

// cubinNumber is the number of the cubin of the fixture.
func cubinNumber(t *testing.T) uint64 {
	t.Helper()
	o, err := object.OpenNested(cubinKernels+"#sm_90", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	id, ok := o.CubinID()
	if !ok || id != 0x8a7eb871 { // by cuptiGetCubinCrc of CUDA 12.9
		t.Fatalf("the cubin's number is %#x, %v", id, ok)
	}
	return id
}

// parcaMessage is a profile as parca-agent sends it: of each place a sample for each of two reasons,
// below it the thread that launched.
func parcaMessage(id uint64, places []cubinPlace) *profiles.ProfilesData {
	d := &profiles.ProfilesDictionary{
		MappingTable: []*profiles.Mapping{{}}, LocationTable: []*profiles.Location{{}}, FunctionTable: []*profiles.Function{{}}, StringTable: []string{""},
		LinkTable: []*profiles.Link{{}}, AttributeTable: []*profiles.KeyValueAndUnit{{}}, StackTable: []*profiles.Stack{{}},
	}
	text := func(s string) int32 {
		d.StringTable = append(d.StringTable, s)
		return int32(len(d.StringTable) - 1)
	}
	attribute := func(key, value string) int32 {
		d.AttributeTable = append(d.AttributeTable, &profiles.KeyValueAndUnit{KeyStrindex: text(key), Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}})
		return int32(len(d.AttributeTable) - 1)
	}
	d.MappingTable = append(d.MappingTable, &profiles.Mapping{
		FilenameStrindex: text(fmt.Sprintf("cubin-%016x", id)), AttributeIndices: []int32{attribute("process.executable.build_id.htlhash", fmt.Sprintf("%016x%016x", id, 0))},
	}, &profiles.Mapping{FilenameStrindex: text("python3.12")})
	functions := map[string]int32{}
	for _, name := range []string{"grade", "repair", "main"} {
		functions[name] = int32(len(d.FunctionTable))
		d.FunctionTable = append(d.FunctionTable, &profiles.Function{SystemNameStrindex: text(name)})
	}
	cuda, native := attribute("profile.frame.type", "cuda-pc"), attribute("profile.frame.type", "native")
	d.LocationTable = append(d.LocationTable, &profiles.Location{
		MappingIndex: 2, Address: 0x4010, AttributeIndices: []int32{native}, Lines: []*profiles.Line{{FunctionIndex: functions["main"]}},
	})
	stalls := []int32{
		attribute("process.context.label.cuda_stall_reason", "smsp__pcsamp_warps_issue_stalled_long_scoreboard"),
		attribute("process.context.label.cuda_stall_reason", "smsp__pcsamp_warps_issue_stalled_selected"),
	}
	p := &profiles.Profile{SampleType: &profiles.ValueType{TypeStrindex: text("gpu_pcsample"), UnitStrindex: text("count")}}
	thread := attribute("thread.id", "17")
	for _, place := range places {
		d.LocationTable = append(d.LocationTable, &profiles.Location{
			MappingIndex: 1, Address: place.offset, AttributeIndices: []int32{cuda}, Lines: []*profiles.Line{{FunctionIndex: functions[place.kernel]}},
		})
		d.StackTable = append(d.StackTable, &profiles.Stack{LocationIndices: []int32{int32(len(d.LocationTable) - 1), 1}})
		for i, stall := range stalls {
			p.Samples = append(p.Samples, &profiles.Sample{StackIndex: int32(len(d.StackTable) - 1), AttributeIndices: []int32{thread, stall}, Values: []int64{int64(3 - i)}})
		}
	}
	return &profiles.ProfilesData{Dictionary: d, ResourceProfiles: []*profiles.ResourceProfiles{{
		Resource:      &resource.Resource{Attributes: []*common.KeyValue{{Key: "process.pid", Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: 17}}}}},
		ScopeProfiles: []*profiles.ScopeProfiles{{Profiles: []*profiles.Profile{p}}},
	}}}
}

// written writes a file, and returns its path.
func written(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// cubinProfile is the profile of a file of another profiler's stacks.
func cubinProfile(t *testing.T, path string, objects ...string) (*trace.Profile, error) {
	t.Helper()
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), nvidia.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e.Profile(t.Context(), path, trace.ProfileOptions{Jobs: 1, Objects: objects})
}

// placeLines are the lines of the innermost frames of a profile, by where they are.
func placeLines(p *trace.Profile, starts map[string]uint64) map[cubinPlace]string {
	lines := map[cubinPlace]string{}
	for i := range p.Samples {
		f := &p.Frames[p.Stacks[p.Samples[i].Stack].Frame]
		kernel := p.Kernels[f.Dispatched].Name
		text := ""
		for _, s := range f.Symbols {
			text += fmt.Sprintf("%s:%d ", s.File, s.Line)
		}
		if _, ok := starts[kernel]; !ok {
			starts[kernel] = f.ModuleOffset // of the first sample, at the first instruction
		}
		lines[cubinPlace{kernel, f.ModuleOffset - starts[kernel]}] = text
	}
	return lines
}

// TestCubinSamplesHaveTheLinesOfNvdisasm names each instruction of two kernels by the number of their
// cubin, as OpenTelemetry's message, as several of them in a file, and as pprof.
func TestCubinSamplesHaveTheLinesOfNvdisasm(t *testing.T) {
	id := cubinNumber(t)
	places, want := nvdisasmLines(t)
	message, err := proto.Marshal(parcaMessage(id, places))
	if err != nil {
		t.Fatal(err)
	}
	half := len(places) / 2
	var stream []byte
	for _, list := range [][]cubinPlace{places[:half], places[half:]} {
		part, err := proto.Marshal(parcaMessage(id, list))
		if err != nil {
			t.Fatal(err)
		}
		stream = append(binary.BigEndian.AppendUint32(stream, uint32(len(part))), part...)
	}
	for name, data := range map[string][]byte{"gpu.otlp": message, "stream.otlp": stream, "gpu.pb": pprofOf(t, id, places)} {
		p, err := cubinProfile(t, written(t, name, data), cubinKernels)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Problems) > 0 {
			t.Errorf("%s: problems %q", name, p.Problems)
		}
		if diff := gocmp.Diff(want, placeLines(p, map[string]uint64{})); diff != "" {
			t.Errorf("%s (-nvdisasm +here)\n%s", name, diff)
		}
		for i := range p.Frames {
			f := &p.Frames[i]
			if f.Device != (f.Module >= 0 && strings.HasSuffix(p.Modules[f.Module].Path, "sm_90")) || f.Device && f.FoundBy != trace.ByContext {
				t.Errorf("%s: frame %+v", name, f)
			}
		}
		if len(p.Kernels) != 2 || !p.Events[0].Device && name != "gpu.pb" {
			t.Errorf("%s: kernels %v, events %+v", name, p.Kernels, p.Events)
		}
	}
	p, err := cubinProfile(t, written(t, "gpu.otlp", message), cubinKernels)
	if err != nil {
		t.Fatal(err)
	}
	stalls := map[trace.WaveState]uint64{}
	for i := range p.Samples {
		stalls[p.States[p.Samples[i].State]] += p.Samples[i].Weight
	}
	n := uint64(len(places))
	if diff := gocmp.Diff(map[trace.WaveState]uint64{{Name: "long_scoreboard", Stalled: true}: 3 * n, {Name: "selected"}: 2 * n}, stalls); diff != "" {
		t.Errorf("states (-want +got)\n%s", diff)
	}
	if thread := p.Threads[p.Samples[0].Thread]; thread.PID != 17 || thread.TID != 17 {
		t.Errorf("thread %+v", thread)
	}
	text := ""
	for n := p.Samples[0].Stack; n != 0; n = p.Stacks[n].Caller {
		text += p.Frames[p.Stacks[n].Frame].Symbols[0].Function + " "
	}
	if text != "repair main " {
		t.Errorf("stack %q", text)
	}
}

// pprofOf is a profile of pprof of the same samples: the build ID of the mapping is the number.
func pprofOf(t *testing.T, id uint64, places []cubinPlace) []byte {
	t.Helper()
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "gpu_pcsample", Unit: "count"}}}
	m := &profile.Mapping{ID: 1, File: "gpu", BuildID: fmt.Sprintf("%016x", id)}
	p.Mapping = []*profile.Mapping{m}
	functions := map[string]*profile.Function{}
	for i, name := range []string{"grade", "repair"} {
		functions[name] = &profile.Function{ID: uint64(i + 1), Name: name, SystemName: name}
		p.Function = append(p.Function, functions[name])
	}
	for i, place := range places {
		l := &profile.Location{ID: uint64(i + 1), Mapping: m, Address: place.offset, Line: []profile.Line{{Function: functions[place.kernel]}}}
		p.Location = append(p.Location, l)
		p.Sample = append(p.Sample, &profile.Sample{Location: []*profile.Location{l}, Value: []int64{1}})
	}
	var b bytes.Buffer
	if err := p.WriteUncompressed(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestCubinSamplesWithoutTheirCubin keep their names, and the profile says why they have no more.
func TestCubinSamplesWithoutTheirCubin(t *testing.T) {
	id := cubinNumber(t)
	for _, c := range []struct {
		what    string
		id      uint64
		place   cubinPlace
		objects []string
		problem string
	}{
		{"none was given", id, cubinPlace{"grade", 0x40}, nil, "cubin 000000008a7eb871: 1 frame without code: no cubin that was given has its number"},
		{"another was given", 1, cubinPlace{"grade", 0x40}, []string{cubinKernels}, "no cubin that was given has its number"},
		{"it has no such offset", id, cubinPlace{"grade", 0x4000}, []string{cubinKernels}, "grade has 1152 bytes in it, and the offset is 0x4000"},
		{"it has no such kernel", id, cubinPlace{"main", 0x40}, []string{cubinKernels}, "main: no object that was given has it"},
	} {
		data, err := proto.Marshal(parcaMessage(c.id, []cubinPlace{c.place}))
		if err != nil {
			t.Fatal(err)
		}
		p, err := cubinProfile(t, written(t, "gpu.otlp", data), c.objects...)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(p.Problems, "\n"); !strings.Contains(got, c.problem) {
			t.Errorf("%s: problems %q, expected %q", c.what, got, c.problem)
		}
		f := &p.Frames[p.Stacks[p.Samples[0].Stack].Frame]
		if len(f.Symbols) != 1 || f.Symbols[0].Function != c.place.kernel || !f.Device || f.ModuleOffset != c.place.offset {
			t.Errorf("%s: frame %+v", c.what, f)
		}
	}
}

// holder has the name of the variable of a process that only keeps a cubin in its memory.
const holder = "UNWINDD_TEST_HOLDS_CUBIN"

// holdCubin keeps a cubin in memory, and its file mapped, until the standard input ends.
func holdCubin(t *testing.T) {
	o, err := object.OpenNested(cubinKernels+"#sm_90", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	kept := bytes.Clone(o.Data())
	fmt.Println("holds it")
	_, _ = io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(kept)
}

// startHolder starts a process for holdCubin, and returns its ID. It is a process of its own: this one has
// damaged copies of the cubin, which other tests leave.
func startHolder(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestCubinsOfAProcess$")
	cmd.Env = append(os.Environ(), holder+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	return strconv.Itoa(cmd.Process.Pid)
}

// TestCubinsOfAProcess finds the cubin in the memory of a living process, and in the files that it has mapped.
func TestCubinsOfAProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux")
	}
	if os.Getenv(holder) != "" {
		holdCubin(t)
		return
	}
	process := startHolder(t)
	message, err := proto.Marshal(parcaMessage(cubinNumber(t), []cubinPlace{{"grade", 0x90}}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := cubinProfile(t, written(t, "gpu.otlp", message), process)
	if err != nil {
		t.Fatal(err)
	}
	f := &p.Frames[p.Stacks[p.Samples[0].Stack].Frame]
	if f.Module < 0 || !strings.HasPrefix(p.Modules[f.Module].Path, "process "+process+"#cubin@0x") || len(f.Symbols) != 2 || f.Symbols[0].Line != 4 {
		t.Errorf("frame %+v, problems %q", f, p.Problems)
	}
	for name, want := range map[string]string{"2147483647": "there is no process 2147483647", "/none": "no such file"} {
		if _, err := cubinProfile(t, written(t, "gpu.otlp", message), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", name, err, want)
		}
	}
}

// TestPCSamplesOfCUPTI names the samples of a file that CUPTI's library wrote.
func TestPCSamplesOfCUPTI(t *testing.T) {
	p, err := cubinProfile(t, filepath.Join("internal", "target", "cuptipc", "testdata", "samples.dat"), cubinKernels)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for i := range p.Samples {
		s := &p.Samples[i]
		f := &p.Frames[p.Stacks[s.Stack].Frame]
		text := p.States[s.State].Name
		for _, y := range f.Symbols {
			text += fmt.Sprintf(" %s:%d", y.Function, y.Line)
		}
		got[text] += s.Weight
	}
	want := map[string]uint64{
		"selected weigh(float, int):4 grade:10": 6, "long_scoreboard weigh(float, int):4 grade:10": 80, "wait weigh(float, int):5 repair:15": 20, "selected other:0": 1,
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if text := strings.Join(p.Problems, "\n"); !strings.Contains(text, "cubin 000000008a7eb872: 1 frame without code: no cubin that was given has its number") {
		t.Errorf("problems %q", text)
	}
}
