// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strconv"

	"github.com/unwindd/unwindd/engine/trace"
)

// firefoxThread is a thread without its samples (RawThread). The viewer groups threads by
// PID.
type firefoxThread struct {
	ProcessType         string     `json:"processType"`
	ProcessName         string     `json:"processName"`
	ProcessStartupTime  float64    `json:"processStartupTime"`
	ProcessShutdownTime *float64   `json:"processShutdownTime"`
	RegisterTime        float64    `json:"registerTime"`
	UnregisterTime      *float64   `json:"unregisterTime"`
	PausedRanges        []struct{} `json:"pausedRanges"`
	Name                string     `json:"name"`
	IsMainThread        bool       `json:"isMainThread"`
	PID                 string     `json:"pid"`
	TID                 any        `json:"tid"` // a number, or a text where it is not known
}

// writeThreads writes a thread for every thread of every value.
func (f *firefoxWriter) writeThreads() error {
	if len(f.threads) == 0 {
		// The viewer opens no profile without threads.
		return f.writeThread(newFirefoxThread("no samples", -1, -1), &threadSamples{value: -1})
	}
	names := f.r.processNames()
	// A process has one main thread in the viewer.
	hasMain := map[int]bool{}
	for i := range f.threads {
		thread := &f.threads[i]
		t := &f.r.p.Threads[thread.thread]
		out := newFirefoxThread(f.threadName(thread), t.PID, t.TID)
		out.ProcessName = names[t.PID]
		out.IsMainThread = t.PID >= 0 && t.PID == t.TID && !hasMain[t.PID]
		hasMain[t.PID] = hasMain[t.PID] || out.IsMainThread
		if i > 0 {
			f.put(",")
		}
		if err := f.writeThread(out, thread); err != nil {
			return err
		}
	}
	return nil
}

func newFirefoxThread(name string, pid, tid int) *firefoxThread {
	t := &firefoxThread{
		ProcessType: "default", ProcessName: name, PausedRanges: []struct{}{}, Name: name, PID: firefoxID(pid), TID: firefoxID(tid),
	}
	if tid >= 0 {
		t.TID = tid
	}
	return t
}

func (f *firefoxWriter) writeThread(t *firefoxThread, samples *threadSamples) error {
	text, err := marshal(t)
	if err != nil {
		return err
	}
	f.put("\n", text[:len(text)-1], ",\n\"markers\":{")
	f.writeMarkers(samples)
	f.put("},\n\"samples\":{")
	f.writeSamples(samples)
	f.put("}}")
	return f.check()
}

// threadName is the name of a thread, with the value's name where there are several values.
func (f *firefoxWriter) threadName(thread *threadSamples) string {
	name := nameOfThread(&f.r.p.Threads[thread.thread])
	if len(f.r.values) > 1 {
		name += " (" + f.r.values[thread.value].name + ")"
	}
	return name
}

// firefoxID is a PID or TID as text.
func firefoxID(n int) string {
	if n < 0 {
		return "unknown"
	}
	return strconv.Itoa(n)
}

// writeMarkers writes the markers of a thread (RawMarkerTable): dispatches of kernels, as
// intervals. Their samples are the same, and have the stacks.
func (f *firefoxWriter) writeMarkers(thread *threadSamples) {
	var list []int32
	if thread.value >= 0 && f.r.isOfDispatches(f.r.values[thread.value].event) {
		list = thread.samples
	}
	samples := f.r.p.Samples
	f.constant("data", `{"type":"`+dispatchSchema.Name+`"}`, len(list))
	f.column("name", len(list), func(text []byte, i int) []byte {
		return strconv.AppendInt(text, int64(f.tables.leafName(&samples[list[i]])), 10)
	})
	f.column("startTime", len(list), func(text []byte, i int) []byte {
		return appendMilliseconds(text, f.times.nanoseconds(f.r, &samples[list[i]]))
	})
	f.column("endTime", len(list), func(text []byte, i int) []byte {
		s := &samples[list[i]]
		return appendMilliseconds(text, add(f.times.nanoseconds(f.r, s), s.Weight))
	})
	f.constant("phase", "1", len(list)) // an interval
	f.constant("category", strconv.Itoa(firefoxGPU), len(list))
	f.length(len(list))
}

// isOfDispatches reports whether the samples of an event are dispatches of kernels.
func (r *Profile) isOfDispatches(event int16) bool {
	return event >= 0 && r.p.Events[event].Device && r.p.Events[event].Name == trace.KernelTimeEvent
}

// writeSamples writes the samples of a thread (RawSamplesTable). Nanoseconds are written as
// milliseconds, which the viewer shows as such; all else counts as samples.
func (f *firefoxWriter) writeSamples(thread *threadSamples) {
	v, samples := &profileValue{event: -1}, f.r.p.Samples
	if thread.value >= 0 {
		v = &f.r.values[thread.value]
	}
	f.column("stack", len(thread.samples), func(text []byte, i int) []byte {
		return strconv.AppendInt(text, int64(f.tables.stack(&samples[thread.samples[i]])), 10)
	})
	before := uint64(0)
	f.column("timeDeltas", len(thread.samples), func(text []byte, i int) []byte {
		now := f.times.nanoseconds(f.r, &samples[thread.samples[i]])
		text = appendMilliseconds(text, now-before)
		before = now
		return text
	})
	weightType, number := "samples", func(text []byte, n uint64) []byte { return strconv.AppendUint(text, n, 10) }
	if v.unit == "nanoseconds" {
		weightType, number = "tracing-ms", appendMilliseconds
	}
	f.column("weight", len(thread.samples), func(text []byte, i int) []byte {
		return number(text, v.amount(&samples[thread.samples[i]]))
	})
	if v.unit == "nanoseconds" && v.event >= 0 && !f.r.p.Events[v.event].Device {
		// The viewer draws from it how busy the thread was between two samples.
		f.column("threadCPUDelta", len(thread.samples), func(text []byte, i int) []byte {
			return strconv.AppendUint(text, v.amount(&samples[thread.samples[i]]), 10)
		})
	}
	f.put(`"weightType":"`, weightType, `",`)
	f.length(len(thread.samples))
}
