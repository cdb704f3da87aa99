// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/unwindd/unwindd/engine/service/internal/objects"
)

// The questions that a desk answers.
const (
	askHello     = "hello"
	askSubmit    = "submit"
	askPut       = "put"        // begins to store a file
	askPiece     = "piece"      // a piece of it
	askLastPiece = "last-piece" // the last piece
	askDrop      = "drop"       // removes a file of code
	askResult    = "result"
	askReport    = "report" // begins to read a report
	askMore      = "more"   // its next piece
	askCancel    = "cancel"
	askList      = "list"
)

// answers are the functions that answer questions, by what these are about.
var answers = map[string]func(*desk, context.Context, *Queue, *question, []byte) (*reply, []byte, error){
	askHello: func(*desk, context.Context, *Queue, *question, []byte) (*reply, []byte, error) {
		return &reply{}, nil, nil
	},
	askSubmit:    (*desk).submit,
	askPut:       (*desk).put,
	askPiece:     (*desk).piece,
	askLastPiece: (*desk).piece,
	askDrop:      (*desk).drop,
	askResult:    (*desk).result,
	askReport:    (*desk).report,
	askMore:      (*desk).more,
	askCancel:    (*desk).cancel,
	askList:      (*desk).list,
}

// Names of stores in questions.
const (
	deskInputs  = "inputs"
	deskObjects = "objects"
)

// Bounds of a desk.
const (
	maxQuestions     = 16               // of a user at a time
	maxTransfers     = 8                // of a user at a time
	deskPatience     = 20 * time.Second // for an answer
	transferSilence  = 30 * time.Second // after which a transfer is given up
	maxPiece         = 512 << 10        // bytes of a file in a message
	maxPage          = 128 << 10        // bytes of a page of results, about
	maxResultsOnPage = 200
	maxTaskKind      = 64
)

// pieceSize returns the bytes of a file in a message.
func (q *Queue) pieceSize() int {
	return int(max(min(maxPiece, q.conn.MaxPayload()-4<<10), 1<<10))
}

// desk answers the questions of users who may not use JetStream, each for his own jobs alone: the
// subject of a question tells whose it is, and the server lets no other one publish there.
type desk struct {
	queue *Queue
	name  string

	mu        sync.Mutex
	busy      map[string]int // questions under way, by user
	transfers map[string]*transfer
}

// ServeUsers answers users of the servers who have no permissions of JetStream, until ctx ends. A
// Worker does so by itself.
func (q *Queue) ServeUsers(ctx context.Context) {
	d := &desk{queue: q, name: nuid.Next(), busy: map[string]int{}, transfers: map[string]*transfer{}}
	handle := func(m *nats.Msg) { d.take(ctx, m) }
	shared, err := q.conn.QueueSubscribe(askPrefix+"*."+anyDesk, "desks", handle)
	if err != nil {
		q.say("nobody may ask here: %v", err)
		return
	}
	defer func() { _ = shared.Unsubscribe() }()
	own, err := q.conn.Subscribe(askPrefix+"*."+d.name, handle)
	if err != nil {
		q.say("nobody may send files here: %v", err)
		return
	}
	defer func() { _ = own.Unsubscribe() }()
	<-ctx.Done()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.transfers {
		t.silent.Stop()
		t.end(errTransferLost)
	}
}

// take begins to answer a question. It does not wait, so that no user delays another.
func (d *desk) take(ctx context.Context, m *nats.Msg) {
	user, _, _ := strings.Cut(strings.TrimPrefix(m.Subject, askPrefix), ".")
	// The answer goes where the question says, and this user may publish anywhere.
	if !isWord(user) || !strings.HasPrefix(m.Reply, inboxOf(user)+".") {
		return
	}
	d.mu.Lock()
	isBusy := d.busy[user] >= maxQuestions
	if !isBusy {
		d.busy[user]++
	}
	d.mu.Unlock()
	if isBusy {
		d.answer(m, &reply{Problem: problemOf(errBusyDesk)}, nil)
		return
	}
	go func() {
		defer d.done(user)
		r, data, err := d.handle(ctx, user, m.Data)
		if err != nil {
			r, data = &reply{Problem: problemOf(err)}, nil
		}
		d.answer(m, r, data)
	}()
}

func (d *desk) done(user string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy[user]--; d.busy[user] == 0 {
		delete(d.busy, user)
	}
}

func (d *desk) answer(m *nats.Msg, r *reply, data []byte) {
	b, err := pack(r, data)
	if err == nil {
		err = m.Respond(b)
	}
	if err != nil {
		d.queue.say("an answer: %v", err)
	}
}

// handle answers a question of a user.
func (d *desk) handle(ctx context.Context, user string, message []byte) (*reply, []byte, error) {
	about := &question{}
	data, err := unpack(message, about)
	if err != nil {
		return nil, nil, fmt.Errorf("a question that cannot be read: %w", err)
	}
	answer := answers[about.About]
	if answer == nil {
		return nil, nil, fmt.Errorf("a question about %.100q, which this worker does not know", about.About)
	}
	if about.ID != "" && !IsID(about.ID) {
		return nil, nil, fmt.Errorf("%.100q is no job's ID", about.ID)
	}
	ctx, cancel := context.WithTimeout(ctx, deskPatience)
	defer cancel()
	q, err := d.queue.of(ctx, user)
	if err != nil {
		return nil, nil, err
	}
	return answer(d, ctx, q, about, data)
}

// submit submits a job. Without Submitted in the reply the input is missing.
func (d *desk) submit(ctx context.Context, q *Queue, about *question, data []byte) (*reply, []byte, error) {
	j, err := about.job(data)
	if err != nil {
		return nil, nil, err
	}
	if !slices.Contains(Priorities, about.Priority) {
		return nil, nil, fmt.Errorf("a priority %.100q, expected one of %v", about.Priority, Priorities)
	}
	s, err := q.submit(ctx, j, How{Priority: about.Priority, Again: about.Again}, func() error {
		if j.Size == 0 || len(data) > 0 {
			return nil
		}
		has, err := q.has(ctx, q.inputs, j.Input, j.Input)
		if err == nil && !has {
			err = errNoInput
		}
		return err
	})
	if errors.Is(err, errNoInput) {
		return &reply{}, nil, nil
	}
	return &reply{Submitted: s}, nil, err
}

// job returns the job of a question, whose input is data, or in the store.
func (about *question) job(data []byte) (*job, error) {
	if len(about.Kind) > maxTaskKind || len(about.Options) > maxOptions || int64(len(data)) > maxInline {
		return nil, fmt.Errorf("a job of the kind %.100q with options of %d bytes and an input of %d bytes in the message", about.Kind, len(about.Options), len(data))
	}
	options, err := json.Marshal(about.Options) // as a worker will read them
	if err != nil {
		return nil, fmt.Errorf("options that cannot be read: %w", err)
	}
	j := &job{
		Version: version, Task: Task{Kind: about.Kind, Options: options}, Input: about.SHA256, Size: about.Size,
		Deadline: about.Deadline, Parts: about.Parts, Submitted: time.Now().UTC(), Data: data,
	}
	if err := j.check(); err != nil {
		return nil, err
	}
	if len(data) > 0 || j.Size == 0 {
		err = writeChecked("the input", data, j.Input, io.Discard)
	}
	return j, err
}

// result answers with the message of a result.
func (d *desk) result(ctx context.Context, q *Queue, about *question, _ []byte) (*reply, []byte, error) {
	r, err := q.result(ctx, about.ID)
	if err != nil {
		return nil, nil, err
	}
	b, err := pack(r, r.Data)
	return &reply{}, b, err
}

func (d *desk) cancel(ctx context.Context, q *Queue, about *question, _ []byte) (*reply, []byte, error) {
	ok, err := q.Cancel(ctx, about.ID)
	return &reply{OK: ok}, nil, err
}

// errPageFull ends a page of results.
var errPageFull = errors.New("the page is full")

// list answers with a page of results.
func (d *desk) list(ctx context.Context, q *Queue, about *question, _ []byte) (*reply, []byte, error) {
	r, size := &reply{}, 0
	err := q.resultsFrom(ctx, about.Place, func(place uint64, one *Result) error {
		one.Data = nil
		b, err := json.Marshal(one)
		if err != nil {
			return err
		}
		if size += len(b); len(r.Results) == maxResultsOnPage || len(r.Results) > 0 && size > maxPage {
			r.Place = place
			return errPageFull
		}
		r.Results = append(r.Results, one)
		return nil
	})
	r.Ended = err == nil
	if errors.Is(err, errPageFull) {
		err = nil
	}
	return r, nil, err
}

// drop removes a file of code of the user.
func (d *desk) drop(ctx context.Context, q *Queue, about *question, _ []byte) (*reply, []byte, error) {
	if !isObjectName(about.Name) {
		return nil, nil, fmt.Errorf("a file called %.100q, expected a build ID and what it is", about.Name)
	}
	return &reply{}, nil, q.drop(ctx, about.Name)
}

// isObjectName reports whether a store of objects may have a file of a name.
func isObjectName(name string) bool {
	text, kind, _ := strings.Cut(name, ".")
	id, err := hex.DecodeString(text)
	return err == nil && isObjectID(id) && text == strings.ToLower(text) && (kind == objects.Executable || kind == objects.DebugInfo)
}

// put begins to store a file, unless it is there.
func (d *desk) put(ctx context.Context, q *Queue, about *question, _ []byte) (*reply, []byte, error) {
	store := q.inputs
	isRight := about.Name == about.SHA256
	if about.Store == deskObjects {
		store, isRight = q.objects, isObjectName(about.Name)
	}
	if b, err := hex.DecodeString(about.SHA256); err != nil || len(b) != sha256.Size || !isRight || about.Size < 0 {
		return nil, nil, fmt.Errorf("a file called %.100q of %d bytes, with the SHA-256 %.100q", about.Name, about.Size, about.SHA256)
	}
	has, err := q.has(ctx, store, about.Name, about.SHA256)
	if has || err != nil {
		return &reply{Has: has}, nil, err
	}
	reader, writer := io.Pipe()
	t := &transfer{user: q.user, writer: writer, left: about.Size, ended: make(chan struct{})}
	name, err := d.begin(t, func(err error) { _ = reader.CloseWithError(err) })
	if err != nil {
		return nil, nil, err
	}
	go func() {
		defer close(t.ended)
		t.err = q.put(context.Background(), store, about.Name, about.SHA256, reader)
		_ = reader.CloseWithError(t.err) // more pieces have no reader
	}()
	return &reply{Desk: d.name, Transfer: name}, nil, nil
}

// report begins to read a large report.
func (d *desk) report(ctx context.Context, q *Queue, about *question, _ []byte) (*reply, []byte, error) {
	r, err := q.result(ctx, about.ID)
	if err != nil {
		return nil, nil, err
	}
	if r.State != Done || r.Object == "" {
		return nil, nil, fmt.Errorf("%s: its report is no file", r.ID)
	}
	reader, writer := io.Pipe()
	t := &transfer{user: q.user, reader: reader, ended: make(chan struct{})}
	name, err := d.begin(t, func(err error) { _ = reader.CloseWithError(err) })
	if err != nil {
		return nil, nil, err
	}
	go func() {
		defer close(t.ended)
		_ = writer.CloseWithError(copyOut(context.Background(), q.reports, r.Object, r.SHA256, writer))
	}()
	return &reply{Desk: d.name, Transfer: name}, nil, nil
}

// errTransferLost is the error of a piece of a transfer that the desk does not have.
var errTransferLost = errors.New("the transfer was given up: begin it again")

// transfer is a file that a user sends or reads.
type transfer struct {
	user   string
	end    func(error) // ends it
	silent *time.Timer

	mu     sync.Mutex // held while a piece is handled
	place  uint64     // of the last piece
	writer *io.PipeWriter
	reader *io.PipeReader
	left   int64 // bytes that are still to come

	ended chan struct{} // closed when nothing is stored or read any more
	err   error         // then: why the file is not stored
}

// begin adds a transfer, which end ends.
func (d *desk) begin(t *transfer, end func(error)) (name string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, other := range d.transfers {
		if other.user == t.user {
			n++
		}
	}
	if n >= maxTransfers {
		return "", errBusyDesk
	}
	name = nuid.Next()
	t.end = end
	t.silent = time.AfterFunc(transferSilence, func() { d.remove(name, t) })
	d.transfers[name] = t
	return name, nil
}

// remove ends a transfer.
func (d *desk) remove(name string, t *transfer) {
	d.mu.Lock()
	delete(d.transfers, name)
	d.mu.Unlock()
	t.silent.Stop()
	t.end(errTransferLost)
}

// find returns a transfer of a user.
func (d *desk) find(user, name string) (*transfer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.transfers[name]
	if t == nil || t.user != user {
		return nil, errTransferLost
	}
	t.silent.Reset(transferSilence)
	return t, nil
}

// piece takes a piece of a file.
func (d *desk) piece(ctx context.Context, q *Queue, about *question, data []byte) (*reply, []byte, error) {
	t, err := d.find(q.user, about.Transfer)
	if err != nil {
		return nil, nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.writer == nil || about.Place != t.place+1 {
		return nil, nil, fmt.Errorf("piece %d, expected %d", about.Place, t.place+1)
	}
	t.place = about.Place
	if t.left -= int64(len(data)); t.left < 0 {
		err = fmt.Errorf("%w: it has more bytes", errWrongSum)
	} else if _, err = t.writer.Write(data); err == nil && about.About == askPiece {
		return &reply{}, nil, nil
	}
	defer d.remove(about.Transfer, t)
	if err == nil {
		err = t.writer.Close()
	}
	if err != nil {
		return nil, nil, err
	}
	select {
	case <-t.ended:
		return &reply{}, nil, t.err
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

// more answers with a piece of a report.
func (d *desk) more(_ context.Context, q *Queue, about *question, _ []byte) (*reply, []byte, error) {
	t, err := d.find(q.user, about.Transfer)
	if err != nil {
		return nil, nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reader == nil || about.Place != t.place+1 {
		return nil, nil, fmt.Errorf("piece %d, expected %d", about.Place, t.place+1)
	}
	t.place = about.Place
	piece := make([]byte, q.pieceSize())
	n, err := io.ReadFull(t.reader, piece)
	if err == nil {
		return &reply{}, piece, nil
	}
	d.remove(about.Transfer, t)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &reply{Ended: true}, piece[:n], nil
	}
	return nil, nil, err
}
