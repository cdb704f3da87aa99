// SPDX-License-Identifier: Apache-2.0

package rocprof

import (
	"errors"
	"runtime"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/object"
)

// job is a chunk that is read while others are delivered.
type job struct {
	process *process
	chunk   *chunk
	records []record
	err     error
	done    chan struct{}
}

// maxReaders bounds the goroutines that read.
const maxReaders = 4

// Samples delivers the samples in the order of the file. Some are read ahead, on
// other goroutines; yield is called on that of the caller.
func (f *File) Samples(yield func(*gpusamples.Sample) error) error {
	readers := min(maxReaders, runtime.GOMAXPROCS(0))
	free, queue, order, stop := make(chan *job, readers+1), make(chan *job), make(chan *job, readers+1), make(chan struct{})
	var running sync.WaitGroup
	defer running.Wait() // nothing may read when the file is closed
	defer close(stop)
	for range readers {
		running.Go(func() { f.readAhead(queue) })
	}
	for range cap(free) {
		free <- &job{done: make(chan struct{}, 1)}
	}
	running.Go(func() {
		defer close(order)
		defer close(queue)
		f.hand(free, queue, order, stop)
	})
	var sample gpusamples.Sample
	passed := 0 // bytes, since pages were released
	for j := range order {
		<-j.done
		for i := range j.records {
			j.process.fill(&sample, &j.records[i])
			if err := yield(&sample); err != nil {
				return err
			}
		}
		if j.err != nil {
			return j.err
		}
		if passed += j.chunk.end - j.chunk.start; passed >= f.maxMapped {
			// All of it: the kernel maps many pages around each that is touched.
			f.mapping.ReleasePages(0, uint64(len(f.data)))
			passed = 0
		}
		free <- j
	}
	return nil
}

// hand sends the chunks to the readers, in their order.
func (f *File) hand(free <-chan *job, queue, order chan<- *job, stop <-chan struct{}) {
	for _, p := range f.processes {
		for i := range p.chunks {
			var j *job
			select {
			case j = <-free:
			case <-stop:
				return
			}
			j.process, j.chunk, j.records, j.err = p, &p.chunks[i], j.records[:0], nil
			order <- j // its capacity is enough for all jobs
			select {
			case queue <- j:
			case <-stop:
				return
			}
		}
	}
}

// readAhead reads chunks.
func (f *File) readAhead(queue <-chan *job) {
	s := f.newRecords(sampleFields, maxRecord)
	for j := range queue {
		j.err = object.Guard(func() (err error) {
			j.records, err = j.process.readChunk(j.chunk, s, j.records)
			return err
		})
		if errors.Is(j.err, object.ErrFileShrank) {
			s = f.newRecords(sampleFields, maxRecord) // the old one stopped within a record
		}
		j.done <- struct{}{}
	}
}
