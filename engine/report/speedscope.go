// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// speedscopeSchema identifies the format of the file.
const speedscopeSchema = "https://www.speedscope.app/file-format-schema.json"

type speedscopeFrame struct {
	Name string `json:"name"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// WriteSpeedscope writes the profile as speedscope reads it: for every event
// the threads, the one with the most weight first, each with its samples by time.
func (r *Profile) WriteSpeedscope(w io.Writer) error {
	b := newOutput(w)
	frames, numbers := r.speedscopeFrames()
	b.put(`{"$schema":`, quoted(speedscopeSchema), `,"exporter":"unwindd","name":`, quoted(r.title()))
	b.put(`,"shared":{"frames":[`)
	for i := range frames {
		if err := nextJSON(b, i, frames[i]); err != nil {
			return err
		}
	}
	b.put(`]},"profiles":[`)
	for i, t := range r.samplesOfThreads(valueOfState) {
		if i > 0 {
			b.put(",")
		}
		r.writeSpeedscopeProfile(b, &t, numbers)
	}
	b.put("]}\n")
	return b.Flush()
}

// speedscopeFrames are the functions in samples, and the numbers of frames' functions among
// them.
func (r *Profile) speedscopeFrames() (frames []speedscopeFrame, numbers *speedscopeNumbers) {
	used := make([]bool, len(r.functions))
	for i, isUsed := range r.usedStacks() {
		if !isUsed {
			continue
		}
		for _, f := range r.functionOf[r.p.Stacks[i].Frame] {
			used[f] = true
		}
	}
	number := make([]int, len(r.functions))
	for i := range r.functions {
		if !used[i] {
			continue
		}
		f := &r.functions[i]
		number[i] = len(frames)
		frame := speedscopeFrame{Name: f.marked(), File: f.file, Line: f.line}
		if frame.File == "" {
			frame.File = f.module
		}
		frames = append(frames, frame)
	}
	numbers = &speedscopeNumbers{byFrame: make([]numberText, len(r.functionOf))}
	for i, functions := range r.functionOf {
		n := numberText{start: len(numbers.text)}
		for _, f := range slices.Backward(functions) {
			numbers.text = strconv.AppendInt(append(numbers.text, ','), int64(number[f]), 10)
		}
		n.end = len(numbers.text)
		numbers.byFrame[i] = n
	}
	return frames, numbers
}

// speedscopeNumbers are the numbers of each frame's functions, outermost first, as they
// are written, each with a comma before it.
type speedscopeNumbers struct {
	text    []byte
	byFrame []numberText
}

func (r *Profile) writeSpeedscopeProfile(b output, thread *threadSamples, numbers *speedscopeNumbers) {
	v, t, samples := &r.values[thread.value], &r.p.Threads[thread.thread], thread.samples
	name := cmp.Or(oneLine(t.Comm), "[unknown]")
	if t.TID >= 0 {
		name += " " + strconv.Itoa(t.TID)
	}
	if len(r.values) > 1 {
		name = v.name + ", " + name
	}
	unit := "none"
	if v.unit == "nanoseconds" {
		unit = v.unit
	}
	name = quoted(name)
	fmt.Fprintf(b, "\n{\"type\":\"sampled\",\"name\":%s,\"unit\":%q,\"startValue\":0,\"endValue\":%d,\"samples\":[", name, unit, thread.weight)
	comma := false
	// An error stays in the output.
	_ = inOrder(r.Jobs, len(samples), func(text []byte, from, to int) []byte {
		var frames []uint32
		for _, i := range samples[from:to] {
			text = append(text, ",["...)
			frames = r.p.StackFrames(frames[:0], r.p.Samples[i].Stack)
			comma := 1 // of the first number, which is left out
			for _, frame := range slices.Backward(frames) {
				n := numbers.byFrame[frame]
				text = append(text, numbers.text[n.start+comma:n.end]...)
				comma = 0
			}
			text = append(text, ']')
		}
		return text
	}, func(text []byte) error {
		if !comma && len(text) > 0 {
			text, comma = text[1:], true
		}
		_, err := b.Write(text)
		return err
	})
	var line []byte
	b.put("],\"weights\":[")
	for n, i := range samples {
		line = line[:0]
		if n > 0 {
			line = append(line, ',')
		}
		_, _ = b.Write(strconv.AppendUint(line, v.amount(&r.p.Samples[i]), 10))
	}
	b.put("]}")
}

// nextJSON writes the n-th element of an array, on a line of its own.
func nextJSON(b output, n int, v any) error {
	if n > 0 {
		b.put(",")
	}
	b.put("\n")
	return compactJSON(b, v)
}
