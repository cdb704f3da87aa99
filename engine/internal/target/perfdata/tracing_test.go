// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

const switchFormat = `name: sched_switch
ID: 372
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:char prev_comm[16];	offset:8;	size:16;	signed:0;
	field:pid_t prev_pid;	offset:24;	size:4;	signed:1;
	field:long prev_state;	offset:32;	size:8;	signed:1;
	field:char *name;	offset:40;	size:1;	signed:1;
	field:u16 half;	offset:42;	size:2;	signed:0;
	field:int none;	offset:44;	size:0;	signed:1;

print fmt: "prev_state=%s%s", (REC->prev_state & 0xff) ? __print_flags(REC->prev_state & 0xff, "|", { 0x00000001, "S" }, { 2, "D" }, { x, "?" }) : "R"
`

// tracing makes the copy of the kernel's tracing folder that perf writes, with the events of one system.
func (b *builder) tracing(texts ...string) []byte {
	big := b.pack(uint16(1))[0] == 0
	isBig := map[bool]uint8{true: 1}[big]
	out := b.pack([]byte(tracingMagic+"0.6\x00"), isBig, uint8(8), uint32(4096), []byte("header_page\x00"), uint64(2), []byte("pp"), []byte("header_event\x00"), uint64(0))
	out = append(out, b.pack(uint32(1), uint64(3), []byte("one"), uint32(1), []byte("sched\x00"), uint32(uint64(len(texts))))...)
	for _, text := range texts {
		out = append(out, b.pack(uint64(len(text)), []byte(text))...)
	}
	return append(out, b.pack(uint32(0), uint32(0), uint64(0))...)
}

func TestTracepointsAreDescribed(t *testing.T) {
	for _, big := range []bool{false, true} {
		b := newBuilder(big, Attr{Type: typeTracepoint, Config: 372, SampleType: SampleTID}, simple())
		b.feature[featureTracing] = b.tracing("name: other\nID: 371\n", switchFormat)
		f := parse(t, b.sample(1, 1, 1).bytes())
		point := f.TracepointOf(&f.Attrs()[0])
		if point == nil || point != f.Tracepoint("sched", "sched_switch") || f.TracepointOf(&f.Attrs()[1]) != nil || f.Tracepoint("x", "y") != nil {
			t.Fatalf("found %+v; %q", point, f.Problems())
		}
		raw := b.pack(uint64(0), make([]byte, 16), int32(-7), int32(0), uint64(0xffffffffffffff01), uint8(0xfe), uint8(0), uint16(0xfffe))
		for name, want := range map[string]int64{"prev_pid": -7, "prev_state": -255, "name": -2, "half": 0xfffe, "common_pid": 0} {
			field, _ := point.Field(name)
			if got, ok := field.Int(raw); !ok || got != want {
				t.Errorf("%s is %d, expected %d", name, got, want)
			}
			if _, ok := field.Int(raw[:field.Offset]); ok {
				t.Errorf("%s is read behind the end", name)
			}
		}
		for _, name := range []string{"none", "prev_comm[16]"} {
			if _, ok := point.Field(name); ok {
				t.Errorf("there is a field %s", name)
			}
		}
		if text, _ := point.Field("prev_comm"); text.Size != 16 {
			t.Errorf("%+v", text)
		} else if _, ok := text.Int(raw); ok {
			t.Error("a text has a number")
		}
		if want := []TracepointFlag{{1, "S"}, {2, "D"}}; !slices.Equal(point.Flags, want) {
			t.Errorf("flags %v, expected %v", point.Flags, want)
		}
		known := f.KnownField("prev_pid", 24, 4)
		if got, _ := known.Int(raw); got != -7 {
			t.Errorf("%d", got)
		}
	}
}

func TestTracingDataThatIsCut(t *testing.T) {
	b := newBuilder(false, simple())
	whole := b.tracing(switchFormat)
	for size := range whole {
		f := &File{}
		if err := f.readTracing(whole[:size]); err == nil && size < len(whole)-16 {
			t.Errorf("no error for %d of %d bytes", size, len(whole))
		}
	}
	b.feature[featureTracing] = []byte("not it")
	if problems := parse(t, b.sample(1, 1, 1).bytes()).Problems(); len(problems) != 1 || !strings.Contains(problems[0], `it begins with "not it"`) {
		t.Errorf("%q", problems)
	}
}

// TestSwitchesComeInTheirOrder reads records of switches between samples, and more of them than a
// batch has.
func TestSwitchesComeInTheirOrder(t *testing.T) {
	const count = 2*maxSwitches + 10
	b := newBuilder(false, simple())
	record := func(kind RecordType, misc uint16, tid uint32, time uint64, values ...any) {
		b.add(kind, misc, append(values, tail(1, tid, time)...)...)
	}
	b.sample(1, 1, 10)
	record(recordSwitch, miscSwitchOut, 1, 11)
	record(recordSwitchWide, 0, 2, 12, uint32(1), uint32(1))
	b.sample(1, 2, 13)
	b.fork(1, 1, 3, 1, 14, 0)
	b.exit(1, 3, 15)
	record(recordLost, 0, 1, 16, uint64(1), uint64(2))
	for i := range count {
		record(recordSwitch, miscSwitchOut|miscSwitchPreempt, 9, uint64(20+i))
	}
	b.sample(1, 1, 20+count)
	f := parse(t, b.bytes())
	if !f.HasSwitches() {
		t.Error("it has no switches")
	}
	r := f.Reader()
	r.KeepSwitches()
	var got []string
	samples, switches := 0, 0
	for {
		batch, err := r.Next()
		if err != nil {
			break
		}
		for _, s := range batch.Switches {
			if switches++; switches <= 6 {
				got = append(got, fmt.Sprintf("%d: kind %d of %d, wide %v, at %d", samples+s.Before, s.Kind, s.TID, s.IsWide, s.Time))
			}
		}
		samples += len(batch.Samples)
		batch.Release()
	}
	want := []string{
		"1: kind 1 of 1, wide false, at 11", "1: kind 0 of 2, wide true, at 12", "2: kind 4 of 3, wide false, at 14", "2: kind 3 of 3, wide false, at 15",
		"2: kind 5 of -1, wide false, at 16", "2: kind 2 of 9, wide false, at 20",
	}
	if !slices.Equal(got, want) || samples != 3 || switches != count+5 {
		t.Errorf("%d samples, %d switches:\n%q, expected\n%q", samples, switches, got, want)
	}
	if all := drain(t, f.Reader()); len(all) != 3 {
		t.Errorf("%d samples without the switches", len(all))
	}
}

// TestTheRunningKernelsTracepoint reads the description of this machine, where it may be read.
func TestTheRunningKernelsTracepoint(t *testing.T) {
	text, err := os.ReadFile("/sys/kernel/tracing/events/sched/sched_switch/format")
	if err != nil {
		t.Skip(err)
	}
	p := readTracepoint("sched", text, false)
	pid, ok := p.Field("next_pid")
	if p.Name != "sched_switch" || p.ID == 0 || !ok || pid.Size != 4 || !pid.IsSigned || len(p.Flags) < 4 || p.Flags[0] != (TracepointFlag{1, "S"}) {
		t.Errorf("%+v", p)
	}
}

// FuzzTracing reads any bytes as tracing data, and the raw data of samples by it.
func FuzzTracing(f *testing.F) {
	for _, big := range []bool{false, true} {
		b := newBuilder(big, simple())
		f.Add(b.tracing(switchFormat), make([]byte, 64))
	}
	f.Fuzz(func(t *testing.T, data, raw []byte) {
		file := &File{}
		if file.readTracing(data) != nil && len(file.tracepoints) == 0 {
			return
		}
		for _, p := range file.tracepoints {
			for i := range p.Fields {
				p.Fields[i].Int(raw)
			}
			if len(p.Flags) > maxFlags {
				t.Errorf("%d flags", len(p.Flags))
			}
		}
		s := Sample{Raw: raw}
		_ = s.readOffCPU(false)
	})
}
