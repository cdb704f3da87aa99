// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"testing"

	pb "github.com/unwindd/unwindd/engine/service/servicepb"
	"github.com/unwindd/unwindd/internal/oracle"
)

// An echo is a Doer that answers with what it gets: what a job costs then is the queue's.
type echo struct{}

func (echo) Begin(_ context.Context, _ *Task, receive func(io.Writer) error) (Report, error) {
	b := &bytes.Buffer{}
	return &said{b}, receive(b)
}

// BenchmarkJobs has jobs submitted, done by a worker and waited for, over TCP: some at a time,
// or as many as a long night leaves. It says what the server and its clients, which are all in
// this process, take of the processors for a job.
func BenchmarkJobs(b *testing.B) {
	for _, bench := range []struct {
		name    string
		size    int
		atATime int
	}{{"6KiB", 6 << 10, 50}, {"100KiB", 100 << 10, 50}, {"500KiB", 500 << 10, 50}, {"6KiBBacklog", 6 << 10, 4000}} {
		b.Run(bench.name, func(b *testing.B) { benchmarkJobs(b, bench.size, bench.atATime) })
	}
}

func benchmarkJobs(b *testing.B, size, atATime int) {
	dir := b.TempDir()
	embedded(b, dir)
	q, err := Connect(b.Context(), Options{URL: ReadAddress(dir), Keep: Keep{Bytes: 3 << 30}})
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close()
	task, err := NewTask("stack", &pb.StackOptions{Format: "text"})
	if err != nil {
		b.Fatal(err)
	}
	input := make([]byte, size)
	var submitting, working float64
	var w *Worker
	b.SetBytes(int64(size))
	b.ResetTimer()
	for first := 0; first < b.N; first += atATime {
		before := processorTime(b)
		var ids []string
		for i := first; i < min(first+atATime, b.N); i++ {
			binary.LittleEndian.PutUint64(input, uint64(i)) //nolint:gosec // it counts up
			s, err := q.Submit(b.Context(), task, bytes.NewReader(input), How{})
			if err != nil {
				b.Fatal(err)
			}
			ids = append(ids, s.ID)
		}
		submitted := processorTime(b)
		if w == nil {
			w, _ = work(b, connect(b, dir), echo{}, 1)
		}
		if err := q.Wait(b.Context(), ids, func(*Result) error { return nil }); err != nil {
			b.Fatal(err)
		}
		submitting, working = submitting+submitted-before, working+processorTime(b)-submitted
	}
	b.ReportMetric(submitting/float64(b.N), "submit-cpu-µs/job")
	b.ReportMetric(working/float64(b.N), "work-cpu-µs/job")
}

// processorTime is what this process has used of the processors, in microseconds.
func processorTime(b *testing.B) float64 {
	b.Helper()
	return float64(oracle.ProcessorTime().Nanoseconds()) / 1e3
}
