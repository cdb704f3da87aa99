// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"testing"
)

// FuzzFile reads any bytes as a recording, and all that it then has.
func FuzzFile(f *testing.F) {
	for _, big := range []bool{false, true} {
		for _, pipe := range []bool{false, true} {
			b := newBuilder(big, simple())
			b.pipe = pipe
			f.Add(story(b).bytes())
			b = newBuilder(big, everything(), simple())
			b.pipe = pipe
			b.feature[featureBuildID] = b.record(0, miscBuildIDSize, int32(-1), make([]byte, 20), []byte{8, 0, 0, 0}, "/bin/tool")
			b.feature[featureCmdLine] = b.pack(uint32(1), uint32(8), "perf")
			b.feature[featureEventDesc] = b.pack(uint32(1), uint32(128), b.attr(&b.attrs[0]), uint32(1), uint32(8), []byte("an-event"), uint64(1))
			b.feature[featureClockData] = b.pack(uint32(1), uint32(1), uint64(1), uint64(2))
			b.add(recordAuxtrace, 0, uint64(8), make([]byte, 32), uint64(0))
			b.add(recordKsymbol, 0, append([]any{uint64(0xffffc000), uint32(0x100), uint16(1), uint16(0), "bpf"}, tail(0, 0, 9)...)...)
			b.add(recordEventUpdate, 0, uint64(2), uint64(100), "name")
			everythingSample(b)
			f.Add(b.bytes())
		}
	}
	b := newBuilder(false, simple())
	compress(f, b, story(newBuilder(false, simple())).records.Bytes(), recordCompressed, 500)
	f.Add(b.bytes())
	calls := everything() // and nothing behind the calls that the CPU recorded
	calls.SampleType = SampleIP | SampleTID | SampleTime | SampleCallchain | SampleBranchStack
	for _, big := range []bool{false, true} {
		b = newBuilder(big, calls)
		b.add(recordSample, uint16(ModeGuestKernel), uint64(1), uint32(7), uint32(7), uint64(5),
			[]uint64{4, contextMarker(2176), 0xffff0000, contextMarker(640), 77}, []uint64{1, 0, 8, 9, 0, 3})
		b.add(recordEventType, 0, uint64(300), "sched:sched_switch")
		f.Add(b.bytes())
	}
	f.Add(simpleperfFile().bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		file := &File{path: "fuzz", maxRuns: 50}
		if file.open(data) != nil {
			return
		}
		defer file.Close()
		if len(file.Problems()) > maxProblems+1 {
			t.Errorf("%d problems", len(file.Problems()))
		}
		r := file.Reader()
		count := uint64(0)
		pids := []int{1, 2, -1}
		for _, s := range drain(t, r) {
			count++
			pids = append(pids, s.PID)
			if s.Event < -1 || s.Event >= len(file.Attrs()) {
				t.Fatalf("event %d of %d", s.Event, len(file.Attrs()))
			}
			if s.Event < 0 && s.Problem == "" {
				t.Error("a sample of no event, and no reason")
			}
			for range s.Chain.All() {
				continue
			}
			for i := range s.Calls.Len() {
				s.Calls.From(i)
				s.Calls.To(i)
			}
			last := uint64(0)
			for m := range s.Space.All() {
				if m.Start < last || m.End <= m.Start {
					t.Fatalf("mapping %+v after %#x", m, last)
				}
				last = m.End
			}
		}
		h, err := file.History(pids)
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range pids {
			for i, m := range h.spaces[pid] {
				if i > 0 && (m.start < h.spaces[pid][i-1].start || m.value.Code == h.spaces[pid][i-1].value.Code) || m.value.PID != pid {
					t.Errorf("process %d had %+v at %d, and then %+v at %d", pid, h.spaces[pid][max(i-1, 0)].value, h.spaces[pid][max(i-1, 0)].start, m.value, m.start)
				}
			}
		}
		if count != file.Counts()[recordSample] {
			t.Errorf("%d samples delivered, %d are there", count, file.Counts()[recordSample])
		}
		if len(r.Problems()) > maxProblems+1 {
			t.Errorf("%d problems", len(r.Problems()))
		}
	})
}

// FuzzJIT reads any bytes as what runtimes write.
func FuzzJIT(f *testing.F) {
	f.Add(jitDump(false))
	f.Add(jitDump(true))
	f.Add([]byte("1000 10 name\n1008 4 other\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := &PerfMap{data: data}
		p.read()
		last := uint64(0)
		for _, e := range p.entries {
			if e.start < last || e.end <= e.start || e.name+uint64(e.size) > uint64(len(data)) {
				t.Fatalf("entry %+v after %#x", e, last)
			}
			last = e.end
			p.Find(e.start)
		}
		j := &JITDump{}
		if j.read(data) != nil {
			return
		}
		for i := range j.Functions {
			f := &j.Functions[i]
			if g, start, end := j.Find(f.Time, f.Address); f.Size > 0 && (g == nil || f.Address < start || f.Address >= end) {
				t.Errorf("%+v is not found", f)
			}
		}
	})
}
