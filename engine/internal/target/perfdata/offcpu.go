// SPDX-License-Identifier: Apache-2.0

package perfdata

// softwareBPFOutput is PERF_COUNT_SW_BPF_OUTPUT.
const softwareBPFOutput = 10

// IsOffCPUTime reports whether the samples of an event are how long threads were on no CPU, in
// nanoseconds (perf record --off-cpu).
func (a *Attr) IsOffCPUTime() bool {
	return a.Type == typeSoftware && a.Config == softwareBPFOutput && a.Name == "offcpu-time"
}

// readOffCPU reads the raw data of a sample of perf record --off-cpu, since Linux 6.15: the thread,
// the nanoseconds, the call chain and the control group. It returns the name of the missing field.
func (s *Sample) readOffCPU(order endian) (short string) {
	d := sampleFields{fields: fields{b: s.Raw, order: order}}
	pid, tid, period := d.u32(), d.u32(), d.u64()
	words := d.words(d.u64())
	if d.isShort {
		return "RAW"
	}
	s.PID, s.TID, s.Period, s.Chain, s.Mode = int(int32(pid)), int(int32(tid)), period, Chain{words, order}, ModeUser
	if s.IP = 0; s.Chain.Len() > 1 {
		s.IP = s.Chain.At(1) // behind the marker
	}
	return ""
}
