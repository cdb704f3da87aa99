// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// Questions that are already available are answered together, on all cores, in parts; the
// answers come in the order of the questions.
const (
	batchPart = 32
	// restParts is the number of parts after which pages of a mapped file are released, until
	// that has happened maxRests times: later questions need them again.
	restParts = 4
	maxRests  = 16
	// maxBatch bounds the memory, in questions: batchOfCore for each core.
	batchOfCore = 512
	maxBatch    = 16 * batchOfCore
	// maxFrames bounds the buffer of frames that a worker keeps.
	maxFrames = 1024
	// outputBuffer is the size of a write, in bytes.
	outputBuffer = 1 << 16
	// textBlock is the size of a block of answers' text, in bytes. Another answer is written to
	// one that has leastText bytes left; a longer one makes it grow.
	textBlock = 1 << 16
	leastText = 1 << 12
	// maxQuestion bounds a line that is read, in bytes.
	maxQuestion = 1 << 20
)

// pending is a question without a written answer.
type pending struct {
	Answer
	question question
	file     *File // nil, with a nil ir: the answer is complete
	ir       symbol.IR
	buildID  []byte // of a file that may be on another machine alone
	message  string // written before the answer; "": none
	unknown  string // a name that no function has
	err      error  // why it could not be answered

	text []byte // of the answer, in a block of the worker
}

// answering is the functions with which a tool answers.
type answering struct {
	out     *bufio.Writer
	options WriterOptions
	// message, where it is not nil, receives messages that precede an answer.
	message func(text string)
	// prepare reads a question. It is called in the order of the questions.
	prepare func(line string) pending
	// fill answers a question that has a file. It is called concurrently, and may use the
	// capacity of frames.
	fill func(p *pending, frames []trace.Symbol)
	// elsewhere, where it is not nil, answers questions of a batch before the others are.
	elsewhere func(batch []pending) error
	// encode, where it is not nil, appends an answer in the place of the text of the options.
	encode func(dst []byte, p *pending) []byte
	// failed receives a question that has an err, in order: it sets the message, or returns
	// an error, which ends everything before that answer.
	failed func(p *pending) error

	// Buffers that every batch reuses.
	workers []*worker
	pending []pending
	order   []int32 // in which questions are answered
	rests   atomic.Int32
}

func batchSize() int { return min(batchOfCore*runtime.GOMAXPROCS(0), maxBatch) }

// run answers the questions, or where there are none the lines of input.
func (a *answering) run(questions []string, input io.Reader) error {
	if len(questions) > 0 {
		return a.list(questions)
	}
	return a.lines(input)
}

// lines answers the lines of r, a question on each.
func (a *answering) lines(r io.Reader) error {
	// more means that another whole line is buffered: reading it does not wait.
	more := false
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 1<<16), maxQuestion)
	s.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		n, line, err := bufio.ScanLines(data, atEOF)
		more = line != nil && bytes.IndexByte(data[n:], '\n') >= 0
		return n, line, err
	})
	var batch []string
	size := batchSize()
	for s.Scan() {
		if batch = append(batch, s.Text()); more && len(batch) < size {
			continue
		}
		if err := a.batch(batch); err != nil {
			return err
		}
		if batch = batch[:0]; more {
			continue
		}
		if err := a.out.Flush(); err != nil {
			return err
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	return nil
}

// list answers a list of questions, in JSON as one list.
func (a *answering) list(questions []string) error {
	if a.options.Style == StyleJSON {
		return a.jsonList(questions)
	}
	for batch := range slices.Chunk(questions, batchSize()) {
		if err := a.batch(batch); err != nil {
			return err
		}
	}
	return a.out.Flush()
}

func (a *answering) jsonList(questions []string) error {
	w := NewWriter(a.out, a.options)
	w.BeginList()
	for batch := range slices.Chunk(questions, batchSize()) {
		if err := a.prepareAll(batch); err != nil {
			return err
		}
		for i := range a.pending {
			if err := a.writeListed(w, &a.pending[i]); err != nil {
				return err
			}
		}
	}
	return errors.Join(w.EndList(), a.out.Flush())
}

// writeListed answers a question, and writes the answer into a list.
func (a *answering) writeListed(w *Writer, p *pending) error {
	a.lookUp(p, nil)
	if p.err != nil {
		if err := a.failed(p); err != nil {
			return err
		}
	}
	a.writeMessage(p)
	return w.Write(&p.Answer)
}

// prepareAll reads the questions of a batch, and has those answered that another machine answers.
func (a *answering) prepareAll(questions []string) error {
	a.pending = slices.Grow(a.pending[:0], len(questions))
	for _, q := range questions {
		a.pending = append(a.pending, a.prepare(q))
	}
	if a.elsewhere == nil {
		return nil
	}
	return a.elsewhere(a.pending)
}

// writeMessage passes on the message before an answer.
func (a *answering) writeMessage(p *pending) {
	if p.message != "" && a.message != nil {
		a.message(p.message)
	}
}

// lookUp completes an answer.
func (a *answering) lookUp(p *pending, frames []trace.Symbol) {
	if p.file != nil || p.ir != nil {
		p.err = object.Guard(func() error { a.fill(p, frames); return nil })
	}
}

// inOrder sorts the questions of a batch by file and address: neighbours are in one unit of
// debug information, so that little of it is in use at a time.
func (a *answering) inOrder() [][]int32 {
	a.order = a.order[:0]
	files := map[*File]int{}
	for i := range a.pending {
		a.order = append(a.order, int32(i))
		if f := a.pending[i].file; files[f] == 0 {
			files[f] = len(files) + 1
		}
	}
	if len(a.pending) > batchPart {
		slices.SortFunc(a.order, func(i, j int32) int {
			p, q := &a.pending[i], &a.pending[j]
			if p.file != q.file {
				return cmp.Compare(files[p.file], files[q.file])
			}
			return cmp.Or(cmp.Compare(p.Address, q.Address), cmp.Compare(i, j))
		})
	}
	return slices.Collect(slices.Chunk(a.order, batchPart))
}

// batch answers questions, and writes the answers.
func (a *answering) batch(questions []string) error {
	if err := a.prepareAll(questions); err != nil {
		return err
	}
	parts := a.inOrder()
	var next atomic.Int64
	work := func(w *worker) {
		for i := next.Add(1) - 1; i < int64(len(parts)); i = next.Add(1) - 1 {
			w.part(parts[i])
			if i%restParts == restParts-1 && a.rests.Add(1) <= maxRests {
				w.rest(parts[i])
			}
		}
	}
	var others sync.WaitGroup
	n := min(runtime.GOMAXPROCS(0), len(parts))
	for len(a.workers) < n {
		a.workers = append(a.workers, &worker{answering: a, writer: NewWriter(nil, a.options)})
	}
	for _, w := range a.workers {
		w.used = 0
	}
	for _, w := range a.workers[1:n] {
		others.Go(func() { work(w) })
	}
	work(a.workers[0])
	others.Wait()
	return a.write()
}

// write writes the answers of a batch and the messages before them.
func (a *answering) write() error {
	for i := range a.pending {
		p := &a.pending[i]
		if p.err != nil || p.message != "" {
			if err := a.out.Flush(); err != nil {
				return err
			}
		}
		if p.err != nil {
			if err := a.failed(p); err != nil {
				return err
			}
		}
		a.writeMessage(p)
		if _, err := a.out.Write(p.text); err != nil {
			return err
		}
	}
	return nil
}

// worker answers the questions of one part after the other.
type worker struct {
	*answering
	writer *Writer
	frames []trace.Symbol
	blocks [][]byte // of text: the first used-1 of them are full
	used   int
}

// part answers questions.
func (w *worker) part(part []int32) {
	for _, i := range part {
		p := &w.pending[i]
		w.lookUp(p, w.frames[:0])
		if cap(p.Frames) > cap(w.frames) && cap(p.Frames) <= maxFrames {
			w.frames = p.Frames
		}
		w.appendText(p)
		p.Frames = nil
	}
}

// appendText appends the text of an answer to a block.
func (w *worker) appendText(p *pending) {
	block := w.block()
	begin := len(*block)
	if w.encode != nil {
		*block = w.encode(*block, p)
	} else {
		*block = w.writer.Append(*block, &p.Answer)
	}
	p.text = (*block)[begin:]
}

// block is a block of text that has room for an answer.
func (w *worker) block() *[]byte {
	if w.used > 0 {
		if b := &w.blocks[w.used-1]; cap(*b)-len(*b) >= leastText {
			return b
		}
	}
	if w.used == len(w.blocks) {
		w.blocks = append(w.blocks, make([]byte, 0, textBlock))
	}
	b := &w.blocks[w.used]
	*b = (*b)[:0]
	w.used++
	return b
}

// rest releases the pages of a file that the questions of a part needed.
func (w *worker) rest(part []int32) {
	if f := w.pending[part[0]].file; f != nil {
		f.resolver.ReleasePages()
	}
}
