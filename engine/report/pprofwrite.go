// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"

	"github.com/google/pprof/profile"
	"github.com/klauspost/compress/gzip"
	"google.golang.org/protobuf/encoding/protowire"
)

// The fields of profile.proto that samples are written by.
const (
	profileSample  protowire.Number = 2 // of Profile
	sampleLocation protowire.Number = 1 // of Sample
	sampleValue    protowire.Number = 2
	sampleLabel    protowire.Number = 3
)

// WritePprof writes the profile in pprof's format, compressed by gzip.
//
// Samples are most of it, and are streamed: as objects of the pprof library they take several
// times the memory and the time. Everything else, texts and the samples' labels included, the
// library writes.
func (r *Profile) WritePprof(w io.Writer) error {
	b := &pprofBuilder{r: r}
	b.prepare()
	parts, err := b.encode()
	if err != nil {
		return err
	}
	// profile.Profile.Write compresses too, in three times the time.
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if _, err := z.Write(parts.before); err != nil {
		return err
	}
	if err := b.writeSamples(z, parts.labels); err != nil {
		return err
	}
	if _, err := z.Write(parts.behind); err != nil {
		return err
	}
	return z.Close()
}

// pprofParts are an encoded profile without its samples.
type pprofParts struct {
	before, behind []byte            // of the samples
	labels         map[uint32][]byte // of the samples of a thread
}

// encode encodes the profile without the samples. The library gets a sample of each thread,
// in the order of the list, to number the texts of their labels.
func (b *pprofBuilder) encode() (*pprofParts, error) {
	parts := &pprofParts{labels: map[uint32][]byte{}}
	var threads []uint32
	for i, x := range b.list {
		if _, ok := parts.labels[x.thread]; ok {
			continue
		}
		parts.labels[x.thread] = nil
		threads = append(threads, x.thread)
		s := &profile.Sample{Value: b.valuesOf(nil, i)}
		b.label(s, &b.r.p.Threads[x.thread])
		b.out.Sample = append(b.out.Sample, s)
	}
	if err := b.out.CheckValid(); err != nil {
		return nil, err
	}
	var whole encoded
	if err := b.out.WriteUncompressed(&whole); err != nil {
		return nil, err
	}
	for rest := []byte(whole); len(rest) > 0; {
		number, kind, n := protowire.ConsumeField(rest)
		if n < 0 {
			return nil, fmt.Errorf("the profile's encoding: %w", protowire.ParseError(n))
		}
		field := rest[:n]
		rest = rest[n:]
		switch {
		case number < profileSample:
			parts.before = append(parts.before, field...)
		case number > profileSample || kind != protowire.BytesType:
			parts.behind = append(parts.behind, field...)
		default:
			parts.labels[threads[0]] = labelsOf(field)
			threads = threads[1:]
		}
	}
	return parts, nil
}

// encoded is a buffer for a whole encoding.
type encoded []byte

func (e *encoded) Write(p []byte) (int, error) {
	*e = append(*e, p...)
	return len(p), nil
}

// labelsOf are the labels in an encoded sample, which is well-formed.
func labelsOf(field []byte) (labels []byte) {
	_, _, tag := protowire.ConsumeTag(field)
	sample, _ := protowire.ConsumeBytes(field[tag:])
	for len(sample) > 0 {
		number, _, n := protowire.ConsumeField(sample)
		if n < 0 {
			break
		}
		if number == sampleLabel {
			labels = append(labels, sample[:n]...)
		}
		sample = sample[n:]
	}
	return labels
}

// writeSamples writes the samples of the list.
func (b *pprofBuilder) writeSamples(w io.Writer, labels map[uint32][]byte) error {
	var stack, values []uint64
	var sums []int64
	var body, out []byte
	for i, x := range b.list {
		stack, values = stack[:0], values[:0]
		for n := x.stack; n != 0; n = b.r.p.Stacks[n].Caller {
			stack = append(stack, uint64(b.stacks.location[b.r.p.Stacks[n].Frame]))
		}
		sums = b.valuesOf(sums[:0], i)
		for _, v := range sums {
			values = append(values, uint64(v))
		}
		body = appendNumbers(body[:0], sampleLocation, stack)
		body = append(appendNumbers(body, sampleValue, values), labels[x.thread]...)
		out = protowire.AppendTag(out, profileSample, protowire.BytesType)
		out = protowire.AppendBytes(out, body)
		if len(out) >= 1<<16 || i == len(b.list)-1 {
			if _, err := w.Write(out); err != nil {
				return err
			}
			out = out[:0]
		}
	}
	return nil
}

// appendNumbers appends a repeated field as the library does: packed where there are
// more than two.
func appendNumbers(b []byte, field protowire.Number, numbers []uint64) []byte {
	if len(numbers) <= 2 {
		for _, n := range numbers {
			b = protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
		}
		return b
	}
	size := 0
	for _, n := range numbers {
		size += protowire.SizeVarint(n)
	}
	b = protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(size))
	for _, n := range numbers {
		b = protowire.AppendVarint(b, n)
	}
	return b
}
