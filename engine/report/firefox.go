// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/hex"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine/trace"
)

// The versions of Firefox Profiler's processed profile format and of the one that it is
// processed from (docs-developer/CHANGELOG-formats.md of firefox-devtools/profiler).
const (
	firefoxProcessedVersion = 70
	firefoxGeckoVersion     = 36
)

// The indices of categories in the file.
const (
	firefoxOther = iota
	firefoxUser
	firefoxKernel
	firefoxGPU
)

// firefoxCategory distinguishes frames by colour (src/types/profile.ts, Category). Its first
// subcategory is the default one.
type firefoxCategory struct {
	Name          string   `json:"name"`
	Color         string   `json:"color"`
	Subcategories []string `json:"subcategories"`
}

// firefoxMeta is the file's description of the profile as a whole (ProfileMeta).
type firefoxMeta struct {
	Version                    int                `json:"version"`
	PreprocessedProfileVersion int                `json:"preprocessedProfileVersion"`
	Product                    string             `json:"product"`
	ImportedFrom               string             `json:"importedFrom"`
	Interval                   float64            `json:"interval"` // milliseconds
	StartTime                  float64            `json:"startTime"`
	ProcessType                int                `json:"processType"`
	Stackwalk                  int                `json:"stackwalk"`
	Symbolicated               bool               `json:"symbolicated"`
	UsesOnlyOneStackType       bool               `json:"usesOnlyOneStackType"`
	SourceCodeIsNotOnSearchfox bool               `json:"sourceCodeIsNotOnSearchfox"`
	KeepProfileThreadOrder     bool               `json:"keepProfileThreadOrder"`
	InitialVisibleThreads      []int              `json:"initialVisibleThreads,omitempty"`
	MarkerSchema               []firefoxSchema    `json:"markerSchema"`
	SampleUnits                firefoxSampleUnits `json:"sampleUnits"`
	Categories                 []firefoxCategory  `json:"categories"`
	Extra                      []firefoxExtra     `json:"extra,omitempty"`
}

type firefoxSampleUnits struct {
	Time           string `json:"time"`
	EventDelay     string `json:"eventDelay"`
	ThreadCPUDelta string `json:"threadCPUDelta"`
}

// firefoxSchema is how markers of a type are shown (src/types/markers.ts, MarkerSchema).
type firefoxSchema struct {
	Name    string     `json:"name"`
	Display []string   `json:"display"`
	Fields  []struct{} `json:"fields"`
}

// dispatchSchema is the schema of dispatches of kernels, which are markers beside samples.
var dispatchSchema = firefoxSchema{"dispatch", []string{"marker-chart", "marker-table", "timeline-overview"}, []struct{}{}}

// firefoxExtra is shown in the viewer's description of the profile (ExtraProfileInfoSection).
type firefoxExtra struct {
	Label   string              `json:"label"`
	Entries []firefoxExtraEntry `json:"entries"`
}

type firefoxExtraEntry struct {
	Label  string `json:"label"`
	Format string `json:"format"`
	Value  any    `json:"value"`
}

// firefoxLib is a code object (Lib).
type firefoxLib struct {
	Arch       string  `json:"arch"`
	Name       string  `json:"name"`
	Path       string  `json:"path"`
	DebugName  string  `json:"debugName"`
	DebugPath  string  `json:"debugPath"`
	BreakpadID string  `json:"breakpadId"`
	CodeID     *string `json:"codeId"`
}

// firefoxWriter writes one file. Stacks, frames and functions are the same for all threads,
// and are written column by column.
type firefoxWriter struct {
	output
	r       *Profile
	threads []threadSamples
	times   firefoxTimes
	tables  *firefoxTables
}

// WriteFirefox writes the profile in the processed format of Firefox Profiler
// (firefox-devtools/profiler, src/types/profile.ts): a thread for every thread of every
// value, within its process. It streams: besides the profile it keeps a number for each
// sample and each stack in memory.
func (r *Profile) WriteFirefox(w io.Writer) error {
	// The states of waves are subcategories there, and no values.
	f := &firefoxWriter{output: newOutput(w), r: r, threads: r.samplesOfThreads(valueOfLanes), times: r.firefoxTimes()}
	for i := range f.threads {
		f.times.sort(r, f.threads[i].samples)
	}
	var err error
	if f.tables, err = r.newFirefoxTables(); err != nil {
		return err
	}
	f.put(`{"meta":`)
	if err := compactJSON(f.output, f.meta()); err != nil {
		return err
	}
	f.put(",\n\"libs\":[")
	for i := range f.tables.libs {
		if err := nextJSON(f.output, i, &f.tables.libs[i]); err != nil {
			return err
		}
	}
	f.put("],\n\"shared\":")
	f.writeShared()
	f.put(",\n\"threads\":[")
	if err := f.writeThreads(); err != nil {
		return err
	}
	f.put("]}\n")
	return f.Flush()
}

func (f *firefoxWriter) meta() *firefoxMeta {
	m := &firefoxMeta{
		Version: firefoxGeckoVersion, PreprocessedProfileVersion: firefoxProcessedVersion,
		Product: f.r.title(), ImportedFrom: "unwindd",
		Interval: f.interval(), Stackwalk: 1,
		// Without it the viewer would send the build IDs to a server of symbols.
		Symbolicated:         true,
		UsesOnlyOneStackType: true, SourceCodeIsNotOnSearchfox: true, KeepProfileThreadOrder: true,
		MarkerSchema: []firefoxSchema{dispatchSchema}, SampleUnits: firefoxSampleUnits{"ms", "ms", "ns"},
		InitialVisibleThreads: f.visibleThreads(), Categories: f.r.firefoxCategories(),
	}
	var entries []firefoxExtraEntry
	if f.r.p.Lost > 0 {
		entries = append(entries, firefoxExtraEntry{"Samples that the kernel lost", "integer", f.r.p.Lost})
	}
	if f.times.isShifted {
		entries = append(entries, firefoxExtraEntry{"GPU times", "string", "by another clock: they are moved to begin with the CPU's"})
	}
	if entries != nil {
		m.Extra = []firefoxExtra{{"Recording", entries}}
	}
	return m
}

// maxVisibleThreads is the number of threads that are shown before a user selects more.
const maxVisibleThreads = 15

// visibleThreads are the threads that are shown at first: the heaviest of each value. The
// viewer's own choice hides threads with few samples, as rare events have.
func (f *firefoxWriter) visibleThreads() []int {
	rank := make([]int, len(f.threads)) // among the threads of its value
	order := make([]int, len(f.threads))
	for i := range f.threads {
		order[i] = i
		if i > 0 && f.threads[i].value == f.threads[i-1].value {
			rank[i] = rank[i-1] + 1
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return rank[a] - rank[b] })
	order = order[:min(len(order), maxVisibleThreads)]
	slices.Sort(order)
	return order
}

// firefoxCategories are the categories, by the device that executed. States of sampled waves
// are subcategories, which the viewer sums up for each function.
func (r *Profile) firefoxCategories() []firefoxCategory {
	states := []string{"Other"}
	for i := range r.p.States {
		if i > 0 {
			states = append(states, r.stateWords(uint8(i))) //nolint:gosec // at most gpusamples.MaxStates
		}
	}
	return []firefoxCategory{
		firefoxOther:  {"Other", "grey", []string{"Other"}}, // the grey one is the default
		firefoxUser:   {"User", "yellow", []string{"Other"}},
		firefoxKernel: {"Kernel", "orange", []string{"Other"}},
		firefoxGPU:    {"GPU", "green", states},
	}
}

// stateWords describes what waves did in a state.
func (r *Profile) stateWords(state uint8) string {
	if r.p.States[state].Stalled {
		return "stalled: " + r.stateName(state)
	}
	return r.stateName(state)
}

// firefoxTimes are the times of the file, which count from its first sample.
type firefoxTimes struct {
	// start is the time of the first sample, by the clock of the recording and by that
	// of devices.
	start     [2]uint64
	isShifted bool // the two clocks are not one
}

// firefoxTimes finds when the profile begins. Where devices have a clock of their own both
// begin together: the viewer would show nothing but the gap between them. The time 0 is an
// unknown one.
func (r *Profile) firefoxTimes() (t firefoxTimes) {
	t.start = [2]uint64{math.MaxUint64, math.MaxUint64}
	for i := range r.p.Samples {
		if s := &r.p.Samples[i]; s.Time > 0 && r.isRequested(s) {
			c := r.clock(s)
			t.start[c] = min(t.start[c], s.Time)
		}
	}
	t.isShifted = t.start[0] != math.MaxUint64 && t.start[1] != math.MaxUint64
	return t
}

// clock is 1 for samples whose times are not by the recording's clock, else 0.
func (r *Profile) clock(s *trace.ProfileSample) int {
	if s.Event >= 0 && r.p.Events[s.Event].OtherClock {
		return 1
	}
	return 0
}

// nanoseconds is the time of a sample from the beginning of the file.
func (t *firefoxTimes) nanoseconds(r *Profile, s *trace.ProfileSample) uint64 {
	if s.Time == 0 {
		return 0
	}
	return s.Time - t.start[r.clock(s)]
}

// sort sorts samples by time; the samples of devices may be out of order.
func (t *firefoxTimes) sort(r *Profile, samples []int32) {
	byTime := func(a, b int32) int {
		x, y := t.nanoseconds(r, &r.p.Samples[a]), t.nanoseconds(r, &r.p.Samples[b])
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	}
	if !slices.IsSortedFunc(samples, byTime) {
		slices.SortStableFunc(samples, byTime)
	}
}

// interval is the distance between samples of a thread, in milliseconds: the median of the
// thread that has the most of them. The viewer draws a sample as wide as that.
func (f *firefoxWriter) interval() float64 {
	var most []int32
	for i := range f.threads {
		if s := f.threads[i].samples; len(s) > len(most) {
			most = s
		}
	}
	var apart []uint64
	for i := 1; i < len(most); i++ {
		d := f.times.nanoseconds(f.r, &f.r.p.Samples[most[i]]) - f.times.nanoseconds(f.r, &f.r.p.Samples[most[i-1]])
		if d > 0 {
			apart = append(apart, d)
		}
	}
	if len(apart) == 0 {
		return 1
	}
	slices.Sort(apart)
	return float64(apart[len(apart)/2]) / float64(time.Millisecond)
}

// firefoxLibOf describes a module.
func firefoxLibOf(m *trace.ProfileModule) firefoxLib {
	file := oneLine(m.Path)
	lib := firefoxLib{
		Arch: m.Arch, Name: path.Base(file), Path: file, DebugName: path.Base(file), DebugPath: file,
		BreakpadID: breakpadID(m.BuildID, !m.IsBigEndian),
	}
	if len(m.BuildID) > 0 {
		id := hex.EncodeToString(m.BuildID)
		lib.CodeID = &id
	}
	return lib
}

// breakpadID is the name of a code object on servers of symbols: the first 16 bytes of its
// build ID as a GUID, whose first three numbers are in the byte order of the machine, and the
// age 0.
func breakpadID(buildID []byte, isLittleEndian bool) string {
	var guid [16]byte
	copy(guid[:], buildID)
	if isLittleEndian {
		slices.Reverse(guid[0:4])
		slices.Reverse(guid[4:6])
		slices.Reverse(guid[6:8])
	}
	return strings.ToUpper(hex.EncodeToString(guid[:])) + "0"
}

// appendMilliseconds appends nanoseconds as milliseconds, exactly.
func appendMilliseconds(text []byte, nanoseconds uint64) []byte {
	text = strconv.AppendUint(text, nanoseconds/1e6, 10)
	rest := nanoseconds % 1e6
	if rest == 0 {
		return text
	}
	text = append(text, '.')
	for unit := uint64(1e5); rest > 0; unit /= 10 {
		text = append(text, byte('0'+rest/unit))
		rest %= unit
	}
	return text
}
