// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
)

// schedStream is a recording of the scheduler's tracepoints, with their descriptions.
type schedStream struct{ perfStream }

// The identifiers of the events, and where the code of threads is.
const (
	switchID, wakeID = 100, 200
	schedCode        = 0x401000
)

// switchText and wakeText describe tracepoints of another kernel: their fields have other offsets
// than today.
const (
	switchText = "name: sched_switch\nID: 372\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n" +
		"\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\tfield:pid_t prev_pid;\toffset:8;\tsize:4;\tsigned:1;\n" +
		"\tfield:long prev_state;\toffset:16;\tsize:8;\tsigned:1;\n\tfield:pid_t next_pid;\toffset:12;\tsize:4;\tsigned:1;\n\n" +
		`print fmt: "prev_state=%s", __print_flags(REC->prev_state & 255, "|", { 0x0001, "S" }, { 0x0002, "D" }, { 16, "X" }, { 0x80, "I" })` + "\n"
	wakeText = "name: sched_waking\nID: 373\nformat:\n\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"pid=%d\", REC->pid\n"
)

// newSchedStream begins a recording of threads or of all CPUs.
func newSchedStream(isWide bool) *schedStream {
	b := &schedStream{}
	b.put([]byte("PERFILE2"), uint64(16))
	const identifier, raw, cpu, idAll, onExec = 1 << 16, 1 << 10, 1 << 7, 1 << 18, 1 << 12
	fields, flags := uint64(sampleBasics|sampleChain|identifier|raw), uint64(idAll|onExec)
	if isWide {
		fields, flags = fields|cpu, idAll
	}
	for i, id := range []uint64{switchID, wakeID} {
		b.record(64, 0, uint32(2), uint32(112), uint64(372+i), uint64(1), fields, uint64(0), flags,
			uint64(0), uint64(0), uint64(0), uint64(0), uint64(0), uint32(0), uint32(0), uint64(0), uint64(0), id)
	}
	b.record(80, 0, uint64(6), uint32(8), "x86_64", uint32(0))
	blob := tracingData(switchText, wakeText)
	b.record(66, 0, uint32(len(blob)), uint32(0))
	b.Write(blob)
	return b
}

// tracingData makes the copy of the kernel's tracing folder that perf writes.
func tracingData(texts ...string) []byte {
	var b perfStream
	b.put([]byte("\x17\x08\x44tracing0.6\x00\x00\x08"), uint32(4096), []byte("header_page\x00"), uint64(1), []byte("p"), []byte("header_event\x00"), uint64(1), []byte("e"))
	b.put(uint32(1), uint64(2), []byte("ft"), uint32(1), []byte("sched\x00"), uint32(len(texts)))
	for _, text := range texts {
		b.put(uint64(len(text)), []byte(text))
	}
	b.put(uint32(0), uint32(0), uint64(0))
	return append(b.Bytes(), make([]byte, (8-b.Len()%8)%8)...)
}

// event adds a sample of a thread that is at an address of the kernel, called by user code.
func (b *schedStream) event(isWide bool, id uint64, tid int32, time uint64, raw ...any) {
	var data perfStream
	data.put(make([]byte, 8))
	data.put(raw...)
	data.Write(make([]byte, (12-data.Len()%8)%8)) // behind its size it ends at 8 bytes
	values := []any{id, uint64(schedCode), tid, tid, time}
	if isWide {
		values = append(values, uint64(0))
	}
	values = append(values, counted(chainUser, schedCode+uint64(tid)), uint32(data.Len()), data.Bytes())
	b.record(9, inKernel, values...)
}

// tail is the sample_id of a record.
func (b *schedStream) tail(isWide bool, tid int32, time uint64) (values []any) {
	values = []any{tid, tid, time}
	if isWide {
		values = append(values, uint64(0))
	}
	return append(values, uint64(switchID))
}

// TestStopsOfThreads makes stops in all their ways, and compares the time off the CPU: by thread,
// state and start.
func TestStopsOfThreads(t *testing.T) {
	const lost, exit, fork, in, out, preempt = "lost", "exit", "fork", "in", "out", "preempt"
	type line struct {
		what         string // "switch", "wake", or a record
		time         uint64
		thread, next int32
		state        uint64
	}
	for _, test := range []struct {
		name   string
		isWide bool
		lines  []line
		want   string
		says   string
	}{
		{"a thread sleeps", true, []line{{what: "switch", time: 100, thread: 7, next: 0, state: 1}, {what: "switch", time: 350, thread: 0, next: 7}},
			"off-cpu 7 [sleeping] 100+250", ""},
		{"in the order of their times", true, []line{{what: "switch", time: 350, thread: 0, next: 7}, {what: "switch", time: 100, thread: 7, next: 0, state: 2}},
			"off-cpu 7 [uninterruptible] 100+250", ""},
		{"it is preempted in the kernel, and gives up its CPU", true, []line{
			{what: "switch", time: 100, thread: 7, next: 8, state: 256}, {what: "switch", time: 110, thread: 8, next: 7}, {what: "switch", time: 120, thread: 7, next: 8}},
			"off-cpu 7 [preempted] 100+10; off-cpu 8 [runnable] 110+10", ""},
		{"a thread wakes it", true, []line{
			{what: "switch", time: 100, thread: 7, next: 8, state: 1}, {what: "wake", time: 150, thread: 8, next: 7}, {what: "wake", time: 160, thread: 9, next: 7},
			{what: "switch", time: 170, thread: 8, next: 7, state: 1}, {what: "switch", time: 180, thread: 7, next: 8, state: 16}},
			"off-cpu 7 [sleeping] 100+50; off-cpu 7 [runnable] 150+20; off-cpu 8 [sleeping] 170+10; off-cpu-wakers 8 150+50", ""},
		{"it ends", true, []line{{what: "switch", time: 100, thread: 7, next: 8, state: 16}, {what: "switch", time: 900, thread: 8, next: 9, state: 1}, {what: "switch", time: 950, thread: 9, next: 8, state: 1}},
			"off-cpu 8 [sleeping] 900+50", ""},
		{"it does not run again", true, []line{{what: "switch", time: 100, thread: 7, next: 8, state: 1}, {what: "switch", time: 5000100, thread: 8, next: 0, state: 16}},
			"off-cpu 7 [sleeping] 100+5000000", "1 threads did not run again before the recording ended: their last stops, 5ms in all"},
		{"records of switches", false, []line{{what: "switch", time: 100, thread: 7, next: 8, state: 1}, {what: out, time: 101, thread: 7}, {what: in, time: 300, thread: 7}, {what: in, time: 310, thread: 7}},
			"off-cpu 7 [sleeping] 100+200", ""},
		{"a program alone, without switches to it", false, []line{
			{what: "switch", time: 100, thread: 7, next: 8, state: 1}, {what: "switch", time: 300, thread: 7, next: 8, state: 1}, {what: "switch", time: 500, thread: 7, next: 8, state: 1}, {what: "switch", time: 600, thread: 8, next: 9, state: 1}},
			"", "3 stops, of 1 threads, are left out, since the recording does not say when they ran again: `perf record --switch-events`"},
		{"records were lost", true, []line{
			{what: "switch", time: 100, thread: 7, next: 8, state: 1}, {what: lost, time: 200}, {what: "switch", time: 300, thread: 8, next: 7, state: 1}, {what: "switch", time: 350, thread: 7, next: 8, state: 16}},
			"off-cpu 8 [sleeping] 300+50", "1 stops, of 200ns in all, are left out, since records were lost"},
		{"the switch to it was lost", true, []line{
			{what: "switch", time: 100, thread: 7, next: 8, state: 1}, {what: "switch", time: 5000000, thread: 7, next: 8, state: 1}, {what: "switch", time: 5000070, thread: 8, next: 7, state: 16}},
			"off-cpu 7 [sleeping] 5000000+70", "1 stops, of 1 threads, are left out, since the recording misses when they ran again"},
		{"it wakes another while it is stopped, so it ran", true, []line{{what: "switch", time: 100, thread: 7, next: 8, state: 1}, {what: "wake", time: 90, thread: 7, next: 8}, {what: "switch", time: 100, thread: 8, next: 7, state: 16}},
			"", ""},
		{"its number is used again", false, []line{
			{what: "switch", time: 100, thread: 7, next: 8, state: 1}, {what: exit, time: 120, thread: 7}, {what: fork, time: 200, thread: 7}, {what: in, time: 300, thread: 7}, {what: "switch", time: 320, thread: 7, next: 8, state: 1}, {what: in, time: 350, thread: 7}},
			"off-cpu 7 [sleeping] 320+30", ""},
		{"it is preempted as it ends", false, []line{{what: exit, time: 90, thread: 7}, {what: "switch", time: 100, thread: 7, next: 8}, {what: preempt, time: 101, thread: 7}, {what: in, time: 140, thread: 7}, {what: "switch", time: 150, thread: 7, next: 8}},
			"off-cpu 7 [runnable] 100+40", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newSchedStream(test.isWide)
			for _, l := range test.lines {
				tail := b.tail(test.isWide, l.thread, l.time)
				switch l.what {
				case "switch":
					b.event(test.isWide, switchID, l.thread, l.time, l.thread, l.next, l.state)
				case "wake":
					b.event(test.isWide, wakeID, l.thread, l.time, l.next)
				case lost:
					b.record(2, 0, append([]any{uint64(1), uint64(5)}, tail...)...)
				case exit:
					b.record(4, 0, append([]any{l.thread, l.thread, l.thread, l.thread, l.time}, tail...)...)
				case fork:
					b.record(7, 0, append([]any{l.thread, int32(1), l.thread, int32(1), l.time}, tail...)...)
				case in:
					b.record(14, 0, tail...)
				case out:
					b.record(14, 1<<13, tail...)
				case preempt:
					b.record(14, 1<<13|1<<14, tail...)
				}
			}
			path := b.write(t)
			e := newX86Engine(t, Options{})
			p, err := e.Profile(context.Background(), path, trace.ProfileOptions{})
			if err != nil {
				t.Fatal(err)
			}
			checkParts(t, e, path, trace.ProfileOptions{}, p)
			want := slices.DeleteFunc(strings.Split(test.want, "; "), func(s string) bool { return s == "" })
			if diff := cmp.Diff(want, offCPULines(t, p)); diff != "" {
				t.Errorf("stops (-want +got):\n%s", diff)
			}
			if says := strings.Join(p.Problems, "\n"); !strings.Contains(says, test.says) || test.says == "" && says != "" {
				t.Errorf("it says %q, expected %q", says, test.says)
			}
		})
	}
}

// offCPULines are the samples of time off the CPU: EVENT THREAD [STATE] TIME+WEIGHT.
func offCPULines(t *testing.T, p *trace.Profile) (lines []string) {
	t.Helper()
	lines = []string{}
	for i := range p.Samples {
		s := &p.Samples[i]
		e := &p.Events[s.Event]
		if !strings.HasPrefix(e.Name, "off-cpu") {
			continue
		}
		if e.Unit != "nanoseconds" {
			t.Errorf("the unit of %s is %s", e.Name, e.Unit)
		}
		frames := p.StackFrames(nil, s.Stack)
		line := fmt.Sprintf("%s %d", e.Name, p.Threads[s.Thread].TID)
		if e.Name == "off-cpu" {
			line += " " + p.Frames[frames[0]].Symbols[0].Function
			frames = frames[1:]
		}
		if len(frames) != 2 || p.Frames[frames[1]].PC != schedCode+uint64(p.Threads[s.Thread].TID) {
			t.Errorf("%s: the stack has %d frames", line, len(frames))
		}
		lines = append(lines, fmt.Sprintf("%s %d+%d", line, s.Time, s.Weight))
	}
	return lines
}

// TestOffCPUTimeThatPerfSummed reads samples of perf record --off-cpu, with their fields in the
// sample, and in its raw data.
func TestOffCPUTimeThatPerfSummed(t *testing.T) {
	const raw, period = 1 << 10, 1 << 8
	for _, isRaw := range []bool{false, true} {
		b := &perfStream{}
		b.put([]byte("PERFILE2"), uint64(16))
		fields := uint64(sampleBasics | period | sampleChain)
		if isRaw {
			fields |= raw
		}
		b.record(64, 0, uint32(1), uint32(112), uint64(10), uint64(1), fields, uint64(0), uint64(0),
			uint64(0), uint64(0), uint64(0), uint64(0), uint64(0), uint32(0), uint32(0), uint64(0), uint64(0), uint64(100))
		b.record(80, 0, uint64(6), uint32(8), "x86_64", uint32(0))
		b.record(78, 0, uint64(2), uint64(100), "offcpu-time")
		chain := counted(chainUser, schedCode, schedCode+8)
		if isRaw {
			data := binary.LittleEndian.AppendUint32(nil, 7)
			data = binary.LittleEndian.AppendUint32(data, 8)
			data = binary.LittleEndian.AppendUint64(data, 5000)
			for _, w := range append(chain, 1) {
				data = binary.LittleEndian.AppendUint64(data, w)
			}
			b.record(9, inKernel, uint64(0xffffffff81000000), uint32(1), uint32(1), uint64(100), uint64(1), counted(), uint32(len(data)+4), data, uint32(0))
		} else {
			b.record(9, inUser, uint64(schedCode), uint32(7), uint32(8), uint64(100), uint64(5000), chain)
		}
		p, err := newX86Engine(t, Options{}).Profile(context.Background(), b.write(t), trace.ProfileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		e, s := &p.Events[0], &p.Samples[0]
		if e.Name != "offcpu-time" || e.Unit != "nanoseconds" || s.Weight != 5000 || p.Threads[s.Thread].PID != 7 || p.Threads[s.Thread].TID != 8 {
			t.Errorf("raw %v: %+v, %+v, %+v", isRaw, e, s, p.Threads)
		}
		if got := shapeStacks(p); len(got) != 1 || got[0] != "0x401000; 0x401008: end-of-stack" {
			t.Errorf("raw %v: %q", isRaw, got)
		}
	}
}
