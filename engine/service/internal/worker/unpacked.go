// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/unpack"
	"github.com/unwindd/unwindd/internal/host"
)

// Packed targets are unpacked by a worker, and written by the server: into files without a name, in its folder of
// requests, and within the bytes of the caller. So a worker writes no file itself, whoever has taken it over. The bytes
// go through a pipe, in pieces with a head: their offset (8 bytes, little-endian) and number (4), which is 0 in the last
// one, whose offset is the size. What lies between pieces are zeros.

// pieceHead is the size of the head of a piece.
const pieceHead = 12

// Space is the disk space that a caller has.
type Space struct {
	Take func(bytes int64) error // an error: there are not as many
	Give func(bytes int64)
}

// runFiles are the files that a run unpacks into.
type runFiles struct {
	dir   string
	most  int64 // bytes of a file, with holes
	space Space

	mu    sync.Mutex
	open  map[uint64]*unpackedFile // by the numbers of their beginnings
	ended bool
	err   error // why bytes were refused; nil: none were
}

// maxOpenFiles bounds the files of a run at a time.
const maxOpenFiles = maxDescriptors / 4

// spaceStep is the number of bytes that are taken at a time, where there are as many.
const spaceStep = 16 << 20

// takeAbout takes a number of bytes or more.
func (s Space) takeAbout(n int64) (taken int64, err error) {
	if n < spaceStep && s.Take(spaceStep) == nil {
		return spaceStep, nil
	}
	return n, s.Take(n)
}

// errRunEnded is the error of a file of a run that has ended.
var errRunEnded = errors.New("the request has ended")

// begin makes a file, and a pipe to it.
func (f *runFiles) begin(number uint64) (created *unpackedFile, write *os.File, err error) {
	if f == nil {
		return nil, nil, errRunEnded
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.ended:
		return nil, nil, errRunEnded
	case len(f.open) >= maxOpenFiles || f.open[number] != nil:
		return nil, nil, fmt.Errorf("%d files to unpack into are open, expected at most %d, each with a number of its own", len(f.open), maxOpenFiles)
	}
	file, err := unpack.Nameless(f.dir)
	if err != nil {
		f.err = err
		return nil, nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	created = &unpackedFile{run: f, file: file, pipe: read, most: f.most, mostStored: f.most}
	if f.open == nil {
		f.open = map[uint64]*unpackedFile{}
	}
	f.open[number] = created
	return created, write, nil
}

// refuse records why bytes were refused.
func (f *runFiles) refuse(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil && !f.ended {
		f.err = err
	}
	return err
}

// drop removes a file.
func (f *runFiles) drop(number uint64) {
	if f == nil {
		return
	}
	f.mu.Lock()
	file := f.open[number]
	delete(f.open, number)
	f.mu.Unlock()
	if file != nil {
		file.remove()
	}
}

// end removes all files, and returns why bytes were refused.
func (f *runFiles) end() error {
	f.mu.Lock()
	open := f.open
	f.open, f.ended = nil, true
	err := f.err
	f.mu.Unlock()
	for _, file := range open {
		file.remove()
	}
	return err
}

// unpackedFile is a file that a worker unpacks into.
type unpackedFile struct {
	run  *runFiles
	file *os.File
	pipe *os.File // its end that is read
	most int64    // bytes, with holes
	// mostStored bounds the bytes without holes: half of the free ones of the disk.
	mostStored int64

	mu     sync.Mutex
	size   int64
	stored int64 // bytes of the blocks that were written
	taken  int64 // of the space
	gone   bool
}

// receive writes what comes through the pipe.
func (u *unpackedFile) receive() error {
	in := bufio.NewReaderSize(u.pipe, 256<<10)
	var head [pieceHead]byte
	for {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return fmt.Errorf("what was unpacked breaks off: %w", err)
		}
		offset, n := binary.LittleEndian.Uint64(head[:]), int64(binary.LittleEndian.Uint32(head[8:]))
		if offset < uint64(u.size) || offset > uint64(u.most) || n > u.most-int64(offset) { //nolint:gosec // sizes are positive
			return fmt.Errorf("%d bytes at offset %#x of an unpacked file, expected them behind %#x and before %#x", n, offset, u.size, u.most)
		}
		if n == 0 {
			return u.truncate(int64(offset)) //nolint:gosec // bounded
		}
		if err := u.write(in, int64(offset), n); err != nil { //nolint:gosec // bounded
			return err
		}
	}
}

// blockSize is the size of the blocks in which disk space is counted.
const blockSize = 4096

// write writes a piece.
func (u *unpackedFile) write(pieces io.Reader, offset, n int64) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.gone {
		return errRunEnded
	}
	u.stored += ((offset+n+blockSize-1)/blockSize - offset/blockSize) * blockSize
	if u.stored > u.mostStored {
		return fmt.Errorf("more than %d bytes that are not zero, expected fewer than half of those that are free", u.mostStored)
	}
	if more := u.stored - u.taken; more > 0 {
		taken, err := u.run.space.takeAbout(more)
		if err != nil {
			return u.run.refuse(err)
		}
		u.taken += taken
	}
	if _, err := io.CopyN(io.NewOffsetWriter(u.file, offset), pieces, n); err != nil {
		return u.run.refuse(err)
	}
	u.size = offset + n
	return nil
}

// truncate ends the file at a size.
func (u *unpackedFile) truncate(size int64) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.gone {
		return errRunEnded
	}
	u.size = size
	u.run.space.Give(u.taken - u.stored)
	u.taken = u.stored
	return u.file.Truncate(size)
}

// remove frees the bytes of the file, even where a worker keeps it open.
func (u *unpackedFile) remove() {
	_ = u.pipe.Close() // whoever reads or writes it ends
	u.mu.Lock()
	defer u.mu.Unlock()
	u.gone = true
	_ = u.file.Truncate(0)
	_ = u.file.Close()
	u.run.space.Give(u.taken)
	u.taken = 0
}

// forReading opens the file once more, for a worker that may not write to it.
func (u *unpackedFile) forReading() (*os.File, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.gone {
		return nil, errRunEnded
	}
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", u.file.Fd()))
}

// unpack answers both questions of a file to unpack into.
func (w *process) unpack(q *unpackRequest) {
	created, write, err := w.files.Load().begin(q.Begin)
	if err != nil {
		_ = w.conn.send(toWorker{Unpacked: &unpacked{Number: q.Begin, Failure: err.Error()}})
		return
	}
	a := unpacked{Number: q.Begin, Free: -1}
	if free, ok := host.FreeBytes(created.file); ok {
		a.Free = int64(min(free, 1<<62)) //nolint:gosec // bounded
		created.mostStored = min(created.mostStored, a.Free/2) + blockSize
	}
	err = w.conn.send(toWorker{Unpacked: &a}, write)
	_ = write.Close()
	if err != nil {
		return // the run ends
	}
	err = created.receive()
	_ = created.pipe.Close()
	var file *os.File
	if err == nil {
		file, err = created.forReading()
	}
	if err != nil {
		_ = w.conn.send(toWorker{Unpacked: &unpacked{Number: q.End, Failure: err.Error()}})
		return
	}
	_ = w.conn.send(toWorker{Unpacked: &unpacked{Number: q.End}}, file)
	_ = file.Close()
}

// sink is the worker's end of a file that the server writes.
type sink struct {
	worker *worker
	number uint64 // of its beginning
	ended  chan unpacked
	pipe   *os.File
	free   int64
	head   [pieceHead]byte
}

// unpack asks the server for a file to unpack into.
func (w *worker) unpack() (unpack.Sink, error) {
	begin, begun := w.unpacks.begin()
	end, ended := w.unpacks.begin()
	if err := w.conn.send(fromWorker{Unpack: &unpackRequest{begin, end}}); err != nil {
		return nil, err
	}
	a := <-begun // if the server goes, so does this process
	if a.Failure != "" || a.file == nil {
		return nil, fmt.Errorf("%w: %s", unpack.ErrRefused, a.Failure)
	}
	return &sink{worker: w, number: begin, ended: ended, pipe: a.file, free: a.Free}, nil
}

// Free implements unpack.Sink.
func (s *sink) Free() (bytes int64, where string) {
	if s.free < 0 {
		return 0, ""
	}
	return s.free, "on the server's disk"
}

// WriteAt implements unpack.Sink.
func (s *sink) WriteAt(b []byte, offset int64) (n int, err error) {
	for n < len(b) {
		part := b[n:min(len(b), n+1<<30)]
		if err := s.send(offset+int64(n), part); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// send sends a piece. Where the server takes no more, the error is the reason.
func (s *sink) send(offset int64, b []byte) error {
	binary.LittleEndian.PutUint64(s.head[:], uint64(offset))  //nolint:gosec // positive
	binary.LittleEndian.PutUint32(s.head[8:], uint32(len(b))) //nolint:gosec // bounded by WriteAt
	_, err := s.pipe.Write(s.head[:])
	if err == nil && len(b) > 0 {
		_, err = s.pipe.Write(b)
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", unpack.ErrRefused, (<-s.ended).Failure)
}

// Finish implements unpack.Sink.
func (s *sink) Finish(size int64) (*os.File, error) {
	if err := s.send(size, nil); err != nil {
		return nil, err
	}
	a := <-s.ended
	if a.Failure != "" || a.file == nil {
		return nil, fmt.Errorf("%w: %s", unpack.ErrRefused, a.Failure)
	}
	return a.file, nil
}

// Drop implements unpack.Sink.
func (s *sink) Drop() {
	_ = s.pipe.Close()
	_ = s.worker.conn.send(fromWorker{Drop: s.number}) // the server may be gone
}
